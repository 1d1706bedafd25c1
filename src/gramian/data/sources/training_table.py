"""TrainingTable: a table, the columns to learn from, and the values to be predicted."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..._messages.checks import join_words
from ..._messages.errors import TextError
from ..formats.csv.columns.parsers import SPELLED_BOOLEANS
from ..rows.arrow import check_columns
from ..rows.base import refuse_remote
from ..rows.columns import as_columns
from ..tables import Table
from ..tables.list_columns import FilteredTable
from ..tables.read_options import DEFAULT_OPTIONS, ReadOptions
from ..tables.target import has_values, target_column
from .as_table import as_table
from .odd_values import refuse_odd_targets, report_odd_values

_LOOKED_AT = 1 << 12
"""Rows at a time in the search for copies of the target: mostly the first few tell."""


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A table whose features and targets are chosen columns.

    Attributes
    ----------
    table : Table of n rows
    columns : tuple of str
        Columns that become features.
    target : tuple of str, or None
        Names of the columns that are predicted; None if their values are separate from the table.
    y : ndarray of shape (n,) or (n, t), or Columns
        Values of the target: numbers, text or booleans; remote if the table is.
    named_columns : tuple of str
        Columns that were named, and become features even if they hold identifiers or free text.
    has_target : ndarray of bool, or None
        Which rows of the source were kept, if rows without a target were left out.
    """

    table: Table
    columns: tuple[str, ...]
    target: tuple[str, ...] | None
    y: Any
    named_columns: tuple[str, ...] = ()
    has_target: np.ndarray | None = None

    @classmethod
    def open(
        cls,
        X: Any,
        y: str | Sequence[str] | np.ndarray,
        columns: Sequence[str] | None = None,
        leave_out: Sequence[str] = (),
        options: ReadOptions = DEFAULT_OPTIONS,
        drop_missing_target: bool = False,
    ) -> TrainingTable:
        """Open a table and read its target.

        Parameters
        ----------
        X : whatever `as_table` takes
        y : str, sequence of str, or ndarray of shape (n,) or (n, t)
            Names of columns of the table, or values.
        columns : sequence of str, optional
            Columns to learn from; all but the target and `leave_out` by default.
        leave_out : sequence of str
            Columns not to learn from.
        options : ReadOptions
            Options of reading a file of text.
        drop_missing_target : bool, default=False
            Whether to leave out rows without a target, with a warning, instead of refusing them.

        Raises
        ------
        ValueError
            If there is no such column, the target has gaps or values of another type, or a column
            equals the target in every row.
        """
        target = _names(y)
        labels = (*(target or ()), *leave_out)
        table = as_table(X, options=replace(options, strict=False, labels=labels))
        chosen = _features(table, target or (), columns, leave_out)
        if drop_missing_target:
            refuse_remote(
                table, "--drop-missing-target cannot be combined with --dask: leave one out"
            )
        refuse_odd_targets(table, target or ())
        report_odd_values(table, chosen, strict=options.strict)
        has_target = None
        if drop_missing_target:
            table, has_target = drop_missing_target_rows(table, target)
        values = y if target is None else target_column(table, target)
        values = as_columns(values).check_with(np.asarray)
        if not as_columns(values).fits():
            # The pass over the features finds gaps and copies.
            return cls(table, chosen, target, values)
        if target is not None and values.dtype.kind == "U":
            values = _unite_spellings(table, target[0], values)
        if len(values) != len(table):
            raise ValueError(f"{table.where} has {len(table)} rows, but y has {len(values)}")
        check_no_copy(table, chosen, values)
        return cls(table, chosen, target, values, () if columns is None else chosen, has_target)


def drop_missing_target_rows(
    table: Table, target: Sequence[str] | None
) -> tuple[Table, np.ndarray | None]:
    """Leave out rows without a target, and warn of their number.

    The results are the table, and a mask of the rows that have all targets; None if all have.
    Raise ValueError if no row has a target, or its name is not known.
    """
    if target is None:
        raise TextError("{drop_missing_target=True} needs the name of the target, not its values")
    has_target = has_values(table, target)
    if has_target.all():
        return table, None
    if not has_target.any():
        raise ValueError(f"{table.where}: the target {join_words(target)} is missing in all rows")
    count = int((~has_target).sum())
    warnings.warn(
        f"{table.where}: {count:,} of {len(table):,} rows without a target are left out",
        stacklevel=2,
    )
    return FilteredTable(table, has_target), has_target


