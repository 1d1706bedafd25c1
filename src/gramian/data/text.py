"""Text tables: read at once, or a little at a time while they are converted."""

from __future__ import annotations

import re
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
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise ValueError(
            f"{path} cannot be read as CSV with a header line, comma-separated, in UTF-8. "
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
        return pc.read_csv(path, convert_options=keep)


def csv_schema(path: Path) -> pa.Schema:
    """Give the columns of a CSV file, with types guessed from its first 4 MB."""
    with readable_csv(path), pc.open_csv(path, read_options=_options()) as reader:
        return reader.schema


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


def widened(
    types: Mapping[str, pa.DataType], error: pa.ArrowInvalid
) -> dict[str, pa.DataType] | None:
    """Give types with which the value that Arrow stumbled over can be read.

    A column may look like integers for four megabytes and then hold 0.5. Reading starts again
    then, with that column as float64, or as text if it was float64 already.

    Parameters
    ----------
    types : mapping of column name to Arrow type
    error : pyarrow.ArrowInvalid

    Returns
    -------
    dict or None
        None if the trouble is not the type of a column.
    """
    found = re.search(r"CSV column #(\d+): CSV conversion error", str(error))
    if found is None or int(found[1]) >= len(types):
        return None
    name = list(types)[int(found[1])]
    if pa.types.is_string(types[name]):
        return None
    number = pa.types.is_integer(types[name]) or pa.types.is_null(types[name])
    return {**types, name: pa.float64() if number else pa.string()}


def _options() -> pc.ReadOptions:
    return pc.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False)
