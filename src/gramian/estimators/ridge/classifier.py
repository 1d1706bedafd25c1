"""The classifier `KernelRidgeClassifier`: least squares on balanced class codes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from ..._parameters.fit_parameters import FitParameters
from ..._parameters.types import *  # `get_type_hints` looks for types of inherited fields here
from ...conformal import ConformalMethod
from ..base import restore_on_error
from ..types import ClassWeight, Labels, RowsLike, TargetsLike, Weights
from . import fit as of_one_fit
from .classifier_methods import KernelClassifier
from .fit import continue_fit, more_rows, solver_streams, warn_of


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

    fit = of_one_fit.fit
    plan = of_one_fit.plan
    check_memory = of_one_fit.check_memory

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
            data = self._read_rows(rows, y, sample_weight, known_classes)
            fitted = continue_fit(self, settings, data)
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
