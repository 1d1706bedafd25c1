"""FALKON: conjugate gradient on the Nystrom problem in preconditioned coordinates."""

from __future__ import annotations

import logging
import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from .. import _arrays as xp
from .._arrays import Array, Int, RandomStream
from .._linalg import ROUNDING_UNITS
from .._linalg.spectrum import spectrum_operations
from ..data import Targets
from ..operators import strip_rows
from ..preconditioners import FalkonFactor
from ..preconditioners.falkon import CHEAP_PRODUCTS, ROUNDING_ROWS
from ..problems import NystromProblem
from .base import Solver, solvers
from .conjugate_gradient import CGState, conjugate_gradient, no_gain
from .cost import PANEL_ROWS, ProblemSize, StoresEntries
from .loop.state import ADDED_LATER, PREDICTION_ERROR, ROUNDING_ERROR, State, StopReason

logger = logging.getLogger("gramian")

VISIBLE_ROUNDING = 2e-4
"""Rounding error up to which float32 is accepted, as a share of the spread of predictions."""

COARSE_ROUNDING = 0.3
"""Share from which conjugate gradient gains little with float32 products.

On 21 problems with shares of 0.08 to 0.3, fits took 0.56 to 0.86 of the time of float64 products in
all but two, and at most 1.5 times as long; on nine with shares of 0.3 to 0.6, 0.6 to 1.6 times.
"""

FACTOR_STRIPS = 4
"""Strips of float64 entries in the memory of a factor of all rows: copies, and solutions."""

NEGLIGIBLE_SHARE = 0.01
"""Share of the rounding error below which further iterations do not pay."""

REFINE_BELOW = 1e-2
"""Drop before a true residual is computed: 0.1 needs twice as many, 1e-3 needs more steps."""

LONGEST_RUN = 80
"""Steps in float32 from one true residual to the next; a longer run continues in float64."""

EARLY_STEPS = 3
"""Lanczos steps of a warm start before which the Ritz value is not used."""

ROUNDING_FACTOR = 2.0
"""Estimated rounding error, relative to the sum of independent roundings of all entries."""

RESIDUAL_PROBES = 8
"""Directions in which the residual of a loaded state is compared."""


@dataclass(kw_only=True)
class FalkonState(State):
    r"""Coefficients, and the state of conjugate gradient in the coordinates beta.

    Attributes
    ----------
    cg : CGState
        State of conjugate gradient, whose ``coef`` is beta; the coefficients are T⁻¹ A⁻¹ beta.
    penalty : float
        The :math:`\lambda` inside A, which determines the meaning of beta.
    wide : bool
        Whether products run in float64, whatever the dtype of the rows.
    order : Array of shape (m,)
        Order of the landmarks in T; empty if T keeps the given order.
    warm : bool
        Whether conjugate gradient started from nonzero coefficients.
    """

    cg: CGState
    penalty: float = 0.0
    wide: bool = False
    order: Int[Array, " k"]
    warm: bool = field(default=False, metadata={ADDED_LATER: True})

    @property
    def verdict(self) -> StopReason | None:
        """Stop as "no_progress" if conjugate gradient stalls, or rounding dominates the error."""
        rounding = self.metrics.get(ROUNDING_ERROR, 0.0)
        if rounding > 0 and self.metrics[PREDICTION_ERROR] <= (1 + NEGLIGIBLE_SHARE) * rounding:
            return "no_progress"
        return self.cg.verdict


