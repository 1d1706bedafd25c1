"""LeverageSelector: the base of selectors by leverage scores, for a penalty or a number of rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import as_positive
from ..operators import KernelOperator
from . import _sampling
from ._candidates import Candidates
from .base import Landmarks, SizeOrPenalty, capped
from .leverage import Dictionary

LEAST_DICTIONARY_ROWS = 64
"""Rows of a dictionary on the way to the last one, at least.

Three rows per effective dimension see all of it once that is large; of three clusters nine rows
miss one in a tenth of the cases, and what the next level then takes for scores is of no use.
"""

CANDIDATES_PER_ROW = 16.0
"""Candidates drawn per dictionary row. With fewer, small clusters are missed by chance, and the
effective dimension is off; a thousand cost next to nothing."""


@dataclass(frozen=True)
class Level:
    """A dictionary and the penalty that it is made for.

    Attributes
    ----------
    penalty : float
    dictionary : Dictionary
    effective_dimension : float
        The estimate from which the number of rows follows.
    coverage : float
        The share of the distinct rows that the dictionary has, as far as that is known.
    """

    penalty: float
    dictionary: Dictionary
    effective_dimension: float
    coverage: float


@dataclass(frozen=True, kw_only=True)
class LeverageSelector(SizeOrPenalty):
    """Draws distinct rows in proportion to their leverage scores at a penalty.

    Equal rows are drawn as one, with the sum of their scores; see `Candidates`.

    Parameters
    ----------
    m : int, optional
        Number of landmarks. The penalty then is the one at which `oversampling` times the
        effective dimension is m, and the last draw has exactly m rows; all distinct rows if
        there are not as many.
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
        self.check_rows(K.rows)
        n = K.shape[0]
        if self.penalty is not None:
            return landmarks_of(K, self.sample(K, self.penalty, rng=rng))
        m = capped(int(self.m or 0), n)
        if m == n:
            every = Candidates.all(K).whole()
            return landmarks_of(K, Level(0.0, every, float(len(every)), 1.0))
        return landmarks_of(K, self.sample_of_size(K, m, rng=rng))

    @abstractmethod
    def sample(self, K: KernelOperator, penalty: float, *, rng: torch.Generator) -> Level:
        """Return a dictionary for a penalty."""

    @abstractmethod
    def sample_of_size(self, K: KernelOperator, m: int, *, rng: torch.Generator) -> Level:
        """Return a dictionary of m rows, fewer than there are."""


def landmarks_of(K: KernelOperator, level: Level) -> Landmarks:
    """Return the rows of a dictionary as landmarks."""
    J = level.dictionary
    return Landmarks(
        K.points(J.index),
        J.weights(K.shape[0]),
        J.index,
        penalty=level.penalty,
        coverage=level.coverage,
        effective_dimension=level.effective_dimension,
    )


def independent(
    candidates: Candidates,
    scores: Float[Tensor, " k"],
    oversampling: int | float,
    rng: torch.Generator,
) -> Dictionary:
    """Keep each candidate on its own, with total probability min(1, oversampling · score).

    The score of equal rows is their number times that of each, `scores`. One is kept in any case.
    """
    p = (oversampling / candidates.share * candidates.times * scores).clamp(max=1.0)
    kept = _sampling.bernoulli(p, rng)
    if len(kept) == 0:  # of all rows at once: its probability is what the largest score gives
        kept = p.argmax().reshape(1)
    return candidates.sampled(kept, p[kept])


def of_size(
    candidates: Candidates, scores: Float[Tensor, " k"], m: int, rng: torch.Generator
) -> Dictionary:
    """Keep exactly m candidates, with probabilities proportional to their scores up to one."""
    p = _sampling.proportional(candidates.times * scores, m)
    kept = _sampling.systematic(p, rng)
    return candidates.sampled(kept, p[kept])
