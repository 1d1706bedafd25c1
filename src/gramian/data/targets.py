"""The column to be predicted, read into memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .._checks import listed
from .columns import check_columns, collected
from .tables import Table, as_table

_ROWS = 1 << 16  # read at a time


def read_targets(path: str | Path, columns: str | Sequence[str]) -> np.ndarray:
    """Read what is to be predicted from a table of any format; see `target_column`."""
    return target_column(as_table(path), columns)


def target_column(table: Table, columns: str | Sequence[str]) -> np.ndarray:
    """Read what is to be predicted.

    Parameters
    ----------
    table : Table
    columns : str or sequence of str
        One column of numbers or of text (class labels), or several of numbers.

    Returns
    -------
    ndarray of shape (n,), or (n, t) for t > 1 columns
        In the type of the table; text as NumPy strings, also of categories.

    Raises
    ------
    ValueError, TypeError
        If a value is missing or infinite, or the column holds dates or lists.

    Notes
    -----
    Cost: a pass over the table for each column. Memory: the result and some megabytes.
    """
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names:
        raise ValueError("name at least one target column")
    check_columns(table.where, table.names, names)
    parts = [_values(table, name) for name in names]
    text = [n for n, part in zip(names, parts, strict=True) if part.dtype.kind == "U"]
    if text and len(parts) > 1:
        raise TypeError(
            f"{table.where}: with several targets all must be numbers, not {listed(text)}"
        )
    return parts[0] if len(parts) == 1 else np.stack(parts, axis=1)


def _values(table: Table, name: str) -> np.ndarray:
    batches = table.batches([name], _ROWS)
    values = collected((batch.column(0) for batch in batches), table.where, name, table.num_rows)
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return values
    bad = np.flatnonzero(~np.isfinite(values))
    raise ValueError(
        f"{table.where}: the target '{name}' is missing (NaN) or infinite in {len(bad)} rows, the "
        f"first of them row {bad[0]}; drop these rows"
    )
