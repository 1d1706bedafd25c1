"""TemporaryCenters: the steps that EigenPro 3 has taken since its last projection."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from ...data import Batches, as_rows, scratch
from ...operators import DenseBlock, KernelOperator
from ...preconditioners import EigenProFactor


class TemporaryCenters:
    """The function k(., X_tmp) a + k(., X_s) b that waits for a projection, with its values h on Z.

    Parameters
    ----------
    K : KernelOperator of shape (n, p)
        Of any rows, against the centers Z.
    P : EigenProFactor
        With the subsample X_s.
    t : int
        Targets.
    delay : int
        T, the batches between two projections: rows of all but the last of them become temporary
        centers, in a temporary file if they exceed the budget of K.
    batches : Batches

    Attributes
    ----------
    h : Tensor of shape (p, t)
    """

    def __init__(
        self, K: KernelOperator, P: EigenProFactor, t: int, delay: int, batches: Batches
    ) -> None:
        self._K, self._P, self._delay = K, P, delay
        rows = min(delay - 1, len(batches)) * batches.size
        self._points = _empty(K, rows)
        self._a = P.vectors.new_empty(rows, t)
        self._b = P.vectors.new_zeros(len(P.index), t)
        self.h = P.vectors.new_zeros(K.shape[1], t)
        self._used, self._steps = 0, 0

    def clear(self) -> None:
        """Forget all: it has been projected."""
        self._used, self._steps = 0, 0
        self._b.zero_()
        self.h.zero_()

    def values(self, x: Tensor, K_ms: KernelOperator | DenseBlock) -> Float[Tensor, "b t"]:
        """Return its values at the rows of a batch, given their kernel with the subsample."""
        found = K_ms @ self._b
        if self._used:
            K = replace(self._K, rows=as_rows(x), cols=as_rows(self._points[: self._used]))
            found += K @ self._a[: self._used]
        return found

    def decay_(self, factor: float) -> None:
        """Multiply it by a factor, in place."""
        if factor != 1:
            for part in (self._a[: self._used], self._b, self.h):
                part *= factor

    def add_(self, h: Float[Tensor, "p t"]) -> None:
        """Add what a step changes on the centers."""
        self.h += h
        self._steps += 1

    def has_room(self, rows: int) -> bool:
        """Return whether the projection can wait for another batch, given the rows of this one."""
        return self._steps < self._delay and self._used + rows <= len(self._points)

    def keep_(
        self, x: Float[Tensor, "b d"], a: Float[Tensor, "b t"], b: Float[Tensor, "q t"]
    ) -> None:
        """Keep the rows of a batch with their coefficients, and add U b to those of X_s."""
        part = slice(self._used, self._used + len(x))
        self._points[part] = x if x.layout == torch.strided else x.to_dense()
        self._a[part] = a
        self._used = part.stop
        self._b += self._P.vectors @ b


def _empty(K: KernelOperator, rows: int) -> Tensor:
    """Return room for so many rows where their products are, or in a file."""
    shape, dtype = (rows, K.rows.shape[1]), K.rows.dtype
    if K.device.type != "cpu":
        return torch.empty(shape, dtype=dtype, device=K.device)
    return scratch(shape, dtype, K.host_bytes)
