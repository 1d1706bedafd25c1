"""Conforming: intervals and sets that hold the truth as often as is asked."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._checks import as_share
from ...fitting import Divided, TrainingData, Whole, machine_memory
from ...fitting.again import Again
from ...fitting.conformal import check_method, draws_of, held_back, made
from ...model import Model
from ...model.conformal import Conformal
from .. import validation
from ..types import RowsLike
from .predicting import Predicting


class Conforming(Predicting):
    """Held-back rows of a fit, and what they make of its predictions."""

    conformal: str | None
    random_state: Any
    model_: Model

    def _again(self, data: TrainingData) -> Again:
        """Return what fits anew as the last fit did, which was one to these data."""
        raise NotImplementedError

    def _divided(self, whole: Whole) -> Divided:
        """Return the rows to learn from, and those that are held back, if any are.

        Raises
        ------
        ValueError
            If there is no such method, or it does not go with a warm start.
        """
        check_method(self.conformal)
        if self.conformal is not None and getattr(self, "warm_start", False):
            raise ValueError(
                f"conformal={self.conformal!r} needs rows that no fit has seen, and "
                "warm_start=True goes on from one that may have; leave one of them out"
            )
        if self.conformal != "split":
            return whole.without(None)
        _, held = held_back(whole.count, self._draws(), whole.classes)
        return whole.without(held)

    def _conform(self, data: TrainingData, held: TrainingData | None) -> None:
        """Give the model its intervals, if they are to come with the fit."""
        if self.conformal is not None:
            conformal = self._conformal(data.without_zero_weights(), held)
            self.model_ = replace(self.model_, conformal=conformal)  # type: ignore[type-var]

    def _conformal(self, data: TrainingData, held: TrainingData | None) -> Conformal:
        """Return what makes intervals: of this fit, or of folds, or of a new fit to fewer rows."""
        return made(self.conformal, self._again(data), data, held, self._state)

    def _known_conformal(self) -> Conformal:
        """Return what makes intervals; made now, from the rows of the training, if need be."""
        check_is_fitted(self)
        if self.model_.conformal is None:
            if self._training is None:
                raise ValueError(
                    "this model was fitted without intervals, and copies, loaded models and "
                    "partial_fit have no rows of the training to make them with; fit with "
                    "conformal='split'"
                )
            conformal = self._conformal(self._training.without_zero_weights(), None)
            self.model_ = replace(self.model_, conformal=conformal)  # type: ignore[type-var]
        assert self.model_.conformal is not None
        return self.model_.conformal

    def _state(self) -> np.random.RandomState:
        state: np.random.RandomState = check_random_state(self.random_state)
        return state

    def _draws(self) -> torch.Generator:
        return draws_of(self._state())

    def _intervals(self, X: RowsLike, level: float) -> np.ndarray:
        level = as_share(level, "level")
        conformal = self._known_conformal()
        rows, settings = self._to_predict(X)
        warn_if_too_few(conformal, level)
        found = conformal.intervals(self.model_, rows, level, **settings).numpy()
        return found[:, 0] if found.shape[1] == 1 else found

    def _to_predict(self, X: RowsLike) -> tuple[Any, dict[str, Any]]:
        rows = validation.new_rows(self, X)
        memory = self._limit() or machine_memory()
        engine = self._engine_of_prediction(rows)
        return rows, {"engine": engine, "memory_bytes": memory}


def warn_if_too_few(conformal: Conformal, level: float) -> None:
    """Warn where so few rows have scores that intervals are infinite."""
    if level > conformal.least_level():
        needed = math.ceil(level / (1 - level) - 1e-9)
        warnings.warn(
            f"{conformal.count} held-back rows say nothing about a level of {level:g}, which needs "
            f"{needed}: intervals are infinite, and sets have all classes",
            UserWarning,
            stacklevel=4,
        )
