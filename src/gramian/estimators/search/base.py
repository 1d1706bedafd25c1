"""Base class of the estimators that search."""

# No `from __future__ import annotations`: subclasses in other modules inherit the fields, and the
# types of their parameters would be looked up there by name.

from dataclasses import KW_ONLY, dataclass, replace
from html import escape
from math import isfinite
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ... import _arrays as xp
from ..._arrays import RandomStream
from ..._messages.checks import as_bytes, as_count, as_share
from ..._messages.errors import ParameterError
from ..._parameters.types import (
    Callbacks,
    EngineLike,
    Folds,
    MemoryLimit,
    OptionalNumber,
    RandomState,
    ScoringLike,
    Verbosity,
)
from ...callbacks import Checkpoint
from ...callbacks.progress import check_verbose, show_progress
from ...conformal import ConformalMethod
from ...data import RowSource, refuse_remote
from ...fitting import DividedRows, FitSettings, Generators, TrainingData, Whole
from ...fitting.held_out.folds import other_rows, share
from ...fitting.search.fit import search_fit
from ...fitting.search.plan import SearchPlan, check_memory, plan_search
from ...fitting.search.settings import SearchSettings
from ...fitting.settings.checks import check_callbacks
from ...fitting.uncertainty.conformal_calibration import find_groups, resolve_method
from ...fitting.uncertainty.refit import Refit
from ...kernels import Kernel
from ...model import BlendModel
from ...model.blend.boosting import check_package
from ...search import Budget, Space
from ...search.space import as_kernel
from .. import tables
from ..base import restore_on_error
from ..ridge.base import Estimator, KernelRidgeModel
from ..ridge.fit import calibrate_model, divide_rows
from ..ridge.regressor import KernelRidge
from ..types import Columns, Groups, Read, RowsLike, TargetsLike, Weights
from .groups import with_folds
from .results import (
    AUTO_VALUE,
    best_index,
    folds_of,
    history,
    inputs_of,
    kernels_of,
    machine_of,
    multiples_of,
    parameters,
    results,
    summary_of,
)
from .scoring import metric_of, score_rows, scoring_of

REMOTE_REFUSAL = (
    "a search requires rows on one machine, not remote rows; use KernelRidge or "
    "KernelRidgeClassifier with landmarks, which choose kernel and penalty on a sample"
)

RECORDED_PARAMETERS = ("kernel", "lengthscale", "penalty", "landmarks", "cells")
"""Parameters of the members of a model that its file records."""


