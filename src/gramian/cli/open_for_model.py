"""`open_for_model`: the rows that a model is applied to, for `predict` and `evaluate`."""

from __future__ import annotations

from pathlib import Path

from .._checks import it_has, listed
from ..data import RowSource, check_finite, feature_columns, open_rows
from ..data.formats import format_of
from ..model import KernelModel


def open_for_model(model: KernelModel, data: Path, target: str | None = None) -> RowSource:
    """Open a table with the columns that a model was trained on, and no missing values in them.

    They are found by name. If the model or the table has no names (``.npy``): all columns but the
    target if their number is right, else those with the numbers of the training.
    """
    rows = open_rows(data, _columns(model, data, target))
    check_finite(rows, str(data))
    return rows


def _columns(model: KernelModel, data: Path, target: str | None) -> tuple[str, ...]:
    there = feature_columns(data, [] if target is None else [target])
    d = model.centers.shape[1]
    if model.feature_names is not None and format_of(data).named:
        wanted = model.feature_names
    elif len(there) == d:
        return there
    else:
        wanted = tuple(model.info.get("columns", ()))
    missing = [name for name in wanted if name not in there]
    if missing or len(wanted) != d:
        needed = listed(missing) if missing else f"{d} features"
        known = it_has(there, missing[0]) if missing else f"it has {listed(there)}"
        raise ValueError(f"{data} lacks what the model was trained on: {needed}; {known}")
    return wanted
