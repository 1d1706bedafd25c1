"""Products with a kernel matrix by torch, tile by tile, on any device of torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..._parallel.workers import run
from ..._sparse import slice_rows
from ...kernels import Kernel
from .factored import PART_ROWS, across, multiply_down, pays, residual_down
from .ranges import PARTS_PER_THREAD, bounds_of, steps, sum_of
from .sizes import TILE_COLUMNS, TileSizes
from .tiles import Tiles

Result = TypeVar("Result")


@dataclass(frozen=True)
class Tiled(TileSizes):
    """The four products of an engine, by torch; arguments as for `Engine`."""

    def matvec(
        self,
        kernel: Kernel,
        x: Tensor,
        z: Tensor,
        v: Float[Tensor, "m t"],
        *,
        diagonal: int | None = None,
    ) -> Float[Tensor, "b t"]:
        """Return K v in float64, see `Engine.matvec`."""
        if is_empty(x, z):
            return torch.zeros(x.shape[0], v.shape[1], dtype=torch.float64, device=x.device)
        tiles = self._tiles(kernel, x, z, diagonal)
        if pays(tiles, v.shape[1]):
            return self._multiply_factored(tiles, v.to(tiles.device)).to(x.device)
        rows, cols = self.tile_shape(tiles.m, tiles.dtype.itemsize)
        v = v.to(tiles.device, tiles.dtype)
        columns = [(*column, v[column[0] : column[1]]) for column in tiles.columns(cols)]

        def part(bounds: tuple[int, int]) -> Tensor:
            out = v.new_zeros(bounds[1] - bounds[0], v.shape[1], dtype=torch.float64)
            # One buffer per range stays in the cache, and the last tiles use a part of it.
            buffer = v.new_empty(rows * cols)
            for i, i_end in steps(*bounds, rows):
                left_tile, sums = tiles.row(i, i_end), out[i - bounds[0] : i_end - bounds[0]]
                for j, j_end, right, v_j in columns:
                    K = _matrix(buffer, i_end - i, j_end - j)
                    # The product is in the dtype of the tile, and the sum over tiles in float64.
                    sums += torch.mm(tiles.fill(left_tile, right, i, j, K), v_j)
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
        """Return K' W (K v - y) in float64, see `Engine.normal`."""
        t = is_given(targets if v is None else v).shape[1]
        if is_empty(x, z):
            return torch.zeros(z.shape[0], t, dtype=torch.float64, device=z.device)
        tiles = self._tiles(kernel, x, z, diagonal)
        if pays(tiles, t):
            given_to = (None if u is None else u.to(tiles.device) for u in (v, weights, targets))
            return self._factored_normal(tiles, *given_to).to(z.device)
        rows = self.strip_rows(tiles.m)
        columns = tiles.columns(TILE_COLUMNS)
        v, weights, targets = (
            None if u is None else u.to(tiles.device, tiles.dtype) for u in (v, weights, targets)
        )

        def part(bounds: tuple[int, int]) -> Tensor:
            out = torch.zeros(t, tiles.m, dtype=torch.float64, device=tiles.device)
            buffer = torch.empty(rows, tiles.m, dtype=tiles.dtype, device=tiles.device)
            for i, i_end in steps(*bounds, rows):
                left_tile, K = tiles.row(i, i_end), buffer[: i_end - i]
                for j, j_end, right in columns:
                    tiles.fill(left_tile, right, i, j, K[:, j:j_end])
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
        """Return k(x, x) v in float64, see `Engine.symmetric`."""
        if is_empty(x, x):
            return torch.zeros(v.shape, dtype=torch.float64, device=x.device)
        tiles = self._tiles(kernel, x, x, 0)
        if pays(tiles, v.shape[1]):
            return self._multiply_factored(tiles, v.to(tiles.device)).to(x.device)
        n, threads = tiles.n, self.workers()
        v = v.to(tiles.device, tiles.dtype)
        side = self.square_bytes() // tiles.dtype.itemsize
        columns = tiles.columns(min(n, max(math.isqrt(side), 1)))

        def part(worker: int) -> Tensor:
            # Each worker has a sum of its own over all rows, because a tile adds to rows and to
            # columns.
            out = v.new_zeros(n, v.shape[1], dtype=torch.float64)
            buffer = v.new_empty(columns[0][1] ** 2)
            # Workers take strips in turn, because strips become shorter towards the end.
            for number in range(worker, len(columns), threads):
                i, i_end, _ = columns[number]
                left_tile, v_i = tiles.row(i, i_end), v[i:i_end]
                for j, j_end, right in columns[number:]:
                    K = tiles.fill(left_tile, right, i, j, _matrix(buffer, i_end - i, j_end - j))
                    out[i:i_end] += torch.mm(K, v[j:j_end])
                    # A tile on the diagonal holds both triangles, so its transpose would count its
                    # pairs twice.
                    if j > i:
                        out[j:j_end] += torch.mm(v_i.t(), K).t()
            return out

        workers = range(min(threads, len(columns)))
        parts = map(part, workers) if not self.on_host else run(threads, part, workers, tiles.stop)
        return sum_of(parts).to(x.device)

    def block(
        self, kernel: Kernel, x: Tensor, z: Tensor, *, diagonal: int | None = None
    ) -> Float[Tensor, "b m"]:
        """Return K itself, see `Engine.block`."""
        if is_empty(x, z):
            return torch.zeros(x.shape[0], z.shape[0], dtype=x.dtype, device=x.device)
        tiles = self._tiles(kernel, x, z, diagonal)
        rows, cols = self.tile_shape(tiles.m, tiles.dtype.itemsize)
        out = torch.empty(tiles.n, tiles.m, dtype=tiles.dtype, device=tiles.device)

        def part(bounds: tuple[int, int]) -> None:
            for i, i_end in steps(*bounds, rows):
                left_tile = tiles.row(i, i_end)
                for j, j_end, right in tiles.columns(cols):
                    tiles.fill(left_tile, right, i, j, out[i:i_end, j:j_end])

        for _ in self._over_rows(part, tiles, rows):
            pass
        return out.to(x.device)

    def _multiply_factored(self, tiles: Tiles, v: Tensor) -> Tensor:
        """Return K v as L (R' v)."""
        # The brackets decide the cost: the inner product first leaves d numbers per target.
        w = multiply_down(tiles.right[0], v)

        def part(bounds: tuple[int, int]) -> Tensor:
            tiles.stop.check()
            return across(tiles.row(*bounds)[0], w)

        return torch.cat(list(self._over_rows(part, tiles, PART_ROWS)))

    def _factored_normal(
        self, tiles: Tiles, v: Tensor | None, weights: Tensor | None, targets: Tensor | None
    ) -> Tensor:
        """Return K' W (K v - y) as R (L' W (L (R' v) - y))."""
        w = None if v is None else multiply_down(tiles.right[0], v)
        shared_columns = tiles.shared[0] if tiles.shared else None

        def part(bounds: tuple[int, int]) -> Tensor:
            tiles.stop.check()
            part_rows, rows = slice_rows(tiles.left[0], *bounds), slice(*bounds)
            row_values = [None if u is None else u[rows] for u in (weights, targets)]
            return residual_down(part_rows, w, row_values[0], row_values[1], shared_columns)

        return across(tiles.right[0], sum_of(self._over_rows(part, tiles, PART_ROWS)))

    def _tiles(self, kernel: Kernel, x: Tensor, z: Tensor, diagonal: int | None) -> Tiles:
        x, z = x.to(self.device), z.to(self.device)
        return Tiles.build(kernel, x, z, diagonal)

    def _over_rows(
        self, part: Callable[[tuple[int, int]], Result], tiles: Tiles, rows: int
    ) -> Iterator[Result]:
        threads = self.workers()
        bounds = bounds_of(tiles.n, rows, threads * PARTS_PER_THREAD)
        if not self.on_host:
            return map(part, bounds)
        return run(threads, part, bounds, tiles.stop)


def is_empty(x: Tensor, z: Tensor) -> bool:
    """Return whether the matrix of these rows and columns has no entries."""
    return x.shape[0] == 0 or z.shape[0] == 0


def _matrix(buffer: Tensor, rows: int, cols: int) -> Tensor:
    return buffer[: rows * cols].view(rows, cols)


def _residual(K: Tensor, v: Tensor | None, targets: Tensor | None, rows: slice) -> Tensor:
    """Return K v - y for one strip of rows, in new memory."""
    if v is None:
        return is_given(targets)[rows].neg()
    u = torch.mm(K, v)
    return u if targets is None else u.sub_(targets[rows])


def is_given(vector: Tensor | None) -> Tensor:
    """Return v, or else the targets, of a normal product; raise ValueError without both."""
    if vector is None:
        raise ValueError("normal needs v, targets or both; got neither")
    return vector
