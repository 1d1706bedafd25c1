"""Block-wise reductions for metrics: means of forms, counts of classes, and ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _arrays as xp
from .._arrays import Array, Int, Num
from ..data import BlockReduction
from ..model import Probabilities
from ..model.uncertainty.probabilities import likeliest
from .forms import Form
from .ranks import MOST_BINS, Ranks

MOST_BINS_OF_ALL = 1 << 20
"""Bins of values at most, of all classes together: 25 MB."""


@dataclass(frozen=True, eq=False)
class Means:
    """Means over rows: the weight of the rows, and the state of each form; none without rows."""

    weight: float = 0.0
    states: tuple[np.ndarray, ...] = ()


@dataclass(frozen=True, eq=False)
class RowMeans(BlockReduction[Means]):
    """Reduction of predictions, true values and optional weights to `Means`.

    - `constant`: prediction in place of the values of the blocks.
    """

    forms: tuple[Form, ...]
    constant: float | None = None

    def __call__(self, start: int, block: Array, *rowwise: Any) -> Means:
        """Return the means of one block."""
        y = xp.to_float64(rowwise[0]).reshape(len(block), -1)
        w = xp.to_float64(rowwise[1]).reshape(-1) if len(rowwise) > 1 else None
        output = xp.to_float64(block)
        return self.of(y, output if self.constant is None else np.full_like(y, self.constant), w)

    def of(self, y: np.ndarray, output: np.ndarray, weights: np.ndarray | None) -> Means:
        """Return the means of a block in memory; none if no row has a weight."""
        weight = float(len(y) if weights is None else weights.sum())
        if weight == 0:
            return Means()
        return Means(weight, tuple(form.state(y, output, weights) for form in self.forms))

    def merge(self, a: Means, b: Means) -> Means:
        """Return the means of both."""
        if not (a.weight and b.weight):
            return a if a.weight else b
        weight, parts = a.weight + b.weight, zip(self.forms, a.states, b.states, strict=True)
        share = b.weight / weight
        return Means(
            weight, tuple(form.merge(a_state, b_state, share) for form, a_state, b_state in parts)
        )

    def values(self, means: Means) -> list[float]:
        """Return the mean over the targets of each form; NaN without rows."""
        if not means.weight:
            return [float("nan")] * len(self.forms)
        parts = zip(self.forms, means.states, strict=True)
        return [float(np.mean(form.value(state))) for form, state in parts]


@dataclass(frozen=True, eq=False)
class ClassSummary:
    """The result of `ClassMeans`.

    - `counts`: rows, or sums of weights, by the number of their label and of their predicted class.
    - `means`: means over the probabilities of rows whose label is a class.
    - `ranks`: ranks of the decision values of each class, or of the second of two, with its rows
      marked; empty if they are not requested.
    """

    counts: Num[Array, "l k"]
    means: Means
    ranks: tuple[Ranks, ...]


@dataclass(frozen=True, eq=False)
class ClassMeans(BlockReduction[ClassSummary]):
    """Reduction of decision values and numbers of labels to a `ClassSummary`.

    Cost: l k numbers in a result, and for the ranks up to 6 MB a class, 25 MB in all, sorted in
    each merge. Few values, as of small parts, take less.

    - `means`: means for metrics of probabilities.
    - `classes`: class index of each label, or -1 for labels that are no class of the model.
    - `count`: number k of classes.
    - `is_ranked`: whether `Ranks` are requested.
    - `max_bins`: bins of values of a class.
    """

    means: RowMeans
    classes: Int[Array, " l"]
    probabilities: Probabilities
    count: int
    is_ranked: bool = True
    max_bins: int = MOST_BINS

    def __call__(self, start: int, block: Array, *rowwise: Any) -> ClassSummary:
        """Return the summary of one block."""
        label, k = xp.cast(rowwise[0].reshape(-1), xp.int64), self.count
        w = xp.to_float64(rowwise[1]).reshape(-1) if len(rowwise) > 1 else None
        size = len(self.classes) * k
        counts = xp.bincount(label * k + likeliest(block), w, minlength=size).reshape(-1, k)
        # A label that is no class would count among the other rows of every curve.
        is_known = self.classes[label] >= 0
        true, values = self.classes[label][is_known], block[is_known]
        weights = None if w is None else w[is_known]
        means = self.means.of(true, self.probabilities(values), weights)
        return ClassSummary(counts, means, tuple(self._ranks(values, true)))

    def _ranks(self, values: Array, true: Array) -> Iterable[Ranks]:
        first = 1 if values.shape[1] == 1 else 0  # one value is of the second of two classes
        for label, column in enumerate(values.T if self.is_ranked else (), first):
            yield Ranks.of(column, true == label, self._bins)

    @property
    def _bins(self) -> int:
        return max(2, min(self.max_bins, MOST_BINS_OF_ALL // self.count))

    def merge(self, a: ClassSummary, b: ClassSummary) -> ClassSummary:
        """Return the summary of both."""
        pairs = zip(a.ranks, b.ranks, strict=True)
        return replace(
            a,
            counts=a.counts + b.counts,
            means=self.means.merge(a.means, b.means),
            ranks=tuple(a_ranks.merge(b_ranks, self._bins) for a_ranks, b_ranks in pairs),
        )
