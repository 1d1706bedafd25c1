"""The end of a text: a quote that does not end, and blank lines that are no rows."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from .dialect import Dialect

_KEPT_BYTES = 1 << 16

RELEASE_SECONDS = 0.5
"""How long an error waits for Arrow's thread to finish with the file."""


class Tail:
    """A stream of bytes that remembers its last ones.

    Parameters
    ----------
    stream : pyarrow.NativeFile
    """

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._ended = False
        self._released = threading.Event()
        self.last = b""

    def __enter__(self) -> Tail:
        return self

    def __exit__(self, error: object, *_more: object) -> None:
        # After an error Arrow's thread reads on, and crashes if the process ends meanwhile.
        with self._lock:
            self._ended = True
        if error is not None:
            # Set when Arrow's thread drops its file. The wait is bounded, so that an error never
            # hangs.
            self._released.wait(RELEASE_SECONDS)

    def file(self) -> TailFile:
        """Return the stream as Arrow reads it, the only reference to it."""
        # Arrow's thread is the only owner, so that its end is seen by the finalizer.
        file = TailFile(self.read)
        weakref.finalize(file, self._released.set)
        return file

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; none after the context."""
        with self._lock:
            if self._ended:
                return b""
            block = bytes(self._stream.read(size))
            # Bounded memory: the last value of a text is compared by its last 64 kB at most.
            self.last = (self.last + block[-_KEPT_BYTES:])[-_KEPT_BYTES:]
            return block


@dataclass(eq=False)
class TailFile:
    """A file of Python, whose stream is left open to its owner."""

    read: Callable[[int], bytes]
    closed = False

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def close(self) -> None:
        """Leave the stream open."""


def checked_quotes(
    batches: Iterable[pa.RecordBatch], path: Path, dialect: Dialect, tail: Tail
) -> Iterator[pa.RecordBatch]:
    """Yield batches; raise `ValueError` if the last value takes up all that follows its quote."""
    rows, value = 0, None
    for batch in batches:
        rows += batch.num_rows
        if batch.num_rows:
            # Read before the batch is handed out, and only one value of it.
            value = batch.columns[-1][-1].as_py()
        yield batch
    # Arrow ends an open quote at the end of the file without an error: all rows after it are one
    # value, and are lost in silence.
    row = dialect.first_row + rows - 1
    if rows and _is_open(value or "", dialect, tail.last):
        raise ValueError(
            f"{path}: a quote begins in row {row} (the header line is row 1), in the last "
            "column, and does not end: all following lines would be one text; add the missing "
            "quote, or remove this one"
        )


def _is_open(value: str, dialect: Dialect, end: bytes) -> bool:
    """Return whether bytes end with a quote and this value, without a second quote.

    No value with two quotes ends so, but one of line ends in a table of one column.
    """
    only = len(dialect.names) == 1
    if only and not value.strip("\r\n"):
        return False
    # The value as it would be written after an opening quote: two quotes for each one in it.
    quoted = dialect.quote + value.replace(dialect.quote, 2 * dialect.quote)
    # The tail has no byte order mark, so that either order may be the one of the file.
    encoding = dialect.parsed_encoding
    is_wide = encoding in ("utf-16", "utf-32")
    codes = (f"{encoding}-le", f"{encoding}-be") if is_wide else (encoding,)
    for before in ("\n", "\r") if only else (dialect.delimiter,):
        for code in codes:
            text = (before + quoted).encode(code, "replace")
            if end.endswith(text[-_KEPT_BYTES:]):
                return True
    return False


def without_blank_end(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of one column without the nulls after the last value."""
    blank: list[pa.RecordBatch] = []
    for batch in batches:
        # In a table of one column a blank line within is a missing value, one at the end is not:
        # nulls wait until a value follows.
        valid_rows = batch.column(0).is_valid().to_numpy(zero_copy_only=False).nonzero()[0]
        end = int(valid_rows[-1]) + 1 if len(valid_rows) else 0
        if end:
            yield from blank
            blank = []
            yield batch.slice(0, end)
        if end < batch.num_rows:
            blank.append(batch.slice(end))
