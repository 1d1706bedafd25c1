"""FALKON: conjugate gradient on the Nystrom problem in preconditioned coordinates."""

from __future__ import annotations

import logging
import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from jaxtyping import Int
from torch import Tensor

from .._linalg import extremes_of_lanczos
from ..data import Targets
from ..preconditioners import FalkonFactor
from ..preconditioners._root import ROUNDING_UNITS
from ..preconditioners.falkon import ROUNDING_ROWS
from ..problems import NystromProblem
from .base import Solver, solvers
from .conjugate_gradient import CGState, conjugate_gradient, no_gain
from .cost import PANEL_ROWS, ProblemSize
from .metrics import PREDICTION_ERROR, ROUNDING_ERROR
from .state import ADDED_LATER, State
from .stopping import StopReason
from .storing import StoresEntries

logger = logging.getLogger("gramian")

VISIBLE_ROUNDING = 2e-4
"""Share of the spread of predictions up to which rounding to float32 is accepted."""

COARSE_ROUNDING = 0.1
"""Share from which float32 products are no use; conjugate gradient gains little with them."""

NEGLIGIBLE_SHARE = 0.01
"""Share of the rounding error below which further iterations do not pay."""

REFINE_BELOW = 1e-2
"""A true residual is computed after so large a drop: 0.1 takes twice as many, 1e-3 more steps."""

EARLY_STEPS = 3
"""Lanczos steps of a run from given coefficients before which their Ritz value does not count."""

ROUNDING_FACTOR = 2.0
"""The estimated error by rounding in units of a sum of independent roundings of all entries."""

RESIDUAL_PROBES = 8
"""Directions in which the residual of a state to go on from is compared."""


