"""KernelRidgeBase: the parameters, fits and predictions of the regressor and the classifier."""

# No `from __future__ import annotations`: subclasses in other modules inherit the fields, and the
# types of their parameters would be looked up there by name.

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier
from sklearn.utils import check_array, check_consistent_length, check_random_state
from torch import Tensor

from ... import fitting
from ..._checks import as_count
from ..._parameters import FitParameters, RandomState
from ...callbacks import Validate
from ...data import RowSource, as_rows
from ...fitting import FitSettings, Fitted, Generators, Plan, TrainingData, Whole
from ...fitting.again import Again
from ...fitting.objects import ObjectRows
from ...fitting.precomputed import NAME as PRECOMPUTED
from ...fitting.precomputed import only_columns
from ...metric import Metric
from .. import tables, validation
from ..base import as_numpy, squeezed
from ..types import Columns, RowsLike, TargetsLike
from .conforming import Conforming
from .explaining import metric_history


@dataclass(eq=False, repr=False, kw_only=True)
class KernelRidgeBase(Conforming, FitParameters):
    """Kernel ridge regression with any solver; subclasses say what targets and outputs are."""

    conformal: str | None = None
    random_state: RandomState = None

    def __sklearn_tags__(self) -> Any:
        """Say that sparse rows are accepted, but where quantiles or a learned metric need others.

        A matrix that is given as the metric refuses them, too, once they are there.
        """
        tags = super().__sklearn_tags__()
        quantiles = isinstance(self.standardize, str) and self.standardize != "auto"
        if quantiles or isinstance(self.metric, str | Metric):
            tags.input_tags.sparse = False
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
        t, labels = as_count(targets, "targets"), is_classifier(self)
        settings: FitSettings = self._settings()
        rows: RowSource
        if self._is_function:
            rows = validation.object_rows(self.kernel, X)
            t = t if y is None else tables.target_count(y, labels)
        else:
            settings, rows, t = tables.sized(settings, X, y, columns, t, labels)
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
        rows = validation.object_rows(self.kernel, X) if self._is_function else as_rows(X)
        fitting.check_memory(self._settings(), rows, as_count(targets, "targets"))

    def _settings(self) -> FitSettings:
        """Return the parameters of a fit, checked."""
        given = {f.name: getattr(self, f.name) for f in fields(FitSettings)}
        return FitSettings(**given | ({"kernel": PRECOMPUTED} if self._is_function else {}))

    # --- fitting -------------------------------------------------------------------------------

    def _fit(
        self, whole: Whole, encode: Callable[[Any, torch.dtype], Tensor], rng: Generators
    ) -> Fitted:
        """Fit and set the attributes that regressor and classifier have in common."""
        if not self._has_features and self.conformal is not None:
            raise ValueError(
                f"conformal needs rows, and {self._kernel_said} has none; leave it out"
            )
        divided = self._divided(whole)
        data, held = divided.train, divided.others
        bound = [
            callback.with_targets(encode(callback.y, data.rows.dtype), coded=data.coded)
            if isinstance(callback, Validate)
            else callback
            for callback in divided.settings.callbacks
        ]
        fitted = self._keep(
            fitting.fit(
                replace(divided.settings, callbacks=bound),
                data,
                rng=rng,
                before=self._before(),
            )
        )
        self._training = data if self._has_features else None
        if isinstance(data.rows, ObjectRows):
            self._keep_objects(data.rows)
        if divided.learn is not None and (chosen := fitted.landmark_rows) is not None:
            self.landmark_index_ = as_numpy(divided.learn[chosen])
        self._conform(data, held)
        return fitted

    def _again(self, data: TrainingData) -> Again:
        return Again.of_fit(self.model_, self._fitted, self._settings(), data)

    def _generators(self) -> Generators:
        return Generators.seeded(check_random_state(self.random_state))

    def _go_on(self, settings: FitSettings, data: TrainingData) -> Fitted:
        """Pass once over more rows and set the attributes in common."""
        if self.conformal is not None:
            raise ValueError(
                "partial_fit has no rows to hold back for intervals; leave conformal out"
            )
        rng = Generators.seeded(check_random_state(self.random_state), folds=False)
        self._training = None  # the rows of earlier calls are gone
        return self._keep(fitting.go_on(settings, data, rng=rng, before=self._before()))

    def _penalties(self) -> tuple[float, ...]:
        return self._fitted.closed_form()

    def _before(self) -> Fitted | None:
        """Return the last fit, with the model that is there now."""
        last: Fitted | None = getattr(self, "_fitted", None)
        return None if last is None else replace(last, model=self.model_.parts[0])

    def _keep(self, fitted: Fitted) -> Fitted:
        """Set what each call that fits leaves behind."""
        self._fitted = fitted
        self.model_, self.dual_coef_ = fitted.model, squeezed(fitted.model.coef)
        self.landmark_index_ = as_numpy(fitted.landmark_rows)
        each = fitted.settings.penalties
        self.penalty_ = fitted.penalty if each is None else np.array(each)
        self.path_ = fitted.path
        self.n_iter_ = max(fitted.iteration, 1)
        self.stop_reason_, self.history_ = fitted.reason, fitted.history
        self.best_iteration_ = fitted.best_iteration
        self.validation_error_ = fitted.validation_error
        self.solver_, self.solver_settings_ = fitted.solver, fitted.solver_settings
        self.engine_, self.kernel_ = fitted.engine, fitted.model.kernel
        if not self._has_features:  # the model is a linear function of rows of the matrix
            model = fitted.model
            of_rows = model.centers.take(torch.arange(len(model.centers))).t()
            self.kernel_, self.dual_coef_ = self.kernel, squeezed(of_rows)
        self.metric_history_ = metric_history(fitted.learned)
        return fitted

    def _keep_objects(self, rows: ObjectRows) -> None:
        """Keep the objects that predictions depend on: centers that have a coefficient."""
        some = self.dual_coef_.reshape(len(rows), -1).any(axis=1)
        some[0] |= not some.any()  # a model has a center
        used = np.flatnonzero(some)
        self.model_ = only_columns(self._fitted.model, torch.from_numpy(used))
        self.dual_coef_ = self.dual_coef_[used]
        self.objects_ = [rows.calls.objects[i] for i in used.tolist()]

    def _more_rows(self, X: RowsLike, y: TargetsLike) -> tuple[RowSource, Any]:
        """Return rows and targets of a call of partial_fit: the features are those of the first."""
        if self._is_function:
            raise ValueError("partial_fit needs rows, and a kernel of objects has none; use fit")
        tables.refuse_in_parts(self, X, y)
        if not hasattr(self, "_fitted"):
            return validation.training_rows(self, X, y, self._settings())
        rows = validation.new_rows(self, X)
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
