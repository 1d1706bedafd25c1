"""Gradient-boosted trees of LightGBM, which a blend averages with a kernel model.

Trees receive the rows of the kernel model before its own maps: plain numbers, or the encoded
columns of a table. Every prediction has these rows, even on the workers of a cluster,
which see no table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._parallel.machine import read_seconds
from ..._parallel.workers import default_threads
from ...data import RowSource
from ...data.rows.base import default_block_size
from .boosting import (
    MOST_ROUNDS,
    Boosting,
    Categories,
    Examples,
    import_lightgbm,
    positions_of,
    tree_features,
)

BOOSTER, SHIFT, SCALE, FEATURES = "booster.", "shift", "scale", "features"
"""Names of the tensors of a file; boosters are numbered."""


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees that predict t targets, or the codes of classes, from rows of features.

    Attributes
    ----------
    texts : tuple of str
        Boosters in LightGBM's text format: one for each target, or a single one for all classes.
    shift, scale : Array of shape (t,)
        Predictions are ``shift + scale * boosters``. Codes of classes are linear functions of
        probabilities: the prediction is the expected code of a row.
    features : int
        Number d of features that rows must have.
    categories : tuple of (int, int, int)
        Positions of the features that become native categories, see `Encoding.categories`.
    """

    texts: tuple[str, ...]
    shift: Float[Array, " t"]
    scale: Float[Array, " t"]
    features: int
    categories: Categories = ()

    @classmethod
    def fit(
        cls,
        X: Float[Array, "n d"],
        Y: Float[Array, "n t"],
        weights: Float[Array, " n"] | None = None,
        *,
        coded: bool,
        categories: Categories = (),
        rounds: Sequence[int] | None = None,
        held_out: tuple[Array, Array, Array | None] | None = None,
        ends: float = math.inf,
    ) -> Trees:
        """Fit trees to rows.

        Parameters
        ----------
        X : Array of shape (n, d)
        Y : Array of shape (n, t)
        weights : Array of shape (n,), optional
        coded : bool
            Whether targets are codes of classes.
        categories : tuple of (int, int, int), optional
            Positions of the features of categories.
        rounds : sequence of int, optional
            Rounds of each booster; `MOST_ROUNDS` by default.
        held_out : tuple of Array, optional
            Rows, targets and weights on which the number of rounds minimises the loss.
        ends : float, default=inf
            Deadline of early stopping, by `read_seconds`.

        Notes
        -----
        Losses: the squared error, or the log loss of classes. Nothing is random.
        """
        if coded:
            shift, scale = code_map(Y.shape[1])
        else:
            # Labels of LightGBM are float32: without a shift, large targets lose digits.
            shift, scale = xp.to_float64(Y).mean(axis=0), xp.std(xp.to_float64(Y), axis=0)
            scale = xp.where(scale > 0, scale, 1.0)
        boosting = Boosting(_objective(Y, coded), len(categories))

        def examples(X: Array, Y: Array, w: Array | None) -> Examples:
            labels = _labels(Y, coded, shift, scale)
            weights = None if w is None else xp.to_float64(w)
            return Examples(tree_features(X, categories), labels, weights)

        train, texts = examples(X, Y, weights), []
        held_examples = None if held_out is None else examples(*held_out)
        # The remaining time is divided evenly: the last boosters would otherwise have no rounds.
        seconds, count = ends - read_seconds(), train.labels.shape[1]
        for j in range(count):
            round_limit = MOST_ROUNDS if rounds is None else rounds[j]
            deadline = read_seconds() + seconds / count
            texts.append(boosting.fit(train, j, round_limit, held_examples, deadline))
        return cls(tuple(texts), shift, scale, X.shape[1], categories)

    @property
    def rounds(self) -> tuple[int, ...]:
        """Number of boosting rounds for each column of labels."""
        # A booster of several classes has a tree for each of them in a round.
        per_round = len(self.shift) // len(self.texts)
        return tuple(text.count("\nTree=") // per_round for text in self.texts)

    @cached_property
    def _boosters(self) -> list[Any]:
        lightgbm = import_lightgbm()
        try:
            return [lightgbm.Booster(model_str=text) for text in self.texts]
        except lightgbm.basic.LightGBMError as error:
            raise ValueError(f"the trees of the model are damaged: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for a pickle without boosters, which their texts replace."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the fields of a frozen instance."""
        self.__dict__.update(state)

    def predict_array(self, X: Float[Array, "b d"]) -> Float[Array, "b t"]:
        """Return the values of the targets at rows in memory, in float64."""
        array, threads = tree_features(X, self.categories), default_threads()
        values = [booster.predict(array, num_threads=threads) for booster in self._boosters]
        raw = np.column_stack(values).astype(np.float64).reshape(len(X), -1)
        return self.shift + self.scale * raw

    def predict(self, rows: RowSource) -> Float[Array, "n t"]:
        """Return the values of the targets at rows, in float64."""
        if rows.width != self.features:
            raise ValueError(f"X must have {self.features} features, not {rows.width}")
        return rows.map(self.predict_array, size=default_block_size(rows))

    def feature_importances(self) -> Float[Array, " d"]:
        """Return the share of each feature in the reduction of the loss by splits, with sum 1."""
        gains = sum(booster.feature_importance("gain") for booster in self._boosters)
        total = xp.to_float64(xp.zeros(self.features, xp.float32))
        # The gain of a category goes to its first feature: columns of a table add up theirs.
        kept_features, firsts = positions_of(self.features, self.categories)
        total[[*kept_features, *firsts]] = np.asarray(gains, np.float64)
        return total / total.sum() if bool(total.any()) else total

    def refit(
        self,
        X: Float[Array, "n d"],
        Y: Float[Array, "n t"],
        weights: Float[Array, " n"] | None,
        *,
        coded: bool,
    ) -> Trees:
        """Return trees that are fitted to other rows with as many rounds."""
        return Trees.fit(X, Y, weights, coded=coded, categories=self.categories, rounds=self.rounds)

    def tensors(self) -> dict[str, Array]:
        """Return the tensors of a file: texts as bytes, shift and scale."""
        texts = [np.frombuffer(text.encode(), np.uint8).copy() for text in self.texts]
        boosters = {f"{BOOSTER}{j}": text for j, text in enumerate(texts)}
        positions = [self.features, *(k for category in self.categories for k in category)]
        return {
            SHIFT: self.shift, SCALE: self.scale, FEATURES: xp.array(positions), **boosters
        }  # fmt: skip

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Array]) -> Trees:
        """Rebuild from the result of `tensors`; raise ValueError if it is damaged."""
        boosters = dict(tensors)
        shift, scale = boosters.pop(SHIFT), boosters.pop(SCALE)
        d, *positions = boosters.pop(FEATURES).tolist()
        flat = iter(positions)
        categories = tuple(zip(flat, flat, flat, strict=True))
        names = [f"{BOOSTER}{j}" for j in range(len(boosters))]
        if sorted(names) != sorted(boosters) or not names or shift.shape != scale.shape:
            raise ValueError("the trees of the model lack a tensor, or have an unknown one")
        texts = tuple(boosters[name].tobytes().decode() for name in names)
        return cls(texts, xp.to_float64(shift), xp.to_float64(scale), d, categories)


def code_map(t: int) -> tuple[Float[Array, " t"], Float[Array, " t"]]:
    """Return shift and scale of the linear map from probabilities to expected codes of classes."""
    # Two classes have the codes -1 and 1; of k classes, the own one is 1, the others -1 / (k - 1).
    low = -1.0 if t == 1 else -1 / (t - 1)
    return xp.to_float64(xp.full((t,), low)), xp.to_float64(xp.full((t,), 1 - low))


def _labels(Y: Float[Array, "n t"], coded: bool, shift: Array, scale: Array) -> np.ndarray:
    """Return a column of labels for each booster."""
    if not coded:
        return (xp.to_float64(Y) - shift) / scale
    # Several classes have one booster, of the numbers of the classes.
    return xp.to_float64((Y > 0) if Y.shape[1] == 1 else Y.argmax(axis=1)[:, None])


def _objective(Y: Float[Array, "n t"], coded: bool) -> dict[str, Any]:
    if not coded:
        return {"objective": "regression"}
    if Y.shape[1] == 1:
        return {"objective": "binary"}
    return {"objective": "multiclass", "num_class": Y.shape[1]}
