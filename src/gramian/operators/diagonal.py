"""The diagonal of a kernel matrix, without a pass over the rows for stationary kernels."""

from __future__ import annotations

from .. import _arrays as xp
from .._arrays import Array, Float
from ..data import RowSource, first_row
from .block_functions import Diagonal
from .kernel_operator import KernelOperator


def diagonal(K: KernelOperator, rows: RowSource) -> Float[Array, " r"]:
    """Return k(x, x) of some rows with the kernel of an operator, in float64."""
    if K.kernel.stationary:
        return xp.full((rows.shape[0],), _first(K), dtype=xp.float64, like=K)
    size = max(1, K.memory_bytes // (64 * rows.width))
    return rows.map(Diagonal(K.kernel, xp.float64, K.device), size=size)


def largest_diagonal(K: KernelOperator, weights: Float[Array, " n"] | None = None) -> float:
    """Return kappa², the largest w_i k(x_i, x_i), or one if all of these are zero.

    Cost: a pass over the rows unless k is stationary.
    """
    if K.kernel.stationary:
        largest = _first(K) * (1.0 if weights is None else float(weights.max()))
    else:
        values = diagonal(K, K.rows)
        largest = float((values if weights is None else values * weights).max())
    # The caller divides by it, and a kernel that is zero at all rows has nothing to scale.
    return largest or 1.0


def _first(K: KernelOperator) -> float:
    return float(K.kernel.diag(xp.to_float64(first_row(K.rows)))[0])
