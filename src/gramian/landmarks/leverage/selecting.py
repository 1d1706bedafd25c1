"""Base of selectors by leverage scores, for a penalty or for a number of rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from ..._arrays import Array, Float, RandomStream
from ..._messages.checks import as_positive
from ...operators import KernelOperator
from ..base import Landmarks, SizeOrPenalty, cap_size
from . import sampling as _sampling
from .candidates import Candidates
from .scores import Dictionary

LEAST_LEVEL_ROWS = 64
"""Least rows of an intermediate dictionary.

Three rows per effective dimension suffice once that is large. With three clusters, nine rows miss
a cluster in a tenth of the cases, and the scores of the next level are then useless.
"""

CANDIDATES_PER_ROW = 16.0
"""Candidates drawn per dictionary row. With fewer, small clusters may be missed, and the effective
dimension is inaccurate; a thousand candidates cost next to nothing."""


@dataclass(frozen=True)
class Level:
    """Rows drawn by leverage scores, in a `Dictionary`, with the penalty of these scores.

    Attributes
    ----------
    penalty : float
    dictionary : Dictionary
    effective_dimension : float
        The estimate that determines the number of rows.
    coverage : float
        Share of the distinct rows in the dictionary, as far as known.
    """

    penalty: float
    dictionary: Dictionary
    effective_dimension: float
    coverage: float


@dataclass(frozen=True, kw_only=True)
class LeverageSelector(SizeOrPenalty):
    """Base of selectors that draw distinct rows in proportion to their leverage scores.

    Equal rows are drawn as one, with the sum of their scores; see `Candidates`.

    Parameters
    ----------
    m : int, optional
        Number of landmarks. At the resulting penalty `oversampling` times the effective dimension
        is m, and the last draw has exactly m rows, or all distinct rows if there are fewer.
    penalty : float, optional
        Penalty: the number of landmarks is about `oversampling` times the effective dimension.
    oversampling : float, default=3
        Rows over the effective dimension. 3 to 5 give good landmarks, 10 give accurate scores.
    """

    oversampling: int | float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        as_positive(self.oversampling, "oversampling")

    def select(self, K: KernelOperator, *, rng: RandomStream) -> Landmarks:
        self.check_rows(K.rows)
        n = K.shape[0]
        if self.penalty is not None:
            return landmarks_of(K, self.sample(K, self.penalty, rng=rng))
        m = cap_size(int(self.m or 0), n)
        if m == n:
            # All rows need no scores, only their groups of equal rows.
            all_rows = Candidates.all(K).to_dictionary()
            return landmarks_of(K, Level(0.0, all_rows, float(len(all_rows)), 1.0))
        return landmarks_of(K, self.sample_of_size(K, m, rng=rng))

    @abstractmethod
    def sample(self, K: KernelOperator, penalty: float, *, rng: RandomStream) -> Level:
        """Return the `Level` of a penalty."""

    @abstractmethod
    def sample_of_size(self, K: KernelOperator, m: int, *, rng: RandomStream) -> Level:
        """Return a `Level` of m rows, for data of more than m rows."""


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


def draw_independently(
    candidates: Candidates,
    scores: Float[Array, " k"],
    oversampling: int | float,
    rng: RandomStream,
) -> Dictionary:
    """Draw each candidate independently, with total probability min(1, oversampling · score).

    The score of equal rows is their number times their score in `scores`. At least one candidate is
    drawn.
    """
    p = (oversampling / candidates.share * candidates.times * scores).clip(max=1.0)
    positions = _sampling.bernoulli(p, rng)
    if len(positions) == 0:  # the most likely candidate, with the probability of its score
        positions = p.argmax().reshape(1)
    return candidates.sample(positions, p[positions])


def draw_exactly(
    candidates: Candidates, scores: Float[Array, " k"], m: int, rng: RandomStream
) -> Dictionary:
    """Draw exactly m candidates, with probabilities proportional to scores, at most one."""
    p = _sampling.proportional(candidates.times * scores, m)
    positions = _sampling.systematic(p, rng)
    return candidates.sample(positions, p[positions])
