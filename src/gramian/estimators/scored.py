"""Scored: the score of regressors and classifiers, of arrays and of tables."""

from __future__ import annotations

from typing import Any, cast

from sklearn.utils.validation import check_is_fitted

from ..data import as_rows, is_collection
from ..model import Model
from . import tables
from .arguments import RowsLike, TargetsLike, Weights


class Scored:
    """The score of scikit-learn's mixin, which comes next, for a target that X may hold."""

    model_: Model

    def score(
        self, X: RowsLike, y: TargetsLike | None = None, sample_weight: Weights = None
    ) -> float:
        """Return R2 of the predictions; of a classifier the share of rows whose label is right.

        Parameters
        ----------
        X : as in `fit`
        y : as in `fit`, optional
            By default the column of X that was the target.
        sample_weight : array-like of shape (n,), optional
        """
        check_is_fitted(self)
        if is_collection(X):
            X = as_rows(X)
        if is_collection(y):
            from ..data.dask import collected

            y = collected(y)
        X, y = tables.with_truth(self.model_, X, y)
        return float(cast("Any", super()).score(X, y, sample_weight))
