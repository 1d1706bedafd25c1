"""KernelRidgeSearch: the parameters, searches and records of the estimators that search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from .._checks import as_count
from ..fitting import FitSettings, TrainingData
from ..fitting.automatic import Searched, SearchSettings, search_fit
from ..fitting.parameters import (
    Callbacks,
    EngineLike,
    Folds,
    MemoryLimit,
    RandomState,
)
from ..fitting.search_plan import SearchPlan, plan_search
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
from .scoring import loss_of

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

    def _search_settings(self, *, classes: bool) -> SearchSettings:
        """Return the parameters of a search, checked."""
        if not isinstance(self.average, bool):
            raise ValueError(f"average must be True or False, not {self.average!r}")
        return SearchSettings(
            budget=Budget.of(self.budget),
            space=Space(
                kernels=_kernels(self.kernel),
                inputs=_inputs(self.standardize),
                multiples=_multiples(self.lengthscale),
                machine=_machine(self.metric),
                averages=self.average,
            ),
            cv=self.cv,
            engine=self.engine,
            standardize=self.standardize is not False,
            score=loss_of(self.scoring, classes=classes),
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
        found = search_fit(data, settings, torch.Generator().manual_seed(seed))
        self.model_ = found.model
        self.kernel_ = one_or_all(one.kernel for one in found.model.parts)
        self.dual_coef_ = one_or_all(squeezed(one.coef) for one in found.model.parts)
        self.members_ = [(member.weight, parameters(member)) for member in found.members]
        main = max(found.members, key=lambda member: member.weight)
        self.best_params_ = parameters(main)
        self.kernel_evaluations_, self.interrupted_ = found.evaluations, found.interrupted
        self.cv_results_ = results(found)
        self.best_index_ = best_index(self.cv_results_)
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.history_ = history(found)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))


def parameters(member: Member) -> dict[str, Any]:
    """Return the parameters of a `KernelRidge` that repeats a member without a search."""
    recipe = member.recipe
    return {
        "kernel": recipe.kernel,
        "lengthscale": f"{recipe.multiple:g} median",
        "penalty": member.penalty,
        **_maps(recipe),
        "landmarks": None if member.all_rows else len(member.centers),
    }


STANDARDIZE = {"standard": True, "quantile": "quantile", "common": False}
"""What `KernelRidge` calls inputs: lengthscales in medians make up for one scale of all."""


def _maps(recipe: Recipe) -> dict[str, Any]:
    machine = None
    if recipe.rounds:
        powers = (recipe.power,)
        machine = RecursiveFeatureMachine(recipe.rounds, powers, kernel=recipe.learner)
    standardize = STANDARDIZE[recipe.inputs]
    targets = {} if standardize else {"standardize_target": True}
    return {"standardize": standardize, **targets, "metric": machine}


def results(found: Searched) -> dict[str, Any]:
    """Return a row for each recipe and penalty, as scikit-learn's ``cv_results_``."""
    rows: dict[str, list[Any]] = {
        name: []
        for name in ("params", "step", "mean_test_score", "seconds", "elapsed", "evaluations")
    }
    for trial in found.trials:
        for penalty, loss in trial.losses or ((trial.penalty, trial.loss),):
            if trial.step == "refit":
                continue
            recipe = trial.recipe
            rows["params"].append({
                "kernel": recipe.kernel, "lengthscale": f"{recipe.multiple:g} median",
                "penalty": penalty, **_maps(recipe),
            })  # fmt: skip
            rows["step"].append(trial.step)
            rows["mean_test_score"].append(-loss * found.unit**2)
            rows["seconds"].append(trial.seconds)
            rows["elapsed"].append(trial.elapsed)
            rows["evaluations"].append(trial.evaluations)
    table: dict[str, Any] = {
        name: values if name == "params" else np.array(values) for name, values in rows.items()
    }
    order = np.argsort(-table["mean_test_score"], kind="stable")
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    table["rank_test_score"] = ranks
    return table


def best_index(table: dict[str, Any]) -> int:
    """Return the row of the best fit with all rows as centers, or of the average; else of any."""
    scores = table["mean_test_score"]
    last = np.isin(table["step"], ("fit", "average"))
    return int(np.argmax(np.where(last, scores, -np.inf) if last.any() else scores))


def history(found: Searched) -> list[dict[str, Any]]:
    """Return a row for each trial: what was tried, its error, and what it gained."""
    rows: list[dict[str, Any]] = []
    least: dict[bool, float] = {True: math.inf, False: math.inf}
    for trial in found.trials:
        sampled = trial.step in ("screen", "metric", "kernel")
        before = least[sampled]
        least[sampled] = min(before, trial.loss) if math.isfinite(trial.loss) else before
        error = found.unit * math.sqrt(trial.loss) if trial.loss >= 0 else math.nan
        gain = 1 - trial.loss / before if math.isfinite(before) else 0.0
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
    if not isinstance(names, Sequence) or not names:
        raise ValueError(f"kernel must be 'auto', a name or a list of names, not {given!r}")
    for name in names:
        if not isinstance(name, str) or name not in kernels or name in UNUSABLE:
            usable = [k for k in kernels if k not in UNUSABLE]
            raise ValueError(
                f"a search takes kernels by name, of {', '.join(usable)}, not {name!r}"
                f"{kernels.hint(name)}"
            )
    return tuple(names)


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
