"""KeptBlock: the entries of a small operator, for those who multiply with it more than once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la
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
        return K @ v.double() if K.dtype == torch.float64 else summed(K, v)


def summed(E: Float[Tensor, "n m"], v: Float[Tensor, "m t"]) -> Float[Tensor, "n t"]:
    """Return E v in float64, for E in float32, with float32 sums over no more than 1,024 terms."""
    v, whole = v.to(E.dtype), E.shape[1] // TERMS * TERMS
    total = (E[:, whole:] @ v[whole:]).double()
    if la.is_on_device(E) and whole:  # one call for all parts
        parts = E[:, :whole].unflatten(1, (-1, TERMS)).transpose(0, 1)
        return total + torch.bmm(parts, v[:whole].unflatten(0, (-1, TERMS))).sum(
            dim=0, dtype=torch.float64
        )
    for start in range(0, whole, TERMS):
        total += E[:, start : start + TERMS] @ v[start : start + TERMS]
    return total


def kept(K: KernelOperator, memory_bytes: int) -> KernelOperator | KeptBlock:
    """Return K with its entries kept if they fit into so many bytes, else K as it is.

    Cost: if they are kept, n m kernel evaluations now and none later.
    """
    n, m = K.shape
    if n * m * K.dtype.itemsize > memory_bytes:
        return K
    return KeptBlock(K.dense())
