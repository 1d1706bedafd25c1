"""The contenders of `many_rows`: searches by cells, solvers of one model of all rows, trees."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ..lib.results import Row
from .accuracy_contenders import (
    PATIENCE,
    TREES,
    Contender,
    StoppedTrees,
    package,
    parts,
    searched,
    xgboost,
)

MORE_TREES, SLOWER = 5000, 0.05
"""Trees, and their learning rate."""

BUDGETS, ON_REQUEST = (60, 300), (20, 50, 100, 200, 1000)
"""Seconds of searches; the latter are measured only if they are asked for by name."""

LANDMARKS = (2000, 5000, 10_000, 20_000)
CHOICE_ROWS, CHOICE = 20_000, "10 s"
"""Rows and budget by which kernel, inputs, lengthscale and penalty of one model are chosen."""

SECONDS, TOLERANCE, ITERATIONS = 300, 1e-3, 1000
"""Where solvers of one model end: CPU seconds, relative residual, iterations."""

LEAST_SHARE = 1e-3
"""Of a class, where values are taken for shares."""


class CountedTrees(StoppedTrees):
    """LightGBM that stops, and says after how many trees."""

    @property
    def facts(self) -> Row:
        return {"trees": int(self.model.best_iteration_)}


class StoppedXgboost:
    """XGBoost with 1,000 trees at most, until a fifth of the rows is fitted no better.

    Rows of classes that would be missing from the other four fifths are fitted: it refuses gaps.
    """

    def __init__(self, labels: bool, seed: int) -> None:
        self.labels, self.seed = labels, seed
        stop = {"n_estimators": TREES, "early_stopping_rounds": PATIENCE}
        self.model = xgboost(labels, seed).set_params(**stop)

    def fit(self, X: np.ndarray, y: np.ndarray) -> StoppedXgboost:
        fit, held = parts(y, self.seed)
        seen = np.isin(y[held], y[fit]) if self.labels else np.ones(len(held), bool)
        fit, held = np.concatenate([fit, held[~seen]]), held[seen]
        self.model.fit(X[fit], y[fit], eval_set=[(X[held], y[held])], verbose=False)
        self.facts = {"trees": int(self.model.best_iteration) + 1}
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict(X)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


class Ours:
    """Base of our contenders: the model, and facts about its fit."""

    model: Any

    def __init__(self, labels: bool, seed: int) -> None:
        self.labels, self.seed = labels, seed
        self.facts: Row = {}

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the shares of classes that values estimate, at least a thousandth of each."""
        values = self.model.decision_function(X)
        if values.ndim == 1:
            found = np.stack([1 - values, 1 + values], axis=1) / 2
        else:
            k = values.shape[1]
            found = (values * (k - 1) + 1) / k
        found = found.clip(LEAST_SHARE, 1)
        return found / found.sum(axis=1, keepdims=True)

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # there is none before the fit
            raise AttributeError(name)
        return getattr(self.model, name)


class Search(Ours):
    """`KernelRidgeCV` within a budget."""

    def __init__(self, labels: bool, seed: int, budget: str) -> None:
        super().__init__(labels, seed)
        self.model = searched(budget)(labels, seed)

    def fit(self, X: np.ndarray, y: np.ndarray) -> Search:
        with warned() as said:
            self.model.fit(X, y)
        chosen = self.model.best_params_
        self.facts = {"chosen": in_words(chosen), "rows of a cell": chosen.get("cells")}
        self.facts |= {"members": len(self.model.members_), "warnings": len(said)}
        self.facts["seconds by step"] = by_step(self.model.history_)
        if said:
            self.facts["last warning"] = said[-1]
        return self


class OneModel(Ours):
    """A solver of one model, with all rows as centers or with landmarks.

    A search within 10 s on 20,000 of the rows chooses; rows times penalty is what stays for more of
    them, as in the library.
    """

    def __init__(self, labels: bool, seed: int, solver: str, landmarks: int | None) -> None:
        super().__init__(labels, seed)
        self.solver, self.landmarks = solver, landmarks

    def fit(self, X: np.ndarray, y: np.ndarray) -> OneModel:
        few = np.random.default_rng(self.seed).permutation(len(y))[:CHOICE_ROWS]
        chosen = searched(CHOICE)(self.labels, self.seed).fit(X[few], y[few]).best_params_
        given = chosen | {"penalty": chosen["penalty"] * len(few) / len(y), "cells": None}
        given |= {"landmarks": self.landmarks, "solver": self.solver, "random_state": self.seed}
        given |= {"tol": TOLERANCE, "max_iter": ITERATIONS, "time_limit": SECONDS}
        library = package("gramian")
        kind = library.KernelRidgeClassifier if self.labels else library.KernelRidge
        started = time.process_time()
        self.model = kind(**given).fit(X, y)
        self.facts = {"chosen": in_words(chosen), "solver_s": time.process_time() - started}
        self.facts |= {"iterations": self.model.n_iter_, "end": self.model.stop_reason_}
        self.facts["residual"] = self.model.history_[-1].get("rel_residual")
        return self


@contextmanager
def warned() -> Iterator[list[str]]:
    """Collect what the library logs as a warning: cells with a larger shift, say so."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("gramian")
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


def by_step(history: list[dict[str, Any]]) -> str:
    """Return the seconds of all trials of each step of a search on a line."""
    steps: dict[str, float] = {}
    for trial in history:
        steps[trial["step"]] = steps.get(trial["step"], 0.0) + trial["seconds"]
    return ", ".join(f"{step} {seconds:.3g}" for step, seconds in steps.items())


def in_words(chosen: dict[str, Any]) -> str:
    """Return the choices of a search as one line of text."""
    inputs = {"quantile": "quantiles", False: "one scale"}.get(
        chosen["standardize"], "standardized"
    )
    metric = "no metric" if chosen["metric"] is None else "learned metric"
    size = f"penalty {chosen['penalty']:.2g}"
    return ", ".join([chosen["kernel"], chosen["lengthscale"], size, inputs, metric])


def name_of(budget: int) -> str:
    return f"gramian cv {budget} s"


def _search(budget: int) -> Callable[[bool, int], Contender]:
    return partial(Search, budget=f"{budget} s")


MANY_ROWS: dict[str, Callable[[bool, int], Contender]] = {
    **{name_of(budget): _search(budget) for budget in sorted((*BUDGETS, *ON_REQUEST))},
    "lightgbm_1000": CountedTrees,
    "lightgbm_5000": partial(CountedTrees, trees=MORE_TREES, rate=SLOWER),
    "xgboost": xgboost,
    "xgboost_1000": StoppedXgboost,
    **{f"gramian falkon {m}": partial(OneModel, solver="falkon", landmarks=m) for m in LANDMARKS},
    "gramian pcg": partial(OneModel, solver="pcg", landmarks=None),
    "gramian askotch": partial(OneModel, solver="askotch", landmarks=None),
}
"""By name: made from whether targets are classes, and a seed."""
