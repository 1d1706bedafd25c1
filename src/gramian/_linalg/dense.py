"""Dense factorisations in float64, in place, through LAPACK routines of SciPy.

Matrices on a device go to `device`, and operations that take longer than a millisecond to `pooled`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.linalg.blas
import scipy.linalg.lapack

from .. import _arrays as xp
from .._arrays import Array, Float, Int
from .._parallel.workers import one_thread_if_small
from . import device as on_device
from . import pooled

FLOAT64_EPS = float(np.finfo(np.float64).eps)

FEW_SIDES = 2
"""Most right-hand sides that are solved one after the other.

For one side at 2,000 rows LAPACK's routine for several took 2.0 ms, its routine for one 0.63; for
three and more at 5,000 rows the routine for several is faster (OpenBLAS, an EPYC).
"""


def is_on_device(A: Array) -> bool:
    """Return whether a matrix is outside the memory of the process."""
    return not xp.is_host(A.device)


class NotPositiveDefinite(ValueError):
    """Error for a matrix with a Cholesky pivot that is not positive."""


def require_finite(K: Float[Array, "n m"]) -> None:
    """Raise ValueError if a kernel matrix has an entry that is not finite."""
    _require_finite(*_range(K))


def _range(K: Float[Array, "n m"]) -> tuple[float, float]:
    """Return the least and the largest entry, without the memory of isfinite."""
    low, high = xp.aminmax(_in_stored_order(K))
    return float(low), float(high)


def _require_finite(low: float, high: float) -> None:
    if not (low > -xp.inf and high < xp.inf):
        raise ValueError(
            "the kernel matrix has entries that are not finite: products or squares of the "
            "features overflow; rescale the features"
        )


def flush_tiny_(K: Float[Array, "n m"]) -> None:
    """Set entries below 1e-30 of the largest to zero, block by block.

    Such entries are far below rounding, but their products are denormal, which slows LAPACK 30
    times. They come from clusters far apart, or a lengthscale that is too small.
    """
    _flush_tiny_(K, *_range(K))


def prepare_(K: Float[Array, "n m"]) -> None:
    """Prepare a kernel matrix for LAPACK: `require_finite` and `flush_tiny_` with one pass less."""
    low, high = _range(K)
    _require_finite(low, high)
    _flush_tiny_(K, low, high)


def _flush_tiny_(K: Float[Array, "n m"], low: float, high: float) -> None:
    K = _in_stored_order(K)
    threshold = 1e-30 * max(-low, high)
    # No entry is tiny, as for kernels with long tails: no second pass is needed.
    if low > threshold:
        return
    step = max(1, (1 << 17) // max(K.shape[1], 1))
    for start in range(0, len(K), step):
        part = K[start : start + step]
        xp.fill_where_(part, xp.abs(part) < threshold, 0.0)


def _in_stored_order(K: Array) -> Array:
    """Return a matrix or its transpose, whichever is contiguous."""
    return K if xp.is_contiguous(K) else K.T


def by_columns(A: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """Return the memory of a symmetric matrix as LAPACK reads it: column after column."""
    return A.T


def cholesky_(A: Float[Array, "m m"]) -> None:
    """Replace the upper triangle of A by the factor R, R'R = A; entries below the diagonal stay.

    - `A`: float64, by columns. Cost: m³ / 3 operations; no copy.

    Raises
    ------
    NotPositiveDefinite
        The upper triangle is then overwritten.
    """
    if xp.dtype_of(A) != xp.float64:
        raise TypeError(f"LAPACK would factorise a copy of a {A.dtype} matrix, not the matrix")
    if is_on_device(A):
        info = on_device.cholesky_(A)
    elif pooled.pays(len(A) ** 3 / 3, len(A)):
        info = pooled.cholesky_(A)
    else:
        with one_thread_if_small(len(A) ** 3 / 3):
            _, info = scipy.linalg.lapack.dpotrf(A, lower=0, overwrite_a=1, clean=0)
    if info != 0:
        raise NotPositiveDefinite(f"pivot {info} of {len(A)} is not positive")


def pivoted_cholesky_(A: Float[Array, "m m"], least: float) -> tuple[Int[Array, " m"], int]:
    """Replace the upper triangle of A by the factor with the largest pivots first.

    - `A`: float64, by columns, on the host. Cost: m³ / 3 operations, no copy.
    - `least`: the factorisation ends before a pivot (a squared diagonal entry) of at most `least`.

    Returns
    -------
    Array of shape (m,)
        Row indices in the order of the pivots.
    int
        Rows of the factor R, R'R = A in this order, up to `least`; rows below are overwritten.
    """
    with one_thread_if_small(len(A) ** 3 / 3):
        _, pivots, rank, _ = scipy.linalg.lapack.dpstrf(A, tol=least, lower=0, overwrite_a=1)
    # LAPACK counts from 1.
    return pivots.astype(np.int64) - 1, int(rank)


def add_outer_(P: Float[Array, "q q"], S: Float[Array, "q s"], times: float = 1.0) -> None:
    """Add a multiple of S S' to the upper triangle of P, which is by columns; both on the host.

    Cost: q² s operations, and a copy of S if it is neither by columns nor by rows.
    """
    if S.shape[1] == 0:
        return
    if pooled.pays(len(P) ** 2 * S.shape[1], len(P)):
        pooled.add_outer_(P, xp.cast(S, P.dtype), times)
        return
    # BLAS would copy S from rows to columns.
    by_rows = xp.is_contiguous(S)
    with one_thread_if_small(len(P) ** 2 * S.shape[1]):
        scipy.linalg.blas.dsyrk(
            times, S.T if by_rows else S, beta=1.0, c=P, trans=int(by_rows), lower=0, overwrite_c=1
        )


def times_transpose_(R: Float[Array, "m m"]) -> None:
    """Replace the upper triangular R by the upper triangle of R R'. m³ / 3 operations."""
    if is_on_device(R):
        on_device.times_transpose_(R)
        return
    if pooled.pays(len(R) ** 3 / 3, len(R)):
        pooled.times_transpose_(R)
        return
    with one_thread_if_small(len(R) ** 3 / 3):
        scipy.linalg.lapack.dlauum(R, lower=0, overwrite_c=1)


