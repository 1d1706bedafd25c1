"""Classifying: class codes, labels and accuracy of the estimators that classify."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..data import RowSource
from ..fitting import FitSettings, Generators, TrainingData, holds_out, table_data
from ..fitting.targets import as_labels, classes_of, coded_data
from . import inputs, tables
from .arguments import ClassWeight, Columns, RowsLike, TargetsLike, Weights
from .predicting import Predicting


class Classifying(ClassifierMixin, Predicting):
    """Classifiers, whether they fit once or search: their data, scores and labels."""

    class_weight: ClassWeight
    classes_: np.ndarray

    def _classification_data(
        self,
        X: RowsLike,
        y: TargetsLike,
        sample_weight: Weights,
        columns: Columns,
        settings: FitSettings,
        rng: Generators,
    ) -> tuple[TrainingData, FitSettings, np.ndarray]:
        """Return the data of a fit, the settings that a table leaves for it, and the classes."""
        self._by_name = tables.is_by_name(X, y, columns)
        if not self._by_name:
            rows, y = inputs.training_rows(self, X, y)
            data, classes = self._coded(rows, as_column(y), sample_weight)
            return data, settings, classes
        table = tables.opened(self, X, y, columns)
        labels = as_column(table.y)
        weights, classes = self._weights_and_classes(labels, sample_weight)
        data, settings = table_data(
            replace(table, y=labels),
            settings,
            rng,
            classes=classes,
            weights=weights,
            hold_out=holds_out(settings),
        )
        return data, settings, classes

    def _coded(
        self,
        rows: RowSource,
        y: np.ndarray,
        sample_weight: Weights,
        known: np.ndarray | None = None,
    ) -> tuple[TrainingData, np.ndarray]:
        """Return the data with class codes as targets, and the classes."""
        weights, classes = self._weights_and_classes(y, sample_weight, known)
        return coded_data(rows, y, classes, weights, self._names()), classes

    def _weights_and_classes(
        self, y: np.ndarray, sample_weight: Weights, known: np.ndarray | None = None
    ) -> tuple[Tensor | None, np.ndarray]:
        """Return the weights of rows, those of their classes included, and the classes."""
        check_classification_targets(y)
        weights = inputs.weight_tensor(sample_weight, len(y))
        if self.class_weight is not None:
            by_class = torch.from_numpy(compute_sample_weight(self.class_weight, y))
            weights = by_class if weights is None else weights * by_class
        return weights, classes_of(y, weights) if known is None else known

    def score(
        self, X: RowsLike, y: TargetsLike | None = None, sample_weight: Weights = None
    ) -> float:
        """Return the share of rows whose label is right.

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

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the value of each class.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n,) for two classes, else (n, k)
            For two classes, positive means the second one.
        """
        values = self._predict(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the predicted label of each row, (n,).

        Parameters
        ----------
        X : as in `fit`
        """
        return chosen_labels(self.decision_function(X), self.classes_)


def chosen_labels(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the class of the largest value of each row; of two, the second if it is positive."""
    best = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
    labels: np.ndarray = classes[best]
    return labels


def as_column(y: TargetsLike) -> np.ndarray:
    """Return labels of shape (n,), with scikit-learn's warning for a column of them."""
    return as_labels(column_or_1d(y, warn=True))
