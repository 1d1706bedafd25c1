"""Factors of dense matrices."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ._kinds import is_tensor, loaded_torch


def solve_triangular(
    R: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """Return the solution of R X = B, or of X R = B, for a triangle R."""
    if is_tensor(R):
        return loaded_torch().linalg.solve_triangular(
            R, B, upper=upper, left=left, unitriangular=unitriangular
        )
    from scipy.linalg import solve_triangular as solve

    options = {"unit_diagonal": unitriangular, "check_finite": False}
    if left:
        return solve(R, B, lower=not upper, **options)
    return solve(R, B.T, lower=not upper, trans=1, **options).T


def eigh(A: Any, UPLO: Literal["L", "U"] = "L") -> tuple[Any, Any]:
    """Return eigenvalues, in increasing order, and eigenvectors of a symmetric matrix."""
    if is_tensor(A):
        values, vectors = loaded_torch().linalg.eigh(A, UPLO=UPLO)
        return values, vectors
    values, vectors = np.linalg.eigh(A, UPLO)
    return values, vectors


def eigvalsh(A: Any) -> Any:
    """Return the eigenvalues of a symmetric matrix, in increasing order."""
    return loaded_torch().linalg.eigvalsh(A) if is_tensor(A) else np.linalg.eigvalsh(A)


def qr(A: Any, mode: Literal["reduced", "r"] = "reduced") -> tuple[Any, Any]:
    """Return orthonormal columns and a triangle with product A; mode "r" returns the triangle."""
    if is_tensor(A):
        Q, R = loaded_torch().linalg.qr(A, mode=mode)
        return Q, R
    if mode == "r":
        return None, np.linalg.qr(A, "r")
    Q, R = np.linalg.qr(A, mode)
    return Q, R


def svd(A: Any, full_matrices: bool = True) -> tuple[Any, Any, Any]:
    """Return left vectors, singular values, and right vectors as rows."""
    if is_tensor(A):
        U, s, V = loaded_torch().linalg.svd(A, full_matrices=full_matrices)
        return U, s, V
    U, s, V = np.linalg.svd(A, full_matrices=full_matrices)
    return U, s, V


def cholesky(A: Any) -> Any:
    """Return the lower factor of a positive definite matrix."""
    return loaded_torch().linalg.cholesky(A) if is_tensor(A) else np.linalg.cholesky(A)


def cholesky_ex(A: Any) -> tuple[Any, int]:
    """Return the upper factor, and the position of the first bad pivot, from 1, or 0."""
    if is_tensor(A):
        R, info = loaded_torch().linalg.cholesky_ex(A, upper=True)
        return R, int(info)
    from scipy.linalg import get_lapack_funcs

    (routine,) = get_lapack_funcs(("potrf",), (A,))
    R, info = routine(A, lower=0, clean=1)
    return R, int(info)
