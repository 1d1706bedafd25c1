"""Combinations of kernels and boosted trees on one set; no choice of theirs sees a test row."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold

from ..lib.results import Row
from ..lib.timing import clock
from .accuracy_contenders import StoppedTrees, lightgbm, searched
from .accuracy_fit import error
from .accuracy_sets import Table, load

SEED, FOLDS, FIRST = 0, 5, 200
GRID = np.linspace(0, 1, 21)
SMALL_TREES, SMALL_LEAVES, LEAF_TREES = 100, 8, 20
KERNEL, TREES = "kernel", "trees"
MEMBERS = (KERNEL, TREES)


@dataclass(frozen=True)
class Both:
    """Values of one model at the training rows and at the test rows, and CPU seconds of both.

    Of classes, a value is the share of the second one. A value at a training row is that of a
    model which has not seen it, where the model has folds.
    """

    train: np.ndarray
    test: np.ndarray
    seconds: float
    fold_seconds: float = 0.0


@dataclass
class Found:
    """The rows of one set so far."""

    table: Table
    rows: list[Row] = field(default_factory=list)

    def add(self, name: str, values: np.ndarray, seconds: float, **more: object) -> None:
        """Add a combination from its values at the test rows."""
        prediction = (values > 0.5).astype(int) if self.table.labels else values
        sizes = {"rows": len(self.table.X), "test rows": len(self.table.X_test)}
        row: Row = {"contender": name, "error": error(prediction, self.table), "cpu_s": seconds}
        self.rows.append(row | more | sizes)


def measured(path: str, cap: int, budget: str) -> list[Row]:
    """Return a row for each combination; budgets are in CPU seconds of this process."""
    found, kernel, trees = started(path, cap, budget)
    table, sides = found.table, parts(found.table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, ours = out_of_fold(kernel, table, sides)
        _, theirs = out_of_fold(trees, table, sides)
        weighted(found, ours, theirs, sides[0][1])
        chosen_once(found, model, ours, theirs, sides)
        columns(found, kernel, trees, ours, theirs)
        residuals(found, budget, ours, theirs, sides)
        leaves(found, kernel)
    return found.rows


def longer(path: str, cap: int, budget: str) -> list[Row]:
    """Return the rows of a longer search, alone and with trees by a held-out weight."""
    found, kernel, trees = started(path, cap, budget)
    first = parts(found.table)[:1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, ours = out_of_fold(kernel, found.table, first)
        _, theirs = out_of_fold(trees, found.table, first)
    found.add(f"{KERNEL}, {budget}", ours.test, ours.seconds)
    total = sum(one.seconds + one.fold_seconds for one in (ours, theirs))
    held_out(found, f"held-out weight, {budget}", ours, theirs, first[0][1], total)
    return found.rows


def started(path: str, cap: int, budget: str) -> tuple[Found, Maker, Maker]:
    """Return the set and both members; what is imported at first is in nobody's seconds."""
    time.monotonic = time.process_time
    table = load(Path(path), cap)
    kernel, trees = kernels(budget), boosted()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for make in (kernel, trees):
            make(table.labels).fit(table.X[:FIRST], table.y[:FIRST])
    return Found(table), kernel, trees


def weighted(found: Found, ours: Both, theirs: Both, held: np.ndarray) -> None:
    """Add both members, their mean, that by a held-out weight, and the stack."""
    both = np.stack([ours.test, theirs.test], axis=1)
    alone = ours.seconds + theirs.seconds
    first = alone + (ours.fold_seconds + theirs.fold_seconds) / FOLDS
    found.add(KERNEL, ours.test, ours.seconds)
    found.add(TREES, theirs.test, theirs.seconds)
    found.add("mean", both.mean(axis=1), alone)
    held_out(found, "held-out weight", ours, theirs, held, first)
    stack(found, "stack", ours, theirs)


def held_out(
    found: Found, name: str, ours: Both, theirs: Both, held: np.ndarray, seconds: float
) -> None:
    """Add the mean by the weight that is best at held-out rows."""
    ours_held, theirs_held, y = ours.train[held], theirs.train[held], found.table.y[held]
    squares = [np.mean((w * ours_held + (1 - w) * theirs_held - y) ** 2) for w in GRID]
    weight = float(GRID[np.argmin(squares)])
    values = weight * ours.test + (1 - weight) * theirs.test
    found.add(name, values, seconds, weights=f"{weight:.2f}")


def stack(found: Found, name: str, ours: Both, theirs: Both) -> None:
    """Add what scikit-learn's stacking does, with all out-of-fold values."""
    table = found.table
    train, test = (
        np.stack([getattr(ours, part), getattr(theirs, part)], axis=1) for part in ("train", "test")
    )
    seconds = ours.seconds + theirs.seconds + ours.fold_seconds + theirs.fold_seconds
    if table.labels:
        final = LogisticRegression().fit(train, table.y)
        values = final.predict_proba(test)[:, 1]
    else:
        final = LinearRegression(positive=True, fit_intercept=False).fit(train, table.y)
        values = final.predict(test)
    weights = ", ".join(f"{w:.2f}" for w in np.ravel(final.coef_))
    found.add(name, values, seconds, weights=weights)


