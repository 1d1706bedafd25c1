"""Gradients of predictors, tile by tile, by NumPy on the host or by torch on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import Array, Float
from ..._parallel.workers import run
from ..._sparse import is_sparse
from ...kernels import Kernel
from .sizes import PARTS_PER_THREAD, TILE_COLUMNS, TileSizes, bounds_of, steps
from .tiled import is_empty
from .tiles import Tiles


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


@dataclass(frozen=True)
class TiledGradients(TileSizes):
    """Gradients of an engine; arguments as for `Engine.gradients`.

    Tiles are computed in float64 if float32 distances would lose digits, or the kernel has a kink
    at zero.
    """

    def __call__(
        self, kernel: Kernel, x: Array, z: Array, v: Float[Array, "m t"]
    ) -> Float[Array, "b t d"]:
        """Return the gradients in float64, see `Engine.gradients`."""
        check_gradients(kernel, x)
        (b, d), t = x.shape, v.shape[1]
        if is_empty(x, z) or t == 0:
            return xp.zeros((b, t, d), xp.float64, like=x)
        tiles = self._tiles(kernel, x, z)
        rows, cols = self._shape(tiles)
        v = xp.cast(xp.to_device(v, tiles.device), tiles.dtype)
        columns = [(right, v[j:j_end]) for j, j_end, right in tiles.columns(cols)]
        out = xp.zeros((b, t, d), xp.float64, device=tiles.device)

        def part(bounds: tuple[int, int]) -> None:
            for i, i_end in steps(*bounds, rows):
                left_tile = tiles.row(i, i_end)
                for right, v_j in columns:
                    tiles.stop.check()
                    out[i:i_end] += kernel.gradients(left_tile, right, v_j)

        self._over_rows(part, tiles, rows)
        return xp.to_device(out, xp.device_of(x))

    def _tiles(self, kernel: Kernel, x: Array, z: Array) -> Tiles:
        x, z = xp.to_device(x, self.device), xp.to_device(z, self.device)
        # The slope near a kink changes by its whole size within the rounding of float32 rows.
        if kernel.kinked:
            x, z = xp.to_float64(x), xp.to_float64(z)
        tiles = Tiles.build(kernel, x, z, None)
        # A sum over many rows magnifies rounding: tiles keep the type in which `build` has prepared
        # the rows, which may be wider than the type of the rows themselves.
        return Tiles(kernel, tiles.left, tiles.right, tiles.left[0].dtype, None, None)

    def _shape(self, tiles: Tiles) -> tuple[int, int]:
        """Return the shape of a tile; its columns times v, and its result, must be no larger."""
        width = max(side.shape[1] for side in tiles.right)
        numbers = self._tile_bytes() // tiles.dtype.itemsize
        cols = min(tiles.m, TILE_COLUMNS, max(numbers // width, 1))
        return max(min(numbers // cols, numbers // width), 1), cols

    def _over_rows(self, part: Callable[[tuple[int, int]], None], tiles: Tiles, rows: int) -> None:
        threads = self.workers()
        bounds = bounds_of(tiles.n, rows, threads * PARTS_PER_THREAD)
        parts = map(part, bounds) if not self.on_host else run(threads, part, bounds, tiles.stop)
        for _ in parts:
            pass