@solvers.register("falkon")
@dataclass(frozen=True)
class Falkon(StoresEntries, Solver[NystromProblem, FalkonState]):
    r"""FALKON [1]_, algorithm 1: two Cholesky factors of the landmarks precondition CG.

    With :math:`T^\top T = K_{mm}` and :math:`A^\top A = T D^2 T^\top / m + \lambda I`, conjugate
    gradient solves :math:`B^\top H B \beta = B^\top K_{nm}^\top W y / N` for :math:`B = T^{-1}
    A^{-1}`, where :math:`H = K_{nm}^\top W K_{nm} / N + \lambda K_{mm}`.

    Use it, as ``solver="auto"`` does, with landmarks for which m² numbers fit into memory.

    Parameters
    ----------
    preconditioner_penalty : float, "auto", "landmarks" or None, default="auto"
        The :math:`\lambda` inside A; the penalty of the problem if None, as in the paper. The
        solution does not depend on it. With fewer landmarks than the theory requires (about 1 /
        penalty), a larger one converges faster: "landmarks" takes the smallest for which the
        effective dimension of the landmarks is at most 0.3 m / (1 - m / n). "auto" does so, too, or
        builds A from all rows where that is cheap: see the notes. To stop early, take "landmarks",
        as estimators with ``early_stopping`` do: A of all rows leaves no iterations to choose from.
    refine : bool or "auto", default="auto"
        Treatment of float32 rows. "auto": as precise as needed for predictions within about 1e-3 of
        their spread of the exact ones, see the notes. True: the true residual is computed in
        float64 after each hundredfold drop of the recursive residual, with about two more passes
        each time, so that predictions reach the accuracy of `tol`. False: all products run in
        float32, and directions below their rounding are removed from the model. A rounding error
        above 2e-4 is part of ``prediction_error``, and the fit ends as "no_progress", with a
        warning, if `tol` is below it.
    store_bytes : int, default=0
        Memory for the n m entries in the dtype of products. If they fit, they are evaluated once,
        and each iteration reads them. An estimator assigns the memory that its limit leaves if
        rows have at least 24 features, or 48 with more than two targets.

    Notes
    -----
    Cost: the factor, m² kernel evaluations and about m³ operations in float64, once; then n m
    kernel evaluations per iteration. Memory: 8 m² bytes, and a block of rows.

    The split form is essential: with float32 rows, CG on coef with B B' as preconditioner
    diverges. Vectors of m numbers and both factors are float64, whatever the dtype of the rows.

    Products with float32 rows: `FalkonFactor.rounding` estimates the change of predictions,
    relative to their spread, if kernel entries are rounded to float32. Up to 2e-4 this change is
    accepted, and the residual belongs to the problem with rounded entries. Up to 0.3 the true
    residual is computed in float64 after each hundredfold drop (two or three times, 12 % more time,
    four more iterations of 60). Above 0.3, and when refinement gains little any more, products run
    in float64, at about twice the time: ``metrics["wide"]`` is then 1. This happens for smooth
    kernels of few features with small penalties: on california_housing (8 features, lengthscale 2,
    1,000 landmarks, penalty 1e-6), the error of predictions was 3 % of their spread with products
    in float32, and is 3e-6.

    Meaning of ``prediction_error``: ``rel_residual`` is the residual of the preconditioned system,
    by its recursion between true residuals. Divided by the root of the least Ritz value it
    estimates the error of predictions. On 30 random problems (300 to 900 rows, 20 to 200 landmarks,
    five kernels, penalties 1e-2 to 1e-10), after 3 to 40 iterations, it was 0.6 to 3.3 times the
    true error on the rows and at new points in nine of ten cases, and at most 17 times. Two limits
    remain. In float64 a true residual ends at 1e-13 to 1e-5 of the right-hand side, depending on
    the singularity of K_mm and the penalty, while the recursion still falls: a `tol` below 1e-8 is
    not attainable. And if landmarks depend on others to rounding, rounding determines the functions
    that the model can use between and beyond them. With ``tol=1e-11`` on 200 random problems (1 or
    2 features, 10 to 120 landmarks, penalties 1e-10 to 1e-2, all "converged"), predictions differed
    from `Direct` by 1e-4 or more of the spread of y in four, each with 10 or 30 landmarks of a
    smooth kernel and one feature, and by 4e-2 in one; true residuals were 9e-6 and less. Use a
    larger penalty, or landmarks that are further apart.

    A warm start converges before its third step only if the residual is small enough to bound the
    error, as with the exact solution.

    Targets with their own penalties share passes and both factors. The penalty inside A is their
    geometric mean or larger. Four targets with penalties of 1e-8 to 1 took 1.2 times the iterations
    of the smallest penalty.

    With "auto", if n m² is at most 1e9 and the penalty at least 1e-9 of the largest entry, the
    factor is built from all rows, at n m² operations and n m kernel evaluations in float64. It is
    then exact to rounding, and one or two iterations suffice where a factor of landmarks takes 30
    to 70.

    Centers that are not rows, such as points that a user has chosen, do not represent the rows. If
    there are at most two distinct rows per center, the factor is built from all rows, at n m²
    operations: with more centers than rows, the penalty alone determines the functions that vanish
    at all rows, and a factor of centers resolves them only after thousands of iterations. For more
    rows, a sample drawn by their weights counts the distinct ones, if n m² is at most 1e12. If
    float64 cannot resolve those functions (penalties below about 1e-12), ``prediction_error``
    includes an estimate of their error.

    Departures: the penalty inside A. On three real sets (16,512 to 40,000 rows, m = 1,000,
    penalties 1e-3 to 1e-8) the penalty of fewest iterations had an effective dimension of 265 to
    512, and with "auto" 20 iterations came within 1 % of the final test error in each case, where
    the paper's choice was up to 43 % above it. See `FalkonFactor` for a singular K_mm; landmark
    weights :math:`D^2` and observation weights W enter as in the docstring of `NystromProblem`.

    References
    ----------
    .. [1] Rudi, Carratino, Rosasco, *FALKON: An optimal large scale kernel method*, NeurIPS 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.solvers import Falkon
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge("matern32", lengthscale=5.0, penalty=1e-3, landmarks=100, random_state=0)
    >>> est = est.set_params(solver=Falkon(), tol=1e-8).fit(X, y)
    >>> exact = est.predict(X) - est.set_params(solver="direct").fit(X, y).predict(X)
    >>> bool(abs(exact).max() < 1e-3), est.stop_reason_
    (True, 'converged')
    """

    preconditioner_penalty: float | Literal["auto", "landmarks"] | None = "auto"
    refine: bool | Literal["auto"] = "auto"
    store_bytes: int = 0
    problem_types: ClassVar[tuple[type, ...]] = (NystromProblem,)
    state_type: ClassVar[type] = FalkonState
    takes_remote: ClassVar[bool] = True
    leaves_targets: ClassVar[bool] = True
    takes_penalties: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.refine not in (True, False, "auto"):
            raise ValueError(f"refine must be 'auto', True or False, not {self.refine!r}")
        lam = self.preconditioner_penalty
        if isinstance(lam, str):
            valid = lam in ("auto", "landmarks")
        else:
            valid = lam is None or (math.isfinite(lam) and lam > 0)
        if not valid:
            raise ValueError(
                "preconditioner_penalty must be positive and finite, 'auto', 'landmarks' or None, "
                f"not {lam!r}"
            )

    def stopped_early(self) -> Falkon:
        # A factor of all rows leaves no iterations among which to choose.
        automatic = self.preconditioner_penalty == "auto"
        return replace(self, preconditioner_penalty="landmarks") if automatic else self

    def factor(self, problem: NystromProblem) -> FalkonFactor:
        """Build the preconditioner; a subclass may reuse an existing preconditioner."""
        return FalkonFactor.build(
            problem, self.preconditioner_penalty, exact=self.refine is not False
        )

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        factor = 8 * size.m * size.m + 16 * size.m * size.d
        return size.vector_bytes + factor + self.kept_bytes(size)

    def flexible_bytes(self, size: ProblemSize, available: int) -> int:
        if not self._sums_rows(size):
            return 0
        return FACTOR_STRIPS * 8 * size.m * min(size.n, strip_rows(size.m, 8, available))

    def panel_bytes(self, size: ProblemSize) -> int:
        return 3 * PANEL_ROWS * 8 * size.m

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        m = size.m
        # See `FalkonFactor.rounding`.
        rounding = 2 * m * min(m, ROUNDING_ROWS) if size.itemsize < 8 else 0
        passes = 1 if self.stores(size) else iterations + 1
        # A factor of all rows evaluates their entries in float64.
        passes += self._sums_rows(size)
        return passes * size.n * m + m * m + rounding

    def operations(self, size: ProblemSize, iterations: int) -> float:
        root = float(size.m) ** 3
        if self._sums_rows(size):
            # A triangular solution, a product, and copies.
            return root + 3.0 * size.n * size.m**2
        searches_penalty = isinstance(self.preconditioner_penalty, str)
        return root + (spectrum_operations(size.m) if searches_penalty else 0.0)

    def _sums_rows(self, size: ProblemSize) -> bool:
        """Return whether the factor is built from all rows, unless penalty or memory is tiny."""
        # Dense rows without `pairs_once` have no random access; a cluster has no local targets.
        in_memory = size.targets_here and (size.pairs_once or not size.dense)
        is_cheap = size.n * size.m**2 <= CHEAP_PRODUCTS
        return self.preconditioner_penalty == "auto" and in_memory and is_cheap

    def bytes_read(self, size: ProblemSize) -> float:
        return 16 * float(size.m) ** 2 + self.kept_bytes(size)  # four triangles

    def iterate(
        self,
        problem: NystromProblem,
        state: State | None = None,
        *,
        rng: RandomStream | None = None,
    ) -> Iterator[FalkonState]:
        B = self.factor(problem)
        start = _to_coordinates(B, problem, state)
        warm = isinstance(state, FalkonState) and state.warm
        precise = problem.double()
        if self.refine is False or problem.K.dtype == xp.float64:
            # Float64 rows are refined only on request: a true residual corrects rounding in float64
            # alone.
            exact = precise if self.refine is True else None
            rounding = 0.0 if exact is not None else _float32_error(B, problem)
            yield from _System(B, self.keeping(problem), exact, rounding).states(start, warm)
            return
        was_wide = isinstance(state, FalkonState) and state.wide
        # Products in float32 come first, unless their rounding is too coarse. When they
        # gain little any more, products in float64 continue from the same coefficients.
        lanczos = None
        if not (was_wide or B.rounding > COARSE_ROUNDING):
            refined = self.refine is True or _product_rounding(B, problem) > VISIBLE_ROUNDING
            exact = precise if refined else None
            start, lanczos = yield from _iterate_in_float32(
                _System(B, self.keeping(problem), exact), start, warm
            )
        yield from _System(B, self.keeping(precise)).states(start, warm, lanczos)