def chosen_once(
    found: Found, searched: Any, ours: Both, theirs: Both, sides: list[tuple[Any, Any]]
) -> None:
    """Add the stack whose folds fit what the search of all rows has chosen, without a search."""
    from gramian import KernelRidge, KernelRidgeClassifier

    kind = KernelRidgeClassifier if found.table.labels else KernelRidge
    chosen = searched.best_params_
    _, again = out_of_fold(lambda labels: kind(**chosen), found.table, sides, whole=False)
    folds = Both(again.train, ours.test, ours.seconds, again.fold_seconds)
    stack(found, "stack, chosen once", folds, theirs)


def columns(found: Found, kernel: Maker, trees: Maker, ours: Both, theirs: Both) -> None:
    """Add each member with the out-of-fold values of the other as one more column, and the mean."""
    table = found.table
    with_trees, seconds = fitted(kernel, table, theirs)
    cost = seconds + theirs.seconds + theirs.fold_seconds
    found.add("kernel, column of trees", with_trees, cost)
    with_kernel, more = fitted(trees, table, ours)
    found.add("trees, column of kernel", with_kernel, more + ours.seconds + ours.fold_seconds)
    total = cost + more + ours.seconds + ours.fold_seconds
    found.add("mean of the two with columns", (with_trees + with_kernel) / 2, total)


def residuals(
    found: Found, budget: str, ours: Both, theirs: Both, sides: list[tuple[Any, Any]]
) -> None:
    """Add the sums of a model and another one that is fitted to its out-of-fold residual."""
    table = found.table
    _, little = out_of_fold(small, table, sides)
    pairs = {
        "kernel on the residual of trees": (theirs, kernels(budget)),
        "kernel on the residual of small trees": (little, kernels(budget)),
        "trees on the residual of kernel": (ours, boosted()),
    }
    for name, (before, make) in pairs.items():
        rest = Table(table.X, table.y - before.train, table.X_test, table.y_test, labels=False)
        values, seconds = fitted(make, rest)
        seconds += before.seconds + before.fold_seconds
        found.add(name, before.test + values, seconds)


def leaves(found: Found, kernel: Maker) -> None:
    """Add the kernel with the leaves of a small boosted model as further columns."""
    table = found.table
    with clock() as fit:
        model = small(table.labels).set_params(n_estimators=LEAF_TREES)
        model.fit(table.X, table.y)
        train, test = (
            np.eye(SMALL_LEAVES, dtype=np.float32)[model.predict(X, pred_leaf=True)]
            for X in (table.X, table.X_test)
        )
    more = (part.reshape(len(part), -1) for part in (train, test))
    values, seconds = fitted(kernel, table, Both(*more, 0.0))
    found.add("kernel, leaves of small trees", values, fit.cpu + seconds)


# --- fits ----------------------------------------------------------------------------------------

Maker = Callable[[bool], Any]
"""Makes a model from whether targets are classes."""


def kernels(budget: str) -> Maker:
    return lambda labels: searched(budget)(labels, SEED)


def boosted() -> Maker:
    return lambda labels: StoppedTrees(labels, SEED)


def small(labels: bool) -> Any:
    return lightgbm(labels, SEED).set_params(n_estimators=SMALL_TREES, num_leaves=SMALL_LEAVES)


def parts(table: Table) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return rows to fit and rows to predict, of each fold."""
    kind = StratifiedKFold if table.labels else KFold
    return list(kind(FOLDS, shuffle=True, random_state=SEED).split(table.X, table.y))


def out_of_fold(
    make: Maker, table: Table, sides: list[tuple[Any, Any]], *, whole: bool = True
) -> tuple[Any, Both]:
    """Return the model of all rows, its values at test rows, and those of folds at their rows."""
    train, test = np.zeros(len(table.X)), np.zeros(len(table.X_test))
    with clock() as fit:
        model = make(table.labels).fit(table.X, table.y) if whole else None
        if model is not None:
            test = values_of(model, table.X_test, table.labels)
    with clock() as fold:
        for fitting, held in sides:
            one = make(table.labels).fit(table.X[fitting], table.y[fitting])
            train[held] = values_of(one, table.X[held], table.labels)
    return model, Both(train, test, fit.cpu, fold.cpu)


def fitted(make: Maker, table: Table, more: Both | None = None) -> tuple[np.ndarray, float]:
    """Return values at the test rows, and CPU seconds, of a fit with further columns."""
    X, X_test = (table.X, table.X_test) if more is None else wider(table, more)
    with clock() as fit:
        model = make(table.labels).fit(X, table.y)
        values = values_of(model, X_test, table.labels)
    return values, fit.cpu


def wider(table: Table, more: Both) -> Iterator[np.ndarray]:
    """Yield training and test rows with one or several columns more."""
    for X, column in ((table.X, more.train), (table.X_test, more.test)):
        yield np.column_stack([X, column]).astype(np.float32)


def values_of(model: Any, X: np.ndarray, labels: bool) -> np.ndarray:
    """Return predictions, or of two classes the share of the second one."""
    if not labels:
        return np.asarray(model.predict(X), np.float64)
    if hasattr(model, "decision_function"):  # codes of -1 and 1
        return np.clip((1 + np.asarray(model.decision_function(X), np.float64)) / 2, 0, 1)
    return np.asarray(model.predict_proba(X), np.float64)[:, 1]
