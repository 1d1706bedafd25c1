"""KeptBlock: the entries of a small operator, for those who multiply with it more than once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from .kernel_operator import KernelOperator

TERMS = 1024
"""Terms of a sum that are added in float32 before it goes on in float64."""


@dataclass(frozen=True)
class KeptBlock:
    """A kernel matrix that is stored, with the products of an operator, in float64.

    Attributes
    ----------
    entries : Tensor of shape (n, m)
    """

    entries: Float[Tensor, "n m"]

    @property
    def shape(self) -> tuple[int, int]:
        """The pair (n, m)."""
        return self.entries.shape[0], self.entries.shape[1]

    @property
    def T(self) -> KeptBlock:
        """The transpose."""
        return KeptBlock(self.entries.t())

    def __getitem__(self, key: Any) -> KeptBlock:
        """Return rows, or rows and columns, given by tensors of numbers."""
        if isinstance(key, tuple):
            return KeptBlock(self.entries[key[0][:, None], key[1]])
        return KeptBlock(self.entries[key])

    def __matmul__(self, v: Float[Tensor, "m t"]) -> Float[Tensor, "n t"]:
        """Return the product in float64, with float32 sums over no more than 1,024 terms."""
        K = self.entries
        if K.dtype == torch.float64:
            return K @ v.double()
        total = v.new_zeros(K.shape[0], v.shape[1], dtype=torch.float64)
        for start in range(0, K.shape[1], TERMS):
            part = slice(start, start + TERMS)
            total += K[:, part] @ v[part].to(K.dtype)
        return total


def kept(K: KernelOperator, memory_bytes: int) -> KernelOperator | KeptBlock:
    """Return K with its entries kept if they fit into so many bytes, else K as it is.

    Cost: if they are kept, n m kernel evaluations now and none later.
    """
    n, m = K.shape
    if n * m * K.dtype.itemsize > memory_bytes:
        return K
    return KeptBlock(K.dense())
