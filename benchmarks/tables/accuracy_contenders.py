"""The contenders of `accuracy`, each with its defaults, behind one interface."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.preprocessing import StandardScaler

TREES, PATIENCE = 1000, 50
RATE = 0.1
"""LightGBM's default."""

HELD_BACK = 5
"""One row of so many is held back by contenders that need rows to stop or to choose with."""

XRFM_ROWS = 5000
"""Test rows that xRFM predicts at once: it forms their kernel matrix."""


class Contender(Protocol):
    """A model of raw features; the libraries it needs are imported when it is made."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any: ...

    def predict(self, X: np.ndarray) -> np.ndarray: ...


def package(name: str) -> ModuleType:
    """Import a package of the extra `bench`, or say how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{name} cannot be imported ({error}); `pip install -e '.[bench]'` installs it"
        ) from error


def parts(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of rows to fit and, a fifth, to choose with."""
    order = np.random.default_rng(seed).permutation(len(y))
    return order[len(y) // HELD_BACK :], order[: len(y) // HELD_BACK]


def majority(labels: bool, seed: int) -> Contender:
    return DummyClassifier() if labels else DummyRegressor()


def hist_gradient_boosting(labels: bool, seed: int) -> Contender:
    return Boosting(seed) if labels else HistGradientBoostingRegressor(random_state=seed)


class Boosting(HistGradientBoostingClassifier):
    """Scikit-learn's, without classes of one row: its early stopping would refuse the table."""

    def __init__(self, random_state: int = 0) -> None:
        super().__init__(random_state=random_state)

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        some = np.bincount(y)[y] > 1
        return super().fit(X[some], y[some])


def lightgbm(labels: bool, seed: int) -> Contender:
    library = package("lightgbm")
    model = library.LGBMClassifier if labels else library.LGBMRegressor
    return model(n_jobs=1, random_state=seed, verbose=-1)


class StoppedTrees:
    """LightGBM with so many trees at most, until a fifth of the rows is fitted no better."""

    def __init__(self, labels: bool, seed: int, trees: int = TREES, rate: float = RATE) -> None:
        self.library, self.seed = package("lightgbm"), seed
        self.model = lightgbm(labels, seed).set_params(n_estimators=trees, learning_rate=rate)

    def fit(self, X: np.ndarray, y: np.ndarray) -> StoppedTrees:
        fit, held = parts(y, self.seed)
        if np.issubdtype(y.dtype, np.integer):
            held = held[np.isin(y[held], y[fit])]  # LightGBM refuses classes that it has not seen
        stop = self.library.early_stopping(PATIENCE, verbose=False)
        self.model.fit(X[fit], y[fit], eval_set=[(X[held], y[held])], callbacks=[stop])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict(X)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def xgboost(labels: bool, seed: int) -> Contender:
    library = package("xgboost")
    model = library.XGBClassifier if labels else library.XGBRegressor
    return model(n_jobs=1, random_state=seed)


def catboost(labels: bool, seed: int) -> Contender:
    library = package("catboost")
    model = library.CatBoostClassifier if labels else library.CatBoostRegressor
    quiet = {"verbose": False, "allow_writing_files": False}
    return Flat(model(thread_count=1, random_seed=seed, **quiet))


class Flat:
    """CatBoost, whose labels are a column."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: np.ndarray, y: np.ndarray) -> Flat:
        self.model.fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict(X)).ravel()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


class Xrfm:
    """xRFM as its page says: standardized columns, a fifth held back; targets standardized, too."""

    def __init__(self, labels: bool, seed: int) -> None:
        self.labels, self.seed = labels, seed
        model = package("xrfm").xRFM
        self.model = model(device="cpu", random_state=seed, n_threads=1, verbose=False)

    def fit(self, X: np.ndarray, y: np.ndarray) -> Xrfm:
        fit, held = parts(y, self.seed)
        self.columns = StandardScaler().fit(X[fit])
        self.shift, self.scale = (0, 1) if self.labels else (y[fit].mean(), y[fit].std())
        kind = np.int64 if self.labels else np.float32
        targets = ((y - self.shift) / self.scale).astype(kind)
        scaled = self.columns.transform(X).astype(np.float32)
        self.model.fit(scaled[fit], targets[fit], scaled[held], targets[held])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        found = np.concatenate([self.model.predict(part) for part in self._parts(X)])
        return found if self.labels else found.ravel() * self.scale + self.shift

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.concatenate([self.model.predict_proba(part) for part in self._parts(X)])

    def _parts(self, X: np.ndarray) -> list[np.ndarray]:
        scaled = self.columns.transform(X).astype(np.float32)
        return [scaled[i : i + XRFM_ROWS] for i in range(0, len(X), XRFM_ROWS)]


def gramian_default(labels: bool, seed: int) -> Contender:
    library = package("gramian")
    model = library.KernelRidgeClassifier if labels else library.KernelRidge
    return model(random_state=seed)


def searched(budget: str) -> Callable[[bool, int], Contender]:
    """Return the search within a budget."""

    def make(labels: bool, seed: int) -> Contender:
        library = package("gramian")
        model = library.KernelRidgeClassifierCV if labels else library.KernelRidgeCV
        return model(budget=budget, random_state=seed)

    return make


CONTENDERS: dict[str, Callable[[bool, int], Contender]] = {
    "mean": majority,
    "hist_gradient_boosting": hist_gradient_boosting,
    "lightgbm": lightgbm,
    "lightgbm_1000": StoppedTrees,
    "xgboost": xgboost,
    "catboost": catboost,
    "xrfm": Xrfm,
    "gramian default": gramian_default,
    "gramian cv 10 s": searched("10 s"),
    "gramian cv 60 s": searched("60 s"),
}
"""By name: made from whether targets are classes, and a seed."""

OURS = ("gramian default", "gramian cv 10 s", "gramian cv 60 s")
PEERS = tuple(name for name in CONTENDERS if name not in OURS and name != "mean")
