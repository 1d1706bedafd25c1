"""Products with a kernel matrix by torch, tile by tile, on any device that torch knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..kernels import Kernel
from ._ranges import PARTS_PER_THREAD, bounds_of, steps, sum_of
from ._tiles import Tiles
from ._workers import default_threads, run

TILE_BYTES = 1 << 22
"""Size of a tile on the CPU, which stays in the cache."""

DEVICE_TILE_BYTES = 1 << 26
"""Size of a tile on a GPU, where one operation on it should outweigh the cost of starting it."""

TILE_COLUMNS = 4096
"""Columns of a tile at most, so that it has some rows, and steps on the way are as small."""

ALL_TILES_BYTES = 1 << 27
"""The tiles of all workers together: with more than 32 of them, a tile becomes smaller."""

TEMPORARIES = 2
"""Tiles that the steps from distances to a kernel may take beside the one they fill."""

SYMMETRIC_BYTES = 1 << 20
"""Size of a square tile of the symmetric product, which is read twice: half the cache of a core."""

MIN_STRIP_ROWS = 32
"""Rows that share one read of the columns in `normal`, however many columns there are."""


@dataclass(frozen=True)
class Tiled:
    """The four products of an engine, of tiles of a given size, by some workers on one device.

    Methods and arguments are those of `Engine`.

    Parameters
    ----------
    device : str
    tile_bytes : int, optional
        What suits the device if None.
    threads : int, optional
        Workers on the CPU; as many as torch would use if None.
    """

    device: str = "cpu"
    tile_bytes: int | None = None
    threads: int | None = None

    def matvec(
        self,
        kernel: Kernel,
        x: Tensor,
        z: Tensor,
        v: Float[Tensor, "m t"],
        *,
        diagonal: int | None = None,
    ) -> Float[Tensor, "b t"]:
        tiles = self._tiles(kernel, x, z, diagonal)
        rows, cols = self._tile_shape(tiles)
        v = v.to(tiles.device, tiles.dtype)
        columns = [(*column, v[column[0] : column[1]]) for column in tiles.columns(cols)]

        def part(bounds: tuple[int, int]) -> Tensor:
            out = v.new_zeros(bounds[1] - bounds[0], v.shape[1], dtype=torch.float64)
            buffer = v.new_empty(rows * cols)
            for i, i_end in steps(*bounds, rows):
                left, sums = tiles.row(i, i_end), out[i - bounds[0] : i_end - bounds[0]]
                for j, j_end, right, v_j in columns:
                    K = _matrix(buffer, i_end - i, j_end - j)
                    sums += torch.mm(tiles.fill(left, right, i, j, K), v_j)
            return out

        return torch.cat(list(self._over_rows(part, tiles, rows))).to(x.device)

    def normal(
        self,
        kernel: Kernel,
        x: Tensor,
        z: Tensor,
        v: Float[Tensor, "m t"] | None,
        *,
        weights: Float[Tensor, " b"] | None = None,
        targets: Float[Tensor, "b t"] | None = None,
        diagonal: int | None = None,
    ) -> Float[Tensor, "m t"]:
        tiles = self._tiles(kernel, x, z, diagonal)
        rows = self._strip_rows(tiles.m)
        t = given(targets if v is None else v).shape[1]
        columns = tiles.columns(TILE_COLUMNS)
        v, weights, targets = (
            None if u is None else u.to(tiles.device, tiles.dtype) for u in (v, weights, targets)
        )

        def part(bounds: tuple[int, int]) -> Tensor:
            out = torch.zeros(t, tiles.m, dtype=torch.float64, device=tiles.device)
            buffer = tiles.right[0].new_empty(rows, tiles.m, dtype=tiles.dtype)
            for i, i_end in steps(*bounds, rows):
                left, K = tiles.row(i, i_end), buffer[: i_end - i]
                for j, j_end, right in columns:
                    tiles.fill(left, right, i, j, K[:, j:j_end])
                u = _residual(K, v, targets, slice(i, i_end))
                if weights is not None:
                    u *= weights[i:i_end, None]
                # u' K is twice as fast as K' u for a few columns; float64 keeps the digits of
                # sums over many rows.
                out += torch.mm(u.t(), K)
            return out.t()

        return sum_of(self._over_rows(part, tiles, rows)).to(z.device)

    def symmetric(
        self, kernel: Kernel, x: Float[Tensor, "n d"], v: Float[Tensor, "n t"]
    ) -> Float[Tensor, "n t"]:
        tiles = self._tiles(kernel, x, x, 0)
        n, threads = tiles.n, self._threads()
        v = v.to(tiles.device, tiles.dtype)
        side = self._square_bytes() // tiles.dtype.itemsize
        columns = tiles.columns(min(n, max(math.isqrt(side), 1)))

        def part(worker: int) -> Tensor:
            out = v.new_zeros(n, v.shape[1], dtype=torch.float64)
            buffer = v.new_empty(columns[0][1] ** 2)
            # one strip of so many, because they become shorter towards the end
            for number in range(worker, len(columns), threads):
                i, i_end, _ = columns[number]
                left, v_i = tiles.row(i, i_end), v[i:i_end]
                for j, j_end, right in columns[number:]:
                    K = tiles.fill(left, right, i, j, _matrix(buffer, i_end - i, j_end - j))
                    out[i:i_end] += torch.mm(K, v[j:j_end])
                    if j > i:
                        out[j:j_end] += torch.mm(v_i.t(), K).t()
            return out

        workers = range(min(threads, len(columns)))
        parts = map(part, workers) if not self._on_host else run(threads, part, workers, tiles.stop)
        return sum_of(parts).to(x.device)

    def block(
        self, kernel: Kernel, x: Tensor, z: Tensor, *, diagonal: int | None = None
    ) -> Float[Tensor, "b m"]:
        tiles = self._tiles(kernel, x, z, diagonal)
        rows, cols = self._tile_shape(tiles)
        out = torch.empty(tiles.n, tiles.m, dtype=tiles.dtype, device=tiles.device)

        def part(bounds: tuple[int, int]) -> None:
            for i, i_end in steps(*bounds, rows):
                left = tiles.row(i, i_end)
                for j, j_end, right in tiles.columns(cols):
                    tiles.fill(left, right, i, j, out[i:i_end, j:j_end])

        for _ in self._over_rows(part, tiles, rows):
            pass
        return out.to(x.device)

    def workspace_bytes(self, m: int, d: int, t: int, itemsize: int) -> int:
        threads, rows = self._threads(), self._strip_rows(m)
        tile = max(self._tile_bytes(), rows * min(m, TILE_COLUMNS) * itemsize)
        strip = max(tile, rows * m * itemsize) + TEMPORARIES * tile
        columns = m * (d + 2) * (itemsize + 8) + m * d * itemsize
        sums = (threads + 2) * m * t * 8
        return threads * strip + columns + sums

    def row_bytes(self, d: int, t: int, itemsize: int) -> int:
        ahead = 0 if self._on_host else 2 * d * itemsize
        return (d * 2 + 2) * itemsize + (d + 2) * 8 * 2 + 3 * t * 8 + ahead

    @property
    def _on_host(self) -> bool:
        return torch.device(self.device).type == "cpu"

    def _threads(self) -> int:
        if not self._on_host:
            return 1
        return self.threads or default_threads()

    def _tile_shape(self, tiles: Tiles) -> tuple[int, int]:
        cols = min(tiles.m, TILE_COLUMNS)
        return max(self._tile_bytes() // (cols * tiles.dtype.itemsize), 1), cols

    def _tile_bytes(self) -> int:
        suited = TILE_BYTES if self._on_host else DEVICE_TILE_BYTES
        size = suited if self.tile_bytes is None else self.tile_bytes
        return min(size, ALL_TILES_BYTES // self._threads())

    def _square_bytes(self) -> int:
        most = SYMMETRIC_BYTES if self._on_host else DEVICE_TILE_BYTES
        return min(self._tile_bytes(), most)

    def _strip_rows(self, m: int) -> int:
        """Return the rows of a strip of `normal`, which needs all columns of a row at once.

        As many in float64 as in float32: half as many cost more than the larger strip does.
        """
        return min(max(self._tile_bytes() // (max(m, 1) * 4), MIN_STRIP_ROWS), 1024)

    def _tiles(self, kernel: Kernel, x: Tensor, z: Tensor, diagonal: int | None) -> Tiles:
        x, z = x.to(self.device), z.to(self.device)
        return Tiles.build(kernel, x, z, diagonal)

    def _over_rows(
        self, part: Callable[[tuple[int, int]], Tensor | None], tiles: Tiles, rows: int
    ) -> Iterator[Tensor]:
        threads = self._threads()
        bounds = bounds_of(tiles.n, rows, threads * PARTS_PER_THREAD)
        if not self._on_host:
            return map(part, bounds)  # type: ignore[arg-type]
        return run(threads, part, bounds, tiles.stop)  # type: ignore[arg-type]


def _matrix(buffer: Tensor, rows: int, cols: int) -> Tensor:
    return buffer[: rows * cols].view(rows, cols)


def _residual(K: Tensor, v: Tensor | None, targets: Tensor | None, rows: slice) -> Tensor:
    """Return K v - y for one strip of rows, in new memory."""
    if v is None:
        return given(targets)[rows].neg()
    u = torch.mm(K, v)
    return u if targets is None else u.sub_(targets[rows])


def given(vector: Tensor | None) -> Tensor:
    """Return what a normal product was given; ValueError if that is neither v nor targets."""
    if vector is None:
        raise ValueError("normal needs v, targets, or both: without either there is nothing to do")
    return vector
