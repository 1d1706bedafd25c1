"""Searches with sparse rows: nothing is mapped, and the rest is as with dense ones."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.utils import get_tags

from gramian import KernelRidgeClassifierCV, KernelRidgeCV
from gramian.fitting.search import data as search_data
from gramian.fitting.search import larger_fit
from gramian.fitting.search import plan as search_plan
from gramian.model import load_model

RNG = np.random.default_rng(1)
N, D = 120, 60
DENSE = np.where(RNG.random((N, D)) < 0.2, RNG.uniform(0, 1, (N, D)), 0.0)
X = scipy.sparse.csr_array(DENSE)
Y = DENSE @ RNG.standard_normal(D) + 50
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
SMALL: dict[str, Any] = {"kernel": ["laplacian", "gaussian"], "metric": None, "cv": 2}
SMALL |= {"engine": "torch", "random_state": 0}


@pytest.fixture(params=["narrow", "wide"])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "wide":
        for module in ("gramian._sparse.rows", "gramian.data.rows.array"):
            monkeypatch.setattr(f"{module}.WIDE_FEATURES", 20)
    return str(request.param)


@pytest.mark.parametrize("direct_rows", [1500, 30], ids=["factorised", "iterated"])
def test_a_search_is_that_of_dense_rows(direct_rows, width, monkeypatch, tmp_path: Path):
    for module in ("all_rows.full_fit", "all_rows.last_fit"):
        monkeypatch.setattr(import_module(f"gramian.search.{module}"), "DIRECT_ROWS", direct_rows)
    found = KernelRidgeCV(**SMALL).fit(X, Y)
    dense = KernelRidgeCV(**SMALL, standardize=False).fit(DENSE, Y)
    assert found.best_params_["kernel"] == dense.best_params_["kernel"]
    assert found.best_params_["penalty"] == pytest.approx(dense.best_params_["penalty"], rel=1e-6)
    assert found.best_score_ == pytest.approx(dense.best_score_, rel=0.02)
    np.testing.assert_allclose(found.predict(X), dense.predict(DENSE), atol=0.02)
    np.testing.assert_allclose(found.predict(DENSE), found.predict(X), atol=1e-6)
    for part in found.model_.parts:
        assert part.centers.sparse is (width == "wide") or part.centers.shape[1] == D
    found.save(tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").predict(X)[:, 0], found.predict(X))


def test_all_that_is_automatic(width):
    found = KernelRidgeCV(cv=2, random_state=0).fit(X, Y)
    assert all(tried["metric"] is None for tried in found.cv_results_["params"])
    assert found.score(X, Y) > 0.5


def test_classes(width):
    found = KernelRidgeClassifierCV(**SMALL).fit(X, THREE)
    assert found.predict_proba(X).shape == (N, 3)
    assert found.score(X, THREE) > 0.8


def test_more_rows_than_are_searched_on_have_landmarks(width, monkeypatch):
    monkeypatch.setattr(search_data, "MOST_ROWS", 80)
    monkeypatch.setattr(search_plan, "MOST_ROWS", 80)
    monkeypatch.setattr(larger_fit, "LANDMARK_COUNTS", (100, 50))
    found = KernelRidgeCV(**SMALL).fit(X, Y)
    assert len(found.predict(X)) == N
    assert "cells" not in found.cv_results_["step"]
    plan = KernelRidgeCV(**SMALL).plan(X)
    assert (plan.searched_rows, plan.fitted_rows) == (80, N)


@pytest.mark.slow
def test_intervals(width):
    found = KernelRidgeCV(**SMALL, conformal="cv+").fit(X, Y)
    low, high = found.predict_interval(X, level=0.8).T
    assert ((low <= Y) & (high >= Y)).mean() > 0.6


@pytest.mark.parametrize(
    "more", [{"metric": "learned"}, {"metric": None, "standardize": "quantile"}]
)
def test_maps_are_refused(more):
    est = KernelRidgeCV(**more)
    assert not get_tags(est).input_tags.sparse
    for work in (est.fit, est.plan):
        with pytest.raises(ValueError, match="would fill the zeros of sparse rows: leave both"):
            work(X, Y)


def test_kernels_of_dense_rows_are_refused():
    assert get_tags(KernelRidgeCV()).input_tags.sparse
    with pytest.raises(ValueError, match="kernel=l1_laplacian needs dense rows, but X is sparse"):
        KernelRidgeCV("l1_laplacian").fit(X, Y)


@pytest.mark.slow
def test_a_plan_of_millions_of_features():
    wide = scipy.sparse.random_array((3000, 1 << 26), density=1e-6, format="csr", rng=0)
    plan = KernelRidgeCV().plan(wide)
    assert plan.seconds > 0
    assert plan.memory_bytes < 2 << 30
