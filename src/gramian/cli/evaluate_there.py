"""Errors of a regression on rows of a cluster: sums over them, and nothing else comes here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ..data import RemoteColumns, RowSource, comfortable_size
from ..model import Model
from ..model.agreement import Errors, Sums
from ..model.predicted import predicted
from .metrics import REGRESSION
from .report import Report


def are_sums(model: Model) -> bool:
    """Return whether all that is measured of a model is sums: of a regression without intervals."""
    return model.classes is None and model.outputs == 1 and model.conformal is None


def measured_there(
    model: Model, rows: RowSource, y: RemoteColumns, metric: str | None, **settings: Any
) -> Report:
    """Return what `measured` returns, of two passes where the rows are.

    Parameters
    ----------
    model : Model
        See `are_sums`.
    rows : RowSource of shape (n, d)
    y : RemoteColumns of shape (n,)
    metric : str, optional
        All of a regression by default.
    **settings
        The ``engine`` and ``memory_bytes`` of predictions.
    """
    size = comfortable_size(rows)
    constant = model.info.get("baseline")
    constant = float(y.mean()) if constant is None else float(constant)
    values = predicted(rows, model, settings["engine"], settings["memory_bytes"])
    same = y.looked_up(np.zeros(1), torch.tensor([[constant]], dtype=torch.float64)).rows
    errors, of_mean = (some.fold(Errors(), y, size=size) for some in (values, same))
    found: dict[str, Any] = {}
    for name in REGRESSION if metric is None else [metric]:
        found |= {name: _of(errors, name), f"{name}_of_mean": _of(of_mean, name)}
    alike = not bool(errors.spread > 0)
    remark = f"all targets are {float(errors.mean):g}: r2 is undefined" if alike else None
    return {**found, "remark": remark}


def _of(sums: Sums, name: str) -> float:
    if name == "rmse":
        return math.sqrt(float(sums.squares) / sums.weight)
    if name == "mae":
        return float(sums.sizes) / sums.weight
    return sums.r2 if bool(sums.spread > 0) else math.nan
