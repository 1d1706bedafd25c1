"""Inputs of a model in ONNX: columns of a table and their encoding, and maps of the features."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import Encoding, QuantileMap, as_table
from ..data.encoding.columns.base import ColumnEncoding
from ..data.encoding.columns.left_out import Gaps
from ..data.encoding.columns.numeric import Boolean, Number
from ..data.encoding.columns.one_hot import OneHot
from ..data.encoding.columns.target_means import TargetMeans
from ..data.maps.quantiles import FARTHEST_SCORE
from ..model import KernelPart, Model
from .graph import Graph

UNKNOWN_LEVEL = "\x00"
"""A text that no column has."""

NEAR_END = 0.02425
"""Share from which the inverse of the normal distribution has another approximation."""

CENTRAL_NUMERATOR = (
    -3.969683028665376e1, 2.209460984245205e2, -2.759285104469687e2, 1.383577518672690e2,
    -3.066479806614716e1, 2.506628277459239,
)  # fmt: skip
CENTRAL_DENOMINATOR = (
    -5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1,
    -1.328068155288572e1, 1.0,
)  # fmt: skip
TAIL_NUMERATOR = (
    -7.784894002430293e-3, -3.223964580411365e-1, -2.400758277161838, -2.549732539343734,
    4.374664141464968, 2.938163982698783,
)  # fmt: skip
TAIL_DENOMINATOR = (
    7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1.0,
)  # fmt: skip
"""Coefficients of Acklam's approximation of the inverse normal distribution: error 1.2e-9."""


def add_features(graph: Graph, model: Model) -> str:
    """Add the inputs of a model, and return its features, (n, d)."""
    if model.encoding is None:
        x = graph.input("X", np.float64, model.features)
        medians = model.parts[0].medians
        if medians is None:
            return x
        return graph.add("Where", graph.add("IsNaN", x), medians, x)
    return graph.concat([_add_column(graph, column) for column in model.encoding.used_columns])


def add_prepared(graph: Graph, part: KernelPart, x: str) -> str:
    """Return the features as the kernel takes them: standardised and mapped."""
    if part.standardizer is not None:
        scaled = graph.add("Sub", x, part.standardizer.mean)
        x = graph.add("Div", scaled, part.standardizer.scale)
    if part.quantiles is not None:
        x = _add_quantile_map(graph, part.quantiles, x)
    if part.metric is None:
        return x
    is_matrix = part.metric.matrix is not None
    return graph.add("MatMul" if is_matrix else "Mul", x, part.metric.array)


def _add_column(graph: Graph, column: ColumnEncoding) -> str:
    """Return the features of a column, which is an input."""
    if isinstance(column, OneHot | TargetMeans):
        x = graph.input(column.name, np.str_, 1)
        texts = list(column.levels.texts)
        # A missing value is the empty text.
        keys = texts if "" in texts else [*texts, ""]
        index = graph.level_index(x, keys)
        features = graph.gather(graph.constant(_level_features(column, keys)), index, axis=0)
        return graph.node("Squeeze", [features, graph.constant([1], np.int64)], {})
    if isinstance(column, Boolean | Number):
        x = graph.input(column.name, np.float64, 1)
        is_gap = graph.add("IsNaN", x)
        filled = graph.add("Where", is_gap, column.gaps.fill, x)
        number = _add_number(graph, column, filled) if isinstance(column, Number) else filled
        return _with_mark(graph, number, is_gap, column.gaps)
    raise ValueError(
        f"column '{column.name}' cannot be exported: {column.describe()}; leave it out of the fit, "
        "or convert it to a number first"
    )


def _add_number(graph: Graph, column: Number, x: str) -> str:
    if column.quantiles is not None:
        x = _add_scores(graph, x, column.quantiles[None])
    if column.numbers == "raw":
        return x
    return graph.add("Div", graph.add("Sub", x, column.mean), column.scale)


def _with_mark(graph: Graph, x: str, is_gap: str, gaps: Gaps) -> str:
    return graph.concat([x, graph.cast(is_gap, np.float64)]) if gaps.count else x


