"""Base class of the classifiers, with class codes, labels and accuracy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ... import _arrays as xp
from ... import data
from ..._arrays import Array
from ..._messages.checks import as_share
from ...data import RowNumbers, RowSource, RowWeights, as_columns, is_collection
from ...data.sources.as_rows import align_collection
from ...fitting import TrainingData
from ...fitting.inputs.training_data import class_codes, classes_of, coded_data
from .. import tables, validation
from ..base import lazily
from ..types import ClassWeight, Columns, RowsLike, TargetsLike, Values, Weights
from .base import KernelRidgeModel
from .fit import calibrated_intervals
from .score import is_streamed, remote_accuracy, rows_and_truth


class KernelClassifier(ClassifierMixin, KernelRidgeModel):
    """Base of the classifiers that fit once or search, with predictions and scores."""

    class_weight: ClassWeight

    def _read_table(self, table: data.TrainingTable, sample_weight: Weights) -> tuple[Any, Any]:
        table = replace(table, y=as_column(table.y))
        sample_weight = align_collection(table.table, tables.kept_weights(table, sample_weight))
        weights, self.classes_ = self._weights_and_classes(table.y, sample_weight)
        return table, weights

    def _read_rows(
        self,
        rows: RowSource,
        y: RowNumbers,
        sample_weight: Weights,
        known: np.ndarray | None = None,
    ) -> TrainingData:
        """Return training data with class codes as targets, and set ``classes_``."""
        sample_weight, y = align_collection(rows, sample_weight), as_column(y)
        weights, self.classes_ = self._weights_and_classes(y, sample_weight, known)
        return coded_data(rows, y, self.classes_, weights, self._names())

    def _encode_targets(self, y: Any, dtype: xp.DType) -> Array:
        return class_codes(np.asarray(y), self.classes_, dtype)

    def _weights_and_classes(
        self, y: RowNumbers, sample_weight: Weights, known: np.ndarray | None = None
    ) -> tuple[RowWeights | None, np.ndarray]:
        """Return the observation weights times the class weights, and the classes."""
        columns = as_columns(y)
        columns.check_with(check_classification_targets)
        weights = validation.weight_tensor(sample_weight, len(y))
        if self.class_weight is not None:
            labels, counts = columns.counts()
            table = weights_of_classes(self.class_weight, labels, counts)[:, None]
            by_class = columns.look_up(labels, table, flat=True)
            weights = by_class if weights is None else as_columns(weights).times(by_class)
        # A class of which all rows have weight zero is no class of the fit.
        return weights, classes_of(y, weights) if known is None else known

    def decision_function(self, X: RowsLike) -> Values:
        """Return the decision value of each class.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n,) for two classes, else (n, k)
            Decision values; for two classes, a positive value means the second class.
        """
        if is_collection(X):
            return lazily(self, "decision_function", X)
        values = self._predict(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict_proba(self, X: RowsLike) -> Values:
        """Return the probability of each class.

        The square loss on class codes estimates class shares; probabilities are these to a power,
        see `Shares`. If the fit compared kernels, penalties or iterations on held-out rows, the
        power minimises the log loss on these rows; else it is 1.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n, k)
            Probabilities in float64, with columns in the order of ``classes_``; rows sum to one.
        """
        if is_collection(X):
            return lazily(self, "predict_proba", X)
        return xp.exp(self._chances(X))

    def predict_log_proba(self, X: RowsLike) -> Values:
        """Return the logarithm of the probability of each class; see `predict_proba`.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n, k)
        """
        if is_collection(X):
            return lazily(self, "predict_log_proba", X)
        return self._chances(X)

    def predict_set(self, X: RowsLike, level: float = 0.9) -> np.ndarray:
        """Return prediction sets that contain the true class with a given probability.

        Parameters
        ----------
        X : as in `fit`
        level : float, default=0.9
            The probability, between 0 and 1.

        Returns
        -------
        ndarray of shape (n, k), of bool
            Membership of each class in the set of each row; a set has at least one class.

        Raises
        ------
        ValueError
            As in `KernelRidge.predict_interval`.

        Notes
        -----
        A set takes classes in the order of their probabilities up to a total: a quantile of the
        totals at which held-out rows reach their class (Romano, Sesia, Candes 2020), without the
        randomisation of the paper. The likeliest class is always in the set: if the accuracy
        exceeds the level, most sets have one class, and the coverage exceeds the level. See
        `KernelRidge.predict_interval` for the choice of held-out rows.
        """
        level = as_share(level, "level")
        check_is_fitted(self)
        rows = validation.new_rows(self, X)
        conformal = calibrated_intervals(self, rows, level)
        engine, memory = self._engine_of_prediction(rows), self._memory_bytes()
        return conformal.sets(self.model_, rows, level, engine=engine, memory_bytes=memory)

    def _chances(self, X: RowsLike) -> Array:
        values = self._predict(X)
        return self.model_.class_map.log(values)

    def predict(self, X: RowsLike) -> Values:
        """Return the predicted label of each row, (n,).

        Parameters
        ----------
        X : as in `fit`
        """
        if is_collection(X):
            return lazily(self, "predict", X)
        values = self.decision_function(X)
        # Of two classes, the second one if the only value is positive.
        best = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[best]

    def score(
        self, X: RowsLike, y: TargetsLike | None = None, sample_weight: Weights = None
    ) -> float:
        """Return the accuracy; see `KernelRidge.score`.

        Parameters
        ----------
        X, y, sample_weight : as in `KernelRidge.score`
        """
        check_is_fitted(self)
        arguments = rows_and_truth(self.model_, X, y, sample_weight)
        if is_streamed(arguments[0]):
            return remote_accuracy(self, *arguments)
        return float(super().score(*arguments))


def weights_of_classes(
    class_weight: dict[Any, float] | Literal["balanced"], classes: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Return the weight of each class by scikit-learn's rule for ``class_weight``."""
    if class_weight == "balanced":
        return np.asarray(counts.sum() / (len(classes) * counts), dtype=np.float64)
    return compute_class_weight(class_weight, classes=classes, y=classes)


def as_column(y: TargetsLike | Columns) -> RowNumbers:
    """Return labels of shape (n,), with scikit-learn's warning for a column vector."""
    return as_columns(y).check_with(
        lambda values: tables.as_labels(column_or_1d(values, warn=True))
    )
