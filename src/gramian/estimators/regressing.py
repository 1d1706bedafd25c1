"""Regressing: targets, predictions and R2 of the estimators that regress."""

from __future__ import annotations

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..fitting import FitSettings, Generators, TrainingData, holds_out, table_data
from ..fitting.targets import training_targets
from . import inputs, tables
from .arguments import Columns, RowsLike, TargetsLike, Weights
from .predicting import Predicting


class Regressing(MultiOutputMixin, RegressorMixin, Predicting):
    """Regressors, whether they fit once or search: their data, scores and predictions."""

    def _regression_data(
        self,
        X: RowsLike,
        y: TargetsLike,
        sample_weight: Weights,
        columns: Columns,
        settings: FitSettings,
        rng: Generators,
    ) -> tuple[TrainingData, FitSettings]:
        """Return the data of a fit, and the settings that a table leaves for it."""
        self._by_name = tables.is_by_name(X, y, columns)
        if self._by_name:
            table = tables.opened(self, X, y, columns)
            tables.check_numbers(table)
            weights, y = inputs.weight_tensor(sample_weight, len(table.y)), table.y
            data, settings = table_data(
                table, settings, rng, weights=weights, hold_out=holds_out(settings)
            )
        else:
            rows, y = inputs.training_rows(self, X, y, y_numeric=True)
            weights = inputs.weight_tensor(sample_weight, len(rows))
            targets = training_targets(y, rows.dtype)
            data = TrainingData(rows, targets, weights, feature_names=self._names())
        self._one_dimensional = np.ndim(y) == 1
        return data, settings

    def score(
        self, X: RowsLike, y: TargetsLike | None = None, sample_weight: Weights = None
    ) -> float:
        """Return R2 of the predictions.

        Parameters
        ----------
        X : as in `fit`
        y : as in `fit`, optional
            By default the column of X that was the target.
        sample_weight : array-like of shape (n,), optional
        """
        check_is_fitted(self)
        X, y = tables.with_truth(self.model_, X, y)
        return float(super().score(X, y, sample_weight))

    def predict(self, X: RowsLike) -> np.ndarray:
        """Return predictions.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n,) or (n, t)
            Float64.

        Notes
        -----
        Cost: n m kernel evaluations.
        """
        values = self._predict(X)
        return values[:, 0] if self._one_dimensional else values
