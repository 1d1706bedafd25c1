"""KernelRidgeClassifier: least squares on balanced class codes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import column_or_1d, compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..data import RowSource
from ..fitting import TrainingData, holds_out, table_data
from ..fitting.parameters import (  # noqa: F401  the types of inherited fields are looked up here
    Callbacks,
    Count,
    EngineLike,
    FileLike,
    Flag,
    Folds,
    Inputs,
    KernelLike,
    LandmarksLike,
    Lengthscale,
    MemoryLimit,
    MetricLike,
    Number,
    OptionalFlag,
    OptionalNumber,
    Penalty,
    RandomState,
    SolverLike,
    Tolerance,
)
from ..fitting.targets import as_labels, class_codes, classes_of, coded_data
from . import inputs, tables
from .arguments import ClassWeight, Columns, Labels, RowsLike, TargetsLike, Weights
from .kernel_ridge import KernelRidgeBase, solver_streams, warn_of


@dataclass(eq=False, repr=False)
class KernelRidgeClassifier(ClassifierMixin, KernelRidgeBase):
    """Classification by kernel ridge regression on class codes.

    Of k > 2 classes, each has a target that is 1 for its rows and -1 / (k - 1) for the others, so
    that the codes of a row sum to zero (as in the experiments of the FALKON paper); two classes
    share one target, -1 and 1. The prediction is the class of the largest value.

    Parameters
    ----------
    kernel, lengthscale, penalty, landmarks, standardize, metric, cv, solver, max_iter, tol, engine
        As in `KernelRidge`. Held-out rows have the same share of each class, to one row. What is
        ``"auto"`` is chosen by the squared error of the codes, penalties of the path of `BlessR` by
        the share of rows in a wrong class, and where that is the same by the squared error.
    memory_limit, callbacks, warm_start, centers_file, random_state
        As in `KernelRidge`; codes of classes are not standardised. A `Validate` callback takes
        labels.
    early_stopping, validation_fraction, patience, time_limit
        As in `KernelRidge`. The rows held out have the same share of each class, to one row.
        Iterations are compared by the share of rows in a wrong class, and where that is the same by
        the squared error of the codes.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class; multiplied with ``sample_weight``. "balanced": inverse to the number
        of its rows.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    model_, dual_coef_, landmark_index_, n_iter_, stop_reason_, history_, solver_, engine_, kernel_
        As in `KernelRidge`.
    penalty_, path_, best_iteration_, validation_error_
        As in `KernelRidge`.
    metric_, metric_history_, feature_importances_
        As in `KernelRidge`.

    See Also
    --------
    sklearn.linear_model.RidgeClassifier : The same idea for a linear function.

    Notes
    -----
    Values are not probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import KernelRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> est = KernelRidgeClassifier(landmarks=50, random_state=0).fit(X, y)
    >>> est.score(X, y) > 0.9
    True
    """

    _: KW_ONLY
    class_weight: ClassWeight = None

    def fit(
        self,
        X: RowsLike,
        y: TargetsLike,
        sample_weight: Weights = None,
        *,
        columns: Columns = None,
    ) -> KernelRidgeClassifier:
        """Fit the model.

        Parameters
        ----------
        X : as in `KernelRidge.fit`
        y : str, or array-like of shape (n,)
            The name of a column of X, or labels: numbers, strings or booleans, of at least two
            classes.
        sample_weight : array-like of shape (n,), optional
        columns : sequence of str, optional
            Columns of a table to learn from; all but the target by default.

        Returns
        -------
        KernelRidgeClassifier
            Itself. If fitting fails, the last fit is kept.

        Raises
        ------
        ValueError
            If there is one class only, or the input or a parameter cannot be used; if a column of
            a file or a table, or any that has a name, equals the labels in every row.
        """
        settings, rng = self._settings(), self._generators()
        with self._all_or_nothing():
            self._by_name = tables.is_by_name(X, y, columns)
            if self._by_name:
                table = tables.opened(self, X, y, columns)
                labels = as_column(table.y)
                table = replace(table, y=labels)
                weights, classes = weights_and_classes(labels, sample_weight, self.class_weight)
                data, settings = table_data(
                    table,
                    settings,
                    rng,
                    classes=classes,
                    weights=weights,
                    hold_out=holds_out(settings),
                )
            else:
                rows, y = inputs.training_rows(self, X, y)
                data, classes = self._coded(rows, as_column(y), sample_weight)

            def encode(labels: ArrayLike) -> Tensor:
                return class_codes(np.asarray(labels), classes, data.rows.dtype)

            fitted = self._fit(settings, data, encode, rng)
            self.classes_ = classes
            warn_of(UserWarning, fitted.end_of_path())
            warn_of(ConvergenceWarning, fitted.stalled() or fitted.unfinished())
        return self

    @available_if(solver_streams)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: RowsLike,
        y: TargetsLike,
        classes: Labels = None,
        sample_weight: Weights = None,
    ) -> KernelRidgeClassifier:
        """Go on with one pass over more rows; see `KernelRidge.partial_fit`.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        classes : array-like of shape (k,), optional
            All labels there are, needed in the first call, which may not have a row of each.

        Returns
        -------
        KernelRidgeClassifier
            Itself. If it fails, it is as it was before.
        """
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all rows; give weights as a dict")
        settings = self._settings()
        with self._all_or_nothing():
            rows, y = self._more_rows(X, y)
            known = _known_classes(classes, getattr(self, "classes_", None))
            data, _ = self._coded(rows, as_column(y), sample_weight, known)
            fitted = self._go_on(settings, data)
            self.classes_ = known
            warn_of(ConvergenceWarning, fitted.stalled())
        return self

    def _coded(
        self,
        rows: RowSource,
        y: np.ndarray,
        sample_weight: Weights,
        known: np.ndarray | None = None,
    ) -> tuple[TrainingData, np.ndarray]:
        """Return the data with class codes as targets, and the classes."""
        weights, classes = weights_and_classes(y, sample_weight, self.class_weight, known)
        return coded_data(rows, y, classes, weights, self._names()), classes

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
        """Return the predicted label of each row, (n,)."""
        return chosen_labels(self.decision_function(X), self.classes_)


def chosen_labels(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the class of the largest value of each row; of two, the second if it is positive."""
    best = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
    labels: np.ndarray = classes[best]
    return labels


def weights_and_classes(
    y: np.ndarray,
    sample_weight: Weights,
    class_weight: ClassWeight,
    known: np.ndarray | None = None,
) -> tuple[Tensor | None, np.ndarray]:
    """Return the weights of rows, those of their classes included, and the classes."""
    check_classification_targets(y)
    weights = inputs.weight_tensor(sample_weight, len(y))
    if class_weight is not None:
        by_class = torch.from_numpy(compute_sample_weight(class_weight, y))
        weights = by_class if weights is None else weights * by_class
    return weights, classes_of(y, weights) if known is None else known


def _known_classes(given: Labels, before: np.ndarray | None) -> np.ndarray:
    """Return the classes of `partial_fit`: those of the first call."""
    if given is None and before is None:
        raise ValueError("classes must be given in the first call of partial_fit: all labels")
    if given is None or before is None:
        return before if before is not None else np.unique(np.asarray(given))
    if not np.array_equal(np.unique(np.asarray(given)), before):
        raise ValueError(f"classes={given!r} are not those of the first call, {before.tolist()}")
    return before


def as_column(y: TargetsLike) -> np.ndarray:
    """Return labels of shape (n,), with scikit-learn's warning for a column of them."""
    return as_labels(column_or_1d(y, warn=True))
