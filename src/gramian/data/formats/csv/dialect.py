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
    while len(sample) == size and sample.count(b"\n") < 3:  # thousands of columns
        if size >= LONGEST_LINE_BYTES:
            break
        size *= 4
        sample = first_bytes(path, compression, size)
    if len(sample) == size >= LONGEST_LINE_BYTES and not {*b"\r\n"} & {*sample}:
        raise ValueError(
            f"{path}: its first {size >> 20} MB have no end of a line; expected a line with the "
            "names of the columns: this is no table of text"
        )
    encoding = encoding_of(sample, path)
    text = decode_bytes(sample, encoding)
    separator, header = _divide_fields(text, whole=len(sample) < size)
    if not header and text.strip():
        raise ValueError(
            f"{path}: its first row holds a field of more than {csv.field_size_limit():,} "
            "characters; expected a line with the names of the columns: write one, or end a quote"
        )
    if not any(name.strip() for name in header):
        raise ValueError(f"{path} is empty: a line with the names of the columns was expected")
    names = tuple(name.strip() for name in header)
    _check_names(path, names)
    blank = len(text) - len(text.lstrip("\r\n"))
    before = text[:blank].replace("\r\n", "\n").count("\n")
    length = sum(map(len, header)) + len(header)
    return Dialect(encoding, compression, separator, names, length, before)


def _divide_fields(text: str, *, whole: bool) -> tuple[str, list[str]]:
    """Return the separator that divides most rows as it divides the header, and the header."""
    best: tuple[float, str, list[str]] = (-1.0, ",", [])
    for separator in FIELD_SEPARATORS:
        rows = _rows(text, separator, whole=whole)
        if len(rows) == 0 or (len(rows[0]) == 1 and separator != ","):
            continue
        alike = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
        alike -= 2 * (len(rows[0]) == 1)  # one column: unless nothing else divides the header
        if alike > best[0] or not best[2]:
            best = (alike, separator, rows[0])
    return best[1], best[2]


def _rows(text: str, separator: str, *, whole: bool) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in islice(reader, _SAMPLE_ROWS) if row)
    except csv.Error:  # a field beyond the limit: rows before it are whole
        return rows
    cut = not whole and len(rows) > 1 and len(rows) < _SAMPLE_ROWS
    return rows[:-1] if cut else rows


def _check_names(path: Path, names: Sequence[str]) -> None:
    numbers = all(_NUMBER_PATTERN.fullmatch(name) for name in names if name)
    if numbers and list(names) != [str(j) for j in range(len(names))]:
        raise ValueError(
            f"{path} has no header line: its first row is all numbers ({join_words(names[:3])}); "
            "write the names of the columns above it"
        )
