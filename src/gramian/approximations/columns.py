"""Nystrom features of a given kernel matrix, from its columns."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float, Int
from ..data import RowSource
from ..kernels import Kernel
from .base import FeatureMap


@dataclass(frozen=True, eq=False)
class KernelColumns(FeatureMap):
    """Features of `NystromMap`, from rows of a kernel matrix instead of rows of features.

    Attributes
    ----------
    index : Array of shape (m,)
        Columns of the landmarks.
    normalizer : Array of shape (m, s)
        Matrix that turns kernel values into features, as in `NystromMap`.
    count : int
        Columns of a row, one per training row.
    """

    index: Int[Array, " m"]
    normalizer: Float[Array, "m s"]
    count: int

    @property
    def kernel(self) -> Kernel:  # type: ignore[override]
        """Raise AttributeError, because only values of the kernel are available."""
        raise AttributeError("features of kernel='precomputed' have no kernel, only its values")

    @property
    def width(self) -> int:
        return self.normalizer.shape[1]

    @property
    def dim(self) -> int:
        return self.count

    def apply(self, block: Float[Array, "b n"]) -> Float[Array, "b s"]:
        # In float64: the normalizer is large where eigenvalues are small, and its products
        # cancel.
        return xp.cast(xp.to_float64(block[:, self.index]) @ self.normalizer, block.dtype)

    def block_size(self, rows: RowSource, memory_bytes: int) -> int:
        m, s = self.normalizer.shape
        return max(1, memory_bytes // (8 * (rows.shape[1] + 2 * m + 2 * s)))
