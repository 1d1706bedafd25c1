"""Tables for the command line: which columns there are, rows in, predictions out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from .._atomic import write_atomically
from .._checks import it_has, listed
from .base import RowSource
from .npy import native, open_columns
from .parquet import opened, parquet_paths
from .rows import as_rows
from .text import csv_schema, read_csv

SUFFIXES = (".parquet", ".csv", ".npy")


def kind_of(path: str | Path) -> str:
    """Give the format of a table: ``".parquet"`` (also for directories), ``".csv"``, ``".npy"``."""
    path = Path(path)
    suffix = ".parquet" if path.is_dir() or path.suffix == ".pq" else path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"Cannot tell what {path} is: expected a name ending in {_ENDINGS}.")
    return suffix


_ENDINGS = ", ".join(SUFFIXES)


def table_schema(path: str | Path) -> pa.Schema:
    """Give names and Arrow types of a table's columns; those of ``.npy`` are ``"0", "1", ...``.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    pyarrow.Schema
    """
    path = Path(path)
    kind = kind_of(path)
    if kind == ".csv":
        return csv_schema(path)
    if kind == ".npy":
        array = open_columns(path)
        one = pa.string() if array.dtype.kind == "U" else pa.from_numpy_dtype(native(array.dtype))
        return pa.schema([(str(j), one) for j in range(array.shape[1])])
    first = parquet_paths(path)[0]
    with opened(first) as file:
        schema = file.schema_arrow
    if len(schema) == 0:
        raise ValueError(f"{first} has 0 columns, but at least one is needed.")
    return schema


def feature_columns(
    path: str | Path, target: Sequence[str], features: str | Sequence[str] | None = None
) -> tuple[str, ...]:
    """Choose the columns to learn from.

    Parameters
    ----------
    path : str or Path
    target : sequence of str
        Columns to be predicted: they must be there, and are never features.
    features : str or sequence of str, optional
        Names, or one text with commas. All other columns by default.

    Returns
    -------
    tuple of str
    """
    names = [n for n in table_schema(path).names if not n.startswith("__index_level_")]
    check_columns(path, names, target)
    if features is None:
        return tuple(name for name in names if name not in target)
    if isinstance(features, str):
        features = [name.strip() for name in features.split(",") if name.strip()]
    check_columns(path, names, features)
    both = [name for name in features if name in target]
    if both:
        raise ValueError(f"Column {', '.join(both)} cannot be a feature and the target at once.")
    return tuple(features)


def check_columns(path: str | Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse names that the table does not have, or has twice, and say which it has."""
    missing = [name for name in wanted if name not in names]
    if missing:
        raise ValueError(f"{path} has no column {listed(missing)}; {it_has(names, missing[0])}.")
    twice = sorted({name for name in wanted if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path} has several columns named {listed(twice)}: rename them.")


def open_rows(path: str | Path, columns: Sequence[str] | None = None) -> RowSource:
    """Open a table of any format as rows; CSV is loaded, everything else streamed or mapped.

    Parameters
    ----------
    path : str or Path
    columns : sequence of str, optional

    Returns
    -------
    RowSource of shape (n, d)
    """
    if kind_of(path) != ".csv":
        return as_rows(path, columns=columns)
    if columns is not None:
        check_columns(path, csv_schema(Path(path)).names, columns)
    return as_rows(read_csv(Path(path), columns), columns=columns)


def write_table(path: str | Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write columns as ``.csv``, ``.parquet`` or ``.npy``: all of the file, or none of it.

    Parameters
    ----------
    path : str or Path
        An older file is replaced once the new one is complete.
    columns : mapping of name to ndarray of shape (n,)
        ``.npy`` keeps no names: it gets the column itself, or the columns side by side.
    """
    kind = kind_of(path)

    def write(part: Path) -> None:
        if kind == ".npy":
            arrays: list[Any] = list(columns.values())
            with part.open("wb") as file:
                np.save(file, arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=1))
            return
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        if kind == ".csv":
            pyarrow.csv.write_csv(table, part)
        else:
            pq.write_table(table, part, write_page_checksum=True)

    write_atomically(path, write)
