"""Explained predictions of some rows: contributions of columns, and nearest training rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import RandomStream
from .._messages.display import value_text
from .._sparse import dense
from ..explain.columns import merge_columns
from ..explain.nearest import similarity
from ..explain.shapley import output_names, values_of_features
from ..explain.summands import Output, outputs_of, summands_of
from ..model import Model
from ..model.mapped_predictions import model_columns
from ..scoring.truth import Truth

MOST_COLUMNS_SHOWN = 10
"""Most columns of a row, by the size of their contribution."""

MOST_COLUMNS_EXPLAINED = 200
"""Most columns of a model whose rows are explained: sampling more takes too long."""

BACKGROUND_ROWS, PERMUTATION_PAIRS = 50, 4
"""Rows of the background, and pairs of permutations for each, if values are sampled."""

NEAREST_ROWS = 3
"""Nearest training rows of each row."""


@dataclass(frozen=True, eq=False)
class ExplainedRow:
    """The explanation of a prediction.

    - `row`: number of the row in the table, from 0.
    - `truth`, `output`, `base`: true value, explained output, and mean output of the background.
    - `output_name`: the target, or the class whose decision value is explained.
    - `contributions`: Shapley values by column and value; the last one is the sum of all others.
    - `nearest`: number, similarity and target of the nearest training rows.
    """

    title: str
    row: int
    truth: Any
    output: float
    base: float
    output_name: str
    contributions: Mapping[str, float]
    nearest: list[Mapping[str, Any]]


def explain_rows(
    model: Model, truth: Truth, train: Truth | None, rows: Mapping[str, int]
) -> list[ExplainedRow]:
    """Return the explanations of rows, by title; none for models of too many columns.

    - `truth`: the table of the rows, and without `train` of the background.
    - `train`: the training table.
    - `rows`: numbers of the rows.
    """
    names, group_of = merge_columns(model, None)
    if len(names) > MOST_COLUMNS_EXPLAINED:
        return []
    rng = RandomStream(0)
    source = truth if train is None else train
    drawn = np.sort(rng.permutation(len(source.y))[:BACKGROUND_ROWS])
    index = np.array(list(rows.values()))
    x, background = (
        dense(t.rows.take(k)).astype(np.float64) for t, k in ((truth, index), (source, drawn))
    )
    # Probabilities of classes saturate, so that their decision values are explained.
    output: Output = "prediction" if model.classes is None else "raw"
    summands = summands_of(model, x, background, output)
    values, _ = values_of_features(summands, group_of, pairs=PERMUTATION_PAIRS, rng=rng)
    outputs = outputs_of(model, output, x)
    columns = model_columns(model, truth.table, truth.name)
    shown = [c.to_pylist() for c in truth.table.take(columns, index).columns]
    nearest = _nearest(model, x, train)
    names_of_outputs = output_names(model, output)
    out = []
    for k, (title, row) in enumerate(rows.items()):
        target = int(np.argmax(outputs[k]))
        labels = [
            f"{_cut(name, 20)} = {_cut(value_text(own[k]), 12)}"
            for name, own in zip(columns, shown, strict=True)
        ]
        contributions, value = values[k, :, target], float(outputs[k, target])
        base = value - float(contributions.sum())
        explained = ExplainedRow(
            title, row, truth.y[row], value, base, names_of_outputs[target],
            _largest(labels, contributions), nearest[k],
        )  # fmt: skip
        out.append(explained)
    return out


def _largest(labels: list[str], values: np.ndarray) -> dict[str, float]:
    """Return the largest contributions, and the sum of all others."""
    order = np.argsort(-abs(values), kind="stable")
    shown = order[: MOST_COLUMNS_SHOWN - 1] if len(order) > MOST_COLUMNS_SHOWN else order
    out = {labels[k]: float(values[k]) for k in shown}
    if len(shown) < len(order):
        out[f"{len(order) - len(shown)} others"] = float(values.sum() - values[shown].sum())
    return out


def _nearest(model: Model, x: np.ndarray, train: Truth | None) -> list[list[Mapping[str, Any]]]:
    """Return the nearest training rows of each row; none without a training table."""
    if train is None:
        return [[] for _ in x]
    similar = similarity(model, x, dense(train.rows.take(np.arange(len(train.y)))))
    index = np.argsort(-similar, axis=1, kind="stable")[:, :NEAREST_ROWS]
    return [
        [{"row": int(k), "similarity": float(own[k]), "target": train.y[k]} for k in nearest]
        for own, nearest in zip(similar, index, strict=True)
    ]


def _cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters, so that a long name leaves its value visible."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