@dataclass(frozen=True)
class _System:
    """B'H B beta = B' K_nm' W y / N, with products of `problem` and true residuals of `exact`.

    `rounding` is the prediction error due to float32 entries, as a share of the spread.
    """

    B: FalkonFactor
    problem: NystromProblem
    exact: NystromProblem | None = None
    rounding: float = 0.0

    def apply(self, beta: Array) -> Array:
        """Return B'H B beta: one pass over the rows."""
        return self._gradient(self.problem, beta, None)

    def residual(self, beta: Array) -> Array:
        """Return the right-hand side less B'H B beta: a pass with entries in float64."""
        assert self.exact is not None
        # One pass yields K'(K w - y), in which the digits of y and K w cancel in float64.
        return -self._gradient(self.exact, beta, self.exact.targets)

    def _gradient(self, problem: NystromProblem, beta: Array, targets: Targets | None) -> Array:
        # The penalty term reuses A⁻¹ beta: B' K_mm B is A'⁻¹ A⁻¹, without K_mm.
        w = self.B.solve_A(beta)
        g = problem.K.normal(self.B.solve_T(w), problem.weights, targets) / problem.total
        return self.B.solve_At(self.B.solve_Tt(g) + problem.penalty_per_target * w)

    def _watched_column(self, rhs: Array) -> int:
        """Return the column with the largest norm among the nonzero columns of least penalty."""
        # The smallest penalty has the least eigenvalue, on which the error estimate depends.
        norm = xp.norm(rhs, axis=0)
        penalties = xp.expand(
            xp.cast_like(xp.asarray(self.problem.penalty_per_target), norm), norm.shape
        )
        moving = norm > 0
        smallest = penalties[moving].min() if bool(moving.any()) else 0.0
        return int(xp.where(moving & (penalties <= smallest), norm, -1.0).argmax())

    def errors(self, cg: CGState, coef: Array, warm: bool) -> dict[str, int | float]:
        """Estimate the error of predictions: the residual over the root of the least Ritz value.

        The error is the distance from the solution in the norm of B'H B, whose square is the mean
        squared error on the rows plus the penalty of the error. Visible rounding is added. The
        residual of a warm start may be along small eigenvalues, which no Ritz value resolves at
        first: until `EARLY_STEPS` the bound of `FalkonFactor.least_eigenvalue` counts.
        """
        smallest, _ = cg.extremes
        if warm and len(cg.lanczos) < EARLY_STEPS:
            penalty = float(xp.asarray(self.problem.penalty_per_target).min())
            smallest = min(smallest, self.B.least_eigenvalue(penalty))
        norms = xp.norm(xp.to_float64(cg.residual), axis=0) / math.sqrt(smallest)
        error = self.problem.relative_error(norms)
        rounding = max(
            self.rounding, self.B.rounding_in_float64, self._float64_rounding(cg.coef, coef)
        )
        if rounding <= VISIBLE_ROUNDING:
            return {PREDICTION_ERROR: error}
        return {PREDICTION_ERROR: error + rounding, ROUNDING_ERROR: rounding}

    def _float64_rounding(self, beta: Array, coef: Array) -> float:
        r"""Estimate the prediction error due to float64 entries, as a share of the spread.

        Rounding changes an entry by epsilon, which changes the values of a function by epsilon
        times the norm of its coefficients, and the coordinates beta by :math:`B' E' v / N` for n
        rows v of the size of the target, whose norm is epsilon times the norm of B over the root of
        n.

        On 162 problems (Gaussian kernels, lengthscales 1 to 30, and polynomial ones with rows up to
        100 standard deviations from the origin; 300 to 1,500 rows, 3 to 20 features, penalties of
        1e-3 to 1e-8; solutions in extended precision), predictions were off by 0.002 to 1.6 times
        the estimate where it is above 1e-6. The norm of B alone was up to 1e4 times the error.
        """
        per_value = self.B.coef_norm / math.sqrt(self.problem.K.shape[0])
        sizes = xp.norm(xp.to_float64(coef), axis=0) + per_value * xp.norm(
            xp.to_float64(beta), axis=0
        )
        error = self.problem.relative_error(sizes) + per_value
        return ROUNDING_FACTOR * self.B.entry_rounding * error

    def states(
        self, start: State | None, warm: bool, lanczos: Array | None = None
    ) -> Iterator[FalkonState]:
        """Yield the states of conjugate gradient, from a state in the coordinates beta."""
        warm = warm or (start is not None and not isinstance(start, CGState))
        rhs = self.B.solve_At(self.B.solve_Tt(self.problem.rhs / self.problem.total))
        # A missing function leaves the recursion without replacements.
        residual = None if self.exact is None else self.residual
        float64 = self.problem.K.dtype == xp.float64
        for cg in conjugate_gradient(
            self.apply,
            rhs,
            state=start,
            exact_residual=residual,
            refine_below=REFINE_BELOW,
            probes=_probes(self.B),
            rounding=1e-5 if float64 else 0.05,
            watched=self._watched_column(rhs),
            lanczos=lanczos,
        ):
            coef, penalty = self.B.to_coef(cg.coef), self.B.penalty
            metrics = {**cg.metrics, **self.errors(cg, coef, warm), "wide": int(float64)}
            yield FalkonState(
                cg.iteration,
                coef,
                metrics,
                cg=cg,
                penalty=penalty,
                wide=float64,
                order=_order(self.B),
                warm=warm,
            )


