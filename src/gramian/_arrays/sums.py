"""Sums, extremes and norms of arrays, and factorisations of matrices."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ._kinds import is_tensor, loaded_torch, namesake, torch_dtype
from .elementwise import _pair, of_scipy
from .places import cast

__all__ = [
    "addmm", "aminmax", "cdist", "cholesky", "cholesky_ex", "eigh", "eigvalsh", "einsum",
    "log_softmax", "logsumexp", "matmul", "max", "min", "norm", "pdist", "qr", "softmax",
    "solve_triangular", "std", "sum_float64",
]  # fmt: skip

matmul = _pair("matmul", np.matmul)

METRIC_OF_POWER = {1.0: "cityblock", 2.0: "euclidean"}
"""SciPy's names of the distances with sums of absolute values and of squares."""


def addmm(C: Any, A: Any, B: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return beta C + alpha A B."""
    if is_tensor(A):
        return loaded_torch().addmm(C, A, B, beta=beta, alpha=alpha)
    product = A @ B
    if alpha != 1:
        product *= alpha
    product += C if beta == 1 else beta * C
    return product


def einsum(formula: str, *arrays: Any) -> Any:
    """Return the sums of products that a formula states."""
    if is_tensor(arrays[0]):
        return loaded_torch().einsum(formula, *arrays)
    return np.einsum(formula, *arrays)


softmax, log_softmax, logsumexp = map(of_scipy, ("softmax", "log_softmax", "logsumexp"))
max, min = namesake("amax", np.max), namesake("amin", np.min)


def aminmax(x: Any, axis: int | None = None) -> tuple[Any, Any]:
    """Return the least and the largest number."""
    return min(x, axis=axis), max(x, axis=axis)


def sum_float64(x: Any, axis: int | None = None) -> Any:
    """Return sums in float64, of numbers in any type."""
    if is_tensor(x):
        return (
            x.sum(dtype=loaded_torch().float64)
            if axis is None
            else x.sum(axis, dtype=loaded_torch().float64)
        )
    if axis is None:  # columns of rows on a cluster have no other sums
        return x.sum(dtype=np.float64)
    return x.sum(axis=axis, dtype=np.float64)


def std(x: Any, axis: int | None = None) -> Any:
    """Return the standard deviations, around the mean of n numbers, with n in the denominator."""
    return x.std(dim=axis, correction=0) if is_tensor(x) else x.std(axis=axis)


def norm(x: Any, axis: int | None = None, keepdims: bool = False, dtype: Any = None) -> Any:
    """Return Euclidean norms, of all numbers or along an axis."""
    if is_tensor(x):
        return loaded_torch().linalg.vector_norm(
            x, dim=axis, keepdim=keepdims, dtype=torch_dtype(dtype)
        )
    x = x if dtype is None else cast(x, dtype)
    if axis is None:
        whole_norm = np.linalg.norm(x.ravel("K"))  # without a copy of a matrix by columns
        return np.full((1,) * x.ndim, whole_norm) if keepdims else whole_norm
    # NumPy's norm along the first axis sums float32 in float32, and takes three times as long.
    last = x.T if x.ndim == 2 and axis == 0 else np.moveaxis(x, axis, -1)
    squares = np.einsum("...i,...i->...", last, last, dtype=np.float64)
    norms = np.sqrt(squares).astype(x.dtype)
    return np.expand_dims(norms, axis) if keepdims else norms


def cdist(x: Any, z: Any, p: float = 2.0) -> Any:
    """Return the distances of all pairs of rows of two matrices, from their differences."""
    if is_tensor(x):
        exact = "donot_use_mm_for_euclid_dist"
        return loaded_torch().cdist(x, z, p=p, compute_mode=exact)
    from scipy.spatial.distance import cdist as distances

    return distances(x, z, METRIC_OF_POWER[p]).astype(x.dtype, copy=False)


def pdist(x: Any, p: float = 2.0) -> Any:
    """Return the distances of all pairs of distinct rows."""
    if is_tensor(x):
        return loaded_torch().pdist(x, p=p)
    from scipy.spatial.distance import pdist as distances

    return distances(x, METRIC_OF_POWER[p]).astype(x.dtype, copy=False)


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


def qr(A: Any, mode: Literal["reduced", "r"] = "reduced") -> tuple[Any, Any]:
    """Return orthonormal columns and a triangle with product A; mode "r" returns the triangle."""
    if is_tensor(A):
        Q, R = loaded_torch().linalg.qr(A, mode=mode)
        return Q, R
    if mode == "r":
        return None, np.linalg.qr(A, "r")
    Q, R = np.linalg.qr(A, mode)
    return Q, R


def cholesky_ex(A: Any) -> tuple[Any, int]:
    """Return the upper factor, and the position of the first bad pivot, from 1, or 0."""
    if is_tensor(A):
        R, info = loaded_torch().linalg.cholesky_ex(A, upper=True)
        return R, int(info)
    from scipy.linalg import get_lapack_funcs

    (routine,) = get_lapack_funcs(("potrf",), (A,))
    R, info = routine(A, lower=0, clean=1)
    return R, int(info)


eigvalsh = namesake("linalg.eigvalsh", np.linalg.eigvalsh)
cholesky = namesake("linalg.cholesky", np.linalg.cholesky)
