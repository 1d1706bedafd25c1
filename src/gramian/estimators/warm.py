"""WarmStarted: fits that go on from the last one, or from a checkpoint."""

from __future__ import annotations

import logging
import numbers
from typing import Any

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from ..callbacks import Checkpoint
from ..data import RowSource, gathered
from ..landmarks import Landmarks, Selector
from ..model import KernelModel
from ..operators import KernelOperator
from ..problems import Problem
from ..solvers import State

logger = logging.getLogger("gramian")


class WarmStarted(BaseEstimator):
    """An estimator with ``warm_start``, and checkpoints among its callbacks."""

    landmarks: Any
    warm_start: Any
    model_: KernelModel
    landmark_index_: Any
    n_features_in_: int
    _landmarks_chosen: Any

    def _restored(self, callbacks: list[Any], problem: Problem, solver: Any) -> State | None:
        for callback in callbacks:
            if isinstance(callback, Checkpoint):
                state = callback.restore(problem, solver)
                if state is not None:
                    logger.info("going on from %s, iteration %d", callback.path, state.iteration)
                    return state
        fits = (problem.K.shape[1], problem.targets.shape[1])
        if self._warm() and self.model_.coef.shape == fits:
            return State(0, self.model_.coef)
        return None

    def _warm(self) -> bool:
        """Whether to start from the last fit: its landmarks and its coefficients."""
        return (
            self.warm_start
            and hasattr(self, "model_")
            and self.model_.centers.shape[1] == self.n_features_in_
            and _same_choice(self.landmarks, self._landmarks_chosen)
        )

    def _last_landmarks(self, K: KernelOperator) -> Landmarks:
        """Return those of the last fit, with their row numbers if these are the same rows."""
        m = len(self.model_.centers)
        points = gathered(self.model_.centers, torch.arange(m), K.host_bytes)
        index = None if self.landmark_index_ is None else torch.from_numpy(self.landmark_index_)
        if index is not None and not _are_rows(points, K.rows, index):
            index = None
        return Landmarks(points, torch.ones(m, dtype=torch.float64), index)


def _are_rows(points: Tensor, rows: RowSource, index: Tensor) -> bool:
    if int(index.max()) >= len(rows):
        return False
    taken, points = rows.take(index).cpu(), points.cpu()
    return taken.dtype == points.dtype and torch.equal(taken.to_dense(), points.to_dense())


def _same_choice(a: Any, b: Any) -> bool:
    comparable = all(isinstance(v, numbers.Integral | str | Selector) for v in (a, b))
    return a is b or (comparable and a == b)
