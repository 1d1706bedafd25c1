"""All values of a text table as text, in batches, by Arrow's parser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from ...tables.read_options import WHITESPACE_SEPARATOR
from .dialect import LONGEST_LINE_BYTES, Dialect
from .encodings import check_utf8, detect_encoding
from .extra_rows import Tail, checked_quotes, without_blank_end
from .line_filter import LineFilter

BLOCK_BYTES = 1 << 20
"""Text that is parsed at a time, more if the header line is long: Arrow reads 32 blocks ahead."""

END_OF_DOS = "\x1a"
"""Sign that some programs of DOS write at the end of a file."""

# Blocks are larger by this factor where a row is longer than a usual block.
_LONG_ROWS = LONGEST_LINE_BYTES // BLOCK_BYTES


class NotOfThisDialectError(ValueError):
    """Error for a file whose later rows contradict the dialect of its beginning.

    - `dialect`: with which to try again.
    """

    def __init__(self, path: Path, dialect: Dialect) -> None:
        super().__init__("not of this dialect")
        self.path, self.dialect = path, dialect


def strings(path: Path, dialect: Dialect) -> Iterator[pa.RecordBatch]:
    """Parse a CSV file to batches of text.

    They have columns of text named ``"0", "1", ...``; an empty field is null.

    Raise NotOfThisDialectError if bytes are not of the encoding, or a row is longer than a block of
    the parser. Raise ValueError if the file is damaged, a row has more or fewer fields than the
    header, or a quote does not end; the message names the row if it is known.
    """
    d = len(dialect.names)
    names = [str(j) for j in range(d)]
    uneven: list[Any] = []

    def remember(row: Any) -> str:
        if not row.text.strip().strip(END_OF_DOS):  # spaces, or a sign, in a line of their own
            return "skip"
        # The error that follows has only text: the row is kept for a message of our own.
        uneven.append(row)
        return "error"

    read = pc.ReadOptions(
        use_threads=False,
        block_size=_block_bytes(dialect),
        column_names=names,
        # Names are given as numbers, because names of the file may repeat; its header is skipped.
        skip_rows=0 if dialect.is_rewritten else dialect.skipped_lines,
        skip_rows_after_names=dialect.header_rows,
        encoding="utf8" if dialect.parsed_encoding == "utf-8" else dialect.encoding,
    )
    parse = pc.ParseOptions(
        delimiter=dialect.delimiter,
        quote_char=dialect.quote,
        newlines_in_values=True,
        ignore_empty_lines=d > 1,
        invalid_row_handler=remember,
    )
    values = pc.ConvertOptions(
        # All as text: Arrow would infer types from the first block only, and fail at a later one.
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=d > 1,  # in one column they are no blank lines
    )
    with (
        _explain_error(path, dialect, uneven),
        pa.input_stream(path, compression=dialect.compression) as stream,
        Tail(_rewrite_lines(stream, dialect)) as tail,
        pc.open_csv(tail.file(), read, parse, values) as reader,
    ):
        batches = checked_quotes(reader, path, dialect, tail)
        yield from batches if d > 1 else without_blank_end(batches)


def _block_bytes(dialect: Dialect) -> int:
    # A block must hold a whole row, which may be longer than the header by some factor.
    usual = max(BLOCK_BYTES, 4 * dialect.header_bytes)
    return _LONG_ROWS * usual if dialect.long_rows else usual


def _rewrite_lines(stream: pa.NativeFile, dialect: Dialect) -> pa.NativeFile | LineFilter:
    if not dialect.is_rewritten:
        return stream
    spaces = dialect.separator != dialect.delimiter
    return LineFilter(stream.read, dialect.encoding, dialect.skipped_lines, dialect.comment, spaces)


def _recode_bytes(path: Path, dialect: Dialect) -> Dialect:
    """Return the dialect with the next encoding to try; raise ValueError if the file is damaged."""
    # cp1252 leaves five bytes undefined, for which ISO 8859-1, its ancestor, has characters.
    if dialect.encoding == "cp1252":
        return replace(dialect, encoding="iso8859-1")
    if dialect.encoding != "utf-8":
        raise ValueError(
            f"{path} begins as {dialect.encoding.upper()} but has bytes that are not: it is cut "
            "off or damaged; write it again"
        )

    def parts() -> Iterator[bytes]:
        with pa.input_stream(path, compression=dialect.compression) as stream:
            yield from iter(lambda: bytes(stream.read(BLOCK_BYTES)), b"")

    # Damaged UTF-8 is refused here; text that is ASCII up to this byte may be of another encoding.
    check_utf8(parts(), path, whole=True)
    encoding, remark = detect_encoding(parts())
    return replace(dialect, encoding=encoding, remarks=(*dialect.remarks, remark))


@contextmanager
def _explain_error(path: Path, dialect: Dialect, uneven: list[Any]) -> Iterator[None]:
    """Explain what Arrow reports about a text that is no table."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise NotOfThisDialectError(path, _recode_bytes(path, dialect)) from error
    except (pa.ArrowInvalid, OSError) as error:
        if uneven:
            raise _uneven(path, dialect, uneven[0]) from error
        reason_line = str(error).splitlines()[0]
        # Arrow raises one class of error for all of these cases: only its words differ.
        if "UTF8" in reason_line:
            raise NotOfThisDialectError(path, _recode_bytes(path, dialect)) from error
        # A row that is longer than a block: the file is read again with larger ones.
        if "straddl" in reason_line and not dialect.long_rows:
            raise NotOfThisDialectError(path, replace(dialect, long_rows=True)) from error
        if "straddl" in reason_line:
            raise ValueError(
                f"{path} has a row of more than {LONGEST_LINE_BYTES >> 20} MB, or a quote that "
                "does not end; shorten the texts, or add the missing quote"
            ) from error
        raise ValueError(
            f"{path} cannot be read as a text table: it is cut off or damaged, or a quote does not "
            f"end; write it again (Arrow reports: {reason_line})"
        ) from error


def _uneven(path: Path, dialect: Dialect, row: Any) -> ValueError:
    where = "a row" if row.number is None else f"row {row.number} (the header line is row 1)"
    # A row may have megabytes.
    text = row.text if len(row.text) < 40 else row.text[:37] + "..."
    words = {"\t": "a tab", WHITESPACE_SEPARATOR: "spaces"}
    mark = words.get(dialect.separator, f"'{dialect.separator}'")
    return ValueError(
        f"{path}: {where} has {row.actual_columns} fields, but the header has "
        f"{row.expected_columns}, separated by {mark}: {' '.join(text.split())!r}; quote texts "
        "that contain the separator, or complete the row"
    )
