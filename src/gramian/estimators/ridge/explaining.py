"""Explaining: which features a fitted model looks at, and how its predictions change with them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...data import RowSource
from ...engines import Engine
from ...metric import LearnedMetric
from ...model import Model, by_column
from .. import validation
from ..base import RowsEstimator
from ..types import RowsLike

PREDICTION_BYTES = 1 << 30
"""Memory for blocks, unless there is a limit."""


class Explaining(RowsEstimator):
    """Gradients, importances and the metric of an estimator that has a model."""

    model_: Model

    def gradient(self, X: RowsLike) -> np.ndarray:
        """Return the gradients of the predictions, or of the decision values.

        Parameters
        ----------
        X : as in `fit`
            Dense rows.

        Returns
        -------
        ndarray of shape (n, d) for one target, else (n, t, d)
            With respect to the features, in the units of X. Of a table whose columns are encoded,
            with respect to the encoded features, of which ``model_.encoding.feature_names`` has the
            names.

        Raises
        ------
        ValueError
            If the kernel has no gradients, or the rows are sparse.

        Notes
        -----
        Cost: n m kernel evaluations and 2 n m t d operations. A constant feature has the gradient
        of its map, though no row says what it does.
        """
        check_is_fitted(self)
        if not self._has_features:
            raise ValueError(f"gradients need features, and {self._kernel_said} has none")
        rows = validation.new_rows(self, X)
        found = self.model_.gradient(
            rows, engine=self._engine_of_prediction(rows), memory_bytes=self._prediction_bytes()
        ).numpy()
        return found[:, 0] if found.shape[1] == 1 else found

    @property
    def metric_(self) -> Any:
        """The map of the features: a matrix of shape (d, k), scales of shape (d,), or None."""
        check_is_fitted(self)
        maps = (one.metric for one in self.model_.parts)
        return one_or_all(None if found is None else found.array.numpy() for found in maps)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Shares of the features, or of the columns of a table, in how predictions vary."""
        check_is_fitted(self)
        known: tuple[Model, np.ndarray] | None = getattr(self, "_importances", None)
        if known is None or known[0] is not self.model_:
            known = self._importances = (self.model_, self._measured())
        return known[1]

    def _measured(self) -> np.ndarray:
        model = self.model_
        if not self._has_features:
            raise AttributeError(f"there are no feature_importances_ of {self._kernel_said}")
        try:
            shares = model.feature_importances(memory_bytes=self._prediction_bytes())
        except ValueError as error:  # hasattr asks, and expects no other error
            raise AttributeError(f"the model has no feature_importances_: {error}") from error
        if model.encoding is None:
            return shares.numpy()
        found = by_column(model.encoding, shares)
        names: Any = getattr(self, "feature_names_in_", model.encoding.names)
        return np.array([found.get(name, 0.0) for name in names])

    def _prediction_bytes(self) -> int:
        return self._limit() or PREDICTION_BYTES

    def _engine_of_prediction(self, rows: RowSource) -> str | Engine:
        raise NotImplementedError


def one_or_all(values: Iterable[Any]) -> Any:
    """Return the only value of a model, or those of all models of an average."""
    found = tuple(values)
    return found[0] if len(found) == 1 else found


def metric_history(learned: LearnedMetric | None) -> list[dict[str, Any]] | None:
    """Return a row for each round in which a metric was learned; None if none was."""
    return None if learned is None else [asdict(one) for one in learned.rounds]
