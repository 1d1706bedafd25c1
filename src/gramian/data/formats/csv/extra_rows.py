"""Checks of the rows of a text: header lines between them, totals, open quotes and blank ends."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from ...rows import arrow_compute as pc
from ...rows.arrow import to_numpy
from ...tables.stored import MemoryTable
from .dialect import Dialect
from .layout import is_number

TOTAL_WORDS = frozenset(
    (
        *("total", "totals", "grand total", "sum", "all", "average", "mean", "avg"),
        *("summe", "gesamt", "gesamtsumme", "insgesamt", "mittelwert", "durchschnitt"),
        *("somme", "total général", "moyenne", "total general", "promedio", "totale", "totaal"),
    )
)
"""First text of a last row that may have the sums or means of the rows above it."""

TOTAL_ACCURACY = 1e-3
"""Relative difference up to which a number is a sum: totals are rounded."""


def checked_rows(
    batches: Iterable[pa.RecordBatch], path: Path, dialect: Dialect
) -> Iterator[pa.RecordBatch]:
    """Yield batches; raise `ValueError` if a row repeats the header line, or has several lines.

    Files that were joined without a look repeat it. A name that is a number may be a value as well.
    Between tabs, a text with a line end and a tab is several rows: databases write quotes as they
    are, and a text that begins with one then ends at the next quote.
    """
    named = [(str(j), name) for j, name in enumerate(dialect.names) if name]
    is_checked = len(named) > 1 and dialect.header_rows and not any(is_number(n) for _, n in named)
    row = dialect.first_row
    for batch in batches:
        if is_checked:
            # One comparison of a column per batch; only rows that repeat its name are read cell by
            # cell.
            column, name = named[0]
            is_name = pc.equal(batch.column(column), name).fill_null(False)
            for place in np.flatnonzero(is_name.to_numpy(zero_copy_only=False)).tolist():
                texts = [batch.column(j)[place].as_py() or "" for j, _ in named]
                if [text.strip() for text in texts] == [name for _, name in named]:
                    raise ValueError(
                        f"{path}: row {row + place:,} (the header line is row 1) repeats the "
                        f"header line: {', '.join(texts)!r:.60}; delete it, or give the files that "
                        "were joined: a folder, or a pattern such as 'days/*.csv'"
                    )
        if dialect.separator == "\t":
            _refuse_joined_rows(batch, path, dialect, row)
        row += batch.num_rows
        yield batch


def _refuse_joined_rows(batch: pa.RecordBatch, path: Path, dialect: Dialect, row: int) -> None:
    for column, name in zip(batch.columns, dialect.names, strict=True):
        has_both = pc.and_(pc.match_substring(column, "\n"), pc.match_substring(column, "\t"))
        if pc.any(has_both).as_py():
            place = has_both.index(True).as_py()
            raise ValueError(
                f"{path}: row {row + place:,} (the header line is row 1) has several lines in "
                f"column {name!r}: {column[place].as_py()!r:.60}; double or remove quotes at the "
                "beginning of texts"
            )


def refuse_total(table: MemoryTable, last_texts: Sequence[str | None], first_row: int) -> None:
    """Raise ValueError if the last row has the sums, or the means, of the rows above it.

    - `last_texts`: texts of the last row of the file.
    - `first_row`: number of the first row of the file.
    """
    word = next((text.strip() for text in last_texts if text and text.strip()), "")
    if word.lower().rstrip(":") not in TOTAL_WORDS or len(table) < 3:
        return
    for field in table.schema:
        if not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
            continue
        numbers = to_numpy(table.column(field.name).combine_chunks(), field.name)
        # Values of both signs may cancel: a rounded sum could then miss the total.
        *above, last = numbers.astype(np.float64).tolist()
        values = [value for value in above if not math.isnan(value)]
        sums = (math.fsum(values), math.fsum(values) / max(len(values), 1))
        if any(total and math.isclose(last, total, rel_tol=TOTAL_ACCURACY) for total in sums):
            raise ValueError(
                f"{table.where}: row {first_row + len(table) - 1:,} (the header line is row 1), "
                f"{word!r:.40}, has the total or mean of column '{field.name}' above it; delete it"
            )


_KEPT_BYTES = 1 << 16

RELEASE_SECONDS = 0.5
"""How long an error waits for Arrow's thread to finish with the file."""


class Tail:
    """A stream of bytes that remembers its last ones."""

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
