"""Compressed sparse rows: slices, columns, scales, norms, and copies for many products."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse

from .. import _arrays as xp
from .._arrays import Array, Float, Int, is_sparse

WIDE_FEATURES = 1 << 14
"""Features beyond which points stay sparse that are made dense otherwise, such as landmarks.

Products with dense points are faster up to some thousand features; a million landmarks' features
have no room.
"""


def is_wide(x: Array) -> bool:
    """Return whether points are sparse, with more features than are made dense."""
    return is_sparse(x) and x.shape[1] > WIDE_FEATURES


def dense(x: Array) -> Array:
    """Return points as a dense array; wide sparse points are returned unchanged."""
    return xp.to_dense(x) if is_sparse(x) and not is_wide(x) else x


def slice_rows(x: Array, start: int, stop: int) -> Array:
    """Return rows `start` to `stop` of `x`, (n, d), dense or sparse; values are not copied."""
    if not is_sparse(x):
        return x[start:stop]
    # Only the row starts are new memory.
    crow = xp.indptr(x)[start : stop + 1]
    lo, hi = int(crow[0]), int(crow[-1])
    shape = (len(crow) - 1, x.shape[1])
    return xp.csr(crow - crow[0], xp.indices(x)[lo:hi], xp.entries(x)[lo:hi], shape)


def sparse_rows(x: Array) -> Array:
    """Return dense rows in compressed sparse row form."""
    return of_scipy(scipy.sparse.csr_array(x))


def take_rows(x: Array, index: Int[Array, " k"]) -> Array:
    """Return the rows of `x`, (n, d), dense or sparse, at given indices, in new memory."""
    return of_scipy(as_scipy(x)[index]) if is_sparse(x) else x[index]


def take_columns(x: Array, columns: Sequence[int]) -> Float[Array, "n k"]:
    """Return some columns of `x`, (n, d), dense or sparse, as a dense array."""
    chosen = list(columns)
    if not is_sparse(x):
        return xp.take_columns(x, chosen)
    return xp.to_device(as_scipy(x)[:, chosen].toarray(), xp.device_of(x))


def scale_columns(x: Array, factor: Array) -> Array:
    """Return x diag(factor) for one factor, or one per column."""
    if not is_sparse(x):
        return x * factor
    # A diagonal matrix scales each entry by the factor of its column: the pattern stays.
    scale = factor if factor.ndim == 0 else factor[xp.indices(x)]
    return xp.csr(xp.indptr(x), xp.indices(x), xp.entries(x) * scale, (x.shape[0], x.shape[1]))


def scale_rows(x: Array, factor: Array) -> Array:
    """Return diag(factor) x for one factor per row."""
    if not is_sparse(x):
        return x * factor[:, None]
    values = xp.entries(x) * factor[_row_of_entry(x)]
    return xp.csr(xp.indptr(x), xp.indices(x), values, (x.shape[0], x.shape[1]))


def squared_norms(x: Array) -> Array:
    """Return the squared norm of each row of `x`, (n, d), as (n,)."""
    if not is_sparse(x):
        # Infinity is a result: checks of kernel matrices refuse it in words.
        with np.errstate(over="ignore"):
            return (x * x).sum(axis=1)
    # Entries are added up by row; rows without entries keep the zero.
    out = xp.zeros(x.shape[0], x.dtype, like=x)
    return xp.add_at(out, _row_of_entry(x), xp.entries(x) ** 2)


def _row_of_entry(x: Array) -> Array:
    counts = xp.diff(xp.indptr(x))
    return xp.repeat(xp.arange(x.shape[0], like=x), counts)


def append_columns(x: Array, *columns: Array) -> Array:
    """Return [x, columns...], (n, d + k), in the layout of `x`."""
    if not is_sparse(x):
        return xp.concat([x, *(column[:, None] for column in columns)], axis=1)
    (n, d), k = x.shape, len(columns)
    crow = xp.indptr(x)
    # 1. Each row grows by k entries, so that row i starts k i places later.
    new_crow = crow + k * xp.arange(n + 1, like=x)
    col = xp.empty(len(xp.entries(x)) + n * k, crow.dtype, like=x)
    values = xp.empty(len(col), x.dtype, like=x)
    # 2. Old entries move by k places for each row before theirs.
    old = xp.arange(len(xp.entries(x)), like=x) + k * _row_of_entry(x)
    col[old], values[old] = xp.indices(x), xp.entries(x)
    # 3. New entries fill the k places at the end of each row: column numbers stay sorted.
    for i, column in enumerate(columns):
        at = new_crow[1:] - k + i
        col[at], values[at] = d + i, column
    return xp.csr(new_crow, col, values, (n, d + k))


def cast(x: Array, dtype: xp.DType) -> Array:
    """Return `x` with entries of `dtype`, in the layout of `x`."""
    if xp.dtype_of(x) == dtype or not is_sparse(x):
        return xp.cast(x, dtype)
    return xp.csr(
        xp.indptr(x), xp.indices(x), xp.cast(xp.entries(x), dtype), (x.shape[0], x.shape[1])
    )


def are_equal(x: Array, z: Array) -> bool:
    """Return whether points are the same; for sparse points, whether the stored entries are."""
    if not (is_sparse(x) and is_sparse(z)):
        # A dense and a sparse matrix of equal numbers count as the same.
        return xp.array_equal(dense(x), dense(z))
    return x.shape == z.shape and all(
        xp.array_equal(a, b) for a, b in zip(stored_parts(x), stored_parts(z), strict=True)
    )


def stored_parts(x: Array) -> tuple[Array, Array, Array]:
    """Return the three parts of sparse rows: starts of rows, and columns and values of entries."""
    return xp.indptr(x), xp.indices(x), xp.entries(x)


def as_scipy(x: Array) -> scipy.sparse.csr_array:
    """Return sparse rows as a matrix of SciPy."""
    parts = (xp.entries(x), xp.indices(x), xp.indptr(x))
    return scipy.sparse.csr_array(
        tuple(xp.to_host(part) for part in parts), shape=(x.shape[0], x.shape[1])
    )


def of_scipy(x: scipy.sparse.csr_array) -> Array:
    """Return sparse rows of SciPy, in its memory where the types allow that."""
    crow, col = (part.astype("int64") for part in (x.indptr, x.indices))
    return xp.csr(crow, col, x.data, (x.shape[0], x.shape[1]))


def distances(x: Float[Array, "s d"]) -> Float[Array, " p"]:
    """Return the Euclidean distances of all pairs of distinct sparse rows, in float64.

    Distances are computed from inner products, so that distances of nearly equal rows are rounding
    errors. Cost: s² inner products for s rows.
    """
    # Equal rows are left out beforehand: their distance of 0 would come out as rounding.
    rows = as_scipy(cast(x, xp.float64))[_distinct(x)]
    G = (rows @ rows.T).toarray()
    squares = xp.diagonal(G)
    i, j = xp.triu_indices(len(G), len(G), offset=1)
    # Cancellation can leave a small negative number for nearly equal rows, which has no root.
    return xp.sqrt((squares[i] + squares[j] - 2 * G[i, j]).clip(min=0))


def _distinct(x: Array) -> list[int]:
    """Return the indices of the distinct rows, the first of each group of equal rows."""
    crow = xp.indptr(x).tolist()
    col, values = xp.indices(x), xp.entries(x)
    first: dict[bytes, int] = {}
    for i, (start, stop) in enumerate(itertools.pairwise(crow)):
        # A dictionary keeps the order of insertion, so that the numbers are increasing.
        first.setdefault(col[start:stop].tobytes() + values[start:stop].tobytes(), i)
    return list(first.values())


class Kept:
    """Sparse rows in the form in which SciPy multiplies them: float64, and columns in 32 bits.

    - `x`, Array of shape (b, u): sparse rows, which are copied.
    """

    ENTRY_BYTES = 12

    def __init__(self, x: Array) -> None:
        self.shape = x.shape[0], x.shape[1]
        # SciPy converts operands of other types in each product. With float64 values and 32-bit
        # indices it works in this memory, and indices take half the bandwidth.
        arrays = (
            xp.to_float64(xp.entries(x)),
            xp.cast(xp.indices(x), xp.int32),
            xp.cast(xp.indptr(x), xp.int32),
        )
        self.nbytes: int = sum(array.nbytes for array in arrays)
        self._rows = scipy.sparse.csr_array(arrays, shape=self.shape)
        # The transpose is a view by columns, without a copy.
        self._columns = self._rows.T

    def times(self, v: Float[Array, "u t"]) -> Float[Array, "b t"]:
        """Return x v, for v in float64."""
        return self._rows @ v

    def transposed_times(self, v: Float[Array, "b t"]) -> Float[Array, "u t"]:
        """Return x' v, for v in float64."""
        return self._columns @ v
