"""Solutions of the full problem at many penalties, with a factorisation for each penalty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float
from ..problems import FullProblem


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
    Cost: n² kernel evaluations in float64 once, n³ / 3 operations for each penalty; memory: 2 n²
    numbers of float64.
    """
    K = xp.to_host(problem.K.double().dense())
    y = xp.to_host(xp.to_float64(problem.targets))
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
        yield penalty, la.solve_cholesky(R, y)
