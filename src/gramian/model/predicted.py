"""Predictions, intervals and sets of a model, computed where rows are, when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..data import ArrayRows, RowSource
from ..data.transform import Blockwise
from .average import AverageModel
from .base import Model
from .conformal import Conformal
from .kernel_model import KernelModel


class _OfModel(Blockwise):
    """What a model says of rows, instead of them.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
        As `Model.rows` gives them.
    width : int
        Numbers for each row.
    settings : mapping
        Those of `Model.predict`.
    """

    def __init__(self, rows: RowSource, width: int, settings: Mapping[str, Any]) -> None:
        super().__init__(rows)
        self.shape, self.dtype = (rows.shape[0], width), torch.float64
        self.sparse, self.entries, self.feature_names = False, None, None
        self._settings = settings


class PredictedRows(_OfModel):
    """What a model predicts for rows, instead of them.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
        As `Model.rows` gives them.
    model : Model
        Of t outputs.
    **settings
        Those of `Model.predict`.
    """

    def __init__(self, rows: RowSource, model: Model, **settings: Any) -> None:
        super().__init__(rows, model.outputs, settings)
        self._model = model

    def change(self, block: Float[Tensor, "b d"]) -> Float[Tensor, "b t"]:
        """Predict; see `Blockwise.change`."""
        return self._model.predict(ArrayRows(block), **self._settings)


class IntervalRows(_OfModel):
    """The lower and the upper end of the interval of each row, instead of the rows.

    Parameters
    ----------
    rows : RowSource of shape (n, d)
    model : Model
        Of one output.
    conformal : Conformal
        That of the model.
    level : float
    **settings
        Those of `Model.predict`.
    """

    def __init__(
        self, rows: RowSource, model: Model, conformal: Conformal, level: float, **settings: Any
    ) -> None:
        super().__init__(rows, 2, settings)
        self._model, self._conformal, self._level = model, conformal, level

    def change(self, block: Float[Tensor, "b d"]) -> Float[Tensor, "b 2"]:
        """Find the ends; see `Blockwise.change`."""
        rows = ArrayRows(block)
        return self._conformal.intervals(self._model, rows, self._level, **self._settings)[:, 0]


class SetRows(_OfModel):
    """Which of the k classes are in the set of each row, 1 or 0, instead of the rows.

    Parameters
    ----------
    rows, model, conformal, level, **settings : as in `IntervalRows`
        The model is a classifier.
    """

    def __init__(
        self, rows: RowSource, model: Model, conformal: Conformal, level: float, **settings: Any
    ) -> None:
        super().__init__(rows, len(model.classes or ()), settings)
        self._model, self._conformal, self._level = model, conformal, level

    def change(self, block: Float[Tensor, "b d"]) -> Float[Tensor, "b k"]:
        """Find the sets; see `Blockwise.change`."""
        rows = ArrayRows(block)
        return self._conformal.sets_at(self._model, rows, self._level, **self._settings).double()


def predicted(rows: RowSource, model: Model, **settings: Any) -> RowSource:
    """Return what a model predicts, wherever rows are; see `PredictedRows`.

    On remote rows each pass computes it anew, and nothing comes here.
    """
    return rows.each(partial(PredictedRows, model=bare(model), **settings))


def intervals_at(
    rows: RowSource, model: Model, conformal: Conformal, level: float, **settings: Any
) -> RowSource:
    """Return the ends of intervals, wherever rows are; see `IntervalRows`, and `predicted`."""
    model = bare(model)
    return rows.each(
        partial(IntervalRows, model=model, conformal=conformal, level=level, **settings)
    )


def sets_at(
    rows: RowSource, model: Model, conformal: Conformal, level: float, **settings: Any
) -> RowSource:
    """Return which classes are in sets, wherever rows are; see `SetRows`, and `predicted`."""
    model = bare(model)
    return rows.each(partial(SetRows, model=model, conformal=conformal, level=level, **settings))


def bare(model: Model) -> Model:
    """Return a model with what predictions need: without scores, deviations and notes."""
    if isinstance(model, KernelModel):
        return replace(model, variance=None, conformal=None, info={})
    if isinstance(model, AverageModel):
        models = tuple(replace(one, variance=None, info={}) for one in model.models)
        return replace(model, models=models, conformal=None, info={})
    return model
