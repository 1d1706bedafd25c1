"""Selector BLESS: leverage scores along a path of penalties, of few candidates at each."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float, Int, RandomStream
from ..._messages.checks import as_positive
from ...operators import KernelOperator, largest_diagonal
from ..base import cap_size, selectors
from . import sampling as _sampling
from .candidates import Candidates
from .scores import Dictionary, Scorer
from .selecting import CANDIDATES_PER_ROW, LEAST_LEVEL_ROWS, Level, LeverageSelector, draw_exactly

SMALLEST_PENALTY = 1e-13
"""Least penalty, relative to the largest k(x, x), in a search for m rows: rounding dominates."""


@dataclass(frozen=True, kw_only=True)
class PathSelector(LeverageSelector):
    r"""Base of BLESS and BLESS-R, which sample at each penalty of a path by the previous sample.

    A row has a score of at most :math:`\kappa^2 / (n \lambda)`, with the largest :math:`k(x, x)` as
    :math:`\kappa^2`, so that at a large penalty :math:`\lambda` a few random rows suffice. The
    scores at one penalty are accurate enough to sample rows at the next.
    """

    step: int | float = 2.0
    takes_remote: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not as_positive(self.step, "step") > 1:
            raise ValueError(
                f"step must be above 1, not {self.step!r}; each penalty is the previous one "
                "divided by it"
            )

    def sample(self, K: KernelOperator, penalty: float, *, rng: RandomStream) -> Level:
        *_, last = self._path(K, largest_diagonal(K), penalty, rng)
        return last

    def select_path(self, K: KernelOperator, *, rng: RandomStream) -> list[Level]:
        """Return all levels, with decreasing penalties, down to `penalty` or to m landmarks.

        The cost is the cost of `select`.
        """
        kappa2 = largest_diagonal(K)
        if self.penalty is not None:
            return list(self._path(K, kappa2, self.penalty, rng))
        m = cap_size(int(self.m or 0), K.shape[0])
        levels, last = self._until(K, kappa2, m, rng)
        return [*levels, last]

    def sample_of_size(self, K: KernelOperator, m: int, *, rng: RandomStream) -> Level:
        return self._until(K, largest_diagonal(K), m, rng)[1]

    def _path(
        self, K: KernelOperator, kappa2: float, penalty: float, rng: RandomStream
    ) -> Iterator[Level]:
        """Yield the levels from the first penalty below kappa² down to `penalty`."""
        # The tolerance prevents a level that differs from the last one by rounding alone.
        steps = max(1, math.ceil(math.log(kappa2 / penalty, self.step) - 1e-9))
        level = Level(kappa2, Dictionary.empty(), 0.0, 0.0)
        for h in range(steps):
            # The path is computed from its end, so that it ends at the penalty itself.
            smaller = penalty * self.step ** (steps - 1 - h)
            floor = LEAST_LEVEL_ROWS if h < steps - 1 else 1
            level = self.level(K, kappa2, level.dictionary, smaller, floor, rng)
            yield level

    def _until(
        self, K: KernelOperator, kappa2: float, m: int, rng: RandomStream
    ) -> tuple[list[Level], Level]:
        """Return the levels that need fewer than m rows, and a level with exactly m rows."""
        levels = [Level(kappa2, Dictionary.empty(), 0.0, 0.0)]
        for level in self._path(K, kappa2, SMALLEST_PENALTY * kappa2, rng):
            if self.oversampling * level.effective_dimension >= m:
                # The last level needs more than m rows and the one before fewer: m determines a
                # penalty between them.
                penalty = _between(levels[-1], level, m / self.oversampling)
                break
            levels.append(level)
            penalty = level.penalty
        final = self._exactly(K, kappa2, levels[-1].dictionary, penalty, m, rng)
        return levels[1:], final

    def _exactly(
        self,
        K: KernelOperator,
        kappa2: float,
        previous: Dictionary,
        penalty: float,
        m: int,
        rng: RandomStream,
    ) -> Level:
        count = max(
            # Enough candidates for the theorem, for the draw of m distinct rows, and for a stable
            # estimate of the dimension.
            self.candidates_per_row() * kappa2 / penalty,
            2.0 * m,
            CANDIDATES_PER_ROW * LEAST_LEVEL_ROWS,
        )
        rows = _draw_candidates(K, m, count, rng)
        scores = rows.scores(Scorer.build(K, previous, penalty))
        dictionary = draw_exactly(rows, scores, m, rng)
        d = rows.effective_dimension(scores)
        return Level(penalty, dictionary, d, rows.coverage(dictionary, K.shape[0]))

    @abstractmethod
    def candidates_per_row(self) -> float:
        """Return the factor of kappa² / penalty by which to draw candidates for exactly m rows."""

    @abstractmethod
    def level(
        self,
        K: KernelOperator,
        kappa2: float,
        previous: Dictionary,
        penalty: float,
        floor: int,
        rng: RandomStream,
    ) -> Level:
        """Return the level of a penalty, with at least `floor` rows, from the previous level."""


def _draw_candidates(K: KernelOperator, m: int, count: float, rng: RandomStream) -> Candidates:
    """Draw about `count` candidates, and further candidates until m of them are distinct."""
    n = K.shape[0]
    share = min(1.0, count / n)
    while True:
        index = _sampling.draw_thinned(n, share, rng)
        # Too few draws cannot hold m distinct rows, so they are not read.
        if share == 1 or len(index) >= m:
            rows = Candidates.of(K, index, share=share)
            if share == 1 or len(rows) >= m:
                return rows
        share = min(1.0, 4 * share)


def _between(above: Level, below: Level, dimension: float) -> float:
    """Interpolate the penalty of an effective dimension between two levels, by logarithms."""
    # The empty first level has dimension zero, which has no logarithm.
    low, high = max(above.effective_dimension, 1e-3), below.effective_dimension
    share = math.log(max(dimension / low, 1.0)) / math.log(max(high / low, 1 + 1e-12))
    return above.penalty * math.exp(min(share, 1.0) * math.log(below.penalty / above.penalty))


@selectors.register("bless")
@dataclass(frozen=True, kw_only=True)
class Bless(PathSelector):
    r"""BLESS [1]_, algorithm 1: bottom-up leverage score sampling, with replacement.

    For h = 1 ... H, with :math:`\lambda_h = \lambda_{h-1} / q`: draw :math:`R_h = q_1
    \kappa^2 / \lambda_h` candidates, score them by the dictionary of level h - 1, and draw
    :math:`M_h = q_2 d_h` of them in proportion to their scores, where :math:`d_h` is the estimate
    of the effective dimension from the scores.

    Use it to reproduce the paper; otherwise use `BlessR`.

    Parameters
    ----------
    m : int, optional
        Number of landmarks: the path ends at the penalty that needs m landmarks, by interpolation
        of logarithms between two penalties of the path.
    penalty : float, optional
        The penalty at the end of the path.
    oversampling : float, default=3
        :math:`q_2`: the number of rows over the effective dimension.
    candidates : float, default=5
        :math:`q_1`: the number of candidates over :math:`\kappa^2 / \lambda`.
    step : float, default=2
        q, the ratio of each penalty of the path to the next penalty.

    Notes
    -----
    Cost, with d the effective dimension: :math:`\min(q_1 \kappa^2 / \lambda, n) \cdot q_2 d`
    kernel evaluations and :math:`q_2 d` times as many operations, for the last level and again for
    all other levels together; it does not grow with n once n exceeds :math:`q_1 \kappa^2 /
    \lambda`. Memory :math:`8 (q_2 d)^2` bytes and a block of rows. A sequential source is read
    three times per level.

    Departures: the constants of theorem 1 are in the thousands; this class uses the constants of
    the authors' code. If :math:`R_h` reaches n, all rows are candidates, once each. A row drawn
    several times is kept once, and :math:`A_h` has its probability of being drawn at all instead of
    the expected number of times over the actual one. Both are unbiased, but with the latter a row
    drawn four times by chance represents four times as many rows, which made the condition number
    of FALKON 54 instead of 31 on adult (130 and 81 on magic, 475 and 261 on skin). Levels before
    the last have at least 64 rows. With `m` the last draw is without replacement and has exactly m
    rows. `BlessR` keeps up to a third more rows at a penalty, because it draws none twice; with the
    same number of landmarks it is no better as a preconditioner of FALKON.

    References
    ----------
    .. [1] Rudi, Calandriello, Carratino, Rosasco, *On fast leverage score sampling and optimal
       learning*, NeurIPS 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.landmarks import Bless
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge("gaussian", lengthscale=3.0, landmarks=Bless(m=60), random_state=0)
    >>> est = est.fit(X, y)  # the penalty, too, is chosen along its path
    >>> len(est.landmark_index_), est.penalty_ in [row["penalty"] for row in est.path_]
    (60, True)
    """

    candidates: int | float = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        as_positive(self.candidates, "candidates")

    def candidates_per_row(self) -> float:
        return self.candidates

    def level(
        self,
        K: KernelOperator,
        kappa2: float,
        previous: Dictionary,
        penalty: float,
        floor: int,
        rng: RandomStream,
    ) -> Level:
        n = K.shape[0]
        u, times = _candidates(
            n, max(self.candidates * kappa2 / penalty, CANDIDATES_PER_ROW * floor), rng
        )
        U = Candidates.of(K, u, times, float(times.sum()) / n)
        scores = U.scores(Scorer.build(K, previous, penalty))
        d = U.effective_dimension(scores)
        # A kernel that vanishes at all candidates prefers none.
        scores = scores if d > 0 else xp.ones_like(scores)
        M = max(floor, math.ceil(self.oversampling * d))
        dictionary = U.sample(*_sampling.multinomial(U.times * scores, M, rng))
        return Level(penalty, dictionary, d, U.coverage(dictionary, n))


def _candidates(n: int, R: float, rng: RandomStream) -> tuple[Int[Array, " r"], Float[Array, " r"]]:
    """Draw R rows with replacement, and return each drawn row once; return all rows if R >= n."""
    if n <= R:
        return xp.arange(n), xp.ones(n, xp.float64)
    drawn = rng.integers(n, size=(math.ceil(R),))
    u, times = xp.unique(drawn, return_counts=True)
    return u, xp.to_float64(times)


def estimate_effective_dimension(K: KernelOperator, penalty: float, *, rng: RandomStream) -> float:
    """Estimate the effective dimension at a penalty by BLESS, to some percent."""
    return Bless(penalty=penalty, oversampling=5.0).sample(K, penalty, rng=rng).effective_dimension
