"""Compressed sparse rows, converted once for many products."""

from __future__ import annotations

import scipy.sparse

from .. import _arrays as xp
from .._arrays import Array, Float


class Kept:
    """Sparse rows in the form in which SciPy multiplies them: float64, and columns in 32 bits.

    Parameters
    ----------
    x : Array of shape (b, u)
        Sparse rows, which are copied.

    Attributes
    ----------
    shape : tuple of int
    nbytes : int
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
