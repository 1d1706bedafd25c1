"""Reports of values that the type of their column cannot hold."""

from __future__ import annotations

import warnings
from collections.abc import Collection

from ..._messages.errors import TextError, TextWarning
from ..encoding.kinds import COLUMN_KINDS, kind_of
from ..tables.base import Table

SHOWN_COLUMNS = 5
"""Columns with odd values that are named one by one."""


def report_odd_values(table: Table, columns: Collection[str], *, strict: bool = False) -> None:
    """Warn of columns with values that are read as missing.

    - `columns`: columns to report; names that the table does not have are ignored.
    - `strict`: whether to refuse them instead.

    Raise ValueError with `strict` if there is such a value; it names column, row and value.
    """
    texts = [_describe(table, name) for name in columns if _count(table, name)]
    if not texts:
        return
    shown = "; ".join(texts[:SHOWN_COLUMNS])
    if len(texts) > SHOWN_COLUMNS:
        shown += f"; and {len(texts) - SHOWN_COLUMNS:,} more columns"
    if strict:
        raise ValueError(
            f"{table.where}: {shown} ({table.row_numbers}); correct them, or leave them empty"
        )
    warning = OddValueWarning(
        "{}: {} ({}); they are read as missing: correct them if that is "
        "wrong, or refuse them with {strict=True}",
        table.where,
        shown,
        table.row_numbers,
    )
    warnings.warn(warning, stacklevel=2)


class OddValueWarning(TextWarning):
    """Warning of values of a file of text that the type of their column cannot hold."""


def refuse_odd_targets(table: Table, targets: Collection[str]) -> None:
    """Refuse a target with values that its type cannot hold; ValueError names row and value."""
    for name in targets:
        if _count(table, name):
            raise TextError(
                "{}: the target, {} ({}); correct them, or drop these rows",
                table.where,
                _describe(table, name),
                table.row_numbers,
            )


def _count(table: Table, name: str) -> int:
    reading = table.column_readings.get(name)
    return 0 if reading is None else reading.odd.count


def _describe(table: Table, name: str) -> str:
    odd = table.column_readings[name].odd
    kind = kind_of(table.schema.field(name).type)
    what = "values" if kind is None else COLUMN_KINDS[kind].words
    noun = "value" if odd.count == 1 else "values"
    return (
        f"column '{name}' holds {what} but for {odd.count:,} {noun} of {table.num_rows:,}: "
        f"{odd.describe()}"
    )