def invert_triangle_(R: Float[Array, "m m"]) -> None:
    """Replace the upper triangle of R, by columns and on the host, by its inverse.

    Cost: m³ / 3 operations.
    """
    if is_on_device(R):
        on_device.invert_triangle_(R)
        return
    if pooled.pays(len(R) ** 3 / 3, len(R)):
        pooled.invert_triangle_(R)
        return
    with one_thread_if_small(len(R) ** 3 / 3):
        scipy.linalg.lapack.dtrtri(R, lower=0, overwrite_c=1)


def times_triangle_(K: Float[Array, "b m"], R: Float[Array, "m m"]) -> None:
    """Replace K, by rows, by K R, with R in the upper triangle, by columns; on the host.

    Cost: b m² operations.
    """
    if pooled.pays(len(K) * len(R) ** 2, len(K)):
        pooled.times_triangle_(K, R)
        return
    with one_thread_if_small(len(K) * len(R) ** 2):
        scipy.linalg.blas.dtrmm(1.0, R, K.T, trans_a=1, overwrite_b=1)


def inverse_diagonal_(R: Float[Array, "m m"]) -> Float[Array, " m"]:
    """Return the diagonal of (R'R)⁻¹, with the upper triangle of R (by columns); R may be spoilt.

    Cost: m³ / 3 operations, no copy.
    """
    if is_on_device(R):
        return on_device.inverse_diagonal(R)
    invert_triangle_(R)
    diagonal = xp.empty(len(R), R.dtype)
    # `triu` of a few rows at a time: the strict lower triangle of R contains other numbers.
    for start in range(0, len(R), 512):
        part = xp.triu(R[start : start + 512, start:])
        diagonal[start : start + 512] = xp.square(part).sum(axis=1)
    return diagonal


def solve_triangular(
    R: Float[Array, "m m"],
    b: Float[Array, "m t"],
    *,
    lower: bool,
    transpose: bool,
    unit: bool = False,
) -> Float[Array, "m t"]:
    """Return the solution of R x = b, or of R' x = b, with one triangle of R (by columns)."""
    if is_on_device(R):
        return on_device.solve_triangular(R, b, lower, transpose, unit)
    x = np.array(b, np.float64, order="F")
    solve_triangular_(R, x, lower=lower, transpose=transpose, unit=unit)
    return np.ascontiguousarray(x)


def solve_triangular_(
    R: Float[Array, "m m"],
    x: Float[Array, "m t"],
    *,
    lower: bool,
    transpose: bool,
    unit: bool = False,
) -> None:
    """Replace x, float64 and by columns, by the solution of R y = x, or of R' y = x.

    Cost: m² t operations; no copy on the host.
    """
    if is_on_device(R):
        xp.assign_(x, on_device.solve_triangular(R, x, lower, transpose, unit))
        return
    if not xp.is_contiguous(x.T) or xp.dtype_of(x) != xp.float64:
        raise TypeError("LAPACK would solve for a copy of x, which must be float64 and by columns")
    # Of another triangle LAPACK makes a copy.
    fits = xp.dtype_of(R) == xp.float64 and R.strides[0] == R.itemsize
    if fits and pooled.pays(len(R) * xp.size(x), x.shape[1]):
        pooled.solve_triangular_(R, x, lower, transpose, unit)
        return
    with one_thread_if_small(len(R) * xp.size(x)):
        scipy.linalg.lapack.dtrtrs(
            R,
            x,
            lower=int(lower),
            trans=int(transpose),
            unitdiag=int(unit),
            overwrite_b=1,
        )


