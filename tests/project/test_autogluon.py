"""The model for AutoGluon, on the part of its interface that the model uses."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramian

EXAMPLE = Path(__file__).parents[2] / "examples" / "autogluon_model.py"


class AbstractModel:
    """AutoGluon's base class, as of autogluon.core 1.6: what a subclass may call."""

    def __init__(self, problem_type: str, parameters: dict[str, Any]) -> None:
        self.problem_type, self._parameters = problem_type, parameters

    def preprocess(self, X: pd.DataFrame, is_train: bool = False) -> pd.DataFrame:
        assert is_train
        return X

    def _get_model_params(self) -> dict[str, Any]:
        return dict(self._parameters)


@pytest.fixture
def model_class(monkeypatch) -> type[Any]:
    core, models = ModuleType("autogluon.core"), ModuleType("autogluon.core.models")
    models.AbstractModel = AbstractModel
    for name, module in (("autogluon", ModuleType("autogluon")), ("autogluon.core", core)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "autogluon.core.models", models)
    spec = importlib.util.spec_from_file_location("autogluon_model", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.GramianModel


RNG = np.random.default_rng(0)
X = pd.DataFrame({"size": RNG.standard_normal(80), "kind": pd.Categorical(list("ab") * 40)})
Y = pd.Series(X["size"] + (X["kind"] == "a"))


@pytest.mark.parametrize(
    ("problem_type", "y", "time_limit", "expected"),
    [
        ("regression", Y, 1.0, gramian.KernelRidge),
        ("binary", (Y > 0).astype(int), 1.0, gramian.KernelRidgeClassifier),
        ("regression", Y, None, gramian.KernelRidgeCV),
        ("multiclass", np.digitize(Y, [0, 1]), None, gramian.KernelRidgeClassifierCV),
    ],
)
def test_the_model_fits_within_the_time(model_class, problem_type, y, time_limit, expected):
    assert problem_type in model_class.supported_problem_types()
    model = model_class(problem_type, {"budget": 20_000})
    model._fit(X=X, y=y, time_limit=time_limit, num_cpus=1, verbosity=2)
    assert type(model.model) is expected
    assert model.model.score(X, y) > 0.8


def test_the_budget_is_a_share_of_the_time(model_class, monkeypatch):
    monkeypatch.setattr(gramian.KernelRidgeCV, "fit", lambda est, X, y, sample_weight: est)
    model = model_class("regression", {"conformal": "cv+"})
    model._fit(X=X, y=Y, time_limit=100.0)
    assert model.model.budget == "80.0 s"
    assert model.model.conformal == "cv+"
