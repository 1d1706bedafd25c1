"""PCG: preconditioned conjugate gradient on the full problem."""

from __future__ import annotations

import logging
import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from ... import _arrays as xp
from ..._arrays import Array, RandomStream
from ..._messages.checks import check_count_or_auto
from ...operators import triangle_entries
from ...preconditioners import InverseOfEach, LowRankInverse
from ...problems import FullProblem
from ..base import Solver, solvers
from ..conjugate_gradient import CGState, conjugate_gradient, no_gain
from ..cost import ProblemSize, StoresEntries
from ..direct import Direct
from ..loop.state import (
    ADDED_LATER,
    PREDICTION_ERROR,
    RESIDUAL_KEY,
    State,
    StopReason,
    check_residual,
    draw_seed,
)
from .preconditioner import PRECONDITIONER_KINDS, Inverse, Recipe

logger = logging.getLogger("gramian")

PER_TRUE_RESIDUAL = 7
"""Iterations, about, in which the residual drops tenfold with float32 rows."""

DIRECT_SHARE = 0.5
"""Iterations before a factorisation, as a share of its operations."""

ENTRY_OPERATIONS = 20
"""Operations of a kernel entry in addition to two for each feature."""

FIRST_STEPS = 12
"""Steps before the rate of convergence is estimated: the first ones do not show it."""

RATE_STEPS = 4
"""Steps whose mean rate predicts the next ones."""


@dataclass(kw_only=True)
class PCGState(CGState):
    """A state of conjugate gradient, the seed of its preconditioner and the precision of products.

    - `seed`: seed of the preconditioner, which a resumed run builds again.
    - `wide`: whether products run in float64.
    - `direct`: whether the coefficients are the solution by a factorisation.
    """

    seed: int = 0
    wide: bool = False
    direct: bool = field(default=False, metadata={ADDED_LATER: True})

    @property
    def verdict(self) -> StopReason | None:
        """Stop as "converged" after a factorisation, else as conjugate gradient stops."""
        return "converged" if self.direct else super().verdict

    @property
    def settings(self) -> dict[str, bool]:
        """``{"direct": True}`` after a factorisation, else an empty dict."""
        return {"direct": True} if self.direct else {}


