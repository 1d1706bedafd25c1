"""Mini-batches of shuffled rows from any row source, reproducible by seed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, Int, RandomStream
from ..rows.base import RowSource

EPOCH_STRIDE = 7919
"""Between the seeds of two epochs: a prime, so that runs of neighbouring seeds do not meet."""


@dataclass(frozen=True)
class Shuffle:
    """A random order of n rows for each epoch, cut into batches.

    Parameters
    ----------
    n : int
    size : int
        Rows of a batch; the last batch of an epoch may have fewer.
    seed : int
    chunk : int, optional
        Number of rows that are shuffled together, rounded down to whole batches; n if None.
    """

    n: int
    size: int
    seed: int
    chunk: int | None = None

    @property
    def chunk_rows(self) -> int:
        """Rows of a chunk: a multiple of the batch size, except for the last chunk."""
        largest_chunk = self.n if self.chunk is None else self.chunk
        # Whole batches: else each chunk would end with a short batch, not only the epoch.
        return self.n if largest_chunk >= self.n else max(1, largest_chunk // self.size) * self.size

    @property
    def per_chunk(self) -> int:
        """Number of batches of a chunk that is not the last."""
        return math.ceil(self.chunk_rows / self.size)

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        whole_chunks, remaining_rows = divmod(self.n, self.chunk_rows)
        return whole_chunks * self.per_chunk + math.ceil(remaining_rows / self.size)

    def order(self, epoch: int, chunk: int = 0) -> Int[Array, " k"]:
        """Return the row indices of a chunk, in shuffled order."""
        start = chunk * self.chunk_rows
        rows = min(self.chunk_rows, self.n - start)
        # A generator for each epoch and chunk: a fit that resumes in the middle of an epoch draws
        # this order without the ones before it.
        rng = RandomStream(self.seed + EPOCH_STRIDE * (epoch + 1) + chunk)
        return start + rng.permutation(rows)

    def indices(self, epoch: int, start: int = 0, stop: int | None = None) -> Iterator[Array]:
        """Yield the increasing row indices of each batch from `start` to `stop` - 1 of an epoch."""
        last = len(self) if stop is None else min(stop, len(self))
        held_chunk, order = -1, np.empty(0, np.int64)
        for batch in range(start, last):
            chunk, place = divmod(batch, self.per_chunk)
            if chunk != held_chunk:
                held_chunk, order = chunk, self.order(epoch, chunk)
            # Neighbours are cheaper to gather, and the order within a batch is of no consequence.
            yield np.sort(order[place * self.size : (place + 1) * self.size])


@dataclass(frozen=True)
class Batches:
    """Shuffled mini-batches of a row source.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    size : int
        Rows of a batch.
    seed : int
        The same seed, epoch and position give the same batches.
    memory_bytes : int
        Memory for the rows that are shuffled together, if the source is sequential.

    Notes
    -----
    A source with random access is permuted as a whole. A sequential or remote one is read from
    front to back in chunks that fit into the memory, and shuffled within these: rows that are
    sorted, by their class for instance, should be shuffled once when the file is written. With a
    chunk of all rows the batches are the same as with random access. Starting in the middle of an
    epoch reads such a source from its front.
    """

    rows: RowSource
    size: int
    seed: int
    memory_bytes: int = 1 << 28

    @property
    def shuffle(self) -> Shuffle:
        """The order of the rows."""
        n, d = self.rows.shape
        if self._in_any_order:
            return Shuffle(n, self.size, self.seed)
        # Half of the memory: the next block is read while this one is used.
        chunk = max(self.size, self.memory_bytes // (2 * d * self.rows.dtype.itemsize))
        return Shuffle(n, self.size, self.seed, chunk)

    @property
    def _in_any_order(self) -> bool:
        return self.rows.random_access and self.rows.fits()

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        return len(self.shuffle)

    def epoch(
        self, epoch: int, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[Int[Array, " b"], Float[Array, "b d"]]]:
        """Yield the row indices and the rows of each batch from `start` to `stop` - 1 of an epoch.

        The rows are new arrays; rows of a sparse source stay sparse.
        """
        shuffle = self.shuffle
        indices = shuffle.indices(epoch, start, stop)
        if self._in_any_order:
            for index in indices:
                yield index, self.rows.take(index)
            return
        chunks = self.rows.blocks(shuffle.chunk_rows)
        part, chunk = slice(0, 0), np.empty(0, np.float32)
        for index in indices:
            # Numbers are increasing within a batch, and a batch never crosses chunks: its first row
            # tells its chunk. Chunks before the start of a resumed epoch are read and dropped.
            while int(index[0]) >= part.stop:
                part, chunk = _next(chunks, shuffle.chunk_rows)
            yield index, chunk[index - part.start]


def _next(blocks: Iterator[tuple[slice, Array]], rows: int) -> tuple[slice, Array]:
    """Return the next chunk, concatenated if the source yields smaller blocks."""
    part, block = next(blocks)
    pieces, stop = [block], part.stop
    # Blocks of a filtered source have fewer rows than asked for.
    while stop - part.start < rows and (following := next(blocks, None)) is not None:
        stop = following[0].stop
        pieces.append(following[1])
    return slice(part.start, stop), block if len(pieces) == 1 else xp.concat(pieces)