def _float32_error(B: FalkonFactor, problem: NystromProblem) -> float:
    """Estimate the prediction error due to float32 products and removed directions."""
    if problem.K.dtype == xp.float64:
        return 0.0
    least_pivot = ROUNDING_UNITS * xp.finfo(xp.float32).eps
    truncation = 0.0 if B.order is None else math.sqrt(least_pivot)
    return max(_product_rounding(B, problem), truncation)


def _product_rounding(B: FalkonFactor, problem: NystromProblem) -> float:
    """Estimate the prediction error due to float32 products, as a share of the spread.

    `FalkonFactor.rounding` is relative to the size of the values, which exceeds the spread if the
    mean is not removed from the target.
    """
    return B.rounding * max(1.0, problem.relative_mean)


def _iterate_in_float32(
    system: _System, start: State | None, warm: bool
) -> Generator[FalkonState, None, tuple[State, Array]]:
    """Yield the states with float32 products until they gain little; return the next start.

    The start is a plain state, which continues from its coordinates with a new direction, and the
    steps so far, without which the first error estimates in float64 would be too small.
    """
    before: CGState | None = None
    for state in system.states(start, warm):
        gains = before is None or not no_gain(before, state.cg)
        is_due = state.iteration > state.cg.checked_at + LONGEST_RUN
        if state.verdict is not None or not gains or (is_due and system.exact is not None):
            break
        before = state.cg
        yield state
    logger.info("the residual hardly falls with K_nm in float32; continuing in float64")
    return State(state.iteration, state.cg.coef), state.cg.lanczos


