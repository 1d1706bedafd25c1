"""Methods of the ridge estimators that estimate memory and time before a fit."""

from __future__ import annotations

from sklearn.base import is_classifier

from ... import fitting
from ..._messages.checks import as_count
from ...data import as_rows
from ...fitting import Plan as Plan
from .. import tables, validation
from ..base import is_function
from ..types import Columns, Read, RowsLike, TargetsLike
from .base import KernelRidgeModel


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
        If the fit exceeds ``memory_limit``; the message gives a remedy. If the number of landmarks
        is unknown before their selection, as with ``Bless(penalty=1e-6)``.

    Notes
    -----
    ``penalty="auto"``: kernel evaluations and seconds are an estimate for the whole path, with
    landmarks that grow with the inverse square root of the penalty. Memory is for the last level.

    Parameters that are ``"auto"`` are chosen before the fit, on a sample of at most 8,000 rows. The
    choice takes about as long as the fit, and is not included in the plan.

    The call measures the speed of this machine in about a quarter of a second; longer on a device.
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

    `plan` has the same parameters, raises the same errors and lists the memory; a fit raises the
    error after its check for missing values.

    Raises
    ------
    ValueError
        The message gives a remedy.
    """
    kernel = estimator.kernel
    rows = validation.object_rows(kernel, X) if is_function(kernel) else as_rows(X)
    fitting.check_memory(estimator._settings(), rows, as_count(targets, "targets"))