@dataclass(kw_only=True)
class FalkonState(State):
    r"""Coefficients, and the state of conjugate gradient in the coordinates beta.

    Attributes
    ----------
    cg : CGState
        Its ``coef`` is beta, with coef = T⁻¹ A⁻¹ beta.
    penalty : float
        The :math:`\lambda` inside A: under another one beta means something else.
    wide : bool
        Whether products run in float64, whatever the dtype of the rows.
    order : Tensor of shape (m,)
        That of the landmarks in T, empty if they are in order.
    warm : bool
        Whether conjugate gradient began at given coefficients.
    """

    cg: CGState
    penalty: float = 0.0
    wide: bool = False
    order: Int[Tensor, " k"]
    warm: bool = field(default=False, metadata={ADDED_LATER: True})

    @property
    def verdict(self) -> StopReason | None:
        """No progress, as conjugate gradient says, or where rounding is nearly all of the error."""
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

    Take it, as ``solver="auto"`` does, wherever there are landmarks and m² numbers fit into memory.

    Parameters
    ----------
    preconditioner_penalty : float, "auto" or None, default="auto"
        The :math:`\lambda` inside A; that of the problem if None, as in the paper. The solution
        does not depend on it. With fewer landmarks than the theory asks for (about 1 / penalty) a
        larger one converges faster: "auto" takes the smallest for which the effective dimension
        of the landmarks is at most 0.3 m / (1 - m / n).
    refine : bool or "auto", default="auto"
        What is done about float32 rows. "auto": what it takes for predictions within about 1e-3
        of their spread of the exact ones, see the notes. True: the true residual is computed in
        float64 each time the recursive one has dropped a hundredfold, at about two more passes a
        time, so that they come as near to the exact ones as `tol` says. False: all products run in
        float32, and directions that they cannot tell from rounding are left out of the model. An
        error by rounding above 2e-4 is part of ``prediction_error``, and the fit ends as
        "no_progress", with a warning, where `tol` is below it.
    store_bytes : int, default=0
        Memory for the n m entries in the dtype of products: if they fit they are evaluated once,
        and each iteration reads them. An estimator gives what its memory limit leaves where rows
        have 24 features or more, 48 with more than two targets.

    Notes
    -----
    Cost: the factor, m² kernel evaluations and about m³ operations in float64, once; then n m
    kernel evaluations per iteration. Memory: 8 m² bytes, and a block of rows.

    The split form is not a matter of taste: with float32 rows, CG on coef with B B' as
    preconditioner diverges. Vectors of m numbers and both factors are float64, whatever the rows.

    Products with float32 rows: `FalkonFactor.rounding` estimates how much of their spread
    predictions move if kernel entries are rounded to float32. Up to 2e-4 that is accepted, and the
    residual is that of the problem with rounded entries. Up to 0.1 the true residual is computed in
    float64 after each hundredfold drop (two or three times, 12 % more time, four more iterations
    of 60). Above, and where that gains nothing any more, products run in float64, at about twice
    the time each: ``metrics["wide"]`` is 1 then. That is so for smooth kernels of few features
    with small penalties: on california_housing (8 features, lengthscale 2, 1,000 landmarks,
    penalty 1e-6), predictions were 3 % of their spread off with products in float32, and are 3e-6.

    What ``prediction_error`` certifies: ``rel_residual`` is the residual of the preconditioned
    system, by its recursion between true residuals; over the root of the least Ritz value it is the
    error of predictions. On 30 random problems (300 to 900 rows, 20 to 200 landmarks, five kernels,
    penalties 1e-2 to 1e-10), after 3 to 40 iterations, it was 0.6 to 3.3 times the true error on
    the rows and at new points in nine of ten, 17 times at most. Two things
    remain. In float64 a true residual ends at 1e-13 to 1e-5 of the right-hand side, the more
    singular K_mm and the smaller the penalty, and the recursion still falls: a `tol` below 1e-8
    promises more than there is. And where landmarks depend on others to rounding, rounding decides
    which functions the model may use between and beyond them. With ``tol=1e-11`` on 200 random
    problems (1 or 2 features, 10 to 120 landmarks, penalties 1e-10 to 1e-2, all "converged"),
    predictions were 1e-4 or more of the spread of y from those of `Direct` in four, each of them
    with 10 or 30 landmarks of a smooth kernel and one feature, and 4e-2 in one; true residuals were
    9e-6 and less. A larger penalty, or landmarks that are further apart, is the remedy.

    A run from given coefficients converges before its third step only if the residual is so small
    that it bounds the error, as with the exact solution.

    Targets with penalties of their own share passes and both factors, the penalty inside A being
    their geometric mean or larger. Four of 1e-8 to 1 took 1.2 times the iterations of the smallest.

    Centers that are no rows, such as points that a user has chosen, do not stand for the rows. If
    there are at most two distinct rows for each, all rows make the factor, at n m² operations: with
    more centers than rows the penalty alone decides on the functions that vanish at all rows, and a
    factor of centers sees them after thousands of iterations. Of more rows the distinct ones are
    counted in a sample that is drawn by their weights, where n m² is at most 1e12. Where float64
    cannot tell those functions (penalties below about 1e-12), ``prediction_error`` includes an
    estimate of that.

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

    preconditioner_penalty: float | Literal["auto"] | None = "auto"
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
            valid = lam == "auto"
        else:
            valid = lam is None or (math.isfinite(lam) and lam > 0)
        if not valid:
            raise ValueError(
                f"preconditioner_penalty must be positive and finite, 'auto' or None, not {lam!r}"
            )

    def factor(self, problem: NystromProblem) -> FalkonFactor:
        """Return the preconditioner; a subclass may have it from elsewhere."""
        return FalkonFactor.build(
            problem, self.preconditioner_penalty, exact=self.refine is not False
        )

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        factor = 8 * size.m * size.m + 16 * size.m * size.d
        return size.vector_bytes + factor + self.kept_bytes(size)

    def panel_bytes(self, size: ProblemSize) -> int:
        return 3 * PANEL_ROWS * 8 * size.m

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        m = size.m
        rounding = 2 * m * min(m, ROUNDING_ROWS) if size.itemsize < 8 else 0  # see `FalkonFactor`
        passes = 1 if self.stores(size) else iterations + 1
        return passes * size.n * m + m * m + rounding

    def operations(self, size: ProblemSize, iterations: int) -> float:
        return float(size.m) ** 3

    def bytes_read(self, size: ProblemSize) -> float:
        return 16 * float(size.m) ** 2 + self.kept_bytes(size)  # four triangles

    def iterate(
        self,
        problem: NystromProblem,
        state: State | None = None,
        *,
        rng: torch.Generator | None = None,
    ) -> Iterator[FalkonState]:
        B = self.factor(problem)
        start = _in_coordinates(B, problem, state)
        warm = isinstance(state, FalkonState) and state.warm
        precise = problem.double()
        if self.refine is False or problem.K.dtype == torch.float64:
            exact = precise if self.refine is True else None
            rounding = 0.0 if exact is not None else _float32_error(B, problem)
            yield from _System(B, self.keeping(problem), exact, rounding).states(start, warm)
            return
        before = isinstance(state, FalkonState) and state.wide
        if not (before or B.rounding > COARSE_ROUNDING):
            refined = self.refine is True or _product_rounding(B, problem) > VISIBLE_ROUNDING
            exact = precise if refined else None
            start = yield from _while_it_gains(
                _System(B, self.keeping(problem), exact), start, warm
            )
        yield from _System(B, self.keeping(precise)).states(start, warm)


