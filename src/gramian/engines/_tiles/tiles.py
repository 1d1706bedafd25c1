"""Two sets of rows prepared for a kernel, and any tile of their kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass, field

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._parallel.workers import Stop
from ..._sparse import (
    Columns,
    cast,
    is_sparse,
    slice_rows,
    sparse_rows,
    times,
    transpose_sparse,
    transposed_times,
)
from ...kernels import Kernel
from ...kernels.base import Prepared, Side
from .precision import ROUNDING_LIMIT
from .sizes import steps

PREPARED_NUMBERS = 1 << 17
"""Coordinates prepared at once: the steps of it stay in the cache."""


@dataclass(frozen=True)
class Tiles:
    """Two sets of prepared rows, from which any tile of their kernel matrix is computed.

    For sparse rows, the right side keeps only the features that occur in it, `shared`, and a range
    of the left side is reduced to these features when it is used.
    """

    kernel: Kernel
    left: Prepared
    right: Prepared
    dtype: xp.DType
    diagonal: int | None
    diagonal_values: Array | None
    underflow: bool = True
    shared: tuple[Columns | None, ...] = ()
    stop: Stop = field(default_factory=Stop)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.left[0].shape[0]

    @property
    def m(self) -> int:
        """Number of columns."""
        return self.right[0].shape[0]

    @property
    def device(self) -> xp.Device:
        """Device of the rows."""
        return xp.device_of(self.right[0])

    @classmethod
    def build(cls, kernel: Kernel, x: Array, z: Array, diagonal: int | None) -> Tiles:
        """Prepare the rows of `x` and `z`, in float64 if float32 would lose digits."""
        kernel.check_layout(x)
        values = kernel.diag(z) if diagonal is not None else None
        # Products of a dense and a sparse side would need two more forms of each tile.
        x = sparse_rows(x) if is_sparse(z) and not is_sparse(x) else x
        left_side, right = _prepare(kernel, x, z, x.dtype)
        underflow = kernel.may_underflow(left_side, right, x.dtype)
        # The check needs the prepared rows, so they are prepared in float32 first, and perhaps
        # again.
        if kernel.rounding(left_side, right, xp.finfo(x.dtype).eps) > ROUNDING_LIMIT:
            # The float32 sides are freed before the larger ones are made.
            del left_side, right
            left_side, right = _prepare(kernel, x, z, xp.float64)
        shared: tuple[Columns | None, ...] = ()
        if is_sparse(z):
            # Wide sparse rows have few columns in common: products over the rest would be zeros.
            shared = tuple(Columns(side) if is_sparse(side) else None for side in right)
            pairs = zip(right, shared, strict=True)
            right = tuple(side if columns is None else columns.rows for side, columns in pairs)
        return cls(kernel, left_side, right, x.dtype, diagonal, values, underflow, shared)

    def columns(self, size: int) -> list[tuple[int, int, Prepared]]:
        """Return the columns in ranges of at most `size`: start, end, prepared rows."""
        return [
            (j, j_end, tuple(_columns(side, j, j_end) for side in self.right))
            for j, j_end in steps(0, self.m, size)
        ]

    def row(self, start: int, stop: int) -> Prepared:
        """Return a range of the prepared rows of the left side."""
        parts = tuple(slice_rows(side, start, stop) for side in self.left)
        if not self.shared:
            return parts
        pairs = zip(parts, self.shared, strict=True)
        return tuple(part if columns is None else columns.of(part) for part, columns in pairs)

    def fill(self, left: Prepared, right: Prepared, i: int, j: int, out: Array) -> Array:
        """Write the tile of `left` and `right`, which starts at row i, column j, to `out`."""
        self.stop.check()
        K = self.kernel.tile(left, right, out, underflow=self.underflow)
        if K is not out:
            # Kernels of users may return new memory, but callers read `out`.
            out[...] = K
            K = out
        if self.diagonal_values is not None:
            self._set_diagonal(K, i, j)
        return K

    def _set_diagonal(self, K: Array, i: int, j: int) -> None:
        offset = i + (self.diagonal or 0) - j
        # An offset outside of the tile is an error, so it selects an empty slice instead.
        entries = xp.diagonal(K, offset) if -K.shape[0] < offset < K.shape[1] else K[:0, 0]
        start = j + max(offset, 0)
        if self.diagonal_values is not None:
            xp.assign_(entries, self.diagonal_values[start : start + len(entries)])


def _columns(side: Array, start: int, stop: int) -> Array:
    """Return a range of prepared rows; sparse rows are transposed for products."""
    part = slice_rows(side, start, stop)
    return transpose_sparse(part) if is_sparse(side) else part


def _prepare(kernel: Kernel, x: Array, z: Array, dtype: xp.DType) -> tuple[Prepared, Prepared]:
    # Sparse rows would become dense if they were centered.
    centered = kernel.stationary and not is_sparse(x)
    origin = xp.cast(z.mean(axis=0), dtype) if centered else None
    left_side = _prepare_side(kernel, x, "left", origin, dtype)
    return left_side, _prepare_side(kernel, z, "right", origin, dtype)


def _prepare_side(
    kernel: Kernel, points: Array, side: Side, origin: Array | None, dtype: xp.DType
) -> Prepared:
    """Prepare rows in small parts, because each intermediate step would copy all rows."""
    if is_sparse(points):
        return kernel.prepare(cast(points, dtype), side)
    n, d = points.shape
    whole_side: Prepared = ()
    for i, i_end in steps(0, n, max(PREPARED_NUMBERS // d, 1)):
        block = xp.cast(points[i:i_end], dtype)
        parts = kernel.prepare(block if origin is None else block - origin, side)
        # A single block is returned as it is, without a copy.
        if i_end == n and i == 0:
            return parts
        whole_side = whole_side or tuple(xp.empty((n, part.shape[1]), like=part) for part in parts)
        for out, part in zip(whole_side, parts, strict=True):
            out[i:i_end] = part
    return whole_side


def is_empty(x: Array, z: Array) -> bool:
    """Return whether the matrix of these rows and columns has no entries."""
    return x.shape[0] == 0 or z.shape[0] == 0


def check_gradients(kernel: Kernel, x: Array) -> None:
    """Raise ValueError if a kernel has no gradients, or rows are sparse."""
    if not kernel.differentiable:
        raise ValueError(
            f"{kernel!r} has no gradients; the class of a kernel of the distance or of the inner "
            "product needs `derivative`, any other `differentiable` and `gradients`"
        )
    if is_sparse(x):
        raise ValueError(
            "gradients need dense rows, but these are sparse: a gradient has as many numbers as a "
            "row has features; pass x.to_dense() for some rows at a time"
        )


PART_ROWS = 1 << 12
"""Rows of a part at least, which has a sum of its own over all columns of the factors."""


def pays(tiles: Tiles, t: int) -> bool:
    """Return whether products of t columns by factors are cheaper: (n + m) d t < n m (d + t).

    Sparse rows on a device have no factors: SciPy multiplies them.
    """
    is_cheap = xp.is_host(tiles.device) or not is_sparse(tiles.left[0])
    return tiles.kernel.bilinear and is_cheap and t < min(tiles.n, tiles.m)


def multiply_down(x: Array, v: Float[Array, "n t"]) -> Float[Array, "d t"]:
    """Return x' v in float64, for dense or sparse rows x."""
    if is_sparse(x):
        return transposed_times(x, xp.to_float64(v))
    total = xp.zeros((x.shape[1], v.shape[1]), xp.float64, like=x)
    # A conversion of all rows to float64 would double their memory.
    for i, i_end in steps(0, x.shape[0], max(PREPARED_NUMBERS // x.shape[1], 1)):
        xp.addmm_(total, xp.to_float64(x[i:i_end]).T, xp.to_float64(v[i:i_end]))
    return total


def across(x: Array, w: Float[Array, "d t"]) -> Float[Array, "n t"]:
    """Return x w in float64, for dense or sparse rows x."""
    if is_sparse(x):
        return times(x, w)
    size = max(PREPARED_NUMBERS // x.shape[1], 1)
    parts = [xp.to_float64(x[i:i_end]) @ w for i, i_end in steps(0, x.shape[0], size)]
    return xp.concat(parts)


def residual_down(
    x: Array,
    w: Float[Array, "d t"] | None,
    weights: Float[Array, " n"] | None,
    targets: Float[Array, "n t"] | None,
    known: Columns | None = None,
) -> Float[Array, "d t"]:
    """Return x' W (x w - y) in float64; see `Engine.normal` for the optional arguments.

    Sparse rows are reduced to the columns in `known`, if given.
    """
    if known is not None:
        return known.normal(x, w, weights, targets)
    terms = [] if w is None else [across(x, w)]
    terms += [] if targets is None else [xp.negative(xp.to_float64(targets))]
    u = xp.stack(terms).sum(axis=0)
    return multiply_down(x, u if weights is None else u * xp.to_float64(weights)[:, None])
