"""Contenders that compute with tensors: xRFM and two networks, which take no gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .accuracy_contenders import Xrfm, package

NETWORK_MODELS = {"realmlp": "RealMLP_TD_S", "tabm": "TabM_D"}
"""Models of pytabkit by contender, without the suffix for the kind of target."""


class FilledModel:
    """A model whose missing numbers are medians, marked by a column for each column with gaps.

    Levels are one-hot columns, or categories.
    """

    def __init__(self, model: Any, *, is_one_hot: bool) -> None:
        self.model, self.is_one_hot = model, is_one_hot

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> FilledModel:
        numbers = X.select_dtypes("number")
        self.medians = numbers.median().fillna(0)
        self.gaps = list(numbers.columns[numbers.isna().any()])
        self.classes_ = np.unique(y)
        self.model.fit(self._features(X), y)
        return self

    def _features(self, X: pd.DataFrame) -> Any:
        numbers, levels = X.select_dtypes("number"), X.select_dtypes("category")
        marks = numbers[self.gaps].isna().astype(float).add_suffix(" is missing")
        if not self.is_one_hot:
            return pd.concat([numbers.fillna(self.medians), marks, levels], axis=1)
        columns = [numbers.fillna(self.medians), marks]
        if len(levels.columns):
            columns.append(pd.get_dummies(levels, dtype=float))
        return pd.concat(columns, axis=1).to_numpy(float)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict(self._features(X)))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict_proba(self._features(X)))


def xrfm(labels: bool, seed: int) -> FilledModel:
    return FilledModel(Xrfm(labels, seed), is_one_hot=True)


def network(labels: bool, seed: int, name: str) -> FilledModel:
    """Return a network with its defaults, which holds a fifth of the rows back, as xRFM does."""
    suffix = "Classifier" if labels else "Regressor"
    model = getattr(package("pytabkit"), f"{NETWORK_MODELS[name]}_{suffix}")
    return FilledModel(model(device="cpu", n_threads=1, random_state=seed), is_one_hot=False)