def _unite_spellings(table: Table, name: str, labels: np.ndarray) -> np.ndarray:
    """Return labels of two words in the most frequent spelling of each, and warn of others."""
    reading = table.column_readings.get(name)
    texts, index, counts = np.unique(labels, return_inverse=True, return_counts=True)
    words = np.char.lower(texts)
    are_distinct = len(np.unique(words)) == len(texts)
    if reading is None or reading.name not in SPELLED_BOOLEANS or are_distinct:
        return labels
    frequent_first = sorted(range(len(texts)), key=lambda j: (-counts[j], texts[j]))
    spelling = {words[j]: texts[j] for j in reversed(frequent_first)}
    warnings.warn(
        f"{table.where}: the target '{name}' has several spellings of a label: "
        f"{join_words(texts.tolist())}; each is read as the most frequent one: "
        f"{join_words(list(spelling.values()))}",
        stacklevel=2,
    )
    return np.asarray([spelling[word] for word in words])[index.reshape(-1)]


def _names(y: Any) -> tuple[str, ...] | None:
    if isinstance(y, str):
        return (y,)
    named = isinstance(y, list | tuple) and len(y) > 0 and all(isinstance(name, str) for name in y)
    return tuple(y) if named else None


def _features(
    table: Table,
    target: Sequence[str],
    columns: Sequence[str] | None,
    leave_out: Sequence[str],
) -> tuple[str, ...]:
    leave_out = table.spread(leave_out)
    check_columns(table.where, table.names, [*target, *leave_out])
    if columns is None:
        chosen = tuple(n for n in table.names if n not in target and n not in leave_out)
    else:
        chosen = table.spread(columns)
        check_columns(table.where, table.names, chosen)
    both = [name for name in chosen if name in target]
    if both:
        raise ValueError(f"column {join_words(both)} cannot be a feature and the target at once")
    if not chosen:
        raise ValueError(
            f"{table.where} has no columns to learn from other than the target {join_words(target)}"
        )
    return chosen


def check_no_copy(table: Table, columns: Sequence[str], y: np.ndarray) -> None:
    """Raise ValueError for a column that equals a target; reading stops once all differ.

    - `y`: targets; a constant target is not compared.

    Raise ValueError if a column equals a target; the message names the column.
    """
    # A constant target equals every constant column, which copies nothing.
    targets = [t for t in y.reshape(len(y), -1).T if (t != t[:1]).any()]
    pairs = [(name, t) for name in columns for t in targets]
    start = 0
    for batch in table.batches(list(columns), _LOOKED_AT):
        stop = start + batch.num_rows
        # Pairs drop out as they differ; most are gone after the first batch.
        pairs = [(n, t) for n, t in pairs if _equal(batch.column(n), t[start:stop])]
        if not pairs:
            return
        start = stop
    if pairs:
        raise TextError(
            "{}: column '{}' equals the target in every row, so that a model would learn to "
            "copy it; leave it out with {columns=[...]}",
            table.where,
            pairs[0][0],
        )


def _equal(column: pa.Array, y: np.ndarray) -> bool:
    """Return whether values are equal, as texts or as numbers in the narrower of both types."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    # Targets have no gaps, so that a column with gaps is no copy.
    if column.null_count or text != (y.dtype.kind in "UO"):
        return False
    if text:
        return bool(column.cast(pa.large_string()).to_pylist() == y.tolist())
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        return False
    column = column.cast(pa.uint8()) if pa.types.is_boolean(kind) else column.cast(kind)
    values = column.to_numpy(zero_copy_only=False)
    # A copy that was stored in float32 is equal only after the target is rounded, too.
    narrow = np.float32 if np.float32 in (values.dtype, y.dtype) else np.float64
    return bool((values.astype(narrow) == y.astype(narrow)).all())


def read_targets(path: str | Path, columns: str | Sequence[str]) -> np.ndarray:
    """Read targets from a table of any format; see `target_column`."""
    names = [columns] if isinstance(columns, str) else columns
    table = as_table(path, options=ReadOptions(labels=names))
    refuse_odd_targets(table, names)
    return target_column(table, columns)
