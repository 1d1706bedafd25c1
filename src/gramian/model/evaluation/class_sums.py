"""Sums over rows for metrics of classes: confusion counts and scores of probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...data import BlockReduction, Value
from ..uncertainty.probabilities import Probabilities, likeliest
from .ranks import MOST_BINS, Ranks

PROBABILITY_BINS = 15
"""Bins of equal width, of probabilities from 0 to 1."""

MOST_OF_ALL = 1 << 20
"""Bins of values at most, of all classes together: 25 MB."""


@dataclass(eq=False)
class ChanceSums:
    """Sums over the rows whose label is a class of the model.

    Attributes
    ----------
    rows : int
    logs : float
        Sum of -log p of the true class, p clipped to eps and 1 - eps of float64.
    squares : Tensor of shape (k,)
        Sums of the squared errors of the probability of each class, whose truth is 0 or 1.
    bins : Tensor of shape (15, 3)
        Numbers of rows, sums of probabilities, and numbers of correct rows, by the probability of
        the predicted class.
    second : Tensor of shape (15, 3)
        The same for the second of two classes.
    """

    rows: int
    logs: float
    squares: Float[Tensor, " k"]
    bins: Float[Tensor, "15 3"]
    second: Float[Tensor, "15 3"]

    @classmethod
    def of(cls, chances: Float[Tensor, "n k"], true: Int[Tensor, " n"]) -> ChanceSums:
        """Return the sums of some rows, by the numbers of their classes; -1 is an unknown class."""
        p, true = chances.double()[true >= 0], true[true >= 0]
        hit = torch.nn.functional.one_hot(true, p.shape[1]).double()
        eps = torch.finfo(p.dtype).eps
        best, predicted = p.max(dim=1)
        return cls(
            len(p),
            # Clipped as in scikit-learn: a wrong class of probability 1 has a large, but finite,
            # loss.
            -float(p.clamp(eps, 1 - eps).gather(1, true[:, None]).log().sum()),
            (p - hit).square().sum(dim=0),
            _by_probability(best, predicted == true),
            _by_probability(p[:, 1], true == 1),
        )

    def __add__(self, other: ChanceSums) -> ChanceSums:
        """Return the sums over the rows of both operands."""
        return ChanceSums(
            self.rows + other.rows,
            self.logs + other.logs,
            self.squares + other.squares,
            self.bins + other.bins,
            self.second + other.second,
        )


def _by_probability(p: Float[Tensor, " n"], came_true: Tensor) -> Float[Tensor, "15 3"]:
    # The last bin includes the probability 1.
    place = (p * PROBABILITY_BINS).long().clamp(max=PROBABILITY_BINS - 1)
    columns = torch.stack([torch.ones_like(p), p, came_true.double()], dim=1)
    return columns.new_zeros(PROBABILITY_BINS, 3).index_add_(0, place, columns)


@dataclass(eq=False)
class ClassSums:
    """The result of `Classified`.

    Attributes
    ----------
    counts : Tensor of shape (l, k)
        Rows by the number of their label and the number of their predicted class.
    chances : ChanceSums
    ranks : tuple of Ranks
        Ranks of the decision values of each class, or of the second of two, with its rows marked;
        empty if they are not requested.
    """

    counts: Int[Tensor, "l k"]
    chances: ChanceSums
    ranks: tuple[Ranks, ...]


@dataclass(frozen=True, eq=False)
class Classified(Value, BlockReduction[ClassSums]):
    """Fold of `ClassSums` over decision values and numbers of labels.

    Cost: l k numbers in a result, and for the areas up to 6 MB a class, 25 MB in all, sorted in
    each merge. Few values, as of small parts, take less.

    Attributes
    ----------
    labels : int
        Number l of labels, including labels that are no class of the model.
    classes : Tensor of shape (l,)
        The number of the class that each label is, or -1.
    probabilities : Probabilities
    count : int
        Number k of classes.
    ranks : bool, default=True
        Whether to collect ranks for areas under ROC curves.
    max_bins : int, default=2**18
        Bins of values of a class.
    """

    labels: int
    classes: Int[Tensor, " l"]
    probabilities: Probabilities
    count: int
    ranks: bool = True
    max_bins: int = MOST_BINS

    def __call__(self, start: int, block: Tensor, *beside: Any) -> ClassSums:
        """Compute the sums of one block."""
        label = beside[0].reshape(-1).long()
        true, k = self.classes[label], self.count
        counts = torch.bincount(label * k + likeliest(block), minlength=self.labels * k)
        chances = ChanceSums.of(self.probabilities(block), true)
        return ClassSums(counts.reshape(self.labels, k), chances, self._ranks(block, true))

    def _ranks(self, values: Tensor, true: Tensor) -> tuple[Ranks, ...]:
        if not self.ranks:
            return ()
        # A label that is no class would count among the other rows of every curve.
        is_known = true >= 0
        first = 1 if values.shape[1] == 1 else 0  # one value is of the second of two classes
        return tuple(
            Ranks.of(column[is_known], true[is_known] == label, self._bins)
            for label, column in enumerate(values.t(), first)
        )

    @property
    def _bins(self) -> int:
        return max(2, min(self.max_bins, MOST_OF_ALL // self.count))

    def merge(self, a: ClassSums, b: ClassSums) -> ClassSums:
        """Add."""
        ranks = zip(a.ranks, b.ranks, strict=True)
        return replace(
            a,
            counts=a.counts + b.counts,
            chances=a.chances + b.chances,
            ranks=tuple(
                own_ranks.merge(other_ranks, self._bins) for own_ranks, other_ranks in ranks
            ),
        )