@solvers.register("pcg")
@dataclass(frozen=True)
class PCG(StoresEntries, Solver[FullProblem, PCGState]):
    r"""Conjugate gradient on (K + N penalty W⁻¹) coef = y, K never stored.

    Products run in the dtype of the rows. With float32 rows the iterate is float64, and the true
    residual is computed in float64 each time the recursive residual has dropped tenfold. If the
    true residual has not even halved, products run in float64 from then on, at about twice the
    cost. They run in float64 from the start if float32 cannot resolve the penalty
    (`FullProblem.needs_float64`). ``metrics["wide"]`` is then 1.

    Use it for all rows as centers if n² numbers do not fit in memory, up to about 100,000 rows.

    Parameters
    ----------
    preconditioner : str, default="rpcholesky"
        Approximation of K in P = K + N penalty W⁻¹. A matrix F F' of low rank: ``"rpcholesky"``
        [1]_, from r columns of K; ``"nystrom"`` [2]_, from one product with r random vectors, n²
        kernel evaluations; ``"greedy"``, pivoted Cholesky with the largest pivots. Or factorised
        blocks of K between neighboring rows: ``"cells"``. ``"nystrom+cells"`` combines F F' of
        "rpcholesky" with the residual of K within cells. Or ``"none"``. ``"auto"``: "cells" if the
        entries of K have a smaller sum outside of the cells than within, as for narrow kernels of
        few features; "rpcholesky" if the sum outside is 20 times as large, if few columns leave a
        trace of at most N penalty, or if rows are sparse; else "nystrom+cells".
    rank : int or "auto", default="auto"
        Rank r. "auto": n / 10, at most 1,000, or 2 sqrt(n) with cells, limited by `memory_bytes`;
        fewer if the residual trace falls below N penalty, so that P is within a factor of two.
    memory_bytes : int, default=2**29
        Memory for a factor of automatic rank, and for cells of automatic size; half for each if
        both are used.
    cell_rows : int or "auto", default="auto"
        Largest number s of rows of a cell. "auto": 10 sqrt(n), or 4 sqrt(n) with a factor, limited
        by memory.
    store_bytes : int, default=0
        Memory for the lower triangle of K in the dtype of products. If it fits, entries are
        evaluated once, and each product reads them. An estimator assigns the memory that its limit
        leaves if rows have at least 24 features (48 with more than two targets); with fewer,
        entries are evaluated about as fast as read.
    direct_bytes : int, default=0
        Memory for the matrix of a factorisation in float64, 8 n² bytes. If it fits, the solver goes
        over to `Direct` once the rate of convergence shows that iterations take longer: at the
        latest when they have taken about half as long as the factorisation. ``solver="auto"``
        assigns it from 3,000 to 10,000 rows, and ``solver_settings_`` tells whether it was used.
    goal : float, default=1e-6
        Value of ``prediction_error`` that the rate is compared with. ``solver="auto"`` assigns the
        tolerance of the fit.

    Notes
    -----
    Cost per iteration: n² / 2 kernel evaluations (see `KernelOperator`) and 4 n r operations per
    target; memory: 8 n r bytes and four vectors of n numbers per target. The number of iterations
    grows like the square root of the largest eigenvalue of K missing in P over N penalty.
    "rpcholesky" needs random access to be fast; products pass over any row source.

    Cells cost n s kernel evaluations, n s² / 3 operations, 2 n s r more with a factor, and n s
    numbers in the dtype of the rows; rows must be dense. See `BlockCholesky`, `BlockLowRank`.

    Targets with their own penalties share products and F; each penalty has its own matrix of r by
    r numbers. With cells the preconditioner uses the smallest penalty, and penalties far apart
    cost iterations.

    Measured on 20,000 rows, one core: CPU seconds, setup included, to a residual of 1e-1, 1e-2 and
    1e-3, by "rpcholesky" with 1,000 columns, cells of 600 rows, and cells with 300 columns, for
    N penalty = 0.1. A narrow l1 kernel of three features (1/16 of the median): 2.9, 4.1, 5.5; 0.6,
    1.2, 2.6; 1.4, 1.9, 2.8 ("auto": the second). 27 features, l1, 1/4 of the median: 4.7, 8.0,
    11.5; 3.6, 11, more than 15; 2.9, 5.6, 9.7 ("auto": the third). Three features, Matern 3/2, the
    median: 2.0, 2.0, 2.3; 3.7, 18.5, more than 20; 1.4, 1.5, 1.8 ("auto": the third). With 20,000
    and 60,000 rows of two sets "auto" took at most 1.3 times as long as the fastest to 39 of 40
    residuals, and 1.43 times to one (`benchmarks/results/cells_pcg.md`).

    References
    ----------
    .. [1] Diaz, Epperly, Frangella, Tropp, Webber, *Robust, randomized preconditioning for kernel
       ridge regression*, 2023, arXiv:2304.12465.
    .. [2] Frangella, Tropp, Udell, *Randomized Nystrom preconditioning*, SIAM J. Matrix Anal.
       Appl. 44, 2023.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.solvers import PCG
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> est = KernelRidge("matern52", lengthscale=3.0, penalty=1e-5, solver=PCG(rank=100))
    >>> est = est.fit(train, "target")
    >>> est.stop_reason_, round(float(est.score(test)), 3)
    ('converged', 0.997)
    """

    preconditioner: str = "rpcholesky"
    rank: Any = "auto"  # int or "auto", checked below
    memory_bytes: int = 1 << 29
    cell_rows: Any = "auto"  # int or "auto", checked below
    store_bytes: int = 0
    direct_bytes: int = 0
    goal: float = 1e-6
    problem_types: ClassVar[tuple[type, ...]] = (FullProblem,)
    state_type: ClassVar[type] = PCGState
    takes_penalties: ClassVar[bool] = True
    whole_matrix: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.preconditioner not in PRECONDITIONER_KINDS:
            raise ValueError(
                f"preconditioner must be one of {', '.join(PRECONDITIONER_KINDS)}, not "
                f"{self.preconditioner!r}"
            )
        check_count_or_auto(self.rank, "rank")
        check_count_or_auto(self.cell_rows, "cell_rows")

    def iterate(
        self, problem: FullProblem, state: State | None = None, *, rng: RandomStream | None = None
    ) -> Iterator[PCGState]:
        if isinstance(state, PCGState) and state.direct:
            check_residual(problem, state)
            yield state
            return
        limit = self._most_iterations(problem)
        for s in self._iterate(problem, state, rng):
            yield s
            if _is_slow(s, limit, self.goal):
                logger.info("%s iterations do not suffice; factorising the matrix", s.iteration)
                yield self._factorise(problem, s)
                return

    def _iterate(
        self, problem: FullProblem, state: State | None, rng: RandomStream | None
    ) -> Iterator[PCGState]:
        """Yield the states of conjugate gradient, without end."""
        seed = state.seed if isinstance(state, PCGState) else draw_seed(rng)
        was_wide = isinstance(state, PCGState) and state.wide
        needs_float64 = problem.needs_float64
        P = self.build(problem.double() if needs_float64 else problem, RandomStream(seed))
        if not (was_wide or needs_float64 or problem.K.dtype == xp.float64):
            state = yield from _iterate_in_float32(self.keeping(problem), state, P, seed)
        yield from _states(self.keeping(problem.double()), state, P, seed)

    def _most_iterations(self, problem: FullProblem) -> float:
        """Return the most iterations before a factorisation; inf if it does not fit."""
        (n, d), t = problem.K.rows.shape, problem.targets.shape[1]
        if self.direct_bytes < 8 * n * n:
            return math.inf
        # Features cost only entries that are not stored, and the rank only a fraction.
        entry = (
            2
            if triangle_entries(n) * problem.K.dtype.itemsize <= self.store_bytes
            else 2 * d + ENTRY_OPERATIONS
        )
        iteration = n * n / 2 * (entry + 2 * t) + 4.0 * n * self.rank_for(n) * t
        return max(FIRST_STEPS, DIRECT_SHARE * n**3 / 3 / iteration)

    def _factorise(self, problem: FullProblem, state: PCGState) -> PCGState:
        """Return the state after a factorisation, with the true residual of its solution."""
        n, exact = problem.K.shape[0], problem.double()
        direct = Direct(self.direct_bytes - 8 * n * n)
        coef = xp.cast_like(next(direct.iterate(problem)).coef, state.coef)
        residual = exact.rhs - exact.apply(xp.to_float64(coef))
        norms, size = xp.norm(residual, axis=0), xp.norm(xp.to_float64(exact.rhs), axis=0)
        relative = float((norms / xp.where(size > 0, size, 1.0)).max())
        error = problem.error_bound(residual)
        return replace(
            state,
            iteration=state.iteration + 1,
            coef=coef,
            best=coef,
            direct=True,
            metrics={**state.metrics, RESIDUAL_KEY: relative, PREDICTION_ERROR: error, "wide": 1},
        )

    def check(self, problem: Any) -> None:
        # `problem` may be of a type that this solver rejects with an error.
        super().check(problem)
        if problem.K.rows.sparse and "cells" in self.preconditioner:
            raise ValueError(
                f"the preconditioner {self.preconditioner!r} needs dense rows, but these are "
                "sparse; use 'rpcholesky', or X.toarray() if it fits in memory"
            )

    def build(self, problem: FullProblem, rng: RandomStream) -> Inverse | None:
        """Build the preconditioner; None for "none"."""
        penalties = problem.penalties
        if penalties is None:
            return self._recipe.build(problem, rng)
        # The smallest penalty needs the most precise preconditioner, which serves larger ones as
        # well.
        smallest = replace(problem, penalty=min(penalties), penalties=None)
        inverse = self._recipe.build(smallest, rng)
        if isinstance(inverse, LowRankInverse):
            scales = [penalty / min(penalties) for penalty in penalties]
            return InverseOfEach.build(inverse.factor, smallest.ridge, scales)
        return inverse

    def rank_for(self, n: int) -> int:
        """Return the rank for n rows; an automatic rank may still fall with the spectrum."""
        return self._recipe.rank_of(n)

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        recipe = self._recipe.of(sparse=not size.dense)
        # A factorisation begins while factors and stored entries are still in use.
        direct = self.direct_bytes if self.direct_bytes >= 8 * size.n * size.n else 0
        return size.vector_bytes + recipe.peak_bytes(size) + self.kept_bytes(size) + direct

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        n = size.n
        product = n * (n + 1) // 2 if size.pairs_once else n * n
        residuals = iterations // PER_TRUE_RESIDUAL if size.itemsize < 8 else 0
        setup = self._recipe.of(sparse=not size.dense).evaluations(size)
        if self.stores(size):
            return residuals * product + triangle_entries(n) + setup
        return (iterations + residuals) * product + setup

    def operations(self, size: ProblemSize, iterations: int) -> float:
        return self._recipe.of(sparse=not size.dense).operations(size)

    def bytes_read(self, size: ProblemSize) -> float:
        return self.kept_bytes(size) + self._recipe.of(sparse=not size.dense).bytes_read(size)

    @property
    def _recipe(self) -> Recipe:
        rank = None if self.rank == "auto" else int(self.rank)
        cell_rows = None if self.cell_rows == "auto" else int(self.cell_rows)
        return Recipe(self.preconditioner, rank, cell_rows, self.memory_bytes)


