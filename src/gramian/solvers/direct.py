"""Solution of both problems in closed form, the reference for every other solver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, RandomStream
from ..operators import STRIP_BYTES, STRIP_COPIES, strip_rows
from ..preconditioners._root import Root
from ..problems import FullProblem, LinearProblem, NystromProblem
from .base import Solver, solvers
from .cost import BLOCK_BYTES, PANEL_ROWS, ProblemSize
from .loop.state import State

REFINED_ROWS = 4000
"""Rows from which a refined factor in float32 is faster than one in float64.

By 1.1 times at 4,000 rows, 1.3 at 6,000 (one core of an EPYC, penalty 1e-6).
"""


@solvers.register("direct")
@dataclass(frozen=True)
class Direct(Solver[LinearProblem, State]):
    """Solve in float64 by factorisation, for rows of any dtype.

    The full problem: Cholesky factorisation of K + N penalty W⁻¹. Cost: n² kernel evaluations,
    n³ / 3 operations, 8 n² bytes. Targets with their own penalties share K. Each distinct penalty
    costs a factorisation, or 10 m³ / 3 operations in the Nystrom problem.

    From 4,000 rows on, with 4 n² more bytes, the factor is float32 at half the cost if the ridge is
    large enough, and the residual is refined to float64: the solution is as accurate. Otherwise,
    and if refinement fails, the factor is float64.

    The Nystrom problem: with K_mm = T'T and features F = K_nm T⁻¹, the least-squares problem that
    stacks W^(1/2) F on (N penalty)^(1/2) I, by QR factorisation of one block of rows after the
    other. Cost: n m kernel evaluations, about 3 n m² + m³ operations, 32 m² bytes. It never forms
    the normal equations, which square the condition number: a reference must be better conditioned
    than the solvers that are compared with it. Pivots remove landmarks that depend on the others to
    rounding. Eigenvectors would lose more, because their rounding is relative to the largest
    eigenvalue, and the rounding of pivots to the largest entry. With a polynomial kernel and rows
    30 standard deviations from the origin, the error of predictions was 1.5e-2 of their spread with
    eigenvectors and 1e-5 with pivots.

    Use it up to about 10,000 rows, for very small penalties, and as a reference.

    Parameters
    ----------
    store_bytes : int, default=0
        Memory for a float32 factor next to the matrix. Estimators assign the bytes of the factor,
        if half of the remaining memory suffices.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.solvers import Direct
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge("matern32", lengthscale=5.0, penalty=0.01, solver=Direct()).fit(X, y)
    >>> est.stop_reason_, round(float(est.score(X, y)), 2)
    ('converged', 0.54)
    """

    store_bytes: int = 0
    problem_types: ClassVar[tuple[type, ...]] = (FullProblem, NystromProblem)
    closed_form: ClassVar[bool] = True
    takes_penalties: ClassVar[bool] = True

    def iterate(
        self,
        problem: LinearProblem,
        state: State | None = None,
        *,
        rng: RandomStream | None = None,
    ) -> Iterator[State]:
        exact = problem.double()
        if isinstance(exact, FullProblem):
            yield State(0, _solve_full(exact, refine=self._refines(exact.K.shape[0])))
        else:
            yield State(0, _solve_nystrom(exact))

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        if not size.full:
            return size.vector_bytes + 40 * size.m * size.m
        half = _half_bytes(size.n) if self._refines(size.n) else 0
        return size.vector_bytes + 8 * size.n * size.n + half

    def storing(self, size: ProblemSize, available: int) -> Direct:
        needed = _half_bytes(size.n)
        if not size.full or size.n < REFINED_ROWS or needed > available:
            return self
        return replace(self, store_bytes=max(self.store_bytes, needed))

    def _refines(self, n: int) -> bool:
        return n >= REFINED_ROWS and _half_bytes(n) <= self.store_bytes

    def flexible_bytes(self, size: ProblemSize, available: int) -> int:
        if size.full:
            return min(STRIP_BYTES, 8 * size.n * size.n)
        return STRIP_COPIES * 8 * size.m * min(size.n, strip_rows(size.m, 8, available))

    def panel_bytes(self, size: ProblemSize) -> int:
        return 3 * PANEL_ROWS * 8 * size.m

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        return size.n * size.n if size.full else size.n * size.m + size.m * size.m

    def operations(self, size: ProblemSize, iterations: int) -> float:
        n, m = float(size.n), float(size.m)
        if size.full:
            # Operations in float32 take half as long.
            return n**3 / (6 if self._refines(size.n) else 3)
        rows = min(n, strip_rows(size.m, 8, BLOCK_BYTES))
        return n * m**2 * (3 + 2 * m / rows) + m**3  # features and their QR factorisation


def _half_bytes(n: int) -> int:
    return 4 * n * n


def _solve_full(problem: FullProblem, *, refine: bool) -> Array:
    A = la.by_columns(problem.K.dense())
    la.prepare_(A)
    refine = refine and not la.is_on_device(A)
    diagonal, is_intact = xp.copy(xp.diagonal(A)), True
    coef = xp.empty_like(problem.targets)
    for columns, part in problem.by_penalty():
        if not is_intact:
            la.mirror_lower_(A)  # restores the triangle that the last factor has overwritten
        # The diagonal is set from its copy, so that ridges of earlier targets do not add up.
        xp.add_(xp.assign_(xp.diagonal(A), diagonal), part.ridge.reshape(-1))
        # The refined factor is a copy, and leaves the matrix intact for the next penalty.
        solution = la.solve_refined(A, part.rhs, float(part.ridge.min())) if refine else None
        if solution is None:
            _factorise_(A, part)
            solution, is_intact = la.solve_cholesky(A, part.rhs), False
        coef[:, xp.to_device(columns, coef.device)] = solution
    return coef


def _factorise_(A: Array, problem: FullProblem) -> None:
    try:
        la.cholesky_(A)
    except la.NotPositiveDefinite as error:
        raise ValueError(
            f"K + {problem.shift:.1e} I is singular to rounding ({error}); raise the penalty, "
            f"now {problem.penalty:.1e}, or use a positive definite kernel"
        ) from error


def _solve_nystrom(problem: NystromProblem) -> Array:
    P = la.by_columns(problem.K_mm.dense())
    la.prepare_(P)
    root = Root.build(P, xp.float64)
    device, q, t = problem.targets.device, len(root.T), problem.targets.shape[1]
    T = xp.to_device(root.T, device)
    pivots = (
        xp.arange(q, device=device) if root.order is None else xp.to_device(root.order[:q], device)
    )
    has_penalties = problem.penalties is not None
    # The targets are columns of the triangle, so that one factorisation yields the right-hand
    # sides.
    R = xp.zeros((q, q + t), like=T)
    # The ridge enters as rows of the least-squares problem: it is not squared as in normal
    # equations.
    xp.fill_(xp.diagonal(R), 0.0 if has_penalties else problem.shift**0.5)
    # Only the triangle is kept from strip to strip, and normal equations are never formed.
    for rows, block in problem.K.strips():
        columns = xp.contiguous(block[:, pivots].T)
        features = la.solve_triangular(T, columns, lower=False, transpose=True).T
        F = xp.concat([features, problem.targets[rows]], axis=1)
        if problem.weights is not None:
            F *= xp.sqrt(xp.cast(problem.weights[rows, None], F.dtype))
        R = la.stacked_triangle([R, F])[:q]
    if has_penalties:
        beta = xp.empty((q, t), like=R)
        for numbers, part in problem.by_penalty():
            columns = xp.to_device(numbers, device)
            # The triangle of all rows serves each penalty, whose ridge is stacked on it.
            ridge = xp.zeros((q, q + len(columns)), like=R)
            xp.fill_(xp.diagonal(ridge), part.shift**0.5)
            triangle = xp.concat([R[:, :q], R[:, q + columns]], axis=1)
            beta[:, columns] = _solve_triangle(la.stacked_triangle([ridge, triangle])[:q], q)
    else:
        beta = _solve_triangle(R, q)
    coef = xp.zeros((problem.K.shape[1], t), like=beta)
    coef[pivots] = la.solve_triangular(T, beta, lower=False, transpose=False)
    return coef


def _solve_triangle(R: Array, r: int) -> Array:
    """Solve the least-squares problem from the triangle of features and targets."""
    beta: Array = xp.solve_triangular(R[:, :r], R[:, r:], upper=True)
    return beta
