"""Products and gradients, tile by tile, by NumPy on the host or by torch on a device."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._parallel.workers import run
from ..._sparse import slice_rows
from ...kernels import Kernel
from .sizes import PARTS_PER_THREAD, TILE_COLUMNS, TileSizes, bounds_of, steps, sum_of
from .tiles import (
    PART_ROWS,
    Tiles,
    across,
    check_gradients,
    is_empty,
    multiply_down,
    pays,
    residual_down,
)

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Tiled(TileSizes):
    """The products and gradients of an engine; arguments as for `Engine`."""

    def matvec(
        self,
        kernel: Kernel,
        x: Array,
        z: Array,
        v: Float[Array, "m t"],
        *,
        diagonal: int | None = None,
    ) -> Float[Array, "b t"]:
        """Return K v in float64, see `Engine.matvec`."""
        if is_empty(x, z):
            return xp.zeros((x.shape[0], v.shape[1]), xp.float64, like=x)
        tiles = self._tiles(kernel, x, z, diagonal)
        if pays(tiles, v.shape[1]):
            return xp.to_device(
                self._multiply_factored(tiles, xp.to_device(v, tiles.device)), xp.device_of(x)
            )
        rows, cols = self.tile_shape(tiles.m, tiles.dtype.itemsize)
        v = xp.cast(xp.to_device(v, tiles.device), tiles.dtype)
        # Ranges of columns are prepared once, and serve all tiles of rows.
        columns = [(*column, v[column[0] : column[1]]) for column in tiles.columns(cols)]

        def part(bounds: tuple[int, int]) -> Array:
            out = xp.zeros((bounds[1] - bounds[0], v.shape[1]), xp.float64, like=v)
            # One buffer per range stays in the cache, and the last tiles use a part of it.
            buffer = xp.empty(rows * cols, like=v)
            for i, i_end in steps(*bounds, rows):
                left_tile, sums = tiles.row(i, i_end), out[i - bounds[0] : i_end - bounds[0]]
                for j, j_end, right, v_j in columns:
                    K = _matrix(buffer, i_end - i, j_end - j)
                    # The product is in the dtype of the tile, and the sum over tiles in float64.
                    sums += xp.matmul(tiles.fill(left_tile, right, i, j, K), v_j)
            return out

        return xp.to_device(xp.concat(list(self._over_rows(part, tiles, rows))), xp.device_of(x))

    def normal(
        self,
        kernel: Kernel,
        x: Array,
        z: Array,
        v: Float[Array, "m t"] | None,
        *,
        weights: Float[Array, " b"] | None = None,
        targets: Float[Array, "b t"] | None = None,
        diagonal: int | None = None,
    ) -> Float[Array, "m t"]:
        """Return K' W (K v - y) in float64, see `Engine.normal`."""
        t = is_given(targets if v is None else v).shape[1]
        if is_empty(x, z):
            return xp.zeros((z.shape[0], t), xp.float64, like=z)
        tiles = self._tiles(kernel, x, z, diagonal)
        v, weights, targets = (
            None if u is None else xp.to_device(u, tiles.device) for u in (v, weights, targets)
        )
        if pays(tiles, t):
            product = self._factored_normal(tiles, v, weights, targets)
            return xp.to_device(product, xp.device_of(z))
        # A strip has all columns of its rows: the residual of a row is complete only after its last
        # column, and only then can K' be applied, to entries that are still in the cache.
        rows, columns = self.strip_rows(tiles.m), tiles.columns(TILE_COLUMNS)
        v, weights, targets = (
            None if u is None else xp.cast(u, tiles.dtype) for u in (v, weights, targets)
        )

        def part(bounds: tuple[int, int]) -> Array:
            out = xp.zeros((t, tiles.m), xp.float64, device=tiles.device)
            buffer = xp.empty((rows, tiles.m), tiles.dtype, device=tiles.device)
            for i, i_end in steps(*bounds, rows):
                left_tile, K = tiles.row(i, i_end), buffer[: i_end - i]
                for j, j_end, right in columns:
                    tiles.fill(left_tile, right, i, j, K[:, j:j_end])
                u = _residual(K, v, targets, slice(i, i_end))
                if weights is not None:
                    u *= weights[i:i_end, None]
                # u' K is twice as fast as K' u for a few columns; float64 keeps the digits of
                # sums over many rows.
                out += xp.matmul(u.T, K)
            return out.T

        return xp.to_device(sum_of(self._over_rows(part, tiles, rows)), xp.device_of(z))

    def symmetric(
        self, kernel: Kernel, x: Float[Array, "n d"], v: Float[Array, "n t"]
    ) -> Float[Array, "n t"]:
        """Return k(x, x) v in float64, see `Engine.symmetric`."""
        if is_empty(x, x):
            return xp.zeros(v.shape, xp.float64, like=x)
        tiles = self._tiles(kernel, x, x, 0)
        if pays(tiles, v.shape[1]):
            return xp.to_device(
                self._multiply_factored(tiles, xp.to_device(v, tiles.device)), xp.device_of(x)
            )
        n, threads = tiles.n, self.workers()
        v = xp.cast(xp.to_device(v, tiles.device), tiles.dtype)
        side = self.square_bytes() // tiles.dtype.itemsize
        columns = tiles.columns(min(n, max(math.isqrt(side), 1)))

        def part(worker: int) -> Array:
            # Each worker has a sum of its own over all rows, because a tile adds to rows and to
            # columns.
            out = xp.zeros((n, v.shape[1]), xp.float64, like=v)
            buffer = xp.empty(columns[0][1] ** 2, like=v)
            # Workers take strips in turn, because strips become shorter towards the end.
            for number in range(worker, len(columns), threads):
                i, i_end, _ = columns[number]
                left_tile, v_i = tiles.row(i, i_end), v[i:i_end]
                for j, j_end, right in columns[number:]:
                    K = tiles.fill(left_tile, right, i, j, _matrix(buffer, i_end - i, j_end - j))
                    out[i:i_end] += xp.matmul(K, v[j:j_end])
                    # A tile on the diagonal holds both triangles, so its transpose would count its
                    # pairs twice.
                    if j > i:
                        out[j:j_end] += xp.matmul(v_i.T, K).T
            return out

        workers = range(min(threads, len(columns)))
        return xp.to_device(sum_of(self._run(part, workers, tiles)), xp.device_of(x))

    def block(
        self, kernel: Kernel, x: Array, z: Array, *, diagonal: int | None = None
    ) -> Float[Array, "b m"]:
        """Return K itself, see `Engine.block`."""
        if is_empty(x, z):
            return xp.zeros((x.shape[0], z.shape[0]), x.dtype, like=x)
        tiles = self._tiles(kernel, x, z, diagonal)
        rows, cols = self.tile_shape(tiles.m, tiles.dtype.itemsize)
        out = xp.empty((tiles.n, tiles.m), tiles.dtype, device=tiles.device)

        def part(bounds: tuple[int, int]) -> None:
            for i, i_end in steps(*bounds, rows):
                left_tile = tiles.row(i, i_end)
                for j, j_end, right in tiles.columns(cols):
                    tiles.fill(left_tile, right, i, j, out[i:i_end, j:j_end])

        for _ in self._over_rows(part, tiles, rows):
            pass
        return xp.to_device(out, xp.device_of(x))

    def gradients(
        self, kernel: Kernel, x: Array, z: Array, v: Float[Array, "m t"]
    ) -> Float[Array, "b t d"]:
        """Return gradients in float64, see `Engine.gradients`.

        Tiles are computed in float64 if float32 distances would lose digits, or the kernel has a
        kink at zero.
        """
        check_gradients(kernel, x)
        (b, d), t = x.shape, v.shape[1]
        if is_empty(x, z) or t == 0:
            return xp.zeros((b, t, d), xp.float64, like=x)
        # The slope near a kink changes by its whole size within the rounding of float32 rows.
        sides = (xp.to_float64(x), xp.to_float64(z)) if kernel.kinked else (x, z)
        tiles = self._tiles(kernel, *sides, None)
        # A sum over many rows magnifies rounding: tiles keep the type in which `build` has prepared
        # the rows, which may be wider than the type of the rows themselves.
        dtype = tiles.left[0].dtype
        rows, cols = self._gradient_shape(tiles, dtype.itemsize)
        v = xp.cast(xp.to_device(v, tiles.device), dtype)
        columns = [(right, v[j:j_end]) for j, j_end, right in tiles.columns(cols)]
        out = xp.zeros((b, t, d), xp.float64, device=tiles.device)

        def part(bounds: tuple[int, int]) -> None:
            for i, i_end in steps(*bounds, rows):
                left_tile = tiles.row(i, i_end)
                for right, v_j in columns:
                    tiles.stop.check()
                    out[i:i_end] += kernel.gradients(left_tile, right, v_j)

        for _ in self._over_rows(part, tiles, rows):
            pass
        return xp.to_device(out, xp.device_of(x))

    def _gradient_shape(self, tiles: Tiles, itemsize: int) -> tuple[int, int]:
        """Return the shape of a tile; its columns times v, and its result, must be no larger."""
        width = max(side.shape[1] for side in tiles.right)
        numbers = self._tile_bytes(self.workers()) // itemsize
        cols = min(tiles.m, TILE_COLUMNS, max(numbers // width, 1))
        return max(min(numbers // cols, numbers // width), 1), cols

    def _multiply_factored(self, tiles: Tiles, v: Array) -> Array:
        """Return K v as L (R' v)."""
        # The brackets decide the cost: the inner product first leaves d numbers per target.
        w = multiply_down(tiles.right[0], v)

        def part(bounds: tuple[int, int]) -> Array:
            tiles.stop.check()
            return across(tiles.row(*bounds)[0], w)

        return xp.concat(list(self._over_rows(part, tiles, PART_ROWS)))

    def _factored_normal(
        self, tiles: Tiles, v: Array | None, weights: Array | None, targets: Array | None
    ) -> Array:
        """Return K' W (K v - y) as R (L' W (L (R' v) - y))."""
        w = None if v is None else multiply_down(tiles.right[0], v)
        shared_columns = tiles.shared[0] if tiles.shared else None

        def part(bounds: tuple[int, int]) -> Array:
            tiles.stop.check()
            part_rows, rows = slice_rows(tiles.left[0], *bounds), slice(*bounds)
            row_values = [None if u is None else u[rows] for u in (weights, targets)]
            return residual_down(part_rows, w, row_values[0], row_values[1], shared_columns)

        return across(tiles.right[0], sum_of(self._over_rows(part, tiles, PART_ROWS)))

    def _tiles(self, kernel: Kernel, x: Array, z: Array, diagonal: int | None) -> Tiles:
        x, z = xp.to_device(x, self.device), xp.to_device(z, self.device)
        return Tiles.build(kernel, x, z, diagonal)

    def _over_rows(
        self, part: Callable[[tuple[int, int]], Result], tiles: Tiles, rows: int
    ) -> Iterator[Result]:
        bounds = bounds_of(tiles.n, rows, self.workers() * PARTS_PER_THREAD)
        return self._run(part, bounds, tiles)

    def _run(
        self, part: Callable[[Item], Result], items: Iterable[Item], tiles: Tiles
    ) -> Iterator[Result]:
        # A device runs one call after the other anyway: threads would only compete for its memory.
        if not self.on_host:
            return map(part, items)
        return run(self.workers(), part, items, tiles.stop)


def _matrix(buffer: Array, rows: int, cols: int) -> Array:
    return buffer[: rows * cols].reshape(rows, cols)


def _residual(K: Array, v: Array | None, targets: Array | None, rows: slice) -> Array:
    """Return K v - y for one strip of rows, in new memory."""
    if v is None:
        return xp.negative(is_given(targets)[rows])
    u = xp.matmul(K, v)
    return u if targets is None else xp.subtract_(u, targets[rows])


def is_given(vector: Array | None) -> Array:
    """Return v, or else the targets, of a normal product; raise ValueError without both."""
    if vector is None:
        raise ValueError("normal needs v, targets or both; got neither")
    return vector