def _probes(B: FalkonFactor) -> Array:
    """Return directions for comparing residuals without the preconditioner.

    Along these directions rounding causes 1e-5 of the right-hand side; the coordinates beta amplify
    it to a half.
    """
    rng = RandomStream(0)
    m = len(B.diagonal) if B.order is None else len(B.order)
    directions = rng.standard_normal((m, RESIDUAL_PROBES), xp.float64)
    return B.from_coef(xp.to_device(directions, B.diagonal.device))


def _to_coordinates(B: FalkonFactor, problem: NystromProblem, state: State | None) -> State | None:
    if state is None:
        return None
    if isinstance(state, FalkonState) and _same_coordinates(B, state):
        return state.cg
    coef = xp.to_float64(state.coef)
    # With all landmarks the coordinates follow from the coefficients by triangular products.
    if B.order is None:
        return State(state.iteration, B.from_coef(coef))
    # Removed landmarks may have coefficients, so the values of the function carry over instead.
    return State(state.iteration, B.from_values(problem.K_mm.double() @ coef))


def _same_coordinates(B: FalkonFactor, state: FalkonState) -> bool:
    # The last digits of an automatic penalty depend on the machine that computes it.
    close = math.isclose(state.penalty, B.penalty, rel_tol=1e-6)
    return (
        close and xp.array_equal(state.order, _order(B)) and len(state.cg.coef) == len(B.diagonal)
    )


def _order(B: FalkonFactor) -> Array:
    return xp.empty(0, xp.int64, like=B.diagonal) if B.order is None else B.order
