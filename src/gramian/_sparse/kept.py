"""Kept: compressed sparse rows that are multiplied again and again."""

from __future__ import annotations

import scipy.sparse
import torch
from jaxtyping import Float
from torch import Tensor


class Kept:
    """Sparse rows in the form in which SciPy multiplies them: float64, and columns in 32 bits.

    Parameters
    ----------
    x : Tensor of shape (b, u)
        Sparse rows, which are copied.

    Attributes
    ----------
    shape : tuple of int
    nbytes : int
    """

    ENTRY_BYTES = 12

    def __init__(self, x: Tensor) -> None:
        self.shape = x.shape[0], x.shape[1]
        # SciPy converts operands of other types in each product. With float64 values and 32-bit
        # indices it works in this memory, and indices take half the bandwidth.
        parts = (x.values().double(), x.col_indices().int(), x.crow_indices().int())
        arrays = tuple(part.numpy() for part in parts)
        self.nbytes: int = sum(array.nbytes for array in arrays)
        self._rows = scipy.sparse.csr_array(arrays, shape=self.shape)
        # The transpose is a view by columns, without a copy.
        self._columns = self._rows.T

    def times(self, v: Float[Tensor, "u t"]) -> Float[Tensor, "b t"]:
        """Return x v, for v in float64."""
        return torch.from_numpy(self._rows @ v.numpy())

    def transposed_times(self, v: Float[Tensor, "b t"]) -> Float[Tensor, "u t"]:
        """Return x' v, for v in float64."""
        return torch.from_numpy(self._columns @ v.numpy())
