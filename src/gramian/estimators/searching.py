"""KernelRidgeSearch: the parameters, searches and records of the estimators that search."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from .._checks import as_bytes, as_count
from ..fitting import FitSettings, TrainingData
from ..fitting.automatic import Searched, SearchSettings, search_fit
from ..fitting.parameters import (
    Callbacks,
    EngineLike,
    Folds,
    MemoryLimit,
    RandomState,
)
from ..fitting.search_plan import SearchPlan, check_memory, plan_search
from ..fitting.settings import check_callbacks, is_integer
from ..fitting.splits import is_pairs, is_splitter
from ..kernels._lengthscale import medians
from ..kernels.base import kernels
from ..metric import RecursiveFeatureMachine
from ..search import INPUTS, L1, RADIAL, Budget, Member, Recipe, Space
from . import tables
from .arguments import Columns, RowsLike, TargetsLike
from .explaining import one_or_all
from .predicting import Predicting
from .regressor import KernelRidge
from .rows_estimator import squeezed
from .scoring import Scoring, scoring_of

AUTO = "auto"


@dataclass(eq=False, repr=False)
class KernelRidgeSearch(Predicting):
    """Search for a kernel ridge regression; subclasses say what targets and outputs are."""

    kernel: Any = AUTO
    _: KW_ONLY
    lengthscale: Any = AUTO
    metric: Any = AUTO
    standardize: Any = AUTO
    average: bool = True
    cv: Folds = None
    scoring: str | None = None
    budget: Any = AUTO
    engine: EngineLike = "auto"
    memory_limit: MemoryLimit = None
    callbacks: Callbacks = ()
    random_state: RandomState = None

    def plan(
        self,
        X: RowsLike,
        y: TargetsLike | None = None,
        *,
        columns: Columns = None,
        targets: int = 1,
    ) -> SearchPlan:
        """Say what a search will need, before anything is computed.

        Parameters
        ----------
        X, y, columns : as in `fit`
            A table is read once, to know how many features its columns become. Without y, all
            columns are features.
        targets : int, default=1
            Number of targets without y: outputs of a regression, classes beyond two.

        Returns
        -------
        SearchPlan
            Rows that are searched on, memory, kernel evaluations and seconds on this machine, or
            the budget: an estimate, for how much is tried depends on the data.

        Notes
        -----
        Takes about a second, to measure the speed of this machine.
        """
        classes = is_classifier(self)
        _, rows, t = tables.sized(
            self._fit_settings(), X, y, columns, as_count(targets, "targets"), classes
        )
        return plan_search(self._search_settings(classes=classes), rows, t)

    def __sklearn_tags__(self) -> Any:
        """Say that rows are dense: quantiles and metrics would fill what is zero."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _search_settings(self, *, classes: bool) -> SearchSettings:
        """Return the parameters of a search, checked."""
        if not isinstance(self.average, bool | np.bool_):
            raise ValueError(f"average must be True or False, not {self.average!r}")
        check_callbacks(self.callbacks)
        if self.memory_limit is not None:
            as_bytes(self.memory_limit)
        return SearchSettings(
            budget=Budget.of(self.budget),
            space=Space(
                kernels=_kernels(self.kernel),
                inputs=_inputs(self.standardize),
                multiples=_multiples(self.lengthscale),
                machine=_machine(self.metric),
                averages=bool(self.average),
            ),
            cv=_folds(self.cv),
            engine=self.engine,
            standardize=self.standardize is not False,
            score=scoring_of(self.scoring, classes=classes).loss,
            watchers=tuple(self.callbacks),
        )

    def _fit_settings(self) -> FitSettings:
        """Return what a table is read by."""
        return KernelRidge(
            standardize=self.standardize is not False,
            engine=self.engine,
            memory_limit=self.memory_limit,
        )._settings()

    def _search(self, settings: SearchSettings, data: TrainingData, seed: int) -> None:
        """Search, and set the attributes that regressor and classifier have in common."""
        limit = self._limit()
        if limit is not None:
            check_memory(data.rows, data.targets.shape[1], limit)
        found = search_fit(data, settings, torch.Generator().manual_seed(seed))
        self.model_ = found.model
        self.kernel_ = one_or_all(one.kernel for one in found.model.parts)
        self.dual_coef_ = one_or_all(squeezed(one.coef) for one in found.model.parts)
        scoring = scoring_of(self.scoring, classes=data.coded)
        as_is = {"scaled": settings.standardize, "coded": data.coded}
        self.members_ = [(member.weight, parameters(member, **as_is)) for member in found.members]
        self.best_params_ = max(self.members_, key=lambda member: member[0])[1]
        self.kernel_evaluations_, self.interrupted_ = found.evaluations, found.interrupted
        self.cv_results_ = results(found, scoring, **as_is)
        self.best_index_ = best_index(self.cv_results_)
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.history_ = history(found, scoring)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))


