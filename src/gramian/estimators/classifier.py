"""KernelRidgeClassifier: least squares on balanced class codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from ..data import RowSource
from . import inputs, partial
from .base import KernelRidgeBase
from .regressor import _names
from .task import Data


class KernelRidgeClassifier(ClassifierMixin, KernelRidgeBase):
    """Classification by kernel ridge regression on class codes.

    Of k > 2 classes, each has a target that is 1 for its rows and -1 / (k - 1) for the others, so
    that the codes of a row sum to zero (as in the experiments of the FALKON paper); two classes
    share one target, -1 and 1. The prediction is the class of the largest value.

    Parameters
    ----------
    kernel, lengthscale, penalty, landmarks, cv, solver, max_iter, tol, engine, memory_limit
        As in `KernelRidge`. With ``penalty="auto"`` held-back rows have the same share of each
        class, to one row, and penalties are compared by the share of rows in a wrong class, and
        where that is the same by the squared error of the codes.
    callbacks, warm_start, centers_file, random_state
        As in `KernelRidge`. A `Validate` callback takes labels.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class; multiplied with ``sample_weight``. "balanced": inverse to the number
        of its rows.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    model_, dual_coef_, landmark_index_, n_iter_, stop_reason_, history_, solver_, engine_, kernel_
        As in `KernelRidge`.
    penalty_, path_
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

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        lengthscale: Any = "median",
        penalty: Any = 1e-6,
        landmarks: Any = None,
        cv: Any = None,
        solver: Any = "auto",
        max_iter: Any = 100,
        tol: Any = 1e-6,
        engine: Any = "auto",
        memory_limit: Any = None,
        callbacks: Any = (),
        warm_start: Any = False,
        centers_file: Any = None,
        random_state: Any = None,
        class_weight: Any = None,
    ) -> None:
        super().__init__(
            kernel,
            lengthscale=lengthscale,
            penalty=penalty,
            landmarks=landmarks,
            cv=cv,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            engine=engine,
            memory_limit=memory_limit,
            callbacks=callbacks,
            warm_start=warm_start,
            centers_file=centers_file,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidgeClassifier:
        """Fit the model.

        Parameters
        ----------
        X : as in `KernelRidge.fit`
        y : array-like of shape (n,)
            Labels: numbers, strings or booleans, of at least two classes.
        sample_weight : array-like of shape (n,), optional

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
        with self._all_or_nothing():
            rows, y = inputs.training_rows(self, X, y)
            data, classes = self._coded(rows, _column(y), sample_weight)

            def encode(labels: Any) -> Tensor:
                return class_codes(np.asarray(labels), classes, rows.dtype)

            labels = tuple(label.item() for label in classes)
            self._fit(data, encode, feature_names=_names(self), classes=labels)
            self.classes_ = classes
        return self

    @available_if(partial.streams)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
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
        with self._all_or_nothing():
            rows, y = partial.rows_and_targets(self, X, y)
            known = _known_classes(classes, getattr(self, "classes_", None))
            data, _ = self._coded(rows, _column(y), sample_weight, known)
            labels = tuple(label.item() for label in known)
            partial.one_pass(self, data, feature_names=_names(self), classes=labels)
            self.classes_ = known
        return self

    def _coded(
        self, rows: RowSource, y: np.ndarray, sample_weight: Any, known: np.ndarray | None = None
    ) -> tuple[Data, np.ndarray]:
        """Return the data with class codes as targets, and the classes."""
        check_classification_targets(y)
        weights = inputs.weight_tensor(sample_weight, len(rows))
        if self.class_weight is not None:
            by_class = torch.from_numpy(compute_sample_weight(self.class_weight, y))
            weights = by_class if weights is None else weights * by_class
        seen = np.ones(len(y), bool) if weights is None else weights.numpy() > 0
        classes = np.unique(y[seen]) if known is None else known
        if len(classes) < 2:
            raise ValueError(
                f"y holds one class only, {classes.tolist()}, in rows of positive weight; a "
                "classifier needs at least two classes"
            )
        # rows of weight zero may have labels that are no class: any code will do for them
        codes = class_codes(np.where(seen, y, classes[0]), classes, rows.dtype)
        return Data.build(rows, codes, weights), classes

    def decision_function(self, X: Any) -> np.ndarray:
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

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted label of each row, (n,)."""
        values = self.decision_function(X)
        best = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        labels: np.ndarray = self.classes_[best]
        return labels


def _known_classes(given: Any, before: np.ndarray | None) -> np.ndarray:
    """Return the classes of `partial_fit`: those of the first call."""
    if given is None and before is None:
        raise ValueError("classes must be given in the first call of partial_fit: all labels")
    if given is None or before is None:
        return before if before is not None else np.unique(np.asarray(given))
    if not np.array_equal(np.unique(np.asarray(given)), before):
        raise ValueError(f"classes={given!r} are not those of the first call, {before.tolist()}")
    return before


def class_codes(y: np.ndarray, classes: np.ndarray, dtype: torch.dtype) -> Tensor:
    """Return the codes of labels: (n, 1) for two classes, else (n, k).

    Raises
    ------
    ValueError
        If a label is none of the classes.
    """
    place = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    unknown = classes[place] != y
    if unknown.any():
        label = y[unknown].tolist()[0]
        raise ValueError(f"label {label!r} is none of the classes seen in training")
    index = torch.from_numpy(place)
    if len(classes) == 2:
        return (2 * index - 1).to(dtype)[:, None]
    codes = torch.full((len(y), len(classes)), -1 / (len(classes) - 1), dtype=dtype)
    return codes.scatter_(1, index[:, None], 1.0)


def _column(y: Any) -> np.ndarray:
    """Return labels of shape (n,), with scikit-learn's warning for a column of them."""
    from sklearn.utils import column_or_1d

    labels: np.ndarray = column_or_1d(y, warn=True)
    if labels.dtype.kind == "O":
        return labels.astype(str) if all(isinstance(v, str) for v in labels) else labels
    return labels