@dataclass(eq=False, repr=False)
class KernelRidgeSearch(KernelRidgeModel):
    """Base of the estimators that search for a model; subclasses define targets and outputs."""

    kernel: Any = AUTO_VALUE
    _: KW_ONLY
    lengthscale: Any = AUTO_VALUE
    metric: Any = AUTO_VALUE
    standardize: Any = AUTO_VALUE
    average: bool = True
    blend: str | None = None
    cv: Folds = None
    test_fraction: OptionalNumber = None
    scoring: ScoringLike = None
    budget: Any = AUTO_VALUE
    engine: EngineLike = "auto"
    memory_limit: MemoryLimit = None
    callbacks: Callbacks = ()
    verbose: Verbosity = "auto"
    conformal: str | ConformalMethod | None = None
    conformal_groups: str | int | None = None
    random_state: RandomState = None

    def fit(
        self: Estimator,
        X: RowsLike,
        y: TargetsLike,
        sample_weight: Weights = None,
        *,
        columns: Columns = None,
        groups: Groups = None,
        order: Groups = None,
        folds: Groups = None,
        drop_missing_target: bool = False,
        read: Read = None,
    ) -> Estimator:
        """Search for kernel, metric, lengthscale and penalty, and fit the result to all rows.

        Parameters
        ----------
        groups : str or array-like of shape (n,), optional
            The name of a column of X, which is then no feature, or values: rows of a group are in
            one fold. Folds are ``cv``, a number or a splitter, five at most by default.
        order : str or array-like of shape (n,), optional
            The name of a column of X, such as a day, or values: each of ``cv`` folds, five by
            default, is predicted from the rows before it, as by TimeSeriesSplit.
        folds : str or array-like of shape (n,), optional
            The name of a column of X, which is then no feature, or values: rows of equal values are
            a fold, but for -1, which is in none, as in PredefinedSplit. Without ``cv``.
        X, y, sample_weight, columns, drop_missing_target, read : as in `KernelRidge.fit`

        Returns
        -------
        KernelRidgeCV or KernelRidgeClassifierCV
            Itself. If it fails, the last fit is kept.

        Raises
        ------
        ValueError
            If the input or a parameter cannot be used, there are fewer than five rows, labels are
            of one class only, or rows are sparse and a parameter requires a map of the features.
        """
        settings, seed = self._search_settings(classes=is_classifier(self)), self._seed()
        refuse_remote(X, REMOTE_REFUSAL)
        with restore_on_error(self):
            rng = Generators.from_random_state(np.random.RandomState(seed))
            whole_rows = self._load_rows(
                X, y, sample_weight, self._settings(), rng, columns=columns, read=read,
                drop_missing_target=drop_missing_target,
                groups=groups if folds is None else folds, order=order,
            )  # fmt: skip
            settings = with_folds(settings, self, whole_rows, groups, order, folds)
            self._search(settings, whole_rows, seed)
        return self

    def plan(
        self,
        X: RowsLike,
        y: TargetsLike | None = None,
        *,
        columns: Columns = None,
        read: Read = None,
        targets: int = 1,
    ) -> SearchPlan:
        """Return the expected cost of a search.

        Parameters
        ----------
        X, y, columns, read : as in `fit`
            A table is read once, to count the features of its encoded columns. Without y, all
            columns are features.
        targets : int, default=1
            Number of targets without y: outputs of a regression, classes beyond two.

        Returns
        -------
        SearchPlan
            Rows of the search, memory, kernel evaluations and seconds on this machine, or the
            budget: an estimate, because the number of trials depends on the data.

        Notes
        -----
        The call measures the speed of this machine in about half a second.
        """
        classes = is_classifier(self)
        X = tables.with_read_options(X, y, read)
        _, rows, t = tables.plan_inputs(
            self._settings(), X, y, columns, as_count(targets, "targets"), classes
        )
        self._check_sparse(rows)
        return plan_search(self._search_settings(classes=classes), rows, t)

    @property
    def _accepts_sparse(self) -> bool:
        return not self._maps

    @property
    def _maps(self) -> bool:
        """Whether parameters require a map of the features, which would fill zeros."""
        is_auto = isinstance(self.metric, str) and self.metric == AUTO_VALUE
        quantiles = isinstance(self.standardize, str) and self.standardize == "quantile"
        return quantiles or not (is_auto or self.metric is None)

    def _check_sparse(self, rows: RowSource) -> None:
        """Raise ValueError if rows are sparse and parameters require a map of their features."""
        if rows.sparse and self.blend is not None:
            raise ParameterError("blend", self.blend, "None for sparse rows")
        if self._maps and Space(kernels=kernels_of(self.kernel)).takes_features_as_given:
            raise ValueError(
                "standardize='quantile' and a learned metric map features, but kernel objects, and "
                f"kernels such as 'tanimoto', take them as given, here {self.kernel!r}: leave both "
                "at 'auto'"
            )
        if rows.sparse and self._maps:
            raise ValueError(
                "standardize='quantile' and a learned metric map features, which would fill the "
                "zeros of sparse rows: leave both at 'auto', or give dense rows (X.toarray())"
            )

    def _search_settings(self, *, classes: bool) -> SearchSettings:
        """Return the checked parameters of a search."""
        if not isinstance(self.average, bool | np.bool_):
            raise ValueError(f"average must be True or False, not {self.average!r}")
        check_callbacks(self.callbacks)
        metric_of(self.scoring, is_classification=classes)
        check_verbose(self.verbose)
        check_package(self.blend)
        limit = None if self.memory_limit is None else as_bytes(self.memory_limit)
        return SearchSettings(
            budget=Budget.of(self.budget),
            space=Space(
                kernels=kernels_of(self.kernel),
                inputs=inputs_of(self.standardize),
                multiples=multiples_of(self.lengthscale),
                machine=machine_of(self.metric),
                averages=bool(self.average),
            ),
            cv=folds_of(self.cv),
            engine=self.engine,
            standardize=self.standardize is not False,
            memory_limit=limit,
            # A checkpoint keeps the state of the search; all others are functions of a finished
            # trial.
            watchers=tuple(
                callback for callback in self.callbacks if not isinstance(callback, Checkpoint)
            ),
            checkpoint=self._checkpoint(),
            blend=self.blend,
        )

    def _checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint of the callbacks; raise ValueError if it cannot resume a search."""
        checkpoints = [callback for callback in self.callbacks if isinstance(callback, Checkpoint)]
        checkpoint = checkpoints[0] if checkpoints else None
        if checkpoint is not None and self.random_state is None:
            raise ValueError(
                "random_state=None cannot be combined with a Checkpoint, because each search would "
                "draw other rows; set random_state to a number"
            )
        return checkpoint

    def _settings(self) -> FitSettings:
        """Return the settings for reading a table."""
        # Reading a table depends only on these parameters of a single fit: of kernels, only one
        # that takes numbers in their own units matters.
        names = kernels_of(self.kernel)
        return KernelRidge(
            next((k for k in names if as_kernel(k).unscaled_features(1)), "auto"),
            standardize=self.standardize is not False,
            engine=self.engine,
            memory_limit=self.memory_limit,
        )._settings()

    def _search(self, settings: SearchSettings, dataset: Whole, seed: int) -> None:
        """Search for a model, and set the attributes that regressor and classifier share."""
        # 1. Rows that affect no choice are set apart before the search.
        divided, test = self._split_rows(dataset)
        data, calibration = divided.train, divided.held_out_data
        self._check_sparse(data.rows)
        limit = self._limit()
        if limit is not None:
            check_memory(data.rows, data.targets.shape[1], limit)
        # 2. The search, and the attributes of the model that `calibrate_model` needs.
        scoring = scoring_of(self.scoring, data)
        settings = replace(settings, score=scoring.loss)
        with show_progress(self.verbose, settings.budget.seconds) as shown:
            settings = replace(settings, watchers=[*settings.watchers, *shown])
            searched = search_fit(data, settings, RandomStream(seed))
        self._set_model(searched.model)
        self._training = data
        self._penalty = tuple(member.penalty for member in searched.members)
        # 3. Reports of the search.
        as_is = {"scaled": settings.standardize, "coded": data.coded}
        self.members_ = [
            (member.weight, parameters(member, **as_is)) for member in searched.members
        ]
        self.blend_weight_ = 1.0
        if isinstance(searched.model, BlendModel):
            self.blend_weight_ = searched.model.weight
        self.best_params_ = max(self.members_, key=lambda member: member[0])[1]
        self.kernel_evaluations_, self.interrupted_ = searched.evaluations, searched.interrupted
        self.cv_results_ = results(searched, scoring, **as_is)
        self.best_index_ = best_index(self.cv_results_)
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.history_ = history(searched, scoring)
        self.left_out_ = searched.left_out
        self.test_score_ = None
        if test is not None:
            self.test_score_ = score_rows(scoring, searched, test, engine=self.engine)
        # 4. Last, because it replaces the model by one with intervals.
        if self.conformal is not None:
            calibrate_model(self, data, calibration)

    def summary(self) -> str:
        """Return a text about the search: the model, the gain of each step, and the steps left out.

        Returns
        -------
        str
            Lines without markup. The columns of the steps are the number of fits, the least error
            so far, by how much it fell, and the seconds since the start. Errors of samples and of
            fits are of different held-out rows.
        """
        check_is_fitted(self)
        return summary_of(self)

    def _repr_html_inner(self) -> str:
        """Return the diagram of scikit-learn, and the summary of a fitted search."""
        diagram: str = super()._repr_html_inner()
        if not hasattr(self, "members_"):
            return diagram
        return f"{diagram}<pre>{escape(summary_of(self))}</pre>"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """Return the text and, if scikit-learn shows diagrams, the HTML of a notebook."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        return {**bundle, "text/html": self._repr_html_inner()} if "text/html" in bundle else bundle

    def _facts(self) -> dict[str, Any]:
        """Return facts about the search, for the model file; see `KernelRidgeModel._facts`."""
        if not hasattr(self, "members_"):
            return {}
        return {
            "method": "search",
            "rows": None if self._training is None else len(self._training.rows),
            "members": [
                {
                    "weight": weight,
                    **{name: _in_words(values.get(name)) for name in RECORDED_PARAMETERS},
                }
                for weight, values in self.members_
            ],
            "best_score": self.best_score_ if isfinite(self.best_score_) else None,
            "left_out": list(self.left_out_) or None,
            # JSON has no NaN, the error of a refit to all rows.
            "history": [
                {name: None if value != value else value for name, value in row.items()}
                for row in self.history_
            ],
        }

    def _split_rows(self, dataset: Whole) -> tuple[DividedRows, TrainingData | None]:
        """Split the rows of the search and the optional test rows, which affect no choice."""
        if self.test_fraction is None:
            return divide_rows(self, dataset), None
        fraction = as_share(self.test_fraction, "test_fraction", example=0.2)
        rng, classes = self._draws(), dataset.classes
        method = resolve_method(self.conformal, classes=classes is not None)
        # 1. Test rows are drawn first: they are the same with and without `conformal`.
        test = share(dataset.count, fraction, rng, classes)
        # 2. Calibration rows are drawn among the remaining rows.
        calibration = test[:0]
        if method is not None:
            remaining = other_rows(dataset.count, test)
            classes = None if classes is None else classes[remaining]
            held_rows = method.divide(len(remaining), lambda: rng, classes)
            calibration = calibration if held_rows is None else remaining[held_rows]
        # 3. Both leave the data in one step, so that a table is encoded without either; `order`
        # then separates them.
        index, order = xp.sort_with_order(xp.concat([test, calibration]))
        divided = dataset.without(index)
        assert divided.held_out_data is not None
        if self.conformal_groups is not None:
            find_groups(self.conformal_groups, divided.train, is_held_out=len(calibration) > 0)
        is_test = order < len(test)
        test_data = divided.held_out_data.part(xp.flatnonzero(is_test))
        if not len(calibration):
            return replace(divided, held_out_data=None), test_data
        calibration_data = divided.held_out_data.part(xp.flatnonzero(~is_test))
        return replace(divided, held_out_data=calibration_data), test_data

    def _refit(self, data: TrainingData, rng: Generators) -> Refit:
        shifts = tuple(penalty * data.total for penalty in self._penalty)
        return Refit(self.model_, shifts, self._settings(), len(data.targets), rng)

    def _penalties(self) -> tuple[float, ...]:
        return self._penalty

    def _seed(self) -> int:
        return int(self._state().randint(2**31 - 1))


def _in_words(value: Any) -> Any:
    """Return a value for JSON: a kernel object in words."""
    return repr(value) if isinstance(value, Kernel) else value
