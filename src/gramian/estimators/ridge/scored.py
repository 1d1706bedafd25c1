"""Scored: the score of regressors and classifiers, of arrays and of tables."""

from __future__ import annotations

from typing import Any, cast

from sklearn.utils.validation import check_is_fitted

from ...data import RowSource, as_rows, is_collection
from ...model import Model
from .. import dask_collections, tables
from ..types import RowsLike, TargetsLike, Weights
from .score import score_there


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

        Notes
        -----
        Of rows on other machines: one pass, and sums come back.
        """
        check_is_fitted(self)
        if is_collection(X):
            X = as_rows(X)
        X, y = tables.with_truth(self.model_, X, y)
        if isinstance(X, RowSource) and X.remote:
            return score_there(self, X, y, sample_weight)
        given = [
            dask_collections.numbers_beside(as_rows(X), z) if is_collection(z) else z
            for z in (y, sample_weight)
        ]
        return float(cast("Any", super()).score(X, *given))
