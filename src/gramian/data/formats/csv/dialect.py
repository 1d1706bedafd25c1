"""`sniff`: the dialect of a text table, from its beginning."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ...._messages.checks import join_words
from .encodings import compression_of, decode_bytes, encoding_of, first_bytes

FIELD_SEPARATORS = ("\t", ";", "|", ",")
"""Of several that divide all rows alike, the first: commas are found in numbers and sentences."""

LONGEST_LINE_BYTES = 1 << 24
"""Length of the header line, or of a row, beyond which a file is refused: it needs ten times that
to be read, and a compressed file of some kilobytes can hold it."""

_SAMPLE_BYTES = 1 << 18
_SAMPLE_ROWS = 100
_NUMBER_PATTERN = re.compile(r"[+-]?(\d[\d.,]*|[.,]\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Dialect:
    """Marks and encoding of a text table.

    Attributes
    ----------
    encoding : str
    compression : str or None
        In Arrow's words.
    separator : str
    names : tuple of str
        Fields of the header line, without space around them; some may be empty.
    header_bytes : int
        Length of the header line.
    blank_lines : int
        Before it.
    long_rows : bool
        Whether rows are longer than the usual block of the parser.
    """

    encoding: str
    compression: str | None
    separator: str
    names: tuple[str, ...]
    header_bytes: int
    blank_lines: int = 0
    long_rows: bool = False


def sniff(path: Path) -> Dialect:
    """Find out how a text table is written.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Dialect

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, it is empty or no text, or has no header line.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    compression = compression_of(path)
    size, sample = _SAMPLE_BYTES, first_bytes(path, compression, _SAMPLE_BYTES)
    # A table of thousands of columns has few lines in the first sample: it needs a longer one to
    # tell the separator.
    while len(sample) == size and sample.count(b"\n") < 3:
        if size >= LONGEST_LINE_BYTES:
            break
        size *= 4
        sample = first_bytes(path, compression, size)
    # Refused by its bytes, before a parser holds such a line several times.
    if len(sample) == size >= LONGEST_LINE_BYTES and not {*b"\r\n"} & {*sample}:
        raise ValueError(
            f"{path} has no end of line in its first {size >> 20} MB, but a text table begins with "
            "a line of column names; check that it is a text table"
        )
    encoding = encoding_of(sample, path)
    text = decode_bytes(sample, encoding)
    separator, header = _divide_fields(text, whole=len(sample) < size)
    if not header and text.strip():
        raise ValueError(
            f"{path} has a field of more than {csv.field_size_limit():,} characters in its first "
            "row; expected a line of column names: add one, or close an open quote"
        )
    if not any(name.strip() for name in header):
        raise ValueError(f"{path} is empty; expected a line of column names")
    names = tuple(name.strip() for name in header)
    _check_names(path, names)
    blank = len(text) - len(text.lstrip("\r\n"))
    # Arrow skips rows by number, and counts blank lines before the header as rows.
    before = text[:blank].replace("\r\n", "\n").count("\n")
    # In characters, which is near enough: it only chooses the size of blocks.
    length = sum(map(len, header)) + len(header)
    return Dialect(encoding, compression, separator, names, length, before)


def _divide_fields(text: str, *, whole: bool) -> tuple[str, list[str]]:
    """Return the separator that divides most rows as it divides the header, and the header."""
    best: tuple[float, str, list[str]] = (-1.0, ",", [])
    for separator in FIELD_SEPARATORS:
        rows = _rows(text, separator, whole=whole)
        # A separator that does not occur in the header does not count; the comma stands for tables
        # of one column.
        if len(rows) == 0 or (len(rows[0]) == 1 and separator != ","):
            continue
        alike = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
        # Any text has rows of one column: that counts only if nothing else divides the header.
        alike -= 2 * (len(rows[0]) == 1)
        if alike > best[0] or not best[2]:
            best = (alike, separator, rows[0])
    return best[1], best[2]


def _rows(text: str, separator: str, *, whole: bool) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in islice(reader, _SAMPLE_ROWS) if row)
    except csv.Error:
        # A field beyond the limit of the parser: the rows before it are whole.
        return rows
    # The sample ends in the midst of a row, which has too few fields.
    cut = not whole and len(rows) > 1 and len(rows) < _SAMPLE_ROWS
    return rows[:-1] if cut else rows


def _check_names(path: Path, names: Sequence[str]) -> None:
    numbers = all(_NUMBER_PATTERN.fullmatch(name) for name in names if name)
    # Names 0, 1, 2, ... are written by `convert` for the columns of an array.
    if numbers and list(names) != [str(j) for j in range(len(names))]:
        raise ValueError(
            f"{path} has no header line: its first row is all numbers ({join_words(names[:3])}); "
            "write a line of column names above it"
        )
