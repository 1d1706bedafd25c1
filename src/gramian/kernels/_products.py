"""Inner products of prepared rows, dense or sparse."""

from __future__ import annotations

from .. import _arrays as xp
from .._arrays import Array
from .._sparse import is_sparse, product, slice_rows


def matmul(left: Array, right: Array, out: Array) -> Array:
    """Write ``left @ right.T`` into `out`, rounding at the end if `out` has fewer digits.

    A sparse `right` is passed transposed: the product is then ``left @ right``.
    """
    if is_sparse(right):
        return product(left, right, out)
    # Only a dense product of one dtype can write to `out` without a temporary matrix.
    if not xp.is_sparse(left) and left.dtype == out.dtype:
        return xp.matmul(left, right.T, out=out)
    rows = max(left.shape[0] // 4, 32)  # the product in float64 is twice as large as `out`
    for i in range(0, left.shape[0], rows):
        out[i : i + rows] = slice_rows(left, i, i + rows) @ right.T
    return out
