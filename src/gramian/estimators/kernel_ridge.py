"""KernelRidgeBase: the parameters, fits and predictions of the regressor and the classifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_array, check_consistent_length, check_random_state
from torch import Tensor

from .. import fitting
from .._checks import as_count
from ..callbacks import Validate
from ..data import RowSource, as_rows
from ..fitting import FitSettings, Fitted, Generators, Plan, TrainingData
from ..fitting.parameters import (
    Callbacks,
    CellsLike,
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
from ..metric import Metric
from . import inputs, tables
from .arguments import Columns, RowsLike, TargetsLike
from .explaining import metric_history
from .predicting import Predicting
from .rows_estimator import as_numpy, squeezed


@dataclass(eq=False, repr=False)
class KernelRidgeBase(Predicting):
    """Kernel ridge regression with any solver; subclasses say what targets and outputs are."""

    kernel: KernelLike = "auto"
    _: KW_ONLY
    lengthscale: Lengthscale = "auto"
    penalty: Penalty = "auto"
    landmarks: LandmarksLike = "auto"
    standardize: Inputs = "auto"
    standardize_target: OptionalFlag = None
    metric: MetricLike = None
    cells: CellsLike = None
    cv: Folds = None
    solver: SolverLike = "auto"
    max_iter: Count = 100
    tol: Tolerance = "auto"
    engine: EngineLike = "auto"
    memory_limit: MemoryLimit = None
    callbacks: Callbacks = ()
    warm_start: Flag = False
    centers_file: FileLike = None
    early_stopping: Flag = False
    validation_fraction: Number = 0.1
    patience: Count = 5
    time_limit: OptionalNumber = None
    random_state: RandomState = None

    def __sklearn_tags__(self) -> Any:
        """Say that sparse rows are accepted, but where quantiles or a learned metric need others.

        A matrix that is given as the metric refuses them, too, once they are there.
        """
        tags = super().__sklearn_tags__()
        quantiles = isinstance(self.standardize, str) and self.standardize != "auto"
        tags.input_tags.sparse = not (quantiles or isinstance(self.metric, str | Metric))
        return tags

    # --- planning ------------------------------------------------------------------------------

    def plan(
        self,
        X: RowsLike,
        y: TargetsLike | None = None,
        *,
        columns: Columns = None,
        targets: int = 1,
    ) -> Plan:
        """Say what a fit will need, before anything is computed.

        Parameters
        ----------
        X, y, columns : as in `fit`
            A table is read once, to know how many features its columns become. Without y, all
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
            If it does not fit in ``memory_limit``; the message says what would. If the number of
            landmarks is not known before they are selected, as with ``Bless(penalty=1e-6)``.

        Notes
        -----
        ``penalty="auto"``: kernel evaluations and seconds are an estimate for the whole path, if
        it does not end early: that the number of landmarks grows with the inverse of the square
        root of the penalty. Memory is for the last level.

        What is ``"auto"`` is chosen before the fit, which takes about as long again, on a sample of
        at most 8,000 rows, and is not in the plan.

        Takes about half a second, to measure the speed of this machine; some more on a device.
        """
        settings, rows, t = tables.sized(
            self._settings(), X, y, columns, as_count(targets, "targets"), is_classifier(self)
        )
        return fitting.plan(settings, rows, t)

    def check_memory(self, X: RowsLike, *, targets: int = 1) -> None:
        """Refuse what does not fit in ``memory_limit``, without reading or measuring anything.

        Parameters are those of `plan`, which refuses the same and says what is needed; a fit does
        so once it has looked for missing values.

        Raises
        ------
        ValueError
            The message says what would fit.
        """
        fitting.check_memory(self._settings(), as_rows(X), as_count(targets, "targets"))

    def _settings(self) -> FitSettings:
        """Return the parameters of a fit, checked."""
        return FitSettings(**{f.name: getattr(self, f.name) for f in fields(FitSettings)})

    # --- fitting -------------------------------------------------------------------------------

    def _fit(
        self,
        settings: FitSettings,
        data: TrainingData,
        encode: Callable[[Any], Tensor],
        rng: Generators,
    ) -> Fitted:
        """Fit and set the attributes that regressor and classifier have in common."""
        bound = [
            callback.with_targets(encode(callback.y), coded=data.coded)
            if isinstance(callback, Validate)
            else callback
            for callback in settings.callbacks
        ]
        return self._keep(
            fitting.fit(
                replace(settings, callbacks=bound),
                data,
                rng=rng,
                before=self._before(),
            )
        )

    def _generators(self) -> Generators:
        return Generators.seeded(check_random_state(self.random_state))

    def _go_on(self, settings: FitSettings, data: TrainingData) -> Fitted:
        """Pass once over more rows and set the attributes in common."""
        rng = Generators.seeded(check_random_state(self.random_state), folds=False)
        return self._keep(fitting.go_on(settings, data, rng=rng, before=self._before()))

    def _before(self) -> Fitted | None:
        """Return the last fit, with the model that is there now."""
        last: Fitted | None = getattr(self, "_fitted", None)
        return None if last is None else replace(last, model=self.model_.parts[0])

    def _keep(self, fitted: Fitted) -> Fitted:
        """Set what each call that fits leaves behind."""
        self._fitted = fitted
        self.model_, self.dual_coef_ = fitted.model, squeezed(fitted.model.coef)
        self.landmark_index_ = as_numpy(fitted.landmark_rows)
        self.penalty_, self.path_ = fitted.penalty, fitted.path
        self.n_iter_ = max(fitted.iteration, 1)
        self.stop_reason_, self.history_ = fitted.reason, fitted.history
        self.best_iteration_ = fitted.best_iteration
        self.validation_error_ = fitted.validation_error
        self.solver_, self.solver_settings_ = fitted.solver, fitted.solver_settings
        self.engine_, self.kernel_ = fitted.engine, fitted.model.kernel
        self.metric_history_ = metric_history(fitted.learned)
        return fitted

    def _more_rows(self, X: RowsLike, y: TargetsLike) -> tuple[RowSource, Any]:
        """Return rows and targets of a call of partial_fit: the features are those of the first."""
        tables.refuse_in_parts(self, X, y)
        if not hasattr(self, "_fitted"):
            return inputs.training_rows(self, X, y)
        rows = inputs.new_rows(self, X)
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_consistent_length(np.empty((len(rows), 0)), y)
        return rows, y


def solver_streams(estimator: KernelRidgeBase) -> bool:
    """Return whether an estimator can be fitted to rows in parts.

    Raises
    ------
    AttributeError
        If its solver cannot: scikit-learn then says that there is no ``partial_fit``.
    """
    if not fitting.can_go_on(estimator.solver):
        raise AttributeError(
            f"partial_fit needs solver='eigenpro3' or 'sketchysaga', not {estimator.solver!r}"
        )
    return True


def warn_of(category: type[Warning], text: str | None) -> None:
    """Warn whoever called the method that calls this, unless there is nothing to say."""
    if text is not None:
        warnings.warn(text, category, stacklevel=3)
