"""Single measurements of `search`, each for a process of its own."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gramian import KernelRidge, KernelRidgeClassifier

from ..lib.results import Row
from ..lib.timing import clock
from .accuracy_contenders import CONTENDERS, package
from .accuracy_fit import error
from .accuracy_sets import CAP, Table, load
from .search_grid import KERNELS, Cut, cell_row, grid
from .search_odd import odd

SAME = {"kernel": list(KERNELS), "metric": None, "standardize": True, "average": False}
"""Settings of a search that chooses among what a grid chooses among."""

SHARE = 0.08
"""Of the kernel evaluations of the grid: the budget of a search."""

PLAIN = "plain kernel"
NOT_WORSE = 1.01
"""Times the error of the mean: what a fit to noise may have."""


@dataclass(frozen=True)
class Task:
    """A set, a seed, at most how many training rows; few rows if it has to be quick."""

    path: Path
    seed: int = 0
    cap: int | None = CAP
    quick: bool = False

    def table(self) -> Table:
        table = load(self.path, self.cap)
        if not self.quick:
            return table
        return replace(table, X=table.X[:300], y=table.y[:300])


def searcher(labels: bool, seed: int, **settings: Any) -> Any:
    """Return the search, its held-out scores in the units of the benchmark."""
    library = package("gramian")
    model = library.KernelRidgeClassifierCV if labels else library.KernelRidgeCV
    scoring = "accuracy" if labels else "neg_root_mean_squared_error"
    return model(scoring=scoring, random_state=seed, **settings)


def least_error(search: Any, labels: bool) -> float:
    """Return the held-out error of the best row of ``cv_results_``."""
    best = float(np.nanmax(search.cv_results_["mean_test_score"]))
    return 1 - best if labels else -best


def said(settings: dict[str, Any]) -> str:
    """Describe what a search has chosen on one line."""
    return json.dumps(settings, default=str, sort_keys=True)


def against_grid(task: Task) -> Row:
    """Grid and searches with the same rows to fit and to choose with, and errors on test rows."""
    table = task.table()
    cut = Cut.of(table, task.seed, task.quick)
    with clock() as naive:
        found = grid(cut, task.seed)
    row = cell_row(found) | {"grid": found.error, "grid cpu_s": naive.cpu}
    row["evaluations"] = float(found.evaluations)
    for what, settings in (("search", SAME), ("whole", {})):
        budget = int(SHARE * found.evaluations)
        search = searcher(
            table.labels, task.seed, cv=cut.splitter(), budget=budget, **settings
        )  # fmt: skip
        with warnings.catch_warnings(), clock() as took:
            warnings.simplefilter("ignore")
            search.fit(cut.table.X, cut.table.y)
        held = least_error(search, table.labels)
        row |= {what: held, f"{what} / grid": held / found.error}
        row[f"{what}, % of evaluations"] = 100 * search.kernel_evaluations_ / found.evaluations
        row[f"{what} cpu_s"] = took.cpu
        row[f"{what}, test"] = error(search.predict(table.X_test), table)
        row[f"{what} chose"] = said(search.best_params_)
    return row


def within_budget(task: Task, budget: float) -> Row:
    """One search, and its seconds."""
    table = task.table()
    search = searcher(table.labels, task.seed, budget=f"{budget:g} s")
    with warnings.catch_warnings(), clock() as took:
        warnings.simplefilter("ignore")
        search.fit(table.X, table.y)
    row: Row = {"rows": len(table.y), "wall_s": took.wall, "cpu_s": took.cpu}
    row["of the budget"] = took.wall / budget
    return row | {"error": error(search.predict(table.X_test), table)}


def contestant(name: str, labels: bool, seed: int) -> Any:
    """Return a contender of `accuracy`, or a Gaussian kernel without any search."""
    if name != PLAIN:
        return CONTENDERS[name](labels, seed)
    model = KernelRidgeClassifier if labels else KernelRidge
    return model(kernel="gaussian", lengthscale="median", penalty=1e-6, random_state=seed)


def contender(task: Task, name: str, noise: bool) -> Row:
    """Fit one contender; with noise there are as many features that say nothing."""
    time.monotonic = time.process_time
    table = task.table()
    d = table.X.shape[1]
    table = with_noise(table, task.seed) if noise else table
    model = contestant(name, table.labels, task.seed)
    with warnings.catch_warnings(), clock() as took:
        warnings.simplefilter("ignore")
        model.fit(table.X, table.y)
    row: Row = {"error": error(np.asarray(model.predict(table.X_test)), table), "cpu_s": took.cpu}
    weights = getattr(model, "feature_importances_", None)
    if weights is not None:
        weights = np.asarray(weights, np.float64) / np.sum(weights)
        first = np.argsort(-weights)[:4]
        row["importance of its own features"] = float(weights[:d].sum())
        row["first four"] = ", ".join(map(str, np.sort(first)))
        row["their importance"] = float(weights[first].sum())
    return row


def with_noise(table: Table, seed: int) -> Table:
    """Append each column once more, its rows in another order: as it is, and of no use."""
    rng = np.random.default_rng(seed)
    parts = (table.X, table.X_test)
    X, X_test = (np.hstack([part, rng.permuted(part, axis=0)]) for part in parts)
    return replace(table, X=X, X_test=X_test)


def repeated(task: Task, budget: str) -> Row:
    """One search with a seed of its own, and what it has chosen."""
    time.monotonic = time.process_time
    table = task.table()
    search = searcher(table.labels, task.seed, budget=budget)
    with warnings.catch_warnings(), clock() as took:
        warnings.simplefilter("ignore")
        search.fit(table.X, table.y)
    row: Row = {"error": error(search.predict(table.X_test), table), "cpu_s": took.cpu}
    return row | {"chosen": said(search.best_params_)}


def odd_table(name: str, labels: bool, seed: int, budget: str) -> Row:
    """One search on a table that is made; it must not be worse than the mean."""
    time.monotonic = time.process_time
    table = odd(name, labels, seed)
    search = searcher(labels, seed, budget=budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(table.X, table.y)
    found = error(search.predict(table.X_test), table)
    guess = CONTENDERS["mean"](labels, seed).fit(table.X, table.y).predict(table.X_test)
    mean = error(np.asarray(guess), table)
    bad = not np.isfinite(search.cv_results_["mean_test_score"][search.best_index_])
    row: Row = {"error": found, "mean": mean, "NaN chosen": bad}
    return row | {"fine": bool(not bad and found <= NOT_WORSE * mean + 1e-6)}
