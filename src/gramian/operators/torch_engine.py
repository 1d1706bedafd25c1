"""TorchEngine: the reference engine, on any device that torch knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from .._sparse import cast, is_sparse, slice_rows
from ..kernels import Kernel
from ..kernels.base import Prepared, Side
from ._workers import Stop, default_threads, run
from .engine import Engine

ROUNDING_LIMIT = 6e-6
"""Largest error of a kernel entry that float32 distances may cause before float64 is used."""

TILE_COLUMNS = 4096
"""Columns of a tile at most, so that it has some rows, and steps on the way are as small."""

DEVICE_TILE_BYTES = 1 << 26
"""Size of a tile on a GPU, where one operation on it should outweigh the cost of starting it."""

ALL_TILES_BYTES = 1 << 27
"""The tiles of all workers together: with more than 32 of them, a tile becomes smaller."""

TEMPORARIES = 2
"""Tiles that the steps from distances to a kernel may take beside the one they fill."""

SYMMETRIC_BYTES = 1 << 20
"""Size of a square tile of the symmetric product, which is read twice: half the cache of a core."""

MIN_STRIP_ROWS = 32
"""Rows that share one read of the columns in `normal`, however many columns there are."""

PARTS_PER_THREAD = 4
"""Row ranges per worker: enough to even out a busy machine, few enough to add up their sums."""

PREPARED_NUMBERS = 1 << 17
"""Coordinates prepared at once: the steps of it stay in the cache."""


@dataclass(frozen=True)
class TorchEngine(Engine):
    """Cache-sized tiles of the kernel matrix, each one matrix product and one profile.

    Squared distances come from one matrix product of augmented rows, written into a reused
    buffer, so that a tile never leaves the cache. The rows are centered by the mean of `z` first.
    Where float32 would still lose digits (two sets far from the origin compared with the
    lengthscale; near-duplicates under a kernel with a kink at zero), the product runs in float64
    and only the profile in float32.

    Parameters
    ----------
    device : str, default="cpu"
    tile_bytes : int, default=4 MiB
        Size of a tile: small enough to stay in the cache, large enough that the five operations
        on it outweigh the cost of calling them.
    threads : int, optional
        Workers on the CPU; as many as torch would use if None.
    """

    device: str = "cpu"
    tile_bytes: int = 1 << 22
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
            for i, i_end in _steps(*bounds, rows):
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
        t = _given(targets if v is None else v).shape[1]
        columns = tiles.columns(TILE_COLUMNS)
        v, weights, targets = (
            None if u is None else u.to(tiles.device, tiles.dtype) for u in (v, weights, targets)
        )

        def part(bounds: tuple[int, int]) -> Tensor:
            out = torch.zeros(t, tiles.m, dtype=torch.float64, device=tiles.device)
            buffer = tiles.right[0].new_empty(rows, tiles.m, dtype=tiles.dtype)
            for i, i_end in _steps(*bounds, rows):
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
        parts = map(part, workers) if not self.on_host else run(threads, part, workers, tiles.stop)
        return sum_of(parts).to(x.device)

    def block(
        self, kernel: Kernel, x: Tensor, z: Tensor, *, diagonal: int | None = None
    ) -> Float[Tensor, "b m"]:
        tiles = self._tiles(kernel, x, z, diagonal)
        rows, cols = self._tile_shape(tiles)
        out = torch.empty(tiles.n, tiles.m, dtype=tiles.dtype, device=tiles.device)

        def part(bounds: tuple[int, int]) -> None:
            for i, i_end in _steps(*bounds, rows):
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
        ahead = 0 if self.on_host else 2 * d * itemsize
        return (d * 2 + 2) * itemsize + (d + 2) * 8 * 2 + 3 * t * 8 + ahead

    def _threads(self) -> int:
        if not self.on_host:
            return 1
        return self.threads or default_threads()

    def _tile_shape(self, tiles: Tiles) -> tuple[int, int]:
        cols = min(tiles.m, TILE_COLUMNS)
        return max(self._tile_bytes() // (cols * tiles.dtype.itemsize), 1), cols

    def _tile_bytes(self) -> int:
        return min(self.tile_bytes, ALL_TILES_BYTES // self._threads())

    def _square_bytes(self) -> int:
        most = SYMMETRIC_BYTES if self.on_host else DEVICE_TILE_BYTES
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
        if not self.on_host:
            return map(part, bounds)  # type: ignore[arg-type]
        return run(threads, part, bounds, tiles.stop)  # type: ignore[arg-type]


def torch_on(device: str) -> TorchEngine:
    """Return the engine of a device, with tiles of the size that suits it."""
    if torch.device(device).type == "cpu":
        return TorchEngine(device)
    return TorchEngine(device, tile_bytes=DEVICE_TILE_BYTES)


@dataclass(frozen=True)
class Tiles:
    """Two sets of prepared rows, from which any tile of their kernel matrix is computed."""

    kernel: Kernel
    left: Prepared
    right: Prepared
    dtype: torch.dtype
    diagonal: int | None
    diagonal_values: Tensor | None
    underflow: bool = True
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
    def device(self) -> torch.device:
        """Where the rows are."""
        return self.right[0].device

    @classmethod
    def build(cls, kernel: Kernel, x: Tensor, z: Tensor, diagonal: int | None) -> Tiles:
        """Prepare the rows of `x` and `z`, in float64 where float32 would lose digits."""
        values = kernel.diag(z) if diagonal is not None else None
        left, right = _prepare(kernel, x, z, x.dtype)
        underflow = kernel.may_underflow(left, right, x.dtype)
        if kernel.rounding(left, right, torch.finfo(x.dtype).eps) > ROUNDING_LIMIT:
            del left, right
            left, right = _prepare(kernel, x, z, torch.float64)
        return cls(kernel, left, right, x.dtype, diagonal, values, underflow)

    def columns(self, size: int) -> list[tuple[int, int, Prepared]]:
        """Return the columns in ranges of at most `size`: start, end, prepared rows."""
        return [
            (j, j_end, tuple(side[j:j_end] for side in self.right))
            for j, j_end in _steps(0, self.m, size)
        ]

    def row(self, start: int, stop: int) -> Prepared:
        """Return a range of the prepared rows of the left side."""
        return tuple(slice_rows(side, start, stop) for side in self.left)

    def fill(self, left: Prepared, right: Prepared, i: int, j: int, out: Tensor) -> Tensor:
        """Write the tile of `left` and `right`, which starts at row i, column j, to `out`."""
        self.stop.check()
        K = self.kernel.tile(left, right, out, underflow=self.underflow)
        if self.diagonal_values is not None:
            self._set_diagonal(K, i, j)
        return K

    def _set_diagonal(self, K: Tensor, i: int, j: int) -> None:
        offset = i + (self.diagonal or 0) - j
        entries = K.diagonal(offset) if -K.shape[0] < offset < K.shape[1] else K[:0, 0]
        start = j + max(offset, 0)
        if self.diagonal_values is not None:
            entries.copy_(self.diagonal_values[start : start + len(entries)])


def _prepare(kernel: Kernel, x: Tensor, z: Tensor, dtype: torch.dtype) -> tuple[Prepared, Prepared]:
    centered = kernel.stationary and not is_sparse(x)
    origin = z.mean(dim=0).to(dtype) if centered else None
    left = _prepare_side(kernel, x, "left", origin, dtype)
    return left, _prepare_side(kernel, z, "right", origin, dtype)


def _prepare_side(
    kernel: Kernel, points: Tensor, side: Side, origin: Tensor | None, dtype: torch.dtype
) -> Prepared:
    """Prepare a few rows after the other: each step on the way would be one more copy of all."""
    if is_sparse(points):
        return kernel.prepare(cast(points, dtype), side)
    n, d = points.shape
    whole: Prepared = ()
    for i, i_end in _steps(0, n, max(PREPARED_NUMBERS // d, 1)):
        block = points[i:i_end].to(dtype)
        parts = kernel.prepare(block if origin is None else block - origin, side)
        if i_end == n and i == 0:
            return parts
        whole = whole or tuple(part.new_empty(n, part.shape[1]) for part in parts)
        for out, part in zip(whole, parts, strict=True):
            out[i:i_end] = part
    return whole


def bounds_of(n: int, rows: int, most: int) -> list[tuple[int, int]]:
    """Return `most` ranges of n rows, nearly equal; fewer, so that each has `rows` at least."""
    count = max(min(most, n // rows), 1)
    return [(n * i // count, n * (i + 1) // count) for i in range(count)]


def _matrix(buffer: Tensor, rows: int, cols: int) -> Tensor:
    return buffer[: rows * cols].view(rows, cols)


def _steps(start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    return ((i, min(i + size, stop)) for i in range(start, stop, max(size, 1)))


def _residual(K: Tensor, v: Tensor | None, targets: Tensor | None, rows: slice) -> Tensor:
    """Return K v - y for one strip of rows, in new memory."""
    if v is None:
        return _given(targets)[rows].neg()
    u = torch.mm(K, v)
    return u if targets is None else u.sub_(targets[rows])


def _given(targets: Tensor | None) -> Tensor:
    if targets is None:
        raise ValueError("normal needs v, targets, or both: without either there is nothing to do")
    return targets


def sum_of(terms: Iterable[Tensor]) -> Tensor:
    """Return the sum of at least one tensor, in the memory of the first.

    A generator is closed, so that what computes its terms ends if this is interrupted.
    """
    iterator = iter(terms)
    try:
        total = next(iterator)
        for term in iterator:
            total += term
        return total
    finally:
        if isinstance(iterator, Generator):
            iterator.close()
