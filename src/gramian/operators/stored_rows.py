"""StoredRows: products with stored entries, by compiled code or torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .. import _linalg as la
from ..engines import compiled_tiles
from ..engines.stored_products import multiply

BLOCK_ROWS, BLOCK_COLUMNS = 256, 1024
"""Size of a block that torch reads from memory once, and from the cache for its second product;
its columns are the terms of a sum in float32."""

COMPILED_TARGETS = 16
"""Targets up to which the compiled products are faster, by a tenth there and up to four times."""


@dataclass(frozen=True, eq=False)
class StoredRows:
    """A range of rows of a matrix in memory.

    Attributes
    ----------
    entries : Tensor of shape (n, m)
    row_index : Tensor of shape (k,), or None
        Numbers of the rows in use; None for all.
    bounds : tuple of two int
        Start and end of the range among the rows in use.
    compiled : bool or None
        Whether to use compiled products if available; None: if they are faster.
    """

    entries: Float[Tensor, "n m"]
    row_index: Int[Tensor, " k"] | None
    bounds: tuple[int, int]
    compiled: bool | None = None

    def write_product(self, v: Float[Tensor, "t m"], out: Float[Tensor, "k t"]) -> None:
        """Write E v', in float64, to this range of `out`; v as `transpose_vectors` returns it."""
        if self._uses_compiled(len(v)):
            own_out = out[slice(*self.bounds)]
            multiply(self.entries, self.row_index, self.bounds, v=v, products=own_out)
            return
        for rows, E in self._blocks():
            out[rows] = product(E, v.t())

    def normal(
        self,
        v: Float[Tensor, "t m"] | None,
        weights: Float[Tensor, " k"] | None,
        targets: Float[Tensor, "k t"] | None,
        t: int,
    ) -> Float[Tensor, "m t"]:
        """Return E' W (E v' - y) of this range in float64; each entry is read from memory once.

        Here v is as `transpose_vectors` returns it; weights and targets are contiguous float64.
        """
        total = torch.zeros(t, self.entries.shape[1], dtype=torch.float64)
        if self._uses_compiled(t):
            multiply(
                self.entries, self.row_index, self.bounds,
                v=v, weights=weights, targets=targets, sums=total, chained=v is not None,
            )  # fmt: skip
            return total.t()
        for rows, E in self._blocks():
            w, y = (
                None if part_given is None else part_given[rows]
                for part_given in (weights, targets)
            )
            u = residual(None if v is None else product(E, v.t()), w, y)
            total += product(E.t(), u).t()
        return total.t()

    def add_both(self, v: Float[Tensor, "t m"], own: slice, out: Float[Tensor, "t n"]) -> None:
        """Add the product of some rows of a lower triangle with v, and the transposed product.

        The last columns of the entries are the square on the diagonal, at `own`.
        """
        E, first = self.entries, own.start
        if self._uses_compiled(len(v)):
            products = torch.empty(len(E), len(v), dtype=torch.float64)
            sums = torch.zeros(len(v), first, dtype=torch.float64) if first else None
            # The compiled product adds E' (-y): with y = -v it adds E' v.
            left_columns, right = (
                v[:, : E.shape[1]].contiguous(),
                -v[:, own].t().double().contiguous(),
            )
            multiply(
                E, None, (0, len(E)), v=left_columns, targets=right, products=products, sums=sums
            )
            out[:, own] += products.t()
            # The first strip has no columns left of its diagonal square.
            if sums is not None:
                out[:, :first] += sums
            return
        for start in range(0, first, BLOCK_COLUMNS):
            cols = slice(start, min(start + BLOCK_COLUMNS, first))
            out[:, own] += v[:, cols] @ E[:, cols].t()
            out[:, cols] += v[:, own] @ E[:, cols]
        # The square on the diagonal holds both triangles, so it is multiplied from one side.
        out[:, own] += v[:, own] @ E[:, own].t()

    def _uses_compiled(self, t: int) -> bool:
        """Return whether to use the compiled products for t targets."""
        is_wanted = t <= COMPILED_TARGETS if self.compiled is None else self.compiled
        able = t > 0 and bool(compiled_tiles()) and self.entries.is_contiguous()
        return is_wanted and able

    def _blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield blocks of rows that fit the cache."""
        start, stop = self.bounds
        size = max(1, BLOCK_ROWS * BLOCK_COLUMNS // self.entries.shape[1])
        for first in range(start, stop, size):
            rows = slice(first, min(first + size, stop))
            yield rows, self.entries[rows if self.row_index is None else self.row_index[rows]]


def product(E: Float[Tensor, "n m"], v: Float[Tensor, "m t"]) -> Float[Tensor, "n t"]:
    """Return E v in float64."""
    return E @ v.double() if E.dtype == torch.float64 else la.multiply_in_blocks(E, v)


def residual(
    product: Float[Tensor, "n t"] | None,
    weights: Float[Tensor, " n"] | None,
    targets: Float[Tensor, "n t"] | None,
) -> Float[Tensor, "n t"]:
    """Return W (K v - y) in float64; one of K v and y may be None."""
    if product is None:
        assert targets is not None
        u = -targets.double()
    else:
        u = product if targets is None else product - targets.double()
    return u if weights is None else weights.double()[:, None] * u


def transpose_vectors(v: Float[Tensor, "m t"], dtype: torch.dtype) -> Float[Tensor, "t m"]:
    """Return the transpose of vectors in the dtype of the entries, each contiguous."""
    return v.detach().to(dtype).t().contiguous()
