"""Entries in memory: of a small operator, and of the diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from .. import _arrays as xp
from .._arrays import Array, Float
from ..data import RowSource, first_row
from .block_functions import evaluate_diagonal
from .kernel_operator import KernelOperator
from .stored_rows import product


def diagonal(K: KernelOperator, rows: RowSource) -> Float[Array, " r"]:
    """Return k(x, x) of some rows with the kernel of an operator, in float64."""
    if K.kernel.stationary:
        return xp.full((rows.shape[0],), _first(K), dtype=xp.float64, like=K)
    size = max(1, K.memory_bytes // (64 * rows.width))
    fn = partial(evaluate_diagonal, K.kernel, xp.float64, K.device)
    return rows.map(fn, size=size)


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


@dataclass(frozen=True)
class DenseBlock:
    """A kernel matrix that is stored, with the products of an operator, in float64.

    Attributes
    ----------
    entries : Array of shape (n, m)
    """

    entries: Float[Array, "n m"]

    @property
    def shape(self) -> tuple[int, int]:
        """The pair (n, m)."""
        return self.entries.shape[0], self.entries.shape[1]

    @property
    def T(self) -> DenseBlock:
        """The transposed matrix."""
        return DenseBlock(self.entries.T)

    def __getitem__(self, key: Any) -> DenseBlock:
        """Return rows, or rows and columns, given by arrays of numbers or by slices."""
        if isinstance(key, tuple) and xp.is_array(key[0]):
            # Two index arrays would select single entries: the added axis selects a submatrix.
            return DenseBlock(self.entries[key[0][:, None], key[1]])
        return DenseBlock(self.entries[key])

    def __matmul__(self, v: Float[Array, "m t"]) -> Float[Array, "n t"]:
        """Return the product in float64, with float32 sums over no more than 1,024 terms."""
        return product(self.entries, v)


def materialize(K: KernelOperator, memory_bytes: int) -> KernelOperator | DenseBlock:
    """Return K with its entries stored if they fit into `memory_bytes`, else K unchanged.

    Cost: if they are stored, n m kernel evaluations now and none later.
    """
    n, m = K.shape
    if n * m * K.dtype.itemsize > memory_bytes:
        return K
    return DenseBlock(K.dense())
