"""Fits and calibrations of the ridge estimators by `gramian.fitting`, and fitted attributes."""

from __future__ import annotations

import warnings
from dataclasses import asdict, replace
from functools import partial
from typing import cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length

from ... import _arrays as xp
from ... import fitting
from ..._messages.checks import as_count
from ..._messages.errors import Text
from ..._parameters.fit_parameters import FitParameters
from ...callbacks import Validate
from ...callbacks.progress import show_progress
from ...conformal import ConformalPredictor
from ...data import RowSource, as_rows
from ...fitting import FitSettings, Fitted, Generators, TrainingData
from ...fitting import Plan as Plan
from ...fitting.inputs.kernel_matrix import only_columns
from ...fitting.inputs.objects import ObjectRows
from ...model import KernelModel
from .. import tables, validation
from ..base import describe_kernel, has_features, is_function, restore_on_error, squeeze_coef
from ..types import Columns, Read, RowsLike, TargetsLike, Weights
from .base import Estimator, KernelRidgeModel


def fit(
    estimator: Estimator,
    X: RowsLike,
    y: TargetsLike,
    sample_weight: Weights = None,
    *,
    columns: Columns = None,
    drop_missing_target: bool = False,
    read: Read = None,
) -> Estimator:
    """Fit the estimator to rows and targets.

    Parameters
    ----------
    X : array-like, sparse matrix, DataFrame, Arrow table, tensor, path or RowSource
        n rows of d features; or a table: a path, a frame of pandas, polars, Arrow, DuckDB, a
        dict of columns, or a list of dicts.
        Table columns that are not numbers, or have missing values, are encoded, see
        `TableEncoder`.
    y : str, list of str, or array-like of shape (n,) or (n, t)
        The name of a column of X, names of t columns, or values. Of a classifier, the name of a
        column, or labels of at least two classes: numbers, strings or booleans.
    sample_weight : str or array-like of shape (n,), optional
        The name of a column of X, or values. An integer weight repeats its row; but see the
        notes on tables.
    columns : sequence of str, optional
        Columns of a table to learn from; all others by default.
    drop_missing_target : bool, default=False
        Whether to leave out rows of a table without a target, with a warning.
    read : dict or ReadOptions, optional
        How to read a table, such as ``{"separator": ";", "types": {"zip": "category"}}``: see
        `gramian.data.ReadOptions`. The model stores it, and reads new files alike.

    Returns
    -------
    KernelRidge or KernelRidgeClassifier
        Itself. If fitting fails, the last fit is kept.

    Raises
    ------
    ValueError
        If the input or a parameter cannot be used, or does not fit in memory; if a column of a
        file or a table, or any that has a name, equals a target in every row; if labels are of
        one class only; if the largest number of a target, unless it is 0, is not between 1e-140
        and 1e140 in size (1e-25 and 1e25 with float32 rows).
    """
    settings, rng = estimator._settings(), Generators.from_random_state(estimator._state())
    with restore_on_error(estimator):
        whole_rows = estimator._load_rows(
            X, y, sample_weight, settings, rng, columns=columns, read=read,
            drop_missing_target=drop_missing_target,
        )  # fmt: skip
        fitted = fit_model(estimator, whole_rows, rng)
        warn_of(UserWarning, fitted.end_of_path())
        warn_of(ConvergenceWarning, fitted.stall_warning() or fitted.iteration_warning())
    return estimator


def plan(
    estimator: KernelRidgeModel,
    X: RowsLike,
    y: TargetsLike | None = None,
    *,
    columns: Columns = None,
    read: Read = None,
    targets: int = 1,
) -> Plan:
    """Estimate the memory and time of a fit, without computing it.

    Parameters
    ----------
    X, y, columns, read : as in `fit`
        A table is read once, to count the features of its encoded columns. Without y, all
        columns are features.
    targets : int, default=1
        Number of targets without y: outputs of a regression, classes beyond two.

    Returns
    -------
    Plan
        Solver, landmarks, peak memory, kernel evaluations and seconds on this machine.

    Raises
    ------
    ValueError
        If the fit exceeds ``memory_limit``; the message gives a remedy. If the number of
        landmarks is unknown before their selection, as with ``Bless(penalty=1e-6)``.

    Notes
    -----
    ``penalty="auto"``: kernel evaluations and seconds are an estimate for the whole path, with
    landmarks that grow with the inverse square root of the penalty. Memory is for the last
    level.

    Parameters that are ``"auto"`` are chosen before the fit, on a sample of at most 8,000 rows.
    The choice takes about as long as the fit, and is not included in the plan.

    The call measures the speed of this machine in about a quarter of a second; longer on a
    device.
    """
    count, labels = as_count(targets, "targets"), is_classifier(estimator)
    settings = estimator._settings()
    if is_function(estimator.kernel):
        # Objects have no columns to encode, and their kernel is not called for a plan.
        objects = validation.object_rows(estimator.kernel, X)
        count = count if y is None else tables.target_count(y, labels)
        return fitting.plan(settings, objects, count)
    X = tables.with_read_options(X, y, read)
    settings, rows, count = tables.plan_inputs(settings, X, y, columns, count, labels)
    return fitting.plan(settings, rows, count)


