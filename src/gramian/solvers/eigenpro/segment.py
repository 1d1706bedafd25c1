"""Batches between two projections of EigenPro 3, with the kernel entries of their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._arrays import Array
from ...operators import DenseBlock, KernelOperator


@dataclass(frozen=True)
class Step:
    """A batch of a segment: its rows, and their indices and targets.

    Attributes
    ----------
    rows : slice
        Position of its rows in the segment.
    index : Array of shape (m,)
        Indices of the rows of the batch.
    y : Array of shape (m, t)
    """

    rows: slice
    index: Array
    y: Array


@dataclass(frozen=True)
class Segment:
    """Batches without a projection between them, with kernel entries of their rows x.

    Attributes
    ----------
    x : Array of shape (b, d)
    K_bZ : KernelOperator or DenseBlock of shape (b, p)
    K_bs_U : DenseBlock or Product of shape (b, q)
        K(x, X_s) U.
    K_bb : KernelOperator or DenseBlock of shape (b, b), or None
        Kernel of the rows with themselves; None if there is only one batch.
    number : int
        Number of the last batch among all batches.
    due : bool
        Whether a projection follows.
    """

    x: Array
    steps: list[Step]
    K_bZ: KernelOperator | DenseBlock
    K_bs_U: DenseBlock | Product
    K_bb: KernelOperator | DenseBlock | None
    number: int
    due: bool


@dataclass(frozen=True)
class Product:
    """Product of two matrices that is never formed, only multiplied with vectors.

    Attributes
    ----------
    left : KernelOperator or DenseBlock of shape (b, s), or Array
    right : Array of shape (s, q), or KernelOperator or DenseBlock
    """

    left: Any
    right: Any

    @property
    def T(self) -> Product:
        """The transpose."""
        return Product(self.right.T, self.left.T)

    def __getitem__(self, rows: slice) -> Product:
        """Return some rows."""
        return Product(self.left[rows], self.right)

    def __matmul__(self, v: Array) -> Array:
        """Return the product with a matrix; the right factor is multiplied first."""
        product: Array = self.left @ (self.right @ v)
        return product
