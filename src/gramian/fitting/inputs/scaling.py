"""Scaling of features and targets for the solver, and of the model back to the user's units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

from ... import _arrays as xp
from ... import data
from ..._arrays import RandomStream
from ..._parameters.types import LandmarksLike
from ...callbacks import Validate
from ...data import Cast, RowSource, Standardizer, Targets, as_columns, as_rows, is_table
from ...kernels import Kernel
from ...model import KernelModel
from ..settings import landmarks as landmark_settings
from ..settings.settings import FitSettings
from .features import FeatureMaps
from .training_data import TrainingData


class PathRow(TypedDict):
    """Dictionary type of a level of the path of penalties; see `KernelRidge.path_`."""

    penalty: float
    landmarks: int
    effective_dimension: float
    error: float
    fold_errors: list[float]
    iterations: int
    kernel_evaluations: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Scaling:
    """Maps from the features and targets of the user to scaled features and targets.

    - `targets`: map of the t targets; None if they are not scaled, such as codes of classes.
    - `encoding`: encoding of tables as rows.

    Means and deviations are weighted: a weight that is a whole number is a repeated row. A feature
    or a target that does not vary becomes zero, so that a constant target is predicted exactly.
    Sparse rows, such as counts of words, are not scaled. An encoding has scaled its rows already.
    """

    features: FeatureMaps
    targets: Standardizer | None = None
    encoding: data.Encoding | None = None

    @classmethod
    def of(
        cls,
        settings: FitSettings,
        data: TrainingData,
        before: KernelModel | None = None,
        *,
        kernel: Kernel,
        rng: RandomStream,
    ) -> Scaling:
        """Return the scaling of the settings; learn the metric if they request it.

        - `before`: a model that the fit continues. Its scaling is kept; for targets only if their
          number is equal.
        - `kernel`: kernel of the fit, whose lengthscale may be "median".
        - `rng`: generator for the sample of quantiles, and for the metric.

        Cost: a pass over the rows, and the learning of a metric, unless there is a model.
        """
        if before is not None:
            features, shift, scale = (
                FeatureMaps.of_model(before), before.target_shift, before.target_scale
            )  # fmt: skip
            targets = None if shift is None or scale is None else Standardizer(shift, scale)
            # The scaling of targets can only continue if there are as many of them.
            if before.outputs == data.targets.shape[1]:
                return cls(features, targets, data.encoding)
        else:
            features = FeatureMaps.of(settings, data, kernel, rng)
        targets = None
        if settings.scales_targets and not data.coded:
            targets = Standardizer.fit(as_columns(data.targets).rows, weights=data.weights)
        scaling = cls(features, targets, data.encoding)
        # The maps of an earlier model include its metric; a new one is learned from scaled targets.
        if before is not None or settings.metric is None:
            return scaling
        scaled = replace(data, targets=scaling.scale_targets(data.targets))
        return replace(scaling, features=features.with_metric(settings, scaled, kernel, rng))

    def with_quantiles(self, data: TrainingData, rng: RandomStream) -> Scaling:
        """Return this scaling with a quantile map of the features."""
        return replace(self, features=self.features.with_quantiles(data.rows, rng))

    def apply(self, settings: FitSettings, data: TrainingData) -> tuple[FitSettings, TrainingData]:
        """Return settings and training data with mapped rows and scaled targets; see `settings`.

        Rows that are slow to map are kept in memory if they are few; the memory limit is reduced
        accordingly.
        """
        if self.features.empty and self.targets is None and not settings.callbacks:
            return settings, data
        rows, taken_bytes = self.features.hold_in_memory(data.rows, settings.limit)
        settings = self.settings(settings, data)
        settings = settings.with_less_memory(taken_bytes)
        return settings, replace(data, rows=rows, targets=self.scale_targets(data.targets))

    def rows(self, rows: RowSource) -> RowSource:
        """Return rows as the kernel sees them, mapped."""
        return self.features.rows(rows)

    def scale_targets(self, targets: Targets) -> Targets:
        """Return scaled targets as the solver sees them, with the same dtype."""
        if self.targets is None:
            return targets
        return self.targets.scale_numbers(targets)

    def settings(self, settings: FitSettings, data: TrainingData) -> FitSettings:
        """Return settings for scaled rows, with scaled landmark points and held-out rows.

        - `data`: unscaled training data.
        """
        limit = settings.limit
        callbacks = [
            self._held_out(c, data.feature_names, limit) if isinstance(c, Validate) else c
            for c in settings.callbacks
        ]
        landmarks = settings.landmarks
        if landmark_settings.are_points(landmarks):
            landmarks = self._points(landmarks, data.rows)
        return settings.with_values(landmarks=landmarks, callbacks=callbacks)

    def _points(self, landmarks: LandmarksLike, rows: RowSource) -> LandmarksLike:
        """Return the landmark points of the user, mapped like the rows."""
        if self.features.empty:
            return landmarks
        # Maps of features fill the zeros of sparse rows, and the kernel needs the type of the rows.
        points = landmark_settings.points(landmarks, rows.shape[1])
        if points.sparse:
            points = as_rows(xp.to_dense(points.take(xp.arange(len(points)))))
        return self.rows(points if points.dtype == rows.dtype else Cast(points, rows.dtype))

    def _held_out(
        self, given: Validate, names: tuple[str, ...] | None, limit: int | None
    ) -> Validate:
        """Return a `Validate` on mapped held-out rows, with errors in the units of the targets."""
        # Rows that the fit itself has held out are encoded already.
        if isinstance(given.X, RowSource):
            source = given.X
        elif self.encoding is not None:
            from ...data.sources.as_table import encoding_table  # arrays need no encoding

            source = self.encoding.rows(encoding_table(given.X, self.encoding))
        elif names is not None and is_table(given.X):
            source = data.as_table(given.X).rows(names)
        else:
            source = as_rows(given.X)
        rows, _ = self.features.hold_in_memory(source, limit)
        if self.targets is None:
            return replace(given, X=rows)
        y = xp.asarray(given.y, dtype=xp.float64)
        # A reshape of no rows with -1 is ambiguous.
        y = y.reshape(len(y), -1) if len(y) else y
        # `Validate` refuses other shapes, with an error that says more.
        if y.shape[1:] == self.targets.mean.shape:
            y = self.scale_targets(y)
        return replace(given, X=rows, y=y, scale=given.scale * self.targets.scale)

    def model(self, model: KernelModel) -> KernelModel:
        """Return the model of a scaled fit, for rows and predictions in the user's units."""
        model = self.features.model(model)
        if self.targets is None:
            return model
        return replace(model, target_shift=self.targets.mean, target_scale=self.targets.scale)

    def path(self, path: list[PathRow] | None) -> list[PathRow] | None:
        """Return the rows of a path, with errors in the units of a single target."""
        if path is None or self.targets is None or len(self.targets.scale) > 1:
            return path
        # The errors of a path are squared.
        unit = self.targets.scale.item() ** 2
        return [
            {
                **row,
                "error": unit * row["error"],
                "fold_errors": [unit * e for e in row["fold_errors"]],
            }
            for row in path
        ]
