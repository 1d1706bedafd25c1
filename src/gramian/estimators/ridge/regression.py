"""Regressing: targets, predictions and R2 of the estimators that regress."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from ...data import columns_there, is_collection
from ...fitting import FitSettings, Generators, TrainingData, Whole, WholeRows, whole_of
from ...fitting.targets import training_targets
from .. import dask_collections, tables, validation
from ..types import Columns, RowsLike, TargetsLike, Values, Weights
from .conforming import Conforming
from .deviating import Deviating
from .scored import Scored


class Regressing(Scored, MultiOutputMixin, RegressorMixin, Deviating, Conforming):
    """Regressors, whether they fit once or search: their data, scores and predictions."""

    def _regression_data(
        self,
        X: RowsLike,
        y: TargetsLike,
        sample_weight: Weights,
        columns: Columns,
        settings: FitSettings,
        rng: Generators,
    ) -> Whole:
        """Return all rows of a fit, of which some may be held back."""
        self._by_name = tables.is_by_name(X, y, columns) and not self._is_function
        if self._by_name:
            table = tables.opened(self, X, y, columns)
            tables.check_numbers(table)
            self._one_dimensional = table.y.ndim == 1
            sample_weight = dask_collections.numbers_beside(table.table, sample_weight)
            weights = validation.weight_tensor(sample_weight, len(table.y))
            return whole_of(table, settings, rng, weights=weights)
        rows, y = validation.training_rows(self, X, y, settings, y_numeric=True)
        there = columns_there(y)
        self._one_dimensional = len(np.shape(y) if there is None else there.shape) == 1
        weights = validation.weight_tensor(
            dask_collections.numbers_beside(rows, sample_weight), len(rows)
        )
        targets = training_targets(y, rows.dtype)
        data = TrainingData(rows, targets, weights, feature_names=self._names())
        return WholeRows(data, settings)

    @overload
    def predict(self, X: RowsLike, return_std: Literal[False] = False) -> np.ndarray: ...

    @overload
    def predict(self, X: RowsLike, return_std: bool) -> np.ndarray | tuple[np.ndarray, ...]: ...

    def predict(self, X: RowsLike, return_std: bool = False) -> Values | tuple[Values, ...]:
        """Return predictions, and their standard deviations if they are asked for.

        Parameters
        ----------
        X : as in `fit`
        return_std : bool, default=False
            Whether to return the standard deviations of new observations, too, of the same shape:
            the noise included, and larger where there was little to learn from. Of fits of squared
            errors that have converged, without cells.

        Returns
        -------
        ndarray of shape (n,) or (n, t), or two of them
            Float64; of a dask collection a dask array, nothing of which is computed yet. Of a loss
            with several outputs for a target, as `Quantile` with several levels:
            one column for each.

        Raises
        ------
        ValueError
            If deviations are asked for, and there are none; the message says why.

        Notes
        -----
        Cost: n m kernel evaluations. Deviations: n m more in float64 and 2 n m² operations. The
        first call solves the system once more in float64, with all rows as centers n³ operations
        and 8 n² bytes, with m landmarks some 5 n m² and 40 m², and calibrates them by the residuals
        of each row when it is left out: see `gramian.fitting.deviations.with_variance`. It needs
        the rows of the training; what it has found is then part of the model, and of its file.
        """
        if is_collection(X) and not return_std:
            return dask_collections.lazily(self, "predict", X)
        values = self._shaped(self._predict(X))
        return (values, self._shaped(self._deviations(X))) if return_std else values

    def predict_interval(self, X: RowsLike, level: float = 0.9) -> np.ndarray:
        """Return intervals that hold the truth of a share of new rows.

        Parameters
        ----------
        X : as in `fit`
        level : float, default=0.9
            The share, between 0 and 1.

        Returns
        -------
        ndarray of shape (n, 2) or (n, t, 2)
            Lower and upper ends, in float64; infinite, with a warning, where fewer than level / (1
            - level) rows were held back.

        Raises
        ------
        ValueError
            If the level is none, there are no rows to hold back, or they are no longer known.

        Notes
        -----
        f(x) ± q s(x): q is a quantile of the errors of held-back rows over their spread s, which a
        ridge regression of the logarithms of errors has learned: see
        `gramian.fitting.conformal.split`. With ``conformal="split"`` these rows have chosen
        nothing, and a share of at least ``level`` of new rows lies within if rows can be exchanged.
        Without, the first call holds back rows of the training, and fits the others anew with the
        kernel, the metric and the penalty that were chosen with all: the interval is around that
        function, and what is proved is proved of it only as far as those choices do not count.
        ``conformal="cv+"`` has five fits, and loses no row; it takes longer.

        Each target has an interval of its own: all of them hold less often. Weights are those of
        the fits; each row that is held back counts as one, if its weight is not zero.

        Intervals are as wide far from the data as where f and s tend to there: `out_of_range`, and
        deviations of ``predict(X, return_std=True)``, grow.
        """
        return self._intervals(X, level)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self._one_dimensional and values.shape[1] == 1 else values
