"""Deviating: standard deviations of predictions, and rows that are too far to be predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...fitting import machine_memory
from ...fitting.deviations import with_variance
from ...model import Model
from .. import validation
from ..types import RowsLike
from .predicting import Predicting


class Deviating(Predicting):
    """What a regression knows of the errors of its predictions."""

    model_: Model

    def out_of_range(self, X: RowsLike) -> np.ndarray:
        """Return which rows are far from all rows of the training, (n,) of bool.

        Of these less is known than of 99 in 100 rows of the training by the others. Predictions
        tend to a constant there, and their deviations were calibrated nearer to the data.

        Parameters
        ----------
        X : as in `fit`

        Raises
        ------
        ValueError
            As in `predict` with ``return_std=True``, the first call of which it may be.
        """
        return self._of_variance("out_of_range", X)

    @property
    def log_marginal_likelihood_(self) -> float:
        r"""Log likelihood of the targets under the Gaussian process of this kernel and penalty.

        With targets as the solver sees them, standardised unless told otherwise, a kernel of
        amplitude one and noise of variance :math:`N \lambda`: scikit-learn's
        `GaussianProcessRegressor` with ``alpha`` so large. Summed over targets. Of one fit with all
        rows as centers.
        """
        found = self._left_out().evidence
        if np.isnan(found):
            raise AttributeError(
                "there is no log_marginal_likelihood_ of landmarks or averages; give landmarks=None"
            )
        return found

    def _deviations(self, X: RowsLike) -> np.ndarray:
        return self._of_variance("deviations", X)

    def _of_variance(self, asked: str, X: RowsLike) -> np.ndarray:
        check_is_fitted(self)
        if any(one.variance is None for one in self.model_.parts):
            data, penalties = self._system("standard deviations")
            self.model_, found = with_variance(self.model_, data, penalties, self._limit())
            self._loo = (data, found)
        rows = validation.new_rows(self, X)
        settings: dict[str, Any] = {"engine": self._engine_of_prediction(rows)}
        memory = self._limit() or machine_memory()
        values = getattr(self.model_, asked)(rows, memory_bytes=memory, **settings)
        return values.numpy()  # type: ignore[no-any-return]