def parameters(member: Member, *, scaled: bool, coded: bool) -> dict[str, Any]:
    """Return the parameters of a `KernelRidge` that repeats a member without a search."""
    recipe = member.recipe
    return {
        "kernel": recipe.kernel,
        "lengthscale": f"{recipe.multiple:g} median",
        "penalty": member.penalty,
        **_maps(recipe, scaled=scaled, coded=coded),
        "landmarks": None if member.all_rows or member.cells else len(member.centers),
        **({} if member.cells is None else {"cells": int(member.cells.starts.diff().max())}),
    }


STANDARDIZE = {"quantile": "quantile", "common": False}
"""What `KernelRidge` calls inputs: lengthscales in medians make up for one scale of all."""


def _maps(recipe: Recipe, *, scaled: bool, coded: bool) -> dict[str, Any]:
    machine = None
    if recipe.rounds:
        powers = (recipe.power,)
        machine = RecursiveFeatureMachine(recipe.rounds, powers, kernel=recipe.learner)
    standardize = STANDARDIZE.get(recipe.inputs, scaled)
    targets = {} if standardize or coded else {"standardize_target": True}
    return {"standardize": standardize, **targets, "metric": machine}


SAMPLED = ("screen", "metric", "kernel", "landmarks")
"""Steps that are compared by the squared error on samples, whatever score was asked for."""

COLUMNS = (
    "params", "step", "mean_test_score", "squared_error", "seconds", "elapsed", "evaluations"
)  # fmt: skip


def results(found: Searched, scoring: Scoring, *, scaled: bool, coded: bool) -> dict[str, Any]:
    """Return a row for each recipe and penalty, as scikit-learn's ``cv_results_``.

    With a score of its own, fits have a row for their best penalty only, and samples no score.
    """
    rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for trial in found.trials:
        squared = scoring.loss is None or trial.step in SAMPLED
        losses = trial.losses if squared else ()
        for penalty, loss in losses or ((trial.penalty, trial.loss),):
            if trial.step == "refit":
                continue
            recipe = trial.recipe
            scored = scoring.loss is None or not squared
            score = scoring.score(loss, found.unit) if scored else math.nan
            rows["squared_error"].append(loss * found.unit**2 if squared else math.nan)
            rows["params"].append({
                "kernel": recipe.kernel, "lengthscale": f"{recipe.multiple:g} median",
                "penalty": penalty, **_maps(recipe, scaled=scaled, coded=coded),
            })  # fmt: skip
            rows["step"].append(trial.step)
            rows["mean_test_score"].append(score)
            rows["seconds"].append(trial.seconds)
            rows["elapsed"].append(trial.elapsed)
            rows["evaluations"].append(trial.evaluations)
    table: dict[str, Any] = {
        name: values if name == "params" else np.array(values) for name, values in rows.items()
    }
    scores = np.nan_to_num(table["mean_test_score"], nan=-np.inf)
    ahead = np.searchsorted(np.sort(-scores), -scores)  # of equal scores, all have the first rank
    table["rank_test_score"] = (1 + ahead).astype(np.int32)
    return table