def times_triangular(
    R: Float[Array, "m m"],
    b: Float[Array, "m t"],
    *,
    lower: bool,
    transpose: bool,
    unit: bool = False,
) -> Float[Array, "m t"]:
    """Return R b, or R' b, with one triangle of R (by columns)."""
    if is_on_device(R):
        return on_device.times_triangular(R, b, lower, transpose, unit)
    with one_thread_if_small(len(R) * xp.size(b)):
        x = scipy.linalg.blas.dtrmm(
            1.0,
            R,
            b,
            lower=int(lower),
            trans_a=int(transpose),
            diag=int(unit),
        )
    return np.ascontiguousarray(x)


def solve_cholesky(R: Float[Array, "m m"], b: Float[Array, "m t"]) -> Float[Array, "m t"]:
    """Return the solution of R'R x = b, with the upper triangle of R (by columns)."""
    if is_on_device(R):
        x = on_device.solve_triangular(R, b, lower=False, transpose=True, unit=False)
        return on_device.solve_triangular(R, x, lower=False, transpose=False, unit=False)
    with one_thread_if_small(2 * len(R) * xp.size(b)):
        if 0 < b.shape[1] <= FEW_SIDES and len(R):
            sides = [_solve_cholesky_one(R, b[:, j]) for j in range(b.shape[1])]
            return np.stack(sides, axis=1)
        x, _ = scipy.linalg.lapack.dpotrs(R, b, lower=0)
    return np.ascontiguousarray(x)


def _solve_cholesky_one(R: Any, b: Any) -> Any:
    y = scipy.linalg.blas.dtrsv(R, b, trans=1)
    return scipy.linalg.blas.dtrsv(R, y, overwrite_x=1)


def mirror_upper_(A: Float[Array, "m m"]) -> None:
    """Copy the strict upper triangle of A, transposed, onto the strict lower triangle."""
    _copy_lower_triangle(A, A.T)


def mirror_lower_(A: Float[Array, "m m"]) -> None:
    """Copy the strict lower triangle of A, transposed, onto the strict upper triangle."""
    _copy_lower_triangle(A.T, A)


def _copy_lower_triangle(target: Array, source: Array, step: int = 256) -> None:
    """Copy the strict lower triangle by blocks; source and target may share memory."""
    m = len(target)
    for start in range(0, m, step):
        end = min(start + step, m)
        target[end:, start:end] = source[end:, start:end]
        corner = target[start:end, start:end]
        xp.assign_(corner, xp.triu(corner) + xp.tril(source[start:end, start:end], -1))


def top_eigenpairs(A: Float[Array, "m m"], k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues, (k,), and their vectors, (m, k), the largest first.

    - `A`: symmetric; overwritten. Cost: 4/3 m³ + 2 m² k operations, LAPACK's `syevr`, in its
      dtype: float32 takes half the time, with eigenvalues to about 1e-6 of the largest.
    """
    if is_on_device(A):
        return on_device.top_eigenpairs(A, k)
    m = len(A)
    with one_thread_if_small(4 * m**3 / 3):
        values, vectors = scipy.linalg.eigh(
            A,
            lower=False,
            overwrite_a=True,
            check_finite=False,
            subset_by_index=[m - k, m - 1],
        )
    return (
        xp.to_float64(values[::-1].copy()),
        xp.to_float64(vectors[:, ::-1].copy()),
    )


def eigenpairs(A: Float[Array, "m m"]) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
    """Return all eigenvalues of a symmetric finite matrix, increasing, with vectors as columns.

    LAPACK's `syevd`. Cost: up to 9 m³ operations, 24 m² bytes; A is unchanged.
    """
    with one_thread_if_small(4 * len(A) ** 3):
        return xp.eigh(A)


def eigenvalues(A: Float[Array, "m m"]) -> Float[Array, " m"]:
    """Return all eigenvalues of a symmetric matrix, increasing, in 4/3 m³ operations."""
    with one_thread_if_small(4 * len(A) ** 3 / 3):
        values: Array = xp.eigvalsh(A)
    return values


def stacked_triangle(blocks: list[Float[Array, "_ m"]]) -> Float[Array, "k m"]:
    """Return the R of a QR factorisation of the stacked blocks."""
    _, R = xp.qr(xp.concat(blocks), mode="r")
    return R
