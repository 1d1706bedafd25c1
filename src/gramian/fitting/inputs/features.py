"""Maps of the features before the kernel: standardisation, quantile map and metric."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array, RandomStream
from ..._messages.errors import SETTING_FORM, ParameterError, Text
from ...callbacks import announce, stages
from ...data import LinearMap, QuantileMap, RowSource, Standardizer
from ...kernels import Kernel
from ...metric import LearnedMetric
from ...model import KernelModel
from ..settings import resolve
from ..settings.settings import FitSettings
from .training_data import TrainingData, in_memory, shared_bytes

LEARNING_BYTES = 1 << 30
"""Largest memory for learning a metric."""


@dataclass(frozen=True, eq=False)
class FeatureMaps:
    """Maps of the features, in the order in which they are applied.

    - `standardizer`: None if rows are encoded, sparse, or not to be scaled.
    - `importances`: of shape (d,); importances of a learned metric.
    - `learned`: the metric that this fit has learned.
    """

    standardizer: Standardizer | None = None
    quantiles: QuantileMap | None = None
    metric: LinearMap | None = None
    importances: Array | None = None
    learned: LearnedMetric | None = None

    @classmethod
    def of(
        cls,
        settings: FitSettings,
        data: TrainingData,
        kernel: Kernel,
        rng: RandomStream,
    ) -> FeatureMaps:
        """Return the standardisation and the quantile map; `with_metric` adds the metric.

        The metric may need targets. Features in `kernel.unscaled_features` are not changed.

        Cost: a pass over the rows for each map.
        """
        standardizer = None
        if settings.standardize and data.encoding is None and not data.rows.sparse:
            unscaled_features = kernel.unscaled_features(data.rows.shape[1])
            standardizer = standardizer_of(data, unscaled_features)
        maps = cls(standardizer)
        return maps.with_quantiles(data.rows, rng) if settings.uses_quantiles else maps

    def with_quantiles(self, rows: RowSource, rng: RandomStream) -> FeatureMaps:
        """Return these maps, followed by a quantile map fitted to the given unmapped rows."""
        return replace(self, quantiles=QuantileMap.fit(self.rows(rows), rng=rng))

    @classmethod
    def of_model(cls, model: KernelModel) -> FeatureMaps:
        """Return the maps of the features that a fitted model applies."""
        return cls(model.standardizer, model.quantiles, model.metric, model.importances)

    def with_metric(
        self, settings: FitSettings, data: TrainingData, kernel: Kernel, rng: RandomStream
    ) -> FeatureMaps:
        """Return these maps, followed by the metric of the settings, which is learned on request.

        - `data`: data with unmapped rows, and targets as the solver sees them.
        """
        metric = resolve.metric(settings.metric)
        if metric is None:
            return self
        if isinstance(metric, LinearMap):
            _check_features(metric, data.rows)
            return replace(self, metric=metric)
        announce(settings.callbacks, stages.LEARNING_STAGE)
        # The learning ends before the fit begins, so it may use the whole limit.
        limit = LEARNING_BYTES if settings.limit is None else min(LEARNING_BYTES, settings.limit)
        rows = self.rows(data.rows)
        learned_metric = metric.learn(
            kernel,
            rows,
            data.targets,
            data.weights,
            rng=rng,
            engine=resolve.engine_for(settings, rows, kernel),
            coded=data.coded,
            memory_bytes=limit,
        )
        return replace(
            self,
            metric=learned_metric.map,
            importances=learned_metric.importances,
            learned=learned_metric,
        )

    @property
    def empty(self) -> bool:
        """Whether there is no map, so that the kernel sees unmapped or encoded rows."""
        return self.standardizer is None and not self.costly

    @property
    def costly(self) -> bool:
        """Whether mapping rows again in each pass would be slow."""
        return self.quantiles is not None or self.metric is not None

    def rows(self, rows: RowSource) -> RowSource:
        """Return a source of mapped rows, which maps each block when it is read."""
        # The order matters: quantiles are of standardised features,
        # and the metric mixes the results.
        for feature_map in (self.standardizer, self.quantiles, self.metric):
            rows = rows if feature_map is None else feature_map.apply(rows)
        return rows

    def hold_in_memory(self, rows: RowSource, limit: int | None) -> tuple[RowSource, int]:
        """Return mapped rows, copied to memory if maps are slow, and the bytes of the copy."""
        mapped = self.rows(rows)
        if not self.costly or rows.sparse:  # sparse rows are small
            return mapped, 0
        return in_memory(mapped, shared_bytes(limit))

    def model(self, model: KernelModel) -> KernelModel:
        """Return a model of mapped rows with these maps."""
        if self.empty:
            return model
        return replace(
            model,
            standardizer=self.standardizer,
            quantiles=self.quantiles,
            metric=self.metric,
            importances=self.importances,
        )


def check_units(settings: FitSettings, rows: RowSource) -> None:
    """Raise ValueError if settings scale features that the kernel needs in their own units.

    - `settings`: settings of the user; "auto" maps no such feature.
    """
    kernel, d = resolve.kernel(settings.kernel, settings.first_lengthscale), rows.shape[1]
    unscaled_features = kernel.unscaled_features(d)
    if unscaled_features and settings.metric is not None:
        raise ValueError(
            f"a metric changes features that the kernel {kernel!r} takes as they are given; leave "
            "metric out"
        )
    # `is True`, because "auto" leaves such features alone without an error.
    all_of_them = settings.standardize is True and len(unscaled_features) == d
    if unscaled_features and (all_of_them or settings.uses_quantiles):
        problem = f"changes features that the kernel {kernel!r} takes as they are given"
        remedy = Text("leave {standardize} out")
        raise ParameterError("standardize", settings.standardize, problem, remedy, SETTING_FORM)


def standardizer_of(data: TrainingData, unscaled_features: frozenset[int]) -> Standardizer | None:
    """Return the map to mean 0 and deviation 1, which leaves some features; None if all stay."""
    d = data.rows.shape[1]
    if len(unscaled_features) == d:
        return None
    standardizer = Standardizer.fit(data.rows, weights=data.weights)
    if not unscaled_features:
        return standardizer
    # Features that stay get the identity as their map; one that is constant stays, too.
    mean, scale = xp.copy(standardizer.mean), xp.copy(standardizer.scale)
    stay = sorted(unscaled_features)
    mean[stay], scale[stay] = 0.0, 1.0
    return Standardizer(
        mean, scale, tuple(k for k in standardizer.constant if k not in unscaled_features)
    )


def _check_features(given: LinearMap, rows: RowSource) -> None:
    if given.inputs != rows.shape[1]:
        raise ValueError(
            f"the metric maps {given.inputs} features, but X has {rows.shape[1]}; for a table, "
            "count the features after the encoding of its columns"
        )
