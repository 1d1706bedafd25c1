"""Feature importances and metric histories for the fitted attributes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from ...metric import LearnedMetric
from ...model import Model, sum_by_column

Item = TypeVar("Item")


def feature_importances(model: Model, names: Iterable[str] | None, memory_bytes: int) -> np.ndarray:
    """Return the share of each feature or table column in the variation of predictions.

    Raises
    ------
    AttributeError
        If the model has none; `hasattr` recognises only this error.
    """
    try:
        shares = model.feature_importances(memory_bytes=memory_bytes)
    except ValueError as error:
        raise AttributeError(f"the model has no feature_importances_: {error}") from error
    if model.encoding is None:
        return shares
    # The encoding leaves out constant columns: their share is zero.
    by_name = sum_by_column(model.encoding, shares)
    columns = model.encoding.names if names is None else names
    return np.array([by_name.get(name, 0.0) for name in columns])


def one_or_all(values: Iterable[Item]) -> Item | tuple[Item, ...]:
    """Return the only value of a single model, or the tuple of values of an average."""
    items = tuple(values)
    return items[0] if len(items) == 1 else items


def metric_history(learned: LearnedMetric | None) -> list[dict[str, Any]] | None:
    """Return a row for each round of a learned metric; None without one."""
    return None if learned is None else [asdict(fit) for fit in learned.rounds]
