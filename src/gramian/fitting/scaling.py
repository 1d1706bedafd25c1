"""Scaling: features and targets brought to mean 0 and deviation 1, and what a model says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..callbacks import Validate
from ..data import Cast, Encoding, RowSource, Standardizer, as_rows, as_table, is_table
from ..model import KernelModel
from . import resolve
from .data import TrainingData
from .parameters import Callbacks
from .penalty_path import PathRow
from .settings import FitSettings


@dataclass(frozen=True, eq=False)
class Scaling:
    """Maps of features and targets to those that a fit sees.

    Attributes
    ----------
    features : Standardizer or None
        None if the kernel sees the rows as they are given, or encoded.
    targets : Standardizer or None
        Of t columns; None if targets are as they are given, as codes of classes always are.

    encoding : Encoding or None
        What makes rows of tables.

    Notes
    -----
    Means and deviations are weighted: a weight that is a whole number is a repeated row. A feature
    or a target that does not vary becomes zero, so that a constant target is predicted exactly.
    Sparse rows stay as they are, as counts and shares of words should, and so do those of an
    encoding, which has scaled them.
    """

    features: Standardizer | None = None
    targets: Standardizer | None = None
    encoding: Encoding | None = None

    @classmethod
    def of(
        cls, settings: FitSettings, data: TrainingData, before: KernelModel | None = None
    ) -> Scaling:
        """Return the scaling that the settings ask for.

        Parameters
        ----------
        settings : FitSettings
        data : TrainingData
        before : KernelModel, optional
            A model that the fit goes on from: its scaling stays, that of targets if there are as
            many.

        Notes
        -----
        Cost: a pass over the rows, unless there is a model.
        """
        if before is not None:
            features, targets = before.standardizer, _of_targets(before)
            if len(before.coef.T) == data.targets.shape[1]:
                return cls(features, targets, data.encoding)
        elif settings.standardize and data.encoding is None and not data.rows.sparse:
            features = Standardizer.fit(data.rows, weights=data.weights)
        else:
            features = None
        if not settings.scales_targets or data.coded:
            return cls(features, None, data.encoding)
        targets = Standardizer.fit(as_rows(data.targets), weights=data.weights)
        return cls(features, targets, data.encoding)

    def apply(self, data: TrainingData) -> TrainingData:
        """Return training data as the fit sees them."""
        return replace(data, rows=self.rows(data.rows), targets=self.scaled(data.targets))

    def rows(self, rows: RowSource) -> RowSource:
        """Return rows as the kernel sees them."""
        return rows if self.features is None else self.features.apply(rows)

    def scaled(self, targets: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """Return targets as the solver sees them, in their type."""
        if self.targets is None:
            return targets
        return self.targets.scaled(targets)

    def settings(self, settings: FitSettings, data: TrainingData) -> FitSettings:
        """Return settings for scaled rows: landmarks that are points, and held-out rows, are, too.

        Parameters
        ----------
        settings : FitSettings
        data : TrainingData
            That of the training, as it was given.
        """
        callbacks = self._callbacks(settings.callbacks, data.feature_names)
        landmarks = settings.landmarks
        if resolve.are_points(landmarks):
            landmarks = self._points(landmarks, data.rows)
        return replace(settings, landmarks=landmarks, callbacks=callbacks)

    def _points(self, landmarks: Any, rows: RowSource) -> Any:
        """Return landmarks that were given as points, as the kernel sees them."""
        if self.features is None:
            return landmarks
        points = _dense(resolve.points(landmarks, rows.shape[1]))
        return self.rows(points if points.dtype == rows.dtype else Cast(points, rows.dtype))

    def _callbacks(self, callbacks: Callbacks, names: tuple[str, ...] | None) -> Sequence[Any]:
        return [self._held_out(c, names) if isinstance(c, Validate) else c for c in callbacks]

    def _held_out(self, given: Validate, names: tuple[str, ...] | None) -> Validate:
        """Return held-out rows as the kernel sees them, with errors in the units of the targets."""
        if isinstance(given.X, RowSource):
            rows = self.rows(as_rows(given.X))
        elif self.encoding is not None:
            rows = self.encoding.rows(as_table(given.X))
        elif names is not None and is_table(given.X):
            rows = self.rows(as_table(given.X).rows(names))
        else:
            rows = self.rows(as_rows(given.X))
        if self.targets is None:
            return replace(given, X=rows)
        y = torch.as_tensor(given.y, dtype=torch.float64)
        y = y.reshape(len(y), -1) if len(y) else y
        if y.shape[1:] == self.targets.mean.shape:  # Validate refuses others in words
            y = self.scaled(y)
        return replace(given, X=rows, y=y, scale=given.scale * self.targets.scale)

    def model(self, model: KernelModel) -> KernelModel:
        """Return the model of a scaled fit, for rows and predictions as they are given."""
        if self.targets is None:
            return replace(model, standardizer=self.features)
        mean, scale = self.targets.mean, self.targets.scale
        return replace(model, standardizer=self.features, target_shift=mean, target_scale=scale)

    def path(self, path: list[PathRow] | None) -> list[PathRow] | None:
        """Return the rows of a path with errors in the units of the target, if it is one."""
        if path is None or self.targets is None or len(self.targets.scale) > 1:
            return path
        unit = float(self.targets.scale) ** 2
        return [
            {
                **row,
                "error": unit * row["error"],
                "fold_errors": [unit * e for e in row["fold_errors"]],
            }
            for row in path
        ]


def _of_targets(model: KernelModel) -> Standardizer | None:
    shift, scale = model.target_shift, model.target_scale
    return None if shift is None or scale is None else Standardizer(shift, scale)


def _dense(points: RowSource) -> RowSource:
    return as_rows(points.take(torch.arange(len(points))).to_dense()) if points.sparse else points