def _level_features(column: ColumnEncoding, keys: list[str]) -> np.ndarray:
    """Return the features of each level, and last of an unknown one, (L + 1, k)."""
    values = [*(key or None for key in keys), UNKNOWN_LEVEL]
    table = as_table({column.name: values})
    rows = Encoding((column,), np.dtype(np.float64)).rows(table)
    return rows.take(np.arange(len(values)))


def _add_quantile_map(graph: Graph, quantile_map: QuantileMap, x: str) -> str:
    d, columns = quantile_map.features, quantile_map.columns
    unchanged = np.setdiff1d(np.arange(d), [*columns, *quantile_map.constant])
    scores = _add_scores(graph, graph.gather(x, columns), quantile_map.quantiles)
    scaled = graph.add("Div", graph.add("Sub", scores, quantile_map.mean), quantile_map.scale)
    zeros = graph.add("Mul", graph.gather(x, quantile_map.constant), 0.0)
    joined = graph.concat([scaled, zeros, graph.gather(x, unchanged)])
    # The last part of a feature in two lists is the constant one.
    places = np.empty(d, np.int64)
    places[columns] = np.arange(len(columns))
    places[quantile_map.constant] = len(columns) + np.arange(len(quantile_map.constant))
    places[unchanged] = len(columns) + len(quantile_map.constant) + np.arange(len(unchanged))
    return graph.gather(joined, places)


def _add_scores(graph: Graph, x: str, quantiles: Any) -> str:
    """Return the normal scores of numbers, (n, p), by quantiles, (p, q)."""
    gaps = np.diff(quantiles, axis=1)
    step = 1 / max(gaps.shape[1], 1)
    is_jump = gaps == 0
    # 1. The share of rows below a number: each gap between two quantiles adds up to one step. At
    # equal quantiles the share jumps, and at the jump it is the middle.
    offset = graph.add(
        "Sub", graph.node("Unsqueeze", [x, graph.constant([2], np.int64)], {}), quantiles[:, :-1]
    )
    slope = graph.add("Clip", graph.add("Div", offset, np.where(is_jump, 1, gaps)), 0.0, 1.0)
    jump = graph.add("Mul", graph.add("Add", graph.add("Sign", offset), 1.0), 0.5)
    parts = graph.add("Where", graph.constant(is_jump, bool), jump, slope)
    total = graph.node("ReduceSum", [parts, graph.constant([2], np.int64)], {"keepdims": 0})
    share = graph.add("Mul", total, step)
    # 2. The inverse of the normal distribution, of the smaller of the two tails.
    score = _add_inverse_normal(graph, share)
    return graph.add("Clip", score, -FARTHEST_SCORE, FARTHEST_SCORE)


def _add_inverse_normal(graph: Graph, p: str) -> str:
    centered = graph.add("Sub", p, 0.5)
    square = graph.add("Mul", centered, centered)
    central = graph.add(
        "Div",
        graph.add("Mul", _add_polynomial(graph, CENTRAL_NUMERATOR, square), centered),
        _add_polynomial(graph, CENTRAL_DENOMINATOR, square),
    )
    tail = graph.add("Min", p, graph.add("Sub", 1.0, p))
    # Below 1e-9 scores are cut off anyway.
    logs = graph.add("Log", graph.add("Max", tail, 1e-9))
    q = graph.add("Sqrt", graph.add("Mul", logs, -2.0))
    outer = graph.add(
        "Div",
        _add_polynomial(graph, TAIL_NUMERATOR, q),
        _add_polynomial(graph, TAIL_DENOMINATOR, q),
    )
    signed = graph.add("Mul", outer, graph.add("Neg", graph.add("Sign", centered)))
    return graph.add("Where", graph.add("Less", tail, NEAR_END), signed, central)


def _add_polynomial(graph: Graph, coefficients: tuple[float, ...], x: str) -> str:
    """Return a polynomial, by Horner's rule."""
    value = graph.add("Mul", x, coefficients[0])
    for coefficient in coefficients[1:-1]:
        value = graph.add("Mul", graph.add("Add", value, coefficient), x)
    return graph.add("Add", value, coefficients[-1])