@dataclass(frozen=True)
class _System:
    """B'H B beta = B' K_nm' W y / N, with products of `problem` and true residuals of `exact`.

    `rounding` is the error of predictions by float32 entries, as a share of their spread.
    """

    B: FalkonFactor
    problem: NystromProblem
    exact: NystromProblem | None = None
    rounding: float = 0.0

    def apply(self, beta: Tensor) -> Tensor:
        """Return B'H B beta: one pass over the rows."""
        return self._gradient(self.problem, beta, None)

    def residual(self, beta: Tensor) -> Tensor:
        """Return the right-hand side less that: a pass with entries in float64."""
        assert self.exact is not None
        return -self._gradient(self.exact, beta, self.exact.targets)

    def _gradient(self, problem: NystromProblem, beta: Tensor, targets: Targets | None) -> Tensor:
        w = self.B.solve_A(beta)
        g = problem.K.normal(self.B.solve_T(w), problem.weights, targets) / problem.total
        return self.B.solve_At(self.B.solve_Tt(g) + problem.each * w)

    def _watched_column(self, rhs: Tensor) -> int:
        """Return the largest column with the smallest penalty that any column but zero has."""
        norm = rhs.norm(dim=0)
        penalties = torch.as_tensor(self.problem.each).to(norm).expand_as(norm)
        moving = norm > 0
        smallest = penalties[moving].min() if bool(moving.any()) else 0.0
        return int(torch.where(moving & (penalties <= smallest), norm, -1.0).argmax())

    def errors(self, cg: CGState, coef: Tensor, warm: bool) -> dict[str, int | float]:
        """Estimate the error of predictions: the residual over the root of the least Ritz value.

        That is the distance from the solution in the norm of B'H B, whose square is the mean
        squared error on the rows and the penalty of the error. Visible rounding adds to it. The
        residual of given coefficients may point to small eigenvalues, which no Ritz value shows
        at first: until `EARLY_STEPS` the bound of `FalkonFactor.least_eigenvalue` counts.
        """
        smallest, _ = extremes_of_lanczos(cg.lanczos[:, 0], cg.lanczos[:, 1])
        if warm and len(cg.lanczos) < EARLY_STEPS:
            penalty = float(torch.as_tensor(self.problem.each).min())
            smallest = min(smallest, self.B.least_eigenvalue(penalty))
        norms = cg.residual.double().norm(dim=0) / math.sqrt(smallest)
        error = self.problem.relative_error(norms)
        rounding = max(
            self.rounding, self.B.rounding_in_float64, self._float64_rounding(cg.coef, coef)
        )
        if rounding <= VISIBLE_ROUNDING:
            return {PREDICTION_ERROR: error}
        return {PREDICTION_ERROR: error + rounding, ROUNDING_ERROR: rounding}

    def _float64_rounding(self, beta: Tensor, coef: Tensor) -> float:
        r"""Estimate the error of predictions by entries in float64, as a share of their spread.

        Rounding moves an entry by epsilon, which moves the values of a function by epsilon times
        the norm of its coefficients, and the coordinates beta by :math:`B' E' v / N` for n rows v
        of the size of the target, whose norm is epsilon times that of B over the root of n.

        On 162 problems (Gaussian kernels, lengthscales 1 to 30, and polynomial ones with rows up to
        100 standard deviations from the origin; 300 to 1,500 rows, 3 to 20 features, penalties of
        1e-3 to 1e-8; solutions in extended precision), predictions were off by 0.002 to 1.6 times
        as much where it is above 1e-6. The norm of B alone was up to 1e4 times the error.
        """
        per_value = self.B.coef_norm / math.sqrt(self.problem.K.shape[0])
        sizes = coef.double().norm(dim=0) + per_value * beta.double().norm(dim=0)
        error = self.problem.relative_error(sizes) + per_value
        return ROUNDING_FACTOR * self.B.entry_rounding * error

    def states(self, start: State | None, warm: bool) -> Iterator[FalkonState]:
        """Yield the states of conjugate gradient, from a state in the coordinates beta."""
        warm = warm or (start is not None and not isinstance(start, CGState))
        rhs = self.B.solve_At(self.B.solve_Tt(self.problem.rhs / self.problem.total))
        residual = None if self.exact is None else self.residual
        float64 = self.problem.K.dtype == torch.float64
        for cg in conjugate_gradient(
            self.apply,
            rhs,
            state=start,
            exact_residual=residual,
            refine_below=REFINE_BELOW,
            probes=_probes(self.B),
            rounding=1e-5 if float64 else 0.05,
            watched=self._watched_column(rhs),
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
    """Estimate the error of predictions by products in float32, and by directions left out."""
    if problem.K.dtype == torch.float64:
        return 0.0
    least_pivot = ROUNDING_UNITS * torch.finfo(torch.float32).eps
    left_out = 0.0 if B.order is None else math.sqrt(least_pivot)
    return max(_product_rounding(B, problem), left_out)


def _product_rounding(B: FalkonFactor, problem: NystromProblem) -> float:
    """Estimate the error of predictions by products in float32, as a share of their spread.

    `FalkonFactor.rounding` is relative to the size of the values. A mean that is not removed from
    the target makes it larger than the spread.
    """
    return B.rounding * max(1.0, problem.relative_mean)


def _while_it_gains(
    system: _System, start: State | None, warm: bool
) -> Generator[FalkonState, None, State | None]:
    """Yield the states with float32 products; return where they gain nothing any more."""
    before: CGState | None = None
    for state in system.states(start, warm):
        if state.verdict is not None or (before is not None and no_gain(before, state.cg)):
            logger.info("K_nm in float32 gains nothing any more: float64 from here")
            return State(state.iteration, state.cg.coef)
        before = state.cg
        yield state
    return before


def _probes(B: FalkonFactor) -> Tensor:
    """Return directions in which a residual is seen as it is without preconditioner.

    Rounding makes 1e-5 of the right-hand side there, where beta amplifies it to a half.
    """
    rng = torch.Generator().manual_seed(0)
    m = len(B.diagonal) if B.order is None else len(B.order)
    some = torch.randn(m, RESIDUAL_PROBES, generator=rng, dtype=torch.float64)
    return B.from_coef(some.to(B.diagonal.device))


def _in_coordinates(B: FalkonFactor, problem: NystromProblem, state: State | None) -> State | None:
    if state is None:
        return None
    if isinstance(state, FalkonState) and _same_coordinates(B, state):
        return state.cg
    coef = state.coef.double()
    if B.order is None:
        return State(state.iteration, B.from_coef(coef))
    return State(state.iteration, B.from_values(problem.K_mm.double() @ coef))


def _same_coordinates(B: FalkonFactor, state: FalkonState) -> bool:
    # an automatic penalty ends differently where it is computed differently
    alike = math.isclose(state.penalty, B.penalty, rel_tol=1e-6)
    return alike and torch.equal(state.order, _order(B)) and len(state.cg.coef) == len(B.diagonal)


def _order(B: FalkonFactor) -> Tensor:
    return B.diagonal.new_empty(0, dtype=torch.int64) if B.order is None else B.order
