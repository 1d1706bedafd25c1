"""Solutions at many penalties, with a factorisation for each penalty and one pass over K."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float
from ..operators import STRIP_BYTES
from ..problems import FullProblem, NystromProblem
from .work import Work

RELATIVE_JITTER = 1e-6
"""Added to the diagonal of K_mm: far below every useful penalty times the rows."""

FEW_PENALTIES = 6
"""Most penalties with a factorisation each, which take as long as one tridiagonal form."""

TRIDIAGONAL_ROWS = range(2, 1501)
"""Rows of a tridiagonal form; with more, its products with vectors wait for memory.

Ten penalties took 0.54 of the seconds of ten factorisations at 1,400 rows, 4.5 times at 3,000.
"""

TRIDIAGONAL_FACTORS = 6
"""Factorisations that take as long as a tridiagonal form with its solutions."""


def nystrom_path(
    problem: NystromProblem, penalties: Sequence[float]
) -> Iterator[tuple[float, Float[Array, "m t"]]]:
    r"""Solve (K_mn W K_nm + N penalty K_mm) coef = K_mn W y for one penalty after the other.

    Parameters
    ----------
    problem : NystromProblem
        The problem, whose own penalty is not used.
    penalties : sequence of float
        Decreasing penalties.

    Yields
    ------
    coef : Array of shape (m, t)
        Coefficients in float64. The path ends before the first penalty at which the matrix is not
        positive definite to rounding, because smaller penalties would fail as well.

    Notes
    -----
    Cost: n m + m² kernel evaluations and n m² operations once, m³ / 3 for each penalty; memory:
    3 m² numbers of float64 and a strip of rows.

    The Gram matrix is summed in float64 from entries in the dtype of the rows: it is positive
    semidefinite whatever their rounding. Whitening by a factor of K_mm, as in FALKON, would
    amplify the rounding of float32 entries.
    """
    K = problem.K
    m, weights, targets = K.shape[1], problem.weights, xp.to_float64(problem.targets)
    # BLAS sums the upper triangle alone, in place, of a matrix by columns.
    gram = la.by_columns(xp.zeros((m, m), xp.float64))
    rhs = xp.zeros((m, targets.shape[1]), xp.float64)
    for rows, strip in K.strips():
        block = xp.cast(strip, xp.float64)
        y = targets[rows]
        if weights is not None:
            root = xp.sqrt(xp.to_float64(weights[rows]))[:, None]
            # Roots of the weights on both sides keep the Gram matrix symmetric.
            block, y = block * root, y * root
        la.add_outer_(gram, xp.to_host(block).T)
        rhs += xp.to_host(block.T @ y)
    K_mm = la.by_columns(xp.to_host(problem.K_mm.double().dense()))
    xp.multiply_(xp.diagonal(K_mm), 1 + RELATIVE_JITTER)
    R = la.by_columns(xp.empty((m, m), xp.float64))
    for penalty in penalties:
        # One buffer serves all penalties, because the factorisation overwrites it.
        R[...] = K_mm
        R *= problem.total * penalty
        R += gram
        try:
            la.cholesky_(R)
        except la.NotPositiveDefinite:
            return
        yield penalty, la.solve_cholesky(R, rhs)


def nystrom_work(n: int, m: int, penalties: int) -> Work:
    """Return the work of `nystrom_path`, whose entries are written in two dtypes and read twice."""
    square = 8 * float(m) ** 2
    return Work(
        evaluations=float(n) * m + m * m,
        operations=float(n) * m**2 + penalties * m**3 / 3,
        moved_bytes=24.0 * n * m + 6 * penalties * square,
        # A strip, and its copy in float64.
        peak_bytes=3 * square + 3 * min(4 * n * m, STRIP_BYTES),
    )


def direct_path(
    problem: FullProblem, penalties: Sequence[float]
) -> Iterator[tuple[float, Float[Array, "n t"]]]:
    """Solve (K + N penalty W⁻¹) coef = y for one penalty after the other.

    Parameters
    ----------
    problem : FullProblem
        The problem, whose own penalty is not used.
    penalties : sequence of float
        Decreasing penalties.

    Yields
    ------
    coef : Array of shape (n, t)
        Coefficients in float64. The path ends before the first penalty at which the matrix is not
        positive definite to rounding.

    Notes
    -----
    Cost: n² kernel evaluations in float64 once. Up to `FEW_PENALTIES` penalties have a
    factorisation each, n³ / 3 operations; memory: 2 n² numbers of float64. More penalties share a
    tridiagonal form, 4/3 n³ operations and 3 n² numbers: for 800 rows 20 ms, where a factorisation
    takes 3.8 ms (one core). Both are stable: predictions differ by rounding.
    """
    K = xp.to_host(problem.K.double().dense())
    y = xp.to_host(xp.to_float64(problem.targets))
    solve = _solve_tridiagonal if _is_shared(len(K), len(penalties)) else _factorise_each
    yield from zip(penalties, solve(problem, penalties, K, y), strict=False)


def direct_work(n: int, penalties: int) -> Work:
    """Return the work of `direct_path`."""
    square, factor = 8 * float(n) ** 2, float(n) ** 3 / 3
    is_shared = _is_shared(n, penalties)
    return Work(
        double_evaluations=float(n) ** 2,
        operations=TRIDIAGONAL_FACTORS * factor if is_shared else penalties * factor,
        moved_bytes=4 * square * (1 if is_shared else penalties),
        peak_bytes=(3 if is_shared else 2) * square,
    )


def _is_shared(n: int, penalties: int) -> bool:
    """Return whether penalties share a tridiagonal form."""
    return penalties > FEW_PENALTIES and n in TRIDIAGONAL_ROWS


def _factorise_each(
    problem: FullProblem, penalties: Sequence[float], K: Float[Array, "n n"], y: Float[Array, "n t"]
) -> Iterator[Float[Array, "n t"]]:
    # Allocated once: blocks of this size that are freed and taken again fragment the heap.
    A = xp.empty_like(K)
    for penalty in penalties:
        # The factorisation overwrites the matrix.
        xp.assign_(A, K)
        xp.add_(xp.diagonal(A), xp.to_host(replace(problem, penalty=penalty).ridge).reshape(-1))
        # The view by columns shares the memory of A, whose triangle becomes the factor.
        R = la.by_columns(A)
        try:
            la.cholesky_(R)
        except la.NotPositiveDefinite:
            return
        yield la.solve_cholesky(R, y)


def _solve_tridiagonal(
    problem: FullProblem, penalties: Sequence[float], K: Float[Array, "n n"], y: Float[Array, "n t"]
) -> Iterator[Float[Array, "n t"]]:
    A, root = xp.copy(K), None
    if problem.weights is not None:
        # Roots of the weights on both sides turn the ridge N penalty W⁻¹ into a shift.
        root = xp.sqrt(xp.to_host(xp.to_float64(problem.weights)))[:, None]
        A *= root * root.T
        y = root * y
    form = la.TridiagonalForm.build(la.by_columns(A))
    for x in form.solve([problem.total * penalty for penalty in penalties], y):
        yield x if root is None else root * x
