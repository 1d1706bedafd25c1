"""The classifier `KernelRidgeClassifier`: least squares on balanced class codes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from ... import _arrays as xp
from ..._arrays import Array
from ..._parameters.fit_parameters import FitParameters
from ..._parameters.types import *  # `get_type_hints` looks for types of inherited fields here
from ...conformal import ConformalMethod
from ...fitting import Generators
from ...fitting.inputs.training_data import class_codes
from .. import tables
from ..base import restore_on_error
from ..types import ClassWeight, Columns, Labels, Read, RowsLike, TargetsLike, Weights
from . import plan as planning
from .classifier_methods import KernelClassifier, as_column
from .fit import continue_fit, fit_model, more_rows, solver_streams, warn_of


# The parameters of a fit, with their types and defaults, are declared in
# `_parameters/fit_parameters.py`: the class inherits them, and adds fields of its own.
@dataclass(eq=False, repr=False)
class KernelRidgeClassifier(KernelClassifier, FitParameters):
    """Classification by kernel ridge regression on class codes.

    With k > 2 classes, each class has a target of 1 for its rows and -1 / (k - 1) for other rows,
    so that the codes of a row sum to zero (as in the experiments of the FALKON paper); two classes
    share one target, -1 and 1. The prediction is the class of the largest value.

    Parameters
    ----------
    kernel, lengthscale, penalty, landmarks, standardize, metric, cells, cv, solver, max_iter, tol
        As in `KernelRidge`. Held-out rows are stratified by class. ``"auto"`` minimises
        the squared error of the codes; the path of `BlessR` the share of wrong labels, with ties
        broken by the squared error.
    loss : str or Loss, default="squared"
        Loss on the class codes. ``"logistic"``: the log loss (several classes: softmax), minimised
        by `Newton`; values are log odds, and `predict_proba` returns their probabilities. It helps
        with rare classes and probabilities near 0 and 1, at several times the cost. "auto" chooses
        kernel and lengthscale by squared errors, the penalty by the log loss on held-out rows. It
        excludes cells, early stopping and warm starts.
    memory_limit, callbacks, verbose, warm_start, centers_file, random_state
        As in `KernelRidge`; class codes are not standardised. A `Validate` callback takes labels.
    early_stopping, validation_fraction, patience, time_limit
        As in `KernelRidge`. Held-out rows are stratified by class. Iterations are
        compared by the share of wrong labels, and ties by the squared error of the codes.
    conformal, conformal_groups
        As in `KernelRidge`, for `predict_set`; ``"cqr"`` is for regressions.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class, multiplied by ``sample_weight``. "balanced": inversely proportional to
        the number of its rows.

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
    sklearn.linear_model.RidgeClassifier : The same method for linear functions.

    Notes
    -----
    `decision_function` estimates class shares: its value for a certain class is near the code.
    `predict_proba` maps it to probabilities, with a power that minimises the weighted log loss on
    held-out rows: the rows of early stopping; else the rows that chose kernel, lengthscale and
    penalty, if any of these is ``"auto"``. Without held-out rows the power is 1.

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
    conformal: str | ConformalMethod | None = None
    conformal_groups: str | int | None = None
    random_state: RandomState = None
    class_weight: ClassWeight = None

    plan = planning.plan
    check_memory = planning.check_memory

    def fit(
        self,
        X: RowsLike,
        y: TargetsLike,
        sample_weight: Weights = None,
        *,
        columns: Columns = None,
        drop_missing_target: bool = False,
        read: Read = None,
    ) -> KernelRidgeClassifier:
        """Fit the classifier to rows and labels.

        Parameters
        ----------
        X : as in `KernelRidge.fit`
        y : str, or array-like of shape (n,)
            The name of a column of X, or labels of at least two classes: numbers, strings or
            booleans.
        sample_weight : str or array-like of shape (n,), optional
            The name of a column of X, or values.
        columns : sequence of str, optional
            Columns of a table to learn from; all others by default.
        drop_missing_target : bool, default=False
            Whether to leave out rows of a table without a target, with a warning.
        read : dict or ReadOptions, optional
            How to read a table, such as ``{"separator": ";", "types": {"zip": "category"}}``: see
            `gramian.data.ReadOptions`. The model stores it, and reads new files alike.

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
        settings, rng = self._settings(), Generators.from_random_state(self._state())
        with restore_on_error(self):
            X = tables.with_read_options(X, y, read)
            whole_rows, classes = self._classification_data(
                X, y, sample_weight, columns, settings, rng, None, drop_missing_target
            )

            # Labels of a `Validate` callback become codes of the training classes, known only now.
            def encode(labels: ArrayLike, dtype: xp.DType) -> Array:
                return class_codes(np.asarray(labels), classes, dtype)

            fitted = fit_model(self, whole_rows, encode, rng)
            self.classes_ = classes
            warn_of(UserWarning, fitted.end_of_path())
            warn_of(ConvergenceWarning, fitted.stall_warning() or fitted.iteration_warning())
        return self

    @available_if(solver_streams)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: RowsLike,
        y: TargetsLike,
        classes: Labels = None,
        sample_weight: Weights = None,
    ) -> KernelRidgeClassifier:
        """Continue with one pass over more rows; see `KernelRidge.partial_fit`.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
        classes : array-like of shape (k,), optional
            All labels, required in the first call, whose rows may lack some of them.

        Returns
        -------
        KernelRidgeClassifier
            Itself. If the call fails, the estimator is unchanged.
        """
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' requires all rows; give a dict of weights")
        settings = self._settings()
        with restore_on_error(self):
            rows, y = more_rows(self, X, y)
            known_classes = _known_classes(classes, getattr(self, "classes_", None))
            data, _ = self._encode_classes(rows, as_column(y), sample_weight, known_classes)
            fitted = continue_fit(self, settings, data)
            self.classes_ = known_classes
            warn_of(ConvergenceWarning, fitted.stall_warning())
        return self


def _known_classes(classes: Labels, first_classes: np.ndarray | None) -> np.ndarray:
    """Return the classes of `partial_fit`, which the first call defines."""
    if classes is None and first_classes is None:
        raise ValueError("classes, all labels, must be given in the first call of partial_fit")
    if classes is None or first_classes is None:
        return first_classes if first_classes is not None else np.unique(np.asarray(classes))
    # Each class is a column of the coefficients, which later calls cannot add.
    if not np.array_equal(np.unique(np.asarray(classes)), first_classes):
        raise ValueError(
            "classes must be the same as in the first call of partial_fit, "
            f"{first_classes.tolist()}, not {classes!r}"
        )
    return first_classes
