"""Products with stored entries, by compiled code or NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, Int
from .._arrays.elementwise import NATIVE_MODULE
from ..engines import compiled_tiles

BLOCK_ROWS, BLOCK_COLUMNS = 256, 1024
"""Size of a block that is read from memory once, and from the cache for its second product;
its columns are the terms of a sum in float32."""

COMPILED_TARGETS = 16
"""Targets up to which the compiled products are faster, by a tenth there and up to four times."""


@dataclass(frozen=True, eq=False)
class StoredRows:
    """A range of rows of a stored kernel matrix.

    - `row_index`: indices of the rows in use; None for all rows.
    - `bounds`: start and end of the range among the rows in use.
    - `compiled`: whether to use compiled products if available; None: if they are faster.
    """

    entries: Float[Array, "n m"]
    row_index: Int[Array, " k"] | None
    bounds: tuple[int, int]
    compiled: bool | None = None

    def write_product(self, v: Float[Array, "t m"], out: Float[Array, "k t"]) -> None:
        """Write E v', in float64, to this range of `out`; v as `transpose_vectors` returns it."""
        if self._uses_compiled(len(v)):
            own_out = out[slice(*self.bounds)]
            multiply(self.entries, self.row_index, self.bounds, v=v, products=own_out)
            return
        for rows, E in self._blocks():
            out[rows] = product(E, v.T)

    def normal(
        self,
        v: Float[Array, "t m"] | None,
        weights: Float[Array, " k"] | None,
        targets: Float[Array, "k t"] | None,
        t: int,
    ) -> Float[Array, "m t"]:
        """Return E' W (E v' - y) of this range in float64; each entry is read from memory once.

        Here v is as `transpose_vectors` returns it; weights and targets are contiguous float64.
        """
        total = xp.zeros((t, self.entries.shape[1]), xp.float64)
        if self._uses_compiled(t):
            multiply(
                self.entries, self.row_index, self.bounds,
                v=v, weights=weights, targets=targets, sums=total, chained=v is not None,
            )  # fmt: skip
            return total.T
        for rows, E in self._blocks():
            w, y = (
                None if part_given is None else part_given[rows]
                for part_given in (weights, targets)
            )
            # Both products use the block while it is in the cache: memory bandwidth limits them.
            u = residual(None if v is None else product(E, v.T), w, y)
            total += product(E.T, u).T
        return total.T

    def add_both(self, v: Float[Array, "t m"], own: slice, out: Float[Array, "t n"]) -> None:
        """Add the product of some rows of a lower triangle with v, and the transposed product.

        The last columns of the entries are the square on the diagonal, at `own`.
        """
        E, first = self.entries, own.start
        if self._uses_compiled(len(v)):
            products = xp.empty((len(E), len(v)), xp.float64)
            sums = xp.zeros((len(v), first), xp.float64) if first else None
            # The compiled product adds E' (-y): with y = -v it adds E' v.
            left_columns, right = (
                xp.contiguous(v[:, : E.shape[1]]),
                -xp.contiguous(xp.to_float64(v[:, own].T)),
            )
            multiply(
                E, None, (0, len(E)), v=left_columns, targets=right, products=products, sums=sums
            )
            out[:, own] += products.T
            # The first strip has no columns left of its diagonal square.
            if sums is not None:
                out[:, :first] += sums
            return
        for start in range(0, first, BLOCK_COLUMNS):
            cols = slice(start, min(start + BLOCK_COLUMNS, first))
            out[:, own] += v[:, cols] @ E[:, cols].T
            out[:, cols] += v[:, own] @ E[:, cols]
        # The square on the diagonal holds both triangles, so it is multiplied from one side.
        out[:, own] += v[:, own] @ E[:, own].T

    def _uses_compiled(self, t: int) -> bool:
        """Return whether to use the compiled products for t targets."""
        is_wanted = t <= COMPILED_TARGETS if self.compiled is None else self.compiled
        able = t > 0 and bool(compiled_tiles()) and xp.is_contiguous(self.entries)
        return is_wanted and able

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of rows that fit the cache."""
        start, stop = self.bounds
        size = max(1, BLOCK_ROWS * BLOCK_COLUMNS // self.entries.shape[1])
        for first in range(start, stop, size):
            rows = slice(first, min(first + size, stop))
            yield rows, self.entries[rows if self.row_index is None else self.row_index[rows]]


def product(E: Float[Array, "n m"], v: Float[Array, "m t"]) -> Float[Array, "n t"]:
    """Return E v in float64."""
    return E @ xp.to_float64(v) if xp.dtype_of(E) == xp.float64 else la.multiply_in_blocks(E, v)


def residual(
    product: Float[Array, "n t"] | None,
    weights: Float[Array, " n"] | None,
    targets: Float[Array, "n t"] | None,
) -> Float[Array, "n t"]:
    """Return W (K v - y) in float64; one of K v and y may be None."""
    if product is None:
        assert targets is not None
        u = -xp.to_float64(targets)
    else:
        u = product if targets is None else product - xp.to_float64(targets)
    return u if weights is None else xp.to_float64(weights)[:, None] * u


def transpose_vectors(v: Float[Array, "m t"], dtype: xp.DType) -> Float[Array, "t m"]:
    """Return the transpose of vectors in the dtype of the entries, each contiguous."""
    return xp.contiguous(xp.cast(xp.detach(v), dtype).T)


def multiply(
    entries: Float[Array, "n m"],
    some: Int[Array, " k"] | None,
    bounds: tuple[int, int],
    *,
    v: Float[Array, "t m"] | None = None,
    weights: Float[Array, " k"] | None = None,
    targets: Float[Array, "k t"] | None = None,
    products: Float[Array, "b t"] | None = None,
    sums: Float[Array, "t c"] | None = None,
    chained: bool = False,
) -> None:
    """Multiply a range of rows of a stored matrix E; each row is read from memory once.

    Writes E v to `products` and adds E' W (E v - y), or if not `chained` E' W (-y), for the first
    columns of E to `sums`. The vectors `v` have the dtype of the entries, all others are float64.
    Sums run in the dtype of the entries over 256 terms, and in float64 beyond. The best
    instructions of the machine are used; the compiled tiles must be installed.
    """
    t = next(len(argument) for argument in (v, sums) if argument is not None)
    import_module(NATIVE_MODULE).multiply_stored(
        "best", entries, some, *bounds, v, weights, targets, products, sums, t, chained
    )
