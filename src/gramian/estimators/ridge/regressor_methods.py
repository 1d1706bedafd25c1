"""Base class of the regressors, with predictions, intervals and R2."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, overload

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ... import _arrays as xp
from ... import data, fitting
from ..._arrays import Array
from ..._messages.checks import as_share
from ...data import RowNumbers, RowSource, as_columns, is_collection
from ...fitting import Generators, TrainingData
from ...fitting.inputs.training_data import target_tensor, training_targets
from .. import tables, validation
from ..base import lazily
from ..types import Deviations, RowsLike, TargetsLike, Values, Weights
from .base import KernelRidgeModel
from .fit import calibrated_intervals
from .grid import predict_grid
from .score import is_streamed, remote_r2, rows_and_truth


class KernelRegressor(RegressorMixin, KernelRidgeModel):
    """Base of the regressors that fit once or search, with predictions and scores."""

    _calibrates_deviations = True
    """Whether deviations are fitted to leave-one-out residuals."""

    predict_grid = predict_grid

    def __sklearn_tags__(self) -> Tags:
        """Accept several targets."""
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _read_table(self, table: data.TrainingTable, sample_weight: Weights) -> tuple[Any, Any]:
        tables.check_numbers(table)
        self._one_dimensional = table.y.ndim == 1
        sample_weight = tables.kept_weights(table, sample_weight)
        return table, validation.row_weights(table.table, sample_weight, len(table.y))

    def _read_rows(self, rows: RowSource, y: RowNumbers, sample_weight: Weights) -> TrainingData:
        self._one_dimensional = len(as_columns(y).shape) == 1
        weights = validation.row_weights(rows, sample_weight, len(rows))
        targets = training_targets(y, rows.dtype)
        return TrainingData(rows, targets, weights, feature_names=self._names())

    def _encode_targets(self, y: Any, dtype: xp.DType) -> Array:
        return target_tensor(y, dtype)

    @overload
    def predict(self, X: RowsLike, return_std: Literal[False] = False) -> np.ndarray: ...

    @overload
    def predict(
        self, X: RowsLike, return_std: Deviations
    ) -> np.ndarray | tuple[np.ndarray, ...]: ...

    def predict(self, X: RowsLike, return_std: Deviations = False) -> Values | tuple[Values, ...]:
        """Return predictions, with standard deviations on request.

        Parameters
        ----------
        X : as in `fit`
        return_std : bool or "errors", default=False
            Whether to also return the standard deviations of new observations, of the same shape:
            they include the noise, and grow away from the training rows. True: by the distance of
            the kernel, the same for all rows with many rows near. ``"errors"``: by the size of the
            errors nearby, too, which ranks predictions better. They need a converged fit with
            squared errors and without cells.

        Returns
        -------
        ndarray of shape (n,) or (n, t), or two of them
            Float64; a lazy dask array for a dask collection. A loss with several outputs for a
            target, such as `Quantile` with several levels, gives a column for each.

        Raises
        ------
        ValueError
            If ``return_std`` is set and the model has no deviations; the message gives the reason.
            If it is ``"errors"`` and there are fewer than 20 rows.

        Notes
        -----
        Cost: n m kernel evaluations. Deviations: n m more in float64 and 2 n m² operations. The
        first call solves the system again in float64, with all rows as centers n³ operations
        and 8 n² bytes, with m landmarks about 5 n m² and 40 m², and calibrates them by the
        leave-one-out residuals: see `with_variance` in
        `gramian.fitting.uncertainty.standard_deviations`, and `with_error_scale` in
        `gramian.fitting.uncertainty.error_scale`, which takes about 5 n³ operations of at most
        2,000 rows and one more fit. It needs the training rows; the model and its file then contain
        the deviations.
        """
        # Deviations may change the model first, which a lazy result could not do.
        by_errors = validation.is_by_errors(return_std)
        if is_collection(X) and not return_std:
            return lazily(self, "predict", X)
        values = self._squeeze_target(self._predict(X))
        if not return_std:
            return values
        if by_errors:
            self._ensure_error_scale()
        return values, self._squeeze_target(self._variance(X, "deviations", by_errors=by_errors))

    def score(
        self, X: RowsLike, y: TargetsLike | None = None, sample_weight: Weights = None
    ) -> float:
        """Return R2 of the predictions.

        Parameters
        ----------
        X : as in `fit`
        y : as in `fit`, optional
            By default the column of X with the name of the target.
        sample_weight : array-like of shape (n,), optional

        Notes
        -----
        Remote rows take one pass, which returns only sums.
        """
        check_is_fitted(self)
        arguments = rows_and_truth(self.model_, X, y, sample_weight)
        if is_streamed(arguments[0]):
            return remote_r2(self, *arguments)
        return float(super().score(*arguments))

    def predict_interval(self, X: RowsLike, level: float = 0.9) -> np.ndarray:
        """Return prediction intervals that contain the target with a given probability.

        Parameters
        ----------
        X : as in `fit`
        level : float, default=0.9
            The probability, between 0 and 1.

        Returns
        -------
        ndarray of shape (n, 2) or (n, t, 2)
            Lower and upper ends, in float64; infinite, with a warning that names ``"cv+"``, for
            fewer than level / (1 - level) rows with scores.

        Raises
        ------
        ValueError
            If the level is not valid, or no training rows are left to hold out.

        Notes
        -----
        f(x) ± q s(x): q is a quantile of the errors of held-out rows divided by their spread s, a
        ridge regression of the logarithms of errors: see `gramian.conformal.ConformalSplit`, and
        `ConformalQuantiles` for ``conformal="cqr"``. With ``conformal="split"`` these rows
        affect no choice, and a share of at least ``level`` of new rows is inside if rows are
        exchangeable. Without it, the first call holds out training rows, and refits the others with
        the kernel, metric and penalty chosen on all rows: the interval is around that function, and
        the guarantee holds only as far as these choices do not matter. ``conformal="cv+"`` takes
        five fits and uses all rows for training.

        With ``conformal_groups``, q is a quantile of the errors of the group of the row. Groups
        with fewer rows than the level needs, and rows of no known group, have the q of all groups,
        with a warning: their coverage may be another.

        Each target has its own interval; the joint coverage is lower. Weights apply to the fits;
        each held-out row of positive weight counts as one.

        Far from the data, f, s and the width tend to constants, while the deviations of
        ``predict(X, return_std=True)`` grow; `out_of_range` detects such rows.
        """
        level = as_share(level, "level")
        check_is_fitted(self)
        rows = validation.new_rows(self, X)
        conformal = calibrated_intervals(self, rows, level)
        ends = conformal.intervals(
            self.model_,
            rows,
            level,
            engine=self._engine_of_prediction(rows),
            memory_bytes=self._memory_bytes(),
        )
        return ends[:, 0] if ends.shape[1] == 1 else ends

    def out_of_range(self, X: RowsLike) -> np.ndarray:
        """Return a mask of the rows that are far from all training rows, of shape (n,).

        The variance of such rows exceeds the leave-one-out variance of 99 in 100 training rows.
        Their predictions tend to a constant, and their deviations are calibrated nearer to the
        data.

        Parameters
        ----------
        X : as in `fit`

        Raises
        ------
        ValueError
            As in `predict` with ``return_std=True``.
        """
        return self._variance(X, "out_of_range")

    @property
    def log_marginal_likelihood_(self) -> float:
        r"""Log likelihood of the targets under the Gaussian process of this kernel and penalty.

        Targets are standardised by default, the kernel has amplitude one, and the noise variance is
        :math:`N \lambda`, the ``alpha`` of scikit-learn's `GaussianProcessRegressor`. Summed over
        targets. Requires a single fit with all rows as centers.
        """
        evidence = self._left_out().evidence
        if np.isnan(evidence):
            raise AttributeError(
                "log_marginal_likelihood_ requires a single fit with all rows as centers; give "
                "landmarks=None"
            )
        return evidence

    def _variance(
        self, X: RowsLike, method: Literal["deviations", "out_of_range"], **kind: bool
    ) -> np.ndarray:
        """Return the result of a model method that needs the variance; compute that if missing."""
        self._ensure_variance()
        rows = validation.new_rows(self, X)
        engine, memory = self._engine_of_prediction(rows), self._memory_bytes()
        compute = self.model_.deviations if method == "deviations" else self.model_.out_of_range
        return compute(rows, engine=engine, memory_bytes=memory, **kind)

    def _ensure_error_scale(self) -> None:
        """Learn the scale of errors of the model if it is missing."""
        self._ensure_variance()
        if not any(part.variance and part.variance.errors for part in self.model_.parts):
            data, _ = self._system("deviations by errors")
            rng = Generators.from_random_state(self._state())
            refit = partial(self._refit, rng=rng)
            self.model_ = fitting.with_error_scale(
                self.model_, data, self._left_out(), refit, self._draws()
            )

    def _ensure_variance(self) -> None:
        """Compute the variance of the model if it is missing."""
        check_is_fitted(self)
        if any(part.variance is None for part in self.model_.parts):
            data, penalties = self._system("standard deviations")
            self.model_, left_out = fitting.with_variance(
                self.model_, data, penalties, self._limit(), calibrated=self._calibrates_deviations
            )
            # The same factorisation gives the leave-one-out results: keep both.
            self._loo = (data, left_out)

    def _squeeze_target(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self._one_dimensional and values.shape[1] == 1 else values
