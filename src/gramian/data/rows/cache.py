"""Cache of decoded rows: the first pass over a file stores them for later passes."""

from __future__ import annotations

import logging
import mmap
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from .base import RowSource, check_index, check_size, slices
from .prefetch import prefetch
from .views import Complement, Subset

logger = logging.getLogger("gramian")

DISK_SHARE = 2
"""Rows are stored if they take at most half of the free bytes of the disk."""


class DecodedRows(RowSource):
    """Rows of a sequential source, stored in a temporary file by the first complete pass.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
        Dense local rows. They are read until one pass is complete.

    Notes
    -----
    Blocks equal the blocks of `rows`, to the last bit, if these have exactly the requested size.

    The file has ``n d`` numbers, is in ``tempfile.gettempdir()``, has no name, and disappears with
    these rows, also after a crash. If the disk is full, a warning is given, and later passes read
    `rows` again. Memory of later passes: two blocks.
    """

    random_access = False

    def __init__(self, rows: RowSource) -> None:
        self.shape, self.dtype, self.feature_names = rows.shape, rows.dtype, rows.feature_names
        self._rows = rows
        self._file: _File | None = None
        self._keeps = True

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        check_size(size)
        if self._file is not None:
            # Mapping a block starts its reading from disk, so that the next block is on its way
            # while the present one is used.
            file, d, dtype = self._file, self.shape[1], self.dtype
            parts = slices(len(self), size)
            return prefetch((part, file.memory_map(part, d, dtype)) for part in parts)
        return self._keeping(size) if self._keeps else self._rows.blocks(size)

    def _keeping(self, size: int) -> Iterator[tuple[slice, Array]]:
        """Write each block before it is used; delete the file if the pass is not completed."""
        file: _File | None = None
        for part, block in self._rows.blocks(size):
            try:
                # Each pass starts a file of its own: a pass that is given up, or runs next to
                # another, leaves nothing half written that a later pass would read.
                file = _File() if part.start == 0 else file
                if file is not None:
                    file.write(block)
            except OSError as error:
                # The pass itself continues with the decoded rows; only the copy is given up.
                file, self._keeps = None, False
                logger.warning(
                    "decoded rows are not cached (%s): each pass decodes %r again, which takes "
                    "longer; set TMPDIR to a folder with free space",
                    error.strerror or error,
                    self._rows,
                )
            yield part, block
        if file is not None:
            # Only after the last block: until then the file lacks rows.
            self._file = file

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        check_index(index, len(self))
        if self._file is None:
            return self._rows.take(index)
        out = np.empty((len(index), self.shape[1]), self.dtype)
        # Rows are scattered: each is read at its place, without the rows between them.
        for row, number in zip(out, index.tolist(), strict=True):
            self._file.read(row, number)
        return out


class _File:
    """Rows in a file without a name; threads, and processes that are forked, read it at once."""

    def __init__(self) -> None:
        # Unbuffered: a buffer would notice a full disk only when it is flushed, perhaps at the end.
        self._file: FileIO = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        # Maps of the file stay valid without its descriptor.
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()

    def write(self, block: Array) -> None:
        """Append rows."""
        remaining = memoryview(block.data).cast("B")
        while remaining:
            # An unbuffered write may take only a part, as 2 GB on Linux.
            remaining = remaining[self._file.write(remaining) :]

    def memory_map(self, part: slice, d: int, dtype: xp.DType) -> Float[Array, "b d"]:
        """Return rows mapped from the file, without a copy until one writes to them."""
        row = d * dtype.itemsize
        start = part.start * row
        # A map must begin at a page: it begins before the rows, which are found by the offset
        # below.
        first = start - start % mmap.ALLOCATIONGRANULARITY
        # Copy on write: who writes to a block, against the rules, changes neither file nor other
        # blocks.
        memory = mmap.mmap(
            self._file.fileno(), part.stop * row - first, access=mmap.ACCESS_COPY, offset=first
        )
        if hasattr(mmap, "MADV_WILLNEED"):
            # The system reads ahead in the background instead of at each page fault.
            memory.madvise(mmap.MADV_WILLNEED)
        count = (part.stop - part.start) * d
        numbers = np.frombuffer(memory, dtype=dtype, count=count, offset=start - first)
        return numbers.reshape(-1, d)

    def read(self, out: Array, first: int) -> None:
        """Fill an array with consecutive rows."""
        remaining = memoryview(out.data).cast("B")
        place = first * out.shape[-1] * out.itemsize
        while remaining:
            count = self._read(remaining, place)
            if not count:
                raise OSError("a temporary file of decoded rows is truncated; start the fit again")
            remaining, place = remaining[count:], place + count

    def _read(self, out: memoryview, place: int) -> int:
        if hasattr(os, "preadv"):
            # A read at a place without `seek`, whose position all threads and forked processes
            # share.
            return os.preadv(self._file.fileno(), [out], place)
        with self._lock:  # Windows, where no process is forked
            self._file.seek(place)
            return self._file.readinto(out)


def decode_rows(rows: RowSource) -> RowSource:
    """Return rows that are decoded once, if this pays and disk space suffices; see `DecodedRows`.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
        Rows of a file; of a subset or complement, the underlying rows are stored.
    """
    if isinstance(rows, Subset):
        return Subset(decode_rows(rows.rows), rows.index)
    if isinstance(rows, Complement):
        return Complement(decode_rows(rows.rows), rows.index)
    return DecodedRows(rows) if decoded_bytes(rows) else rows


def decoded_bytes(rows: RowSource) -> int:
    """Return the bytes of the file that `decode_rows` writes; 0 if it writes none."""
    if isinstance(rows, Subset | Complement):
        return decoded_bytes(rows.rows)
    # Rows with random access are in memory, mapped, or on a cluster; the file holds dense rows.
    if rows.random_access or rows.sparse or isinstance(rows, DecodedRows):
        return 0
    need = rows.shape[0] * rows.shape[1] * rows.dtype.itemsize
    return need if DISK_SHARE * need <= _room() else 0


def _room() -> int:
    """Return the free bytes for temporary files; 0 if their folder is in memory."""
    try:
        folder = Path(tempfile.gettempdir())
        # A file in tmpfs takes memory, without any limit that a fit has planned for.
        return 0 if _is_in_memory(folder) else shutil.disk_usage(folder).free
    except OSError:
        return 0


def _is_in_memory(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """Return whether a folder is on a file system of Linux that has no disk; man 5 proc."""
    if not mounts.exists():
        return False
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.read_text().splitlines():
        # The number of fields before the dash varies; the type is the first one after it.
        fields_before, _, right = line.partition(" - ")
        if fields_before.split()[2] == number:
            return right.split()[0] in ("tmpfs", "ramfs")
    return False
