"""Text tables: read at once, or a little at a time while they are converted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc

_BLOCK_BYTES = 1 << 22  # of text parsed at a time; types are guessed from the first block


@contextmanager
def readable_csv(path: Path) -> Iterator[None]:
    """Explain what Arrow reports about a text that is no table."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} cannot be read as CSV with a header line, comma-separated, in UTF-8 "
            f"(Arrow says: {str(error).splitlines()[0]})"
        ) from error


def read_csv(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Load a CSV file.

    Parameters
    ----------
    path : Path
    columns : sequence of str, optional
        All of them by default.

    Returns
    -------
    pyarrow.Table
    """
    keep = pc.ConvertOptions(include_columns=columns)
    with readable_csv(path):
        table = pc.read_csv(path, convert_options=keep)
        _check_text(table.schema)
        return table


def csv_schema(path: Path) -> pa.Schema:
    """Give the columns of a CSV file, with types guessed from its first 4 MB."""
    with readable_csv(path), pc.open_csv(path, read_options=_options()) as reader:
        return _check_text(reader.schema)


def _check_text(schema: pa.Schema) -> pa.Schema:
    """Refuse names and texts in another encoding: Arrow takes such a column for bytes."""
    for name, kind in zip(schema.names, schema.types, strict=True):
        if pa.types.is_binary(kind):
            raise pa.ArrowInvalid(f"column '{name}' holds bytes that are no UTF-8")
    return schema


def csv_batches(path: Path, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    """Parse a CSV file a little at a time.

    Parameters
    ----------
    path : Path
    types : mapping of column name to Arrow type

    Yields
    ------
    pyarrow.RecordBatch

    Raises
    ------
    pyarrow.ArrowInvalid
        If a value does not have the type of its column: see `widened`.
    """
    convert = pc.ConvertOptions(column_types=dict(types))
    with pc.open_csv(path, read_options=_options(), convert_options=convert) as reader:
        yield from reader


def widened(path: Path, types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """Give types with which every value of the file can be read.

    A column may look like integers for four megabytes and then hold 0.5. Each is read as text once
    more and converted by itself: to its type, else to float64, else it stays text.

    Parameters
    ----------
    path : Path
    types : mapping of column name to Arrow type
        Those guessed from the first block.

    Returns
    -------
    dict

    Notes
    -----
    Cost: one pass over the text.
    """
    found = dict(types)
    with readable_csv(path):
        for batch in csv_batches(path, dict.fromkeys(types, pa.string())):
            for name, column in zip(types, batch.columns, strict=True):
                while not _holds(found[name], column):
                    found[name] = _wider(found[name])
    return found


def _holds(kind: pa.DataType, column: pa.Array) -> bool:
    """Return whether a CSV reader would take these texts for values of a type."""
    if pa.types.is_string(kind):
        return True
    if len(column) == 0:
        return True
    text = pa.BufferReader(b"\n".join([b"x", *_lines(column)]))
    try:
        pc.read_csv(
            text,
            read_options=pc.ReadOptions(use_threads=False),
            parse_options=pc.ParseOptions(ignore_empty_lines=False),
            convert_options=pc.ConvertOptions(column_types={"x": kind}),
        )
    except pa.ArrowInvalid:
        return False
    return True


def _lines(column: pa.Array) -> list[bytes]:
    """Return the distinct texts, quoted."""
    texts = column.unique().to_pylist()
    return [b'"' + (text or "").replace('"', '""').encode() + b'"' for text in texts]


def _wider(kind: pa.DataType) -> pa.DataType:
    number = pa.types.is_integer(kind) or pa.types.is_null(kind)
    return pa.float64() if number else pa.string()


def _options() -> pc.ReadOptions:
    return pc.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False)