def check_memory(estimator: KernelRidgeModel, X: RowsLike, *, targets: int = 1) -> None:
    """Raise ValueError if a fit exceeds ``memory_limit``, without reading or measuring.

    `plan` has the same parameters, raises the same errors and lists the memory; a fit raises
    the error after its check for missing values.

    Raises
    ------
    ValueError
        The message gives a remedy.
    """
    kernel = estimator.kernel
    rows = validation.object_rows(kernel, X) if is_function(kernel) else as_rows(X)
    fitting.check_memory(estimator._settings(), rows, as_count(targets, "targets"))


def fit_model(estimator: KernelRidgeModel, dataset: fitting.Whole, rng: Generators) -> Fitted:
    """Fit a model to all rows, before the calibration split, and set the estimator's attributes."""
    if estimator.conformal is not None and not has_features(estimator.kernel):
        raise ValueError(
            f"conformal={estimator.conformal!r} requires rows of features, which "
            f"{describe_kernel(estimator.kernel)} does not have; leave it out"
        )
    divided = divide_rows(estimator, dataset)
    data = divided.train
    # Validation targets are in the units of the user: encode them as the training targets.
    bound = [
        callback.with_targets(
            estimator._encode_targets(callback.y, data.rows.dtype), coded=data.coded
        )
        if isinstance(callback, Validate)
        else callback
        for callback in divided.settings.callbacks
    ]
    with show_progress(divided.settings.verbose, divided.settings.max_iter) as shown:
        settings = divided.settings.with_values(callbacks=[*bound, *shown])
        fitted = fitting.fit(settings, data, rng=rng, before=_last_fit(estimator))
    _set_attributes(estimator, fitted)
    estimator._training = data if has_features(estimator.kernel) else None
    if isinstance(data.rows, ObjectRows):
        _keep_objects(estimator, data.rows)
    # The fit numbers the rows that it received: the attribute numbers the rows of the caller.
    if divided.learn is not None and (chosen := fitted.landmark_rows) is not None:
        estimator.landmark_index_ = divided.learn[chosen]
    # Last: it needs the attributes above, and replaces the model by one with intervals.
    if estimator.conformal is not None:
        calibrate_model(estimator, data, divided.held_out_data)
    return fitted


def continue_fit(estimator: KernelRidgeModel, settings: FitSettings, data: TrainingData) -> Fitted:
    """Continue a fit by one pass over more rows, and set the attributes of the estimator."""
    if estimator.conformal is not None:
        raise ValueError("partial_fit holds back no rows for intervals; leave conformal out")
    rng = Generators.from_random_state(estimator._state(), folds=False)
    estimator._training = None  # rows of earlier calls are not kept
    fitted = fitting.partial_fit(settings, data, rng=rng, before=_last_fit(estimator))
    _set_attributes(estimator, fitted)
    return fitted


