"""Answers, intervals and sets for rows of a cluster, which only sends sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ...data import RemoteColumns, RowSource, comfortable_size
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
    """Return the answers of a model for rows on a cluster, in one pass that predicts.

    Of classes, after a pass over the truth for the labels that there are.

    Parameters
    ----------
    model : Model
        A classifier, or of one output.
    rows : RowSource of shape (n, d)
    y : RemoteColumns of shape (n,)
    settings : mapping
        Of predictions.
    area : bool, default=True
        Whether the areas under ROC curves are asked for; NaN if not.
    """
    values, size = map_predictions(rows, model, **settings), comfortable_size(rows)
    if model.classes is None:
        return RegressionThere(y, values.fold(Errors(), y, size=size))
    classes = np.asarray(model.classes)
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
    """Return the sums of `Pinball` of a model of quantiles for rows on a cluster, in one pass."""
    values = map_predictions(rows, model, **settings)
    sums: torch.Tensor = values.fold(Pinball(levels), y, size=comfortable_size(rows))
    return sums.numpy()
