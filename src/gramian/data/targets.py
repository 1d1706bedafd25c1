"""The column to be predicted, read into memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .columns import check_columns, collected
from .formats import format_of
from .tables import Table


def read_targets(path: str | Path, columns: str | Sequence[str]) -> np.ndarray:
    """Read what is to be predicted.

    Parameters
    ----------
    path : str or Path
        A table of any format.
    columns : str or sequence of str
        One column of numbers or of text (class labels), or several of numbers.

    Returns
    -------
    ndarray of shape (n,), or (n, t) for t > 1 columns
        In the type of the file; text as NumPy strings.

    Raises
    ------
    ValueError
        If a value is missing or infinite: row and column are named.

    Notes
    -----
    Memory: the result and some megabytes; for CSV also the columns as Arrow holds them.
    """
    path = Path(path)
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names:
        raise ValueError("name at least one target column")
    found = format_of(path)
    check_columns(path, found.schema(path).names, names)
    parts = [_checked(found.column(path, name), path, name) for name in names]
    text = [n for n, part in zip(names, parts, strict=True) if part.dtype.kind == "U"]
    if text and len(parts) > 1:
        raise TypeError(f"{path}: with several targets all must be numbers, not {', '.join(text)}")
    return parts[0] if len(parts) == 1 else np.stack(parts, axis=1)


def target_column(table: Table, names: Sequence[str]) -> np.ndarray:
    """Return the values of columns that are to be predicted; see `read_targets`.

    Parameters
    ----------
    table : Table of n rows
    names : sequence of str
        Columns that the table has.

    Returns
    -------
    ndarray of shape (n,), or (n, t) for t > 1 columns
    """
    where = table.where
    parts = [
        _checked(collected(table.column(name).chunks, where, name, len(table)), where, name)
        for name in names
    ]
    text = [n for n, part in zip(names, parts, strict=True) if part.dtype.kind == "U"]
    if text and len(parts) > 1:
        raise TypeError(
            f"{table.where}: with several targets all must be numbers, not {', '.join(text)}"
        )
    return parts[0] if len(parts) == 1 else np.stack(parts, axis=1)


def _checked(values: np.ndarray, path: Path, name: str) -> np.ndarray:
    if values.dtype.kind not in "biufU":
        raise TypeError(f"{path}: the target '{name}' has type {values.dtype}, not numbers or text")
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return values
    bad = np.flatnonzero(~np.isfinite(values))
    raise ValueError(
        f"{path}: the target '{name}' is missing (NaN) or infinite in {len(bad)} rows, the first "
        f"of them row {bad[0]}; drop these rows"
    )
