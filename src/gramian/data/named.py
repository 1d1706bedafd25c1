"""Tables for the command line: which columns there are, rows in, predictions out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from .._atomic import write_atomically
from .base import RowSource
from .columns import check_columns
from .formats import format_of, format_to_write


def table_schema(path: str | Path) -> pa.Schema:
    """Give names and Arrow types of a table's columns; those of ``.npy`` are ``"0", "1", ...``.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    pyarrow.Schema
    """
    return format_of(path).schema(Path(path))


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
        raise ValueError(f"column {', '.join(both)} cannot be a feature and the target at once")
    return tuple(features)


def open_rows(path: str | Path, columns: Sequence[str] | None = None) -> RowSource:
    """Open a table of any format as rows; text is loaded, Parquet streamed, ``.npy`` mapped.

    Parameters
    ----------
    path : str or Path
    columns : sequence of str, optional

    Returns
    -------
    RowSource of shape (n, d)
    """
    return format_of(path).rows(Path(path), columns)


def write_table(path: str | Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write columns in the format that the name says: all of the file, or none of it.

    Parameters
    ----------
    path : str or Path
        An older file is replaced once the new one is complete.
    columns : mapping of name to ndarray of shape (n,)
        ``.npy`` keeps no names: it gets the column itself, or the columns side by side.
    """
    found = format_to_write(path)
    write_atomically(path, lambda part: found.write(part, columns))
