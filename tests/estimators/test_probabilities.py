"""predict_proba of the classifiers: its rows, and the held-out rows that its power is fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plain import PLAIN
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import cross_val_score

import gramian
from gramian import KernelRidgeClassifier, KernelRidgeClassifierCV
from gramian import _arrays as xp
from gramian.callbacks import Validate
from gramian.fitting.held_out.validation import HeldValues
from gramian.fitting.inputs.training_data import class_codes
from gramian.fitting.search import data as search_data
from gramian.fitting.search import fit as automatic
from gramian.fitting.search import larger_fit
from gramian.fitting.search import plan as search_plan
from gramian.landmarks import BlessR
from gramian.model import Shares
from gramian.search.cells import cell_sizes

pytestmark = [
    pytest.mark.filterwarnings("ignore:the smallest penalty tried"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

N = 240
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
SCORE = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(N)
TWO = np.where(SCORE > 0.3, "yes", "no")
THREE = np.array(["b", "c", "a"])[np.digitize(SCORE, [-0.5, 0.5])]
MANY = np.digitize(SCORE, np.linspace(-2, 2, 9))
WEIGHT = RNG.uniform(0.2, 3, N)
SEARCH: dict[str, Any] = {
    "kernel": ["laplacian"], "metric": None, "standardize": True, "average": False,
    "random_state": 0,
}  # fmt: skip


def plain(**settings: Any) -> KernelRidgeClassifier:
    return KernelRidgeClassifier(**(PLAIN | {"penalty": 1e-3, "random_state": 0} | settings))


def codes(y: np.ndarray) -> np.ndarray:
    return class_codes(y, np.unique(y), np.float64)


def power(est: Any) -> float | None:
    found = est.model_.probabilities
    return None if found is None else found.power


ESTIMATORS = {
    "plain": plain(),
    "auto": KernelRidgeClassifier(random_state=0),
    "search": KernelRidgeClassifierCV(**SEARCH),
    "cells": plain(cells=100, lengthscale="auto"),
    "weighted": plain(class_weight="balanced", early_stopping=True),
}


class TestRows:
    @pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("name", ESTIMATORS)
    def test_they_sum_to_one_and_the_largest_is_predicted(self, name, dtype, y):
        rows = X.astype(dtype)
        est = clone(ESTIMATORS[name]).fit(rows, y, WEIGHT)
        p = est.predict_proba(rows)
        assert p.shape == (N, len(est.classes_))
        assert p.dtype == np.float64
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
        np.testing.assert_array_equal(est.classes_[p.argmax(axis=1)], est.predict(rows))
        np.testing.assert_allclose(np.exp(est.predict_log_proba(rows)), p)
        assert log_loss(y, p, labels=est.classes_) < 0.7

    @pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
    def test_a_saved_model_has_the_same(self, y, tmp_path):
        est = KernelRidgeClassifier(random_state=0).fit(X, y)
        est.save(tmp_path / "m")
        again = gramian.load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict_proba(X), est.predict_proba(X))
        np.testing.assert_array_equal(est.model_.predict_proba(X), est.predict_proba(X))

    def test_scores_of_scikit_learn_take_them(self):
        est = KernelRidgeClassifierCV(**SEARCH).fit(X[:160], THREE[:160])
        p = est.predict_proba(X[160:])
        assert roc_auc_score(THREE[160:], p, multi_class="ovr") > 0.9
        found = cross_val_score(plain(), X, THREE, scoring="neg_log_loss", cv=3)
        assert -0.7 < found.mean() < 0
        two = plain().fit(X, TWO)
        p, f = two.predict_proba(X)[:, 1], two.decision_function(X)
        assert roc_auc_score(TWO, p) == pytest.approx(roc_auc_score(TWO, f), abs=1e-12)
        assert brier_score_loss(TWO == "yes", p) < 0.15

    @pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
    def test_they_can_be_calibrated(self, method):
        est = CalibratedClassifierCV(plain(), method=method, cv=3).fit(X, THREE)
        assert log_loss(THREE, est.predict_proba(X)) < 0.8


class TestPower:
    """Which rows it is fitted to: each time by what they are, not by what came out."""

    def test_nothing_was_held_out(self):
        assert power(plain().fit(X, TWO)) is None

    @pytest.mark.parametrize("y", [TWO, MANY], ids=["two", "ten"])
    @pytest.mark.parametrize("weights", [None, WEIGHT], ids=["plain", "weighted"])
    def test_rows_of_early_stopping(self, y, weights):
        given = {"lengthscale": 0.5, "penalty": 1e-9, "landmarks": 60, "standardize": False}
        est = plain(early_stopping=True, validation_fraction=0.3, **given).fit(X, y, weights)
        held = est._fitted.held_out
        values = est.decision_function(X[held]).reshape(len(held), -1)
        w = None if weights is None else weights[held]
        expected = Shares.fit(values, codes(y)[held], w).power
        assert power(est) == pytest.approx(expected, rel=1e-6)
        assert expected != 1

    def test_rows_of_a_validate(self):
        look = Validate(X[160:], THREE[160:])
        est = plain(early_stopping=True, callbacks=[look], standardize=False)
        est.fit(X[:160], THREE[:160])
        values = est.decision_function(X[160:])
        expected = Shares.fit(values, codes(THREE)[160:]).power
        assert power(est) == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
    @pytest.mark.parametrize("weights", [None, WEIGHT], ids=["plain", "weighted"])
    def test_few_rows_are_left_out_one_by_one(self, y, weights):
        n = 40
        w = np.ones(n) if weights is None else weights[:n]
        given = {"kernel": "gaussian", "lengthscale": 1.0, "standardize": False}
        est = KernelRidgeClassifier(**given, penalty="auto", random_state=0)
        est.fit(X[:n], y[:n], None if weights is None else w)
        values = []
        for i in range(n):
            rest = np.arange(n) != i
            share = est.penalty_ * w.sum() / w[rest].sum()
            one = KernelRidgeClassifier(**given, penalty=share, landmarks=None, solver="direct")
            values.append(
                one.fit(X[:n][rest], y[:n][rest], w[rest]).decision_function(X[i : i + 1])
            )
        found = np.concatenate(values).reshape(n, -1)
        expected = Shares.fit(found, codes(y)[:n], w).power
        assert power(est) == pytest.approx(expected, rel=1e-4)

    @pytest.mark.parametrize("y", [TWO, MANY], ids=["two", "ten"])
    def test_rows_that_a_penalty_is_chosen_by(self, y):
        order = np.random.default_rng(1).permutation(N)
        learn, held = order[:180], order[180:]
        given = {"kernel": "gaussian", "lengthscale": 1.0, "standardize": False}
        est = KernelRidgeClassifier(
            **given, penalty="auto", cv=[(learn, held)], random_state=0
        ).fit(X, y)
        share = est.penalty_ * N / len(learn)
        other = KernelRidgeClassifier(**given, penalty=share, solver="direct")
        other.fit(X[learn], y[learn])
        assert np.array_equal(other.classes_, est.classes_)
        values = other.decision_function(X[held]).reshape(len(held), -1)
        expected = Shares.fit(values, codes(y)[held]).power
        assert power(est) == pytest.approx(expected, rel=1e-3)
        assert abs(expected - 1) > 0.02

    @pytest.mark.slow
    def test_folds_of_a_path(self):
        order = np.random.default_rng(1).permutation(N)
        cv = [(np.sort(order[k:]), np.sort(order[:k])) for k in (60, 80)]
        given = {"lengthscale": 1.0, "standardize": False, "tol": 1e-8}
        est = plain(**given | {"penalty": "auto"}, landmarks=BlessR(penalty=1e-4), cv=cv)
        est.fit(X, THREE, WEIGHT)
        values = []
        for learn, held in cv:
            one = plain(**given, penalty=est.penalty_, landmarks=X[est.landmark_index_])
            values.append(one.fit(X[learn], THREE[learn], WEIGHT[learn]).decision_function(X[held]))
        index = np.concatenate([held for _, held in cv])
        found = np.concatenate(values)
        expected = Shares.fit(found, codes(THREE)[index], WEIGHT[index]).power
        assert power(est) == pytest.approx(expected, rel=1e-3)
        assert abs(expected - 1) > 0.02

    def test_it_stays_in_a_warm_start_and_in_further_rows(self):
        est = plain(penalty="auto", warm_start=True, landmarks=30).fit(X, TWO)
        first = power(est)
        assert first is not None
        assert power(est.fit(X, TWO)) == first
        est = plain(penalty="auto", solver="eigenpro3", landmarks=30)
        first = power(est.partial_fit(X[:120], TWO[:120], np.unique(TWO)))
        assert first is not None
        assert power(est.partial_fit(X[120:], TWO[120:])) == first


class TestSearch:
    @pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
    @pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
    def test_the_values_of_the_final_choice(self, scoring, y):
        order = np.random.default_rng(1).permutation(N)
        learn, held = np.sort(order[:160]), np.sort(order[160:])
        seen: list[Any] = []
        est = KernelRidgeClassifierCV(
            **SEARCH, cv=[(learn, held)], scoring=scoring, callbacks=[seen.append]
        ).fit(X, y, WEIGHT)
        best = min((one for one in seen if one.step == "fit"), key=lambda one: one.loss)
        truth, w = codes(y), WEIGHT
        values = xp.to_float64(best.values) + (w @ truth) / w.sum()
        shares = Shares.fit(values, truth[held], w[held])
        assert power(est) == pytest.approx(shares.power, rel=1e-6)
        if scoring is not None:
            p = shares(values)
            score = -log_loss(y[held], p, labels=est.classes_, sample_weight=WEIGHT[held])
            assert est.best_score_ == pytest.approx(score)

    def test_an_average_has_one_map(self):
        given = SEARCH | {"kernel": ["laplacian", "gaussian"], "average": True}
        est = KernelRidgeClassifierCV(**given).fit(X, THREE)
        assert {one.probabilities for one in est.model_.parts} == {est.model_.probabilities}
        assert power(est) is not None

    def test_a_fold_without_a_class(self):
        yes, no = np.flatnonzero(TWO == "yes"), np.flatnonzero(TWO == "no")
        cv = [(np.concatenate([no, yes[10:]]), yes[:10])]
        est = KernelRidgeClassifierCV(**SEARCH, cv=cv).fit(X, TWO)
        assert 0.25 <= power(est) <= 8
        assert np.isfinite(est.predict_log_proba(X)).all()
        few = KernelRidgeClassifier(random_state=0, cv=cv).fit(X, TWO)
        assert 0.25 <= power(few) <= 8


class TestManyRows:
    """Limits of thousands of rows, made small: what comes after the search of a sample."""

    X = RNG.standard_normal((900, 3)).astype(np.float32)
    SCORE = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(900)
    Y = np.where(SCORE > 0.5, "up", np.where(SCORE < -0.5, "down", "flat"))

    @pytest.fixture
    def held(self, monkeypatch: pytest.MonkeyPatch) -> list[HeldValues]:
        """Return the values that powers are fitted to, once there has been a fit."""
        found: list[HeldValues] = []
        of_search = automatic.held_out

        def noted(*given: Any) -> HeldValues:
            found.append(of_search(*given))
            return found[-1]

        monkeypatch.setattr(automatic, "held_out", noted)
        monkeypatch.setattr(search_data, "MOST_ROWS", 200)
        return found

    def fit(self, **settings: Any) -> KernelRidgeClassifierCV:
        return KernelRidgeClassifierCV(**SEARCH | settings).fit(self.X, self.Y)

    def checked(self, est: KernelRidgeClassifierCV, held: list[HeldValues]) -> np.ndarray:
        """Return the numbers of the held-out rows, which the model has predicted so."""
        (one,) = held
        values = est.decision_function(self.X)
        near = np.abs(values[:, None] - one.values[None]).max(axis=2)
        rows = near.argmin(axis=0)
        np.testing.assert_allclose(near.min(axis=0), 0, atol=1e-4)
        np.testing.assert_allclose(one.truth, codes(self.Y)[rows], atol=1e-6)
        assert power(est) == one.shares().power
        return rows

    @pytest.mark.parametrize("rows", [10_000, 200])
    def test_cells(self, rows, held, monkeypatch):
        monkeypatch.setattr(cell_sizes, "USUAL_ROWS", rows)
        monkeypatch.setattr(cell_sizes, "LEAST_ROWS", 100)
        est = self.fit()
        assert est.model_.cells is not None
        assert len(np.unique(self.checked(est, held))) >= 40

    def test_landmarks(self, held, monkeypatch):
        monkeypatch.setattr(search_plan, "HELD_BYTES", 0)
        monkeypatch.setattr(larger_fit, "LANDMARK_COUNTS", (400,))
        est = self.fit()
        assert est.model_.centers.shape == (400, 3)
        assert len(np.unique(self.checked(est, held))) >= 40

    def test_a_sample(self, held):
        est = self.fit(callbacks=[lambda trial: True])
        assert len(np.unique(self.checked(est, held))) >= 40
