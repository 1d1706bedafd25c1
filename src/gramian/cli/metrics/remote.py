"""Sums of predictions over rows on a cluster; only the sums travel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ...data import RemoteColumns, RowSource, default_block_size
from ...model import Model
from ...model.evaluation.agreement import Errors, Pinball
from ...model.evaluation.class_sums import Classified
from ...model.evaluation.predictions import map_predictions
from .answers import ClassesThere, RegressionThere, mean_area
from .tally import Tally


def remote_answers(
    model: Model,
    rows: RowSource,
    y: RemoteColumns,
    settings: Mapping[str, Any],
    *,
    area: bool = True,
) -> RegressionThere | ClassesThere:
    """Predict rows on a cluster in one pass, and return sums over predictions and true values.

    For classes, a pass over the true labels precedes it, to collect them.

    Parameters
    ----------
    model : Model
        A classifier, or a regression with one output.
    rows : RowSource of shape (n, d)
    y : RemoteColumns of shape (n,)
    settings : mapping
        Engine and memory of the predictions.
    area : bool, default=True
        Whether to compute the areas under ROC curves; they are NaN otherwise.
    """
    values, size = map_predictions(rows, model, **settings), default_block_size(rows)
    if model.classes is None:
        return RegressionThere(y, values.fold(Errors(), y, size=size))
    classes = np.asarray(model.classes)
    # Rows may lack classes of the model, and may have labels that are no class of it: -1 below.
    labels = np.union1d(classes, y.classes())
    positions = np.searchsorted(labels, classes)
    number = torch.full((len(labels),), -1)
    number[torch.from_numpy(positions)] = torch.arange(len(classes))
    folding = Classified(len(labels), number, model.class_map, len(classes), ranks=area)
    truth = y.looked_up(labels, torch.arange(len(labels), dtype=torch.float64)[:, None])
    sums = values.fold(folding, truth, size=size)
    tally = Tally(labels, positions, sums.counts.numpy())
    return ClassesThere(tuple(model.classes), tally, mean_area(sums.ranks), sums.chances)


def remote_pinball(
    model: Model,
    rows: RowSource,
    y: RemoteColumns,
    levels: tuple[float, ...],
    settings: Mapping[str, Any],
) -> np.ndarray:
    """Return the sums of `Pinball` of a quantile model over rows on a cluster, in one pass."""
    values = map_predictions(rows, model, **settings)
    sums: torch.Tensor = values.fold(Pinball(levels), y, size=default_block_size(rows))
    return sums.numpy()
