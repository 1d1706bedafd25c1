"""Columns of a model: their features, their values in some rows, and groups of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.checks import did_you_mean
from .._messages.errors import ParameterError
from .._sparse import dense
from ..data import RowSource, is_table
from ..data.rows.base import check_local
from ..model import Model, load_model
from ..model.mapped_predictions import model_columns


def resolve_model(model: Any) -> Model:
    """Return the model of a file or an estimator, which knows the penalty of its fit."""
    if isinstance(model, str | Path):
        return load_model(model)
    fitted = getattr(model, "model_", model)
    if not isinstance(fitted, Model):
        expected = "a fitted estimator, its model_, or the path of a model"
        raise ParameterError("model", model, expected)
    # Only the command line stores them in the file.
    facts = dict(fitted.info)
    penalty = getattr(model, "penalty_", getattr(model, "best_params_", {}).get("penalty"))
    if isinstance(penalty, Real):
        facts.setdefault("penalty", float(penalty))
    if hasattr(model, "solver_"):
        facts.setdefault("solver", type(model.solver_).__name__.lower())
    return replace(fitted, info=facts) if facts != fitted.info else fitted


def features_of(model: Model, X: Any) -> Float[Array, "n d"]:
    """Return the features of rows in float64, encoded if the model has an encoding."""
    return to_array(model.rows(X))


def to_array(rows: RowSource) -> Float[Array, "n d"]:
    """Return all rows in float64; raise ValueError for rows on other machines."""
    check_local(rows, "an explanation")
    return xp.to_float64(dense(rows.take(np.arange(len(rows)))))


def column_names(model: Model) -> tuple[str, ...]:
    """Return the names of the columns that a model uses: columns of a table, or features."""
    if model.encoding is not None:
        return model.encoding.names
    return model.feature_names or tuple(f"feature {k}" for k in range(model.features))


def column_of_features(model: Model) -> Array:
    """Return the index of the column of each feature, (d,)."""
    if model.encoding is None:
        return np.arange(model.features)
    widths = [len(column.features) for column in model.encoding.used_columns]
    return np.repeat(np.arange(len(widths)), widths)


def merge_columns(
    model: Model, groups: Mapping[str, Sequence[str]] | None
) -> tuple[tuple[str, ...], Array]:
    """Return the names of groups of columns, and the group of each feature.

    Columns without a group are groups of their own.
    """
    names = column_names(model)
    name_of_group = {name: name for name in names}
    for group, members in (groups or {}).items():
        for name in members:
            if name_of_group.get(name) != name:
                raise ParameterError(
                    "groups", name, f"columns of the model, each once{did_you_mean(name, names)}"
                )
            name_of_group[name] = group
    groups_of_names = list(name_of_group.values())
    distinct = tuple(dict.fromkeys(groups_of_names))
    index = np.array([distinct.index(group) for group in groups_of_names])
    return distinct, index[column_of_features(model)]


def values_of_columns(model: Model, X: Any) -> dict[str, list[Any]]:
    """Return the values of each column in the rows of X, as they are before the encoding."""
    if not is_table(X):
        return dict(zip(column_names(model), features_of(model, X).T.tolist(), strict=True))
    table = model.table(X)
    names = model_columns(model, table)
    batch = table.take(names, np.arange(table.num_rows))
    columns = [column.to_pylist() for column in batch.columns]
    return dict(zip(column_names(model), columns, strict=True))
