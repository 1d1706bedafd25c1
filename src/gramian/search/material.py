"""Material: the rows that a search works with, in memory, and how they are divided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._sparse import take_rows
from ..data import LinearMap, QuantileMap
from ..metric.sampling import divided
from ..paths.sample import Sample

FEW_ROWS = 1500
"""Below so many rows each is held out once, in five folds; beyond, a fifth is, 2,000 at most."""

FOLDS = 5

MOST_DIFFERENT = 1e3
"""Deviations of features of one unit, as of pixels or counts, differ by less than this factor."""


@dataclass(frozen=True, eq=False)
class Split:
    """Numbers of the rows to fit, in random order, and of those that are held out."""

    learn: Int[Tensor, " n"]
    held: Int[Tensor, " v"]


@dataclass(frozen=True, eq=False)
class Material:
    """Rows in memory, standardised or encoded; targets of deviation about 1, or codes of classes.

    Attributes
    ----------
    X : Tensor of shape (n, d)
        Dense or sparse; maps are for dense rows.
    Y : Tensor of shape (n, t)
    weights : Tensor of shape (n,), or None
    coded : bool
        Whether targets are codes of classes.
    splits : sequence of Split
    rng : torch.Generator
    scales : Tensor of shape (d,), or None
        Deviations of the features before they were standardised, if they were.
    """

    X: Float[Tensor, "n d"]
    Y: Float[Tensor, "n t"]
    weights: Float[Tensor, " n"] | None
    coded: bool
    splits: Sequence[Split]
    rng: torch.Generator
    scales: Float[Tensor, " d"] | None = None

    @classmethod
    def of(
        cls,
        X: Float[Tensor, "n d"],
        Y: Float[Tensor, "n t"],
        weights: Float[Tensor, " n"] | None = None,
        *,
        coded: bool = False,
        splits: Sequence[Split] | None = None,
        rng: torch.Generator,
        scales: Float[Tensor, " d"] | None = None,
    ) -> Material:
        """Return rows with the splits that were given, or with random ones."""
        if splits is None:
            splits = random_splits(Y, coded, rng)
        return cls(X, Y, weights, coded, splits, rng, scales)

    def part(self, index: Int[Tensor, " k"], splits: Sequence[Split]) -> Material:
        """Return some rows, mapped as all of them are, with splits of their own."""
        w = self.weights
        weights = None if w is None else w[index]
        X = take_rows(self.X, index)
        found = replace(self, X=X, Y=self.Y[index], weights=weights, splits=splits)
        return found.mapped_as(self)

    def mapped_as(self, other: Material) -> Material:
        """Return these rows with the quantiles, and the common scale, of others."""
        found, known = replace(self), ("quantiles", "common")
        vars(found).update({name: vars(other)[name] for name in known if name in vars(other)})
        return found

    @cached_property
    def quantiles(self) -> QuantileMap:
        """The map of the features to normal scores, by all rows: it does not look at targets."""
        return QuantileMap.fit(self.X, rng=self.rng)

    @cached_property
    def _normal(self) -> tuple[Tensor, Tensor]:
        """Rows made normal by their quantiles, and which of them have been by now."""
        return torch.empty_like(self.X), torch.zeros(len(self.X), dtype=torch.bool)

    @cached_property
    def common(self) -> LinearMap | None:
        """The map to features of one scale for all, as they were given but for their center.

        None if they were not standardised, if it would change nothing, or if deviations are so
        different that features cannot have one unit.
        """
        if self.scales is None or self.X.shape[1] == 1:
            return None
        varying = self.scales[self.X.abs().amax(dim=0) > 0]
        if len(varying) < 2 or not 1.05 < float(varying.max() / varying.min()) < MOST_DIFFERENT:
            return None
        return LinearMap(scales=self.scales / varying.square().mean().sqrt())

    def inputs(self, name: str) -> Float[Tensor, "n d"]:
        """Return the rows as they are, made normal by their quantiles, or of one scale for all."""
        if name == "common" and self.common is not None:
            return self._common
        return self._made_normal(torch.arange(len(self.X))) if name == "quantile" else self.X

    @cached_property
    def _common(self) -> Tensor:
        return self.X if self.common is None else self.common.forth(self.X)

    def composed(self, inputs: str, map_: LinearMap | None) -> LinearMap | None:
        """Return the linear map of standardised rows that inputs and a metric make together."""
        if inputs != "common" or self.common is None:
            return map_
        scales = self.common.array
        if map_ is None:
            return self.common
        if map_.matrix is None:
            return LinearMap(scales=scales * map_.array)
        return LinearMap(scales[:, None] * map_.matrix)

    def sample(self, inputs: str, split: Split, rows: int | None = None) -> Sample:
        """Return the rows of a split; of those to learn from so many, all by default."""
        w, learn = self.weights, split.learn[:rows]
        return Sample(
            self._rows(inputs, learn), self.Y[learn],
            self._rows(inputs, split.held), self.Y[split.held],
            None if w is None else w[learn], None if w is None else w[split.held],
        )  # fmt: skip

    def _rows(self, inputs: str, index: Int[Tensor, " k"]) -> Float[Tensor, "k d"]:
        X = self._made_normal(index) if inputs == "quantile" else self.inputs(inputs)
        return take_rows(X, index)

    def _made_normal(self, index: Int[Tensor, " k"]) -> Float[Tensor, "n d"]:
        """Return rows of which those with some numbers are mapped: they may be all that is asked.

        Quantiles of 1,000 features take a second for 10,000 rows.
        """
        mapped, known = self._normal
        new = index[~known[index]]
        mapped[new], known[new] = self.quantiles.scores(self.X[new]), True
        return mapped

    @cached_property
    def held(self) -> Int[Tensor, " v"]:
        """Numbers of all held-out rows, one split after the other."""
        return torch.cat([split.held for split in self.splits])

    @property
    def truth(self) -> Float[Tensor, "v t"]:
        """Targets of all held-out rows."""
        return self.Y[self.held]

    @property
    def held_weights(self) -> Float[Tensor, " v"] | None:
        """Weights of all held-out rows."""
        return None if self.weights is None else self.weights[self.held]


def random_splits(Y: Float[Tensor, "n t"], coded: bool, rng: torch.Generator) -> list[Split]:
    """Return five folds of few rows, or one part of many; classes have their share of each."""
    n = len(Y)
    if n < FEW_ROWS:
        return random_folds(Y, coded, FOLDS, rng)
    order = torch.randperm(n, generator=rng)
    held, learn = divided(Y[order], coded)
    return [Split(order[learn], order[held])]


def random_folds(
    Y: Float[Tensor, "n t"], coded: bool, count: int, rng: torch.Generator
) -> list[Split]:
    """Return so many folds, each held out once; classes have their share of each."""
    n = len(Y)
    order = torch.randperm(n, generator=rng)
    place = torch.arange(n)
    if coded:
        Z = Y[order]
        label = (Z[:, 0] > 0).long() if Z.shape[1] == 1 else Z.argmax(dim=1)
        place = label.argsort(stable=True)
    number = torch.empty(n, dtype=torch.int64)
    number[place] = torch.arange(n) % min(count, n)
    return [Split(order[number != k], order[number == k]) for k in range(min(count, n))]
