"""direct_path: solutions of the full problem at many penalties, with a factorisation for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la
from ..problems import FullProblem


def direct_path(
    problem: FullProblem, penalties: Sequence[float]
) -> Iterator[tuple[float, Float[Tensor, "n t"]]]:
    """Solve (K + N penalty W⁻¹) coef = y for one penalty after the other.

    Parameters
    ----------
    problem : FullProblem
        The problem, whose own penalty is not used.
    penalties : sequence of float
        Decreasing penalties.

    Yields
    ------
    penalty : float
    coef : Tensor of shape (n, t)
        Coefficients in float64. The path ends before the first penalty at which the matrix is not
        positive definite to rounding.

    Notes
    -----
    Cost: n² kernel evaluations in float64 once, n³ / 3 operations for each penalty; memory: 2 n²
    numbers of float64.
    """
    K = problem.K.double().dense().cpu()
    y = problem.targets.double().cpu()
    # Allocated once: blocks of this size that are freed and taken again fragment the heap.
    A = torch.empty_like(K)
    for penalty in penalties:
        # The factorisation overwrites the matrix.
        A.copy_(K)
        A.diagonal().add_(replace(problem, penalty=penalty).ridge.cpu().reshape(-1))
        # The view by columns shares the memory of A, whose triangle becomes the factor.
        R = la.by_columns(A)
        try:
            la.cholesky_(R)
        except la.NotPositiveDefinite:
            return
        yield penalty, la.solve_cholesky(R, y)
