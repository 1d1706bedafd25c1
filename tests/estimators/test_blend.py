"""A search with `blend` averages its result with trees, and treats both as one model."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import gramian
from gramian import KernelRidgeClassifierCV, KernelRidgeCV
from gramian.callbacks import Checkpoint
from gramian.fitting.search import data as search_data
from gramian.model import BlendModel, Shares

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (500, 3))
SMOOTH = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
STEPS = np.sign(X[:, 0] - 0.1) * np.sign(X[:, 1] + 0.2) + (X[:, 2] > 0.3)
EVALUATIONS = 3e6
"""Kernel evaluations: the same search on every machine."""


def search(kind=KernelRidgeCV, **settings):
    return kind(blend="lightgbm", budget=EVALUATIONS, random_state=0, **settings)


def test_the_kernel_has_the_weight_of_a_smooth_function_and_trees_of_steps():
    assert search().fit(X, SMOOTH).blend_weight_ >= 0.9
    assert search().fit(X, STEPS).blend_weight_ <= 0.2


@pytest.fixture(scope="module")
def blended():
    return search().fit(X[:400], STEPS[:400])


def test_predictions_are_of_both(blended):
    model = blended.model_
    assert isinstance(model, BlendModel)
    assert model.weight == blended.blend_weight_
    kernel, trees = model.kernel_model.predict(X), model.trees.predict(gramian.data.as_rows(X))
    expected = (model.weight * kernel + (1 - model.weight) * trees)[:, 0]
    np.testing.assert_allclose(blended.predict(X), expected, rtol=1e-12)
    alone = KernelRidgeCV(budget=EVALUATIONS, random_state=0).fit(X[:400], STEPS[:400])
    assert alone.blend_weight_ == 1
    assert not isinstance(alone.model_, BlendModel)
    assert blended.score(X[400:], STEPS[400:]) > alone.score(X[400:], STEPS[400:])


def test_reports_name_the_blend(blended):
    assert blended.cv_results_["step"][blended.best_index_] == "blend"
    assert blended.best_score_ == pytest.approx(
        -blended.cv_results_["squared_error"][blended.best_index_]
    )
    assert [row["step"] for row in blended.history_][-2:] == ["blend", "refit"]
    assert blended.feature_importances_.sum() == pytest.approx(1)


def test_files_and_refusals(blended, tmp_path):
    blended.save(tmp_path / "m")
    loaded = gramian.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(X), blended.predict(X))
    for ask in (
        lambda: blended.gradient(X),
        lambda: blended.predict(X, return_std=True),
        lambda: blended.loo_predictions_,
    ):
        with pytest.raises((ValueError, AttributeError), match="blend with trees"):
            ask()
    with pytest.raises(ValueError, match="blend must be None or 'lightgbm', not 'xgboost'"):
        KernelRidgeCV(blend="xgboost").fit(X, SMOOTH)
    with pytest.raises(ValueError, match="blend must be None for sparse rows, not 'lightgbm'"):
        search().fit(scipy.sparse.csr_array(X), SMOOTH)


def test_without_lightgbm_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r"gramian\[trees\]"):
        search().fit(X, SMOOTH)
    KernelRidgeCV(budget=EVALUATIONS).fit(X, SMOOTH)


@pytest.mark.parametrize("count", [2, 3])
def test_probabilities_are_calibrated_for_the_blend(count, tmp_path):
    labels = np.array(["a", "b", "c"])[np.digitize(STEPS, [-0.5, 0.5][: count - 1])]
    est = search(KernelRidgeClassifierCV).fit(X[:400], labels[:400])
    assert est.blend_weight_ < 0.9
    assert est.score(X[400:], labels[400:]) > 0.9
    assert isinstance(est.model_.probabilities, Shares)
    chances = est.predict_proba(X[400:])
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    truth = labels[400:, None] == est.classes_
    assert -np.log(chances[truth]).mean() < 0.3
    est.save(tmp_path / "m")
    np.testing.assert_array_equal(
        gramian.load(tmp_path / "m").predict_proba(X), est.predict_proba(X)
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["split", "cv+"])
def test_intervals_are_of_the_blend(method, tmp_path):
    rows = RNG.uniform(-1, 1, (1000, 3))
    y = np.sign(rows[:, 0] - 0.1) * np.sign(rows[:, 1] + 0.2) + 0.1 * RNG.standard_normal(1000)
    est = search(conformal=method).fit(rows[:800], y[:800])
    assert isinstance(est.model_, BlendModel)
    low, high = est.predict_interval(rows[800:]).T
    assert np.mean((low <= y[800:]) & (y[800:] <= high)) > 0.8
    assert np.median(high - low) < 1.5
    est.save(tmp_path / "m")
    loaded = gramian.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_interval(X), est.predict_interval(X))


def test_text_and_gaps_reach_both(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["town"] = np.array(["Rome", "Bern", "Oslo"])[np.arange(500) % 3]
    y = (X[:, 0] > 0.1) + 2.0 * (X[:, 1] > -0.2) * (frame["town"] == "Rome")
    frame.loc[::9, "c"] = np.nan
    est = search().fit(frame[:400], y[:400])
    assert est.blend_weight_ < 0.9
    assert est.score(frame[400:], y[400:]) > 0.8
    assert est.model_.trees.categories == ((4, 4, 7),)
    est.save(tmp_path / "m")
    np.testing.assert_array_equal(gramian.load(tmp_path / "m").predict(frame), est.predict(frame))


def test_several_targets():
    est = search().fit(X[:400], np.column_stack([STEPS, 100 * STEPS])[:400])
    assert est.blend_weight_ < 0.9
    assert est.predict(X).shape == (500, 2)
    assert len(est.model_.trees.rounds) == 2


def test_rows_of_weight_zero_do_not_count():
    weights = np.ones(500)
    weights[400:] = 0
    spoiled = np.where(weights > 0, STEPS, 100.0)
    weighted = search().fit(X, spoiled, weights)
    alone = search().fit(X[:400], STEPS[:400], np.ones(400))
    np.testing.assert_allclose(weighted.predict(X), alone.predict(X))


def test_a_resumed_search_has_the_same_trees(tmp_path):
    def fit(stop_after):
        path = tmp_path / "journal"
        trials = []

        def stop(trial):
            trials.append(trial)
            return len(trials) == stop_after

        est = search(callbacks=[Checkpoint(path), stop]).fit(X[:200], STEPS[:200])
        return est.predict(X)

    fit(2)
    np.testing.assert_array_equal(fit(None), search().fit(X[:200], STEPS[:200]).predict(X))


@pytest.mark.parametrize("evaluations", [3e6, 3e8])
def test_rows_beyond_the_sample_of_a_search(evaluations, monkeypatch):
    monkeypatch.setattr(search_data, "MOST_ROWS", 1600)
    rng = np.random.default_rng(1)
    more = rng.uniform(-1, 1, (2400, 3))
    steps = np.sign(more[:, 0] - 0.1) * np.sign(more[:, 1] + 0.2) + (more[:, 2] > 0.3)
    est = KernelRidgeCV(blend="lightgbm", budget=evaluations, random_state=0)
    est.fit(more[:2000], steps[:2000])
    has_cells = [part.cells is not None for part in est.model_.parts]
    assert has_cells == [evaluations > EVALUATIONS]
    assert est.blend_weight_ < 0.9
    assert est.score(more[2000:], steps[2000:]) > 0.95