def more_rows(
    estimator: KernelRidgeModel, X: RowsLike, y: TargetsLike
) -> tuple[RowSource, np.ndarray]:
    """Return rows and targets of `partial_fit`, with the features of the first call."""
    if is_function(estimator.kernel):
        raise ValueError(
            "partial_fit requires rows, which a kernel of objects does not have; use fit"
        )
    tables.refuse_in_parts(estimator, X, y)
    # The first call defines the features that later calls must have.
    if not hasattr(estimator, "_fitted"):
        return validation.training_rows(estimator, X, y, estimator._settings())
    rows = validation.new_rows(estimator, X)
    values = validation.host_values(y, "y")
    targets: np.ndarray = check_array(values, ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(np.empty((len(rows), 0)), targets)
    return rows, targets


def _last_fit(estimator: KernelRidgeModel) -> Fitted | None:
    """Return the last fit, with the current model."""
    last: Fitted | None = getattr(estimator, "_fitted", None)
    if last is None:
        return None
    return replace(last, model=cast("KernelModel", estimator.model_.parts[0]))


def _set_attributes(estimator: KernelRidgeModel, fitted: Fitted) -> None:
    estimator._fitted = fitted
    estimator._set_model(fitted.model)
    estimator.landmark_index_ = fitted.landmark_rows
    penalties = fitted.settings.penalties
    estimator.penalty_ = fitted.penalty if penalties is None else np.array(penalties)
    estimator.path_ = fitted.path
    # A closed form takes no iteration, but `check_estimator` requires at least one.
    estimator.n_iter_ = max(fitted.iteration, 1)
    estimator.stop_reason_, estimator.history_ = fitted.reason, fitted.history
    estimator.best_iteration_ = fitted.best_iteration
    estimator.validation_error_ = fitted.validation_error
    estimator.solver_, estimator.solver_settings_ = fitted.solver, fitted.solver_settings
    estimator.engine_ = fitted.engine
    if not has_features(estimator.kernel):  # the model is a linear function of rows of the matrix
        centers = fitted.model.centers
        estimator.kernel_ = estimator.kernel
        estimator.dual_coef_ = squeeze_coef(centers.take(xp.arange(len(centers))).T)
    learned = fitted.learned
    rounds = None if learned is None else [asdict(fit) for fit in learned.rounds]
    estimator.metric_history_ = rounds


def _keep_objects(estimator: KernelRidgeModel, rows: ObjectRows) -> None:
    """Keep only the objects whose coefficients are not zero, because predictions need no others."""
    # An object without a coefficient would cost a call of the kernel for each new object.
    coef = np.asarray(estimator.dual_coef_)
    is_used = np.atleast_1d(coef.reshape(len(rows), -1).any(axis=1))
    is_used[0] |= not is_used.any()  # a model needs at least one center
    used = np.flatnonzero(is_used)
    estimator.model_ = only_columns(estimator._fitted.model, used)
    estimator.dual_coef_ = coef[used]
    estimator.objects_ = [rows.calls.objects[i] for i in used.tolist()]


def solver_streams(parameters: FitParameters) -> bool:
    """Return whether an estimator supports `partial_fit`.

    Raise AttributeError if its solver does not support it: scikit-learn then hides
    ``partial_fit``.
    """
    if not fitting.supports_partial_fit(parameters.solver):
        raise AttributeError(
            f"partial_fit needs solver='eigenpro3' or 'sketchysaga', not {parameters.solver!r}"
        )
    return True


def warn_of(category: type[Warning], text: Text | None) -> None:
    """Issue a warning with the given text, if any, at the line that calls the method."""
    if text is not None:
        warnings.warn(str(text), category, stacklevel=3)


def divide_rows(estimator: KernelRidgeModel, dataset: fitting.Whole) -> fitting.DividedRows:
    """Split the rows of a fit into training and calibration rows.

    Raise ValueError if the method is unknown, or ``warm_start`` is set.
    """
    method, groups = estimator.conformal, estimator.conformal_groups
    if method is None and groups is None:
        return dataset.without(None)
    if method is not None and getattr(estimator, "warm_start", False):
        fitting.resolve_method(method, classes=dataset.classes is not None)
        raise ValueError(
            f"conformal={method!r} cannot be combined with warm_start=True, because the last fit "
            "may have seen the calibration rows; leave one of them out"
        )
    return fitting.divide_calibration(dataset, method, groups, estimator._draws)


def calibrate_model(
    estimator: KernelRidgeModel, data: TrainingData, held_data: TrainingData | None
) -> ConformalPredictor:
    """Calibrate the intervals of the model, by held-out rows or by refits to fewer rows."""
    # A row of weight zero counts as no row, in the folds as in the fits.
    data = data.without_zero_weights()
    conformal = fitting.calibrate_model(
        estimator.conformal,
        estimator.conformal_groups,
        partial(estimator._refit, data),
        data,
        held_data,
        estimator._state,
    )
    estimator.model_ = replace(estimator.model_, conformal=conformal)
    return conformal


def calibrated_intervals(
    estimator: KernelRidgeModel, rows: RowSource, level: float
) -> ConformalPredictor:
    """Return the intervals of a fitted model; calibrate them if the fit did not.

    Warn if there are too few calibration rows for the level.
    """
    conformal = estimator.model_.conformal
    if conformal is None:
        if estimator._training is None:
            raise ValueError(
                "this model was fitted without intervals, and copies, loaded models and "
                "partial_fit do not keep the training rows that calibrate them; fit with "
                "conformal='split'"
            )
        conformal = calibrate_model(estimator, estimator._training, None)
    for shortfall in conformal.shortfalls(level, rows):
        warnings.warn(str(shortfall), UserWarning, stacklevel=3)
    return conformal