def best_index(table: dict[str, Any]) -> int:
    """Return the row of the best fit with all rows as centers, or of the average; else of any."""
    scores, last = table["mean_test_score"], np.isin(table["step"], ("fit", "average"))
    if "cells" in table["step"]:  # fits of one cell have other held-out rows
        last = table["step"] == "cells"
    if not last.any():
        return int(np.argmin(table["squared_error"]))
    return int(np.argmax(np.where(last, scores, -np.inf)))


def history(found: Searched, scoring: Scoring) -> list[dict[str, Any]]:
    """Return a row for each trial: what was tried, its error, and what it gained."""
    rows: list[dict[str, Any]] = []
    least: dict[bool, float] = {True: math.inf, False: math.inf}
    for trial in found.trials:
        sampled = trial.step in SAMPLED
        before = least[sampled]
        least[sampled] = min(before, trial.loss) if math.isfinite(trial.loss) else before
        squared = scoring.loss is None or sampled
        error = found.unit * math.sqrt(trial.loss) if squared else trial.loss
        gain = 1 - trial.loss / before if 0 < before < math.inf else 0.0
        rows.append({
            "step": trial.step, "what": str(trial.recipe), "penalty": trial.penalty,
            "error": error, "gain": max(gain, 0.0) if gain == gain else 0.0,
            "seconds": trial.seconds, "elapsed": trial.elapsed,
            "kernel_evaluations": trial.evaluations,
        })  # fmt: skip
    return rows


def _kernels(given: object) -> tuple[str, ...]:
    if given is None or (isinstance(given, str) and given == AUTO):
        return (*RADIAL, L1)
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not len(names):
        raise ValueError(f"kernel must be 'auto', a name or a list of names, not {given!r}")
    for name in names:
        if not isinstance(name, str) or name not in kernels or name in UNUSABLE:
            usable = [k for k in kernels if k not in UNUSABLE]
            raise ValueError(
                f"a search takes kernels by name, of {', '.join(usable)}, not {name!r}"
                f"{kernels.hint(name)}"
            )
    return tuple(dict.fromkeys(names))


UNUSABLE = ("sum", "product", "scaled", "linear", "polynomial")
"""Kernels that have no lengthscale that could be a multiple of the median distance."""


def _inputs(given: object) -> tuple[str, ...]:
    if isinstance(given, str) and given == AUTO:
        return INPUTS
    if isinstance(given, bool):
        return ("standard",)
    if isinstance(given, str) and given == "quantile":
        return ("quantile",)
    raise ValueError(f"standardize must be 'auto', True, False or 'quantile', not {given!r}")


def _multiples(given: object) -> tuple[float, ...] | None:
    """Return lengthscales in medians; None for those that are found by walking."""
    if given is None or (isinstance(given, str) and given == AUTO):
        return None
    values = [given] if isinstance(given, str) or not isinstance(given, Sequence) else given
    found = [medians(value) for value in values]
    if not found or any(multiple is None or multiple <= 0 for multiple in found):
        raise ValueError(
            "lengthscale must be 'auto', or one or several multiples of the median distance, such "
            f"as ['0.5 median', 'median', '2 median'], not {given!r}"
        )
    return tuple(sorted({multiple for multiple in found if multiple is not None}))


def _folds(given: Any) -> object:
    """Return ``cv``, checked; pairs that can be read once only as a list."""
    cv = tuple(given) if isinstance(given, Iterator) else given
    if cv is None or is_splitter(cv) or is_pairs(cv) or (is_integer(cv) and cv >= 2):
        return cv
    raise ValueError(
        "cv must be None or a number of folds from 2 on, a splitter such as KFold(5), or a list of "
        f"pairs (rows to train on, rows to test on), not {reprlib.repr(cv)}"
    )


def _machine(given: object) -> RecursiveFeatureMachine | None:
    if given is None:
        return None
    if isinstance(given, str) and given in (AUTO, "learned"):
        return RecursiveFeatureMachine()
    if isinstance(given, RecursiveFeatureMachine):
        return given
    raise ValueError(
        f"metric must be 'auto', 'learned', None or a RecursiveFeatureMachine, not {given!r}"
    )
