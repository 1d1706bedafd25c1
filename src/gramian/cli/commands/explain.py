"""`gramian explain`: contributions of the columns to the predictions of a table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..._messages.display import value_text
from ...data import Table, write_table
from ...explain import Explanation, nearest_rows, shapley_values
from ...explain.summands import Output
from ...model import Model, load_model
from ..outputs.files import check_outputs
from ..outputs.report import Report

MOST_COLUMNS_SHOWN = 10
"""Most columns in the report, by the size of their contribution."""


def explain(
    model: Path,
    data: Path,
    train: Path | None,
    out: Path | None,
    output: str,
    random_state: int,
    read: Mapping[str, Any] | None = None,
) -> Report:
    """Return the largest contributions, and write all of them to a table.

    The table has a column ``base_value`` and a column ``contribution_NAME`` for each column of the
    model, and of several outputs one for each, ``contribution_NAME_OUTPUT``.
    """
    start = time.process_time()
    if out is not None:
        check_outputs({"out": out}, [model, data, *([] if train is None else [train])])
    loaded = load_model(model)
    table = loaded.table(data, read)
    training = None if train is None else loaded.table(train, read)
    explanation = shapley_values(
        loaded, table, background=training, output=cast("Output", output), random_state=random_state
    )
    if out is not None:
        write_table(out, _columns_of(explanation))
    single = len(explanation.values) == 1
    return {
        "explanations": out,
        "rows": len(explanation.values),
        "exact": explanation.is_exact,
        **(_one_row(explanation) if single else {"mean_sizes": _mean_sizes(explanation)}),
        "nearest": _nearest(loaded, table, training) if single and training is not None else None,
        "cpu_seconds": time.process_time() - start,
    }


def _columns_of(explanation: Explanation) -> dict[str, np.ndarray]:
    """Return the columns of the table to write."""
    columns = {"base_value": explanation.base_values.T}
    for name, values in zip(
        explanation.feature_names, explanation.values.swapaxes(0, 1), strict=True
    ):
        columns[f"contribution_{name}"] = values.T
    if explanation.values.ndim == 2:
        return columns
    return {
        f"{name}_{label}": own
        for name, values in columns.items()
        for label, own in zip(explanation.output_names, values, strict=True)
    }


def _one_row(explanation: Explanation) -> dict[str, Any]:
    """Return the base value and the contributions of a row, the largest first."""
    values = explanation.values.reshape(1, len(explanation.feature_names), -1)[0]
    order = np.argsort(-abs(values).max(axis=1), kind="stable")[:MOST_COLUMNS_SHOWN]
    base = dict(
        zip(explanation.output_names, explanation.base_values.ravel().tolist(), strict=True)
    )
    rows = [
        {
            "column": explanation.feature_names[k],
            "value": value_text(explanation.data[0, k]),
            **dict(zip(explanation.output_names, values[k].tolist(), strict=True)),
        }
        for k in order
    ]
    return {"base_value": base, "contributions": rows}


def _mean_sizes(explanation: Explanation) -> dict[str, float]:
    """Return the mean size of the contributions of each column, the largest first."""
    sizes = abs(explanation.values).mean(axis=0).reshape(len(explanation.feature_names), -1)
    means = sizes.mean(axis=1)
    order = np.argsort(-means, kind="stable")[:MOST_COLUMNS_SHOWN]
    return {explanation.feature_names[k]: float(means[k]) for k in order}


def _nearest(model: Model, table: Table, train: Table) -> list[dict[str, Any]]:
    """Return the most similar training rows of a row, with their targets."""
    nearest = nearest_rows(model, table, train)
    names = [name for name in model.target or () if name in train.names]
    batch = train.take(names, nearest.index[0]) if names else None
    targets = [] if batch is None else batch.to_pylist()
    return [
        {"row": int(k), "similarity": float(s), **(targets[i] if targets else {})}
        for i, (k, s) in enumerate(zip(nearest.index[0], nearest.similarity[0], strict=True))
    ]
