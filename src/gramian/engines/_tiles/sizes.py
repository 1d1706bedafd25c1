"""Ranges of rows, and sizes and memory of the tiles that NumPy or torch computes."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import Array
from ..._parallel.workers import default_threads

PARTS_PER_THREAD = 4
"""Row ranges per worker: enough to even out a busy machine, few enough to add up their sums."""


def bounds_of(n: int, rows: int, most: int) -> list[tuple[int, int]]:
    """Return at most `most` nearly equal ranges of n rows, each of at least `rows` rows."""
    count = max(min(most, n // rows), 1)
    # Integer products spread the remainder over all ranges instead of adding it to the last one.
    return [(n * i // count, n * (i + 1) // count) for i in range(count)]


def steps(start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    """Return the ranges of at most `size` from `start` to `stop`, in order."""
    return ((i, min(i + size, stop)) for i in range(start, stop, max(size, 1)))


def sum_of(terms: Iterable[Array]) -> Array:
    """Return the sum of at least one array, in the memory of the first.

    A generator is closed, so that the computation of its terms ends if this function is
    interrupted.
    """
    iterator = iter(terms)
    try:
        total = next(iterator)
        for term in iterator:
            total += term
        return total
    finally:
        # Closing a generator runs its `finally`, which ends its workers even after an interruption.
        if isinstance(iterator, Generator):
            iterator.close()


TILE_BYTES = 1 << 22
"""Size of a tile on the CPU, which stays in the cache."""

DEVICE_TILE_BYTES = 1 << 26
"""Size of a tile on a GPU, where one operation on it should outweigh the cost of starting it."""

TILE_COLUMNS = 4096
"""Columns of a tile at most, so that it has some rows, and steps on the way are as small."""

ALL_TILES_BYTES = 1 << 27
"""The tiles of all workers together: with more than 32 of them, a tile becomes smaller."""

TEMPORARY_TILES = 2
"""Temporary tiles of the steps from distances to a kernel, in addition to the result."""

SYMMETRIC_BYTES = 1 << 20
"""Size of a square tile of the symmetric product, which is read twice: half the cache of a core."""

MIN_STRIP_ROWS = 32
"""Rows that share one read of the columns in `normal`, however many columns there are."""


@dataclass(frozen=True)
class TileSizes:
    """Size of the tiles on a device, and the number of simultaneous tiles.

    - `tile_bytes`: bytes of a tile; by default a size that suits the device.
    - `threads`: workers on the CPU; the number of threads of the BLAS if None.
    """

    device: str = "cpu"
    tile_bytes: int | None = None
    threads: int | None = None

    def workspace_bytes(self, m: int, d: int, t: int, itemsize: int) -> int:
        """See `Engine.workspace_bytes`."""
        # Reading the number of workers calls the BLAS, so it is read once.
        threads = self.workers()
        tile_bytes = self._tile_bytes(threads)
        rows = _strip_rows(m, tile_bytes)
        # A strip of `MIN_STRIP_ROWS` rows may exceed the size that a tile would have.
        tile = max(tile_bytes, rows * min(m, TILE_COLUMNS) * itemsize)
        strip = max(tile, rows * m * itemsize) + TEMPORARY_TILES * tile
        columns = m * (d + 2) * (itemsize + 8) + m * d * itemsize
        sums = (threads + 2) * m * t * 8
        return threads * strip + columns + sums

    def row_bytes(self, d: int, t: int, itemsize: int) -> int:
        """See `Engine.row_bytes`."""
        ahead = 0 if self.on_host else 2 * d * itemsize
        return (d * 2 + 2) * itemsize + (d + 2) * 8 * 2 + 3 * t * 8 + ahead

    @property
    def on_host(self) -> bool:
        """Whether tiles are in the memory of the process."""
        return xp.is_host(self.device)

    def workers(self) -> int:
        """Return the number of tiles that are computed at once."""
        if not self.on_host:
            return 1
        return self.threads or default_threads()

    def tile_shape(self, m: int, itemsize: int) -> tuple[int, int]:
        """Return the rows and columns of a tile of a matrix with m columns."""
        cols = min(m, TILE_COLUMNS)
        return max(self._tile_bytes(self.workers()) // (cols * itemsize), 1), cols

    def _tile_bytes(self, workers: int) -> int:
        suited = TILE_BYTES if self.on_host else DEVICE_TILE_BYTES
        size = suited if self.tile_bytes is None else self.tile_bytes
        return min(size, ALL_TILES_BYTES // workers)

    def square_bytes(self) -> int:
        """Return the size of a tile of the symmetric product."""
        most_bytes = SYMMETRIC_BYTES if self.on_host else DEVICE_TILE_BYTES
        return min(self._tile_bytes(self.workers()), most_bytes)

    def strip_rows(self, m: int) -> int:
        """Return the rows of a strip of `normal`, which needs all columns of a row at once.

        The number is the same for float64 and float32, as half the rows would cost more than a
        larger strip.
        """
        return _strip_rows(m, self._tile_bytes(self.workers()))


def _strip_rows(m: int, tile_bytes: int) -> int:
    return min(max(tile_bytes // (max(m, 1) * 4), MIN_STRIP_ROWS), 1024)