def _is_slow(state: PCGState, limit: float, goal: float) -> bool:
    """Return whether the steps until `limit` will not reach the goal, by the rate of the last ones.

    The ratios of the energies of residuals are in the state, so that a resumed run decides alike.
    """
    steps = len(state.lanczos)
    if limit == math.inf or steps < FIRST_STEPS:
        return False
    ratio = math.prod(state.lanczos[-RATE_STEPS:, 1].tolist()) ** (0.5 / RATE_STEPS)
    # A ratio of zero marks a true residual, after which the rate shows only some steps later.
    expected = float(state.metrics[PREDICTION_ERROR]) * ratio ** max(limit - steps, 0.0)
    return steps >= limit or expected > goal


def _iterate_in_float32(
    problem: FullProblem, state: State | None, P: Inverse | None, seed: int
) -> Generator[PCGState, None, State | None]:
    """Yield the states with float32 products; return when they gain nothing any more."""
    for s in _states(problem, state, P, seed):
        if isinstance(state, PCGState) and no_gain(state, s):
            logger.info("K in float32 is too coarse for this penalty; continuing in float64")
            # A plain state makes the next run compute its residual in float64 and start a new
            # direction.
            return State(s.iteration, s.coef, s.metrics)
        state = s
        yield s
    return state


def _states(
    problem: FullProblem, state: State | None, P: Inverse | None, seed: int
) -> Iterator[PCGState]:
    """Yield the states of conjugate gradient with products in the dtype of the rows."""
    exact, float64 = problem.double(), problem.K.dtype == xp.float64

    def residual(x: Array) -> Array:
        return exact.rhs - exact.apply(x)

    for cg in conjugate_gradient(
        problem.apply,
        # The recursion runs in the dtype of the products. The true residual restores the lost
        # digits.
        xp.cast(problem.rhs, problem.K.dtype),
        state=state,
        precondition=None if P is None else lambda r: P @ r,
        exact_residual=None if float64 else residual,
    ):
        error = problem.error_bound(cg.residual)
        metrics = {**cg.metrics, PREDICTION_ERROR: error, "wide": int(float64)}
        values = {f.name: getattr(cg, f.name) for f in fields(CGState)} | {"metrics": metrics}
        yield PCGState(**values, seed=seed, wide=float64)
