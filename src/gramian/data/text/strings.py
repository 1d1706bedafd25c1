"""All values of a text table as text, a little at a time, by Arrow's parser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from .dialect import Dialect

BLOCK_BYTES = 1 << 20
"""Text that is parsed at a time, more if the header line is long: Arrow reads 32 blocks ahead."""


class NotOfThisEncodingError(ValueError):
    """Raised where bytes are not of the encoding that the beginning of the file has."""


def strings(path: Path, dialect: Dialect) -> Iterator[pa.RecordBatch]:
    """Parse a file.

    Parameters
    ----------
    path : Path
    dialect : Dialect

    Yields
    ------
    pyarrow.RecordBatch
        Of columns of text called ``"0", "1", ...``, nulls where they are empty.

    Raises
    ------
    NotOfThisEncodingError
    ValueError
        If a row has another number of fields than the header: it is named.
    """
    d = len(dialect.names)
    names = [str(j) for j in range(d)]
    uneven: list[Any] = []

    def remember(row: Any) -> str:
        uneven.append(row)
        return "error"

    read = pc.ReadOptions(
        use_threads=False,
        block_size=max(BLOCK_BYTES, 32 * dialect.header_bytes),
        column_names=names,
        skip_rows=dialect.blank_lines,
        skip_rows_after_names=1,
        encoding="utf8" if dialect.encoding == "utf-8" else dialect.encoding,
    )
    parse = pc.ParseOptions(
        delimiter=dialect.separator,
        newlines_in_values=True,
        ignore_empty_lines=d > 1,
        invalid_row_handler=remember,
    )
    values = pc.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
    )
    with (
        _explained(path, dialect, uneven),
        pa.input_stream(path, compression=dialect.compression) as stream,
        pc.open_csv(stream, read, parse, values) as reader,
    ):
        yield from reader


@contextmanager
def _explained(path: Path, dialect: Dialect, uneven: list[Any]) -> Iterator[None]:
    """Explain what Arrow reports about a text that is no table."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise NotOfThisEncodingError(f"{path} is not in {dialect.encoding}") from error
    except (pa.ArrowInvalid, OSError) as error:
        if uneven:
            raise _uneven(path, dialect, uneven[0]) from error
        said = str(error).splitlines()[0]
        if "UTF8" in said:
            raise NotOfThisEncodingError(f"{path} is not in UTF-8") from error
        raise ValueError(
            f"{path} cannot be read as a table of text: it is cut off or damaged, or a quote does "
            f"not end; write it again (Arrow says: {said})"
        ) from error


def _uneven(path: Path, dialect: Dialect, row: Any) -> ValueError:
    where = "a row" if row.number is None else f"row {row.number} (the header line is row 1)"
    text = row.text if len(row.text) < 40 else row.text[:37] + "..."
    mark = {"\t": "a tab"}.get(dialect.separator, f"'{dialect.separator}'")
    return ValueError(
        f"{path}: {where} has {row.actual_columns} fields, but the header has "
        f"{row.expected_columns}, with {mark} between them: {' '.join(text.split())!r}; quote "
        "texts that hold the separator, or complete the row"
    )
