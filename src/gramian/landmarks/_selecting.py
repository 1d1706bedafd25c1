"""What selectors by leverage scores share: a sample at a penalty, or one of a given size."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._checks import as_positive
from ..operators import KernelOperator
from . import _sampling
from .base import Landmarks, SizeOrPenalty, capped
from .leverage import Dictionary

FEW = 64
"""Rows of a dictionary on the way to the last one, at least.

Three rows per effective dimension see all of it once that is large; of three clusters nine rows
miss one in a tenth of the cases, and what the next level then takes for scores is of no use.
"""

CANDIDATES = 16.0
"""Candidates for each of these rows: how many of a small cluster are among few is chance, and so
would be the effective dimension; a thousand cost next to nothing."""


@dataclass(frozen=True)
class Level:
    """A dictionary and the penalty that it is made for.

    Attributes
    ----------
    penalty : float
    dictionary : Dictionary
    effective_dimension : float
        The estimate from which the number of rows follows.
    """

    penalty: float
    dictionary: Dictionary
    effective_dimension: float


@dataclass(frozen=True, kw_only=True)
class LeverageSelector(SizeOrPenalty):
    """Draws rows in proportion to their leverage scores at a penalty.

    Parameters
    ----------
    m : int, optional
        Number of landmarks. The penalty then is the one at which `oversampling` times the
        effective dimension is m, and the last draw has exactly m rows.
    penalty : float, optional
        Ridge per sample. Landmarks: about `oversampling` times the effective dimension.
    oversampling : float, default=3
        Rows per effective dimension. 3 to 5 are good landmarks, 10 give accurate scores.
    """

    oversampling: int | float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        as_positive(self.oversampling, "oversampling")

    def select(self, K: KernelOperator, *, rng: torch.Generator) -> Landmarks:
        n = K.shape[0]
        if self.penalty is not None:
            return landmarks_of(K, self.sample(K, self.penalty, rng=rng))
        m = capped(int(self.m or 0), n)
        if m == n:
            return landmarks_of(K, Level(0.0, Dictionary.whole(torch.arange(n)), float(n)))
        return landmarks_of(K, self.sample_of_size(K, m, rng=rng))

    @abstractmethod
    def sample(self, K: KernelOperator, penalty: float, *, rng: torch.Generator) -> Level:
        """Return a dictionary for a penalty."""

    @abstractmethod
    def sample_of_size(self, K: KernelOperator, m: int, *, rng: torch.Generator) -> Level:
        """Return a dictionary of m rows, fewer than there are."""


def landmarks_of(K: KernelOperator, level: Level) -> Landmarks:
    """Return the rows of a dictionary as landmarks."""
    n, m = K.shape[0], len(level.dictionary)
    info = {"effective_dimension": level.effective_dimension, "coverage": m / n}
    return level.dictionary.landmarks(K, level.penalty, info)


def independent(
    index: Int[Tensor, " r"],
    scores: Float[Tensor, " r"],
    oversampling: int | float,
    rng: torch.Generator,
    share: float = 1.0,
) -> Dictionary:
    """Keep each candidate on its own, with total probability min(1, oversampling · score).

    `share` is the probability with which a row became a candidate. One row is kept in any case.
    """
    p = (oversampling * scores).clamp(max=share)
    kept = _sampling.bernoulli(p / share, rng)
    if len(kept) == 0:  # of all rows at once: its probability is what the largest score gives
        kept = p.argmax().reshape(1)
    return Dictionary(index[kept], p[kept].clamp(min=1e-300))


def of_size(
    index: Int[Tensor, " r"],
    scores: Float[Tensor, " r"],
    m: int,
    rng: torch.Generator,
    share: float = 1.0,
) -> Dictionary:
    """Keep exactly m candidates, with probabilities proportional to their scores up to one."""
    p = _sampling.proportional(scores, m)
    kept = _sampling.systematic(p, rng)
    return Dictionary(index[kept], share * p[kept])
