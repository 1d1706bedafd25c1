"""Rows of a table for the predictions of a model."""

from __future__ import annotations

from .._messages.checks import it_has, join_words
from ..data import RowSource, Table
from .base import Model


def open_for_model(model: Model, table: Table, target: str | None = None) -> RowSource:
    """Return rows of the columns that a model was trained on, missing values filled.

    Columns are matched by name. If the model or the table has no names (``.npy``), all columns but
    the target are features if there are as many as in training; otherwise the columns at the
    positions of the training.
    """
    if model.encoding is not None:
        return model.encoding.rows(table)
    columns = model_columns(model, table, target)
    return model.fill_gaps(table.rows(columns), columns, table.where)


def model_columns(model: Model, table: Table, target: str | None = None) -> tuple[str, ...]:
    """Return the columns of a table that a model uses; see `open_for_model`."""
    if model.encoding is not None:
        return tuple(model.encoding.names)
    column_names = tuple(name for name in table.names if name != target)
    d = model.features
    if model.feature_names is not None and table.named:
        required = model.feature_names
    # Without names on one side, the position decides; the file may also have columns that the
    # training left out, whose numbers the model records.
    elif len(column_names) == d:
        return column_names
    else:
        required = tuple(model.info.get("columns", ()))
    missing = [name for name in required if name not in column_names]
    if missing or len(required) != d:
        needed = join_words(missing) if missing else f"{d} features"
        name_hint = (
            it_has(column_names, missing[0]) if missing else f"it has {join_words(column_names)}"
        )
        raise ValueError(
            f"{table.where} lacks columns that the model was trained on: {needed}; {name_hint}"
        )
    return required
