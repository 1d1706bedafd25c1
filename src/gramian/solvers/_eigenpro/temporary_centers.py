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
    """The function k(., X_tmp) a + k(., X_s) U b that waits for a projection, with its values on Z.

    Between `enter` and `leave` it takes the steps of the batches of a chunk, rows that are at hand
    with their kernel entries: then those are temporary centers, too.

    Parameters
    ----------
    K : KernelOperator of shape (n, p)
        Of any rows, against the centers Z.
    P : EigenProFactor
        With the subsample X_s and U.
    K_Zs_U : Tensor of shape (p, q)
        K(Z, X_s) U.
    t : int
        Targets.
    delay : int
        T, the batches between two projections: their rows become temporary centers, in a temporary
        file if they exceed the budget of K.
    batches : Batches
    """

    def __init__(
        self,
        K: KernelOperator,
        P: EigenProFactor,
        K_Zs_U: Float[Tensor, "p q"],
        t: int,
        delay: int,
        batches: Batches,
    ) -> None:
        self._K, self._P, self._K_Zs_U, self._t = K, P, K_Zs_U, t
        rows = min(delay - 1, len(batches)) * batches.size
        self._points = _empty(K, rows)
        self._a = P.vectors.new_empty(rows, t)
        self._b = P.vectors.new_zeros(P.rank, t)
        self._h = P.vectors.new_zeros(K.shape[1], t)
        self._used = 0

    @property
    def h(self) -> Float[Tensor, "p t"]:
        """Its values on the centers."""
        return self._h + self._K_Zs_U @ self._b

    def enter(
        self,
        x: Tensor,
        K_cs: KernelOperator | DenseBlock,
        K_cc: KernelOperator | DenseBlock,
    ) -> None:
        """Begin with a chunk: its rows, and their kernel with the subsample and each other."""
        self._chunk, self._K_cs, self._K_cc = x, K_cs, K_cc
        self._first, self._stepped = 0, 0  # row and number of the batches since the projection
        self._a_c = self._b.new_zeros(len(x), self._t)
        self._before = None
        if self._used:
            K = replace(self._K, rows=as_rows(x), cols=as_rows(self._points[: self._used]))
            self._before = K @ self._a[: self._used]

    def values(self, batch: slice) -> Float[Tensor, "b t"]:
        """Return its values at the rows of a batch of the chunk."""
        found = self._b.new_zeros(batch.stop - batch.start, self._t)
        if self._used or self._stepped:
            found += self._K_cs[batch] @ (self._P.vectors @ self._b)
        if self._before is not None:
            found += self._before[batch]
        if self._stepped:
            found += self._K_cc[batch] @ self._a_c
        return found

    def decay_(self, factor: float) -> None:
        """Multiply it by a factor, in place."""
        if factor != 1:
            parts = (self._a[: self._used], self._b, self._h, self._a_c, self._before)
            for part in parts:
                if part is not None:
                    part *= factor

    def add_(
        self,
        batch: slice,
        h: Float[Tensor, "p t"],
        a: Float[Tensor, "b t"],
        b: Float[Tensor, "q t"],
    ) -> None:
        """Add a step: coefficients of rows of a batch, their values on Z, and U b on X_s."""
        self._a_c[batch] = a
        self._h += h
        self._b += b
        self._stepped += 1
        self._next = batch.stop

    def leave(self) -> None:
        """Keep the rows of the chunk since the last projection, with their coefficients."""
        if self._first == len(self._chunk):
            return
        x = self._chunk[self._first :] if self._first else self._chunk
        part = slice(self._used, self._used + len(x))
        self._points[part] = x if x.layout == torch.strided else x.to_dense()
        self._a[part] = self._a_c[self._first :]
        self._used = part.stop

    def clear(self) -> None:
        """Forget all: it has been projected. Batches of the chunk may follow."""
        self._used = self._stepped = 0
        self._first = self._next
        self._a_c.zero_()
        self._before = None
        self._b.zero_()
        self._h.zero_()


def _empty(K: KernelOperator, rows: int) -> Tensor:
    """Return room for so many rows where their products are, or in a file."""
    shape, dtype = (rows, K.rows.shape[1]), K.rows.dtype
    if K.device.type != "cpu":
        return torch.empty(shape, dtype=dtype, device=K.device)
    return scratch(shape, dtype, K.host_bytes)
