"""Kernels and trees combined by scikit-learn: docs/stacking.md says how, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from gramian import (
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    TableEncoder,
)
from gramian.data import sample_path

ROWS, TEST_ROWS = 400, 2_000
FOLDS = KFold(5, shuffle=True, random_state=0)
WEIGHTS = LinearRegression(positive=True, fit_intercept=False)
FEW_TREES: dict[str, Any] = {"max_iter": 50, "random_state": 0}
TREES = HistGradientBoostingRegressor(**FEW_TREES)
KERNEL = KernelRidge(random_state=0)
SPACE: dict[str, Any] = {"kernel": ["laplacian", "l1_laplacian"], "metric": None}
SEARCH = KernelRidgeCV(**SPACE, budget=3_000_000, random_state=0)
SHORT = KernelRidgeCV(**SPACE, budget=1_000_000, random_state=0)


@dataclass(frozen=True)
class Rows:
    """Features and targets, to learn from and to test with."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray

    def error(self, estimator: Any) -> float:
        """Fit, and return the RMSE or the share of wrong labels at test rows."""
        prediction = estimator.fit(self.X, self.y).predict(self.X_test)
        if self.y.dtype.kind in "OUT":
            return float((prediction != self.y_test).mean())
        return float(np.sqrt(np.mean((prediction - self.y_test) ** 2)))


def sample(name: str, rows: int = ROWS) -> Rows:
    frame = pd.read_parquet(sample_path(name))
    parts = [frame[frame["split"] == k].drop(columns="split") for k in (0, 1)]
    train, test = (
        part.sample(min(n, len(part)), random_state=0)
        for part, n in zip(parts, (rows, TEST_ROWS), strict=True)
    )
    features = [part.drop(columns="target") for part in (train, test)]
    return Rows(features[0], train["target"].to_numpy(), features[1], test["target"].to_numpy())


@pytest.fixture(scope="module")
def houses() -> Rows:
    return sample("california_housing")


@pytest.fixture(scope="module")
def few_houses() -> Rows:
    """Return rows for what holds whatever the members have learned."""
    return sample("california_housing", 100)


def made(target: Any, seed: int = 0, noise: float = 0.1) -> Rows:
    """Return 300 rows of four features, and 1,000 to test with, of a known function."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (1_300, 4))
    y = target(X) + noise * rng.standard_normal(len(X))
    return Rows(X[:300], y[:300], X[300:], target(X[300:]))


def smooth(X: np.ndarray) -> np.ndarray:
    return np.sin(X[:, 0] + X[:, 1]) + X[:, 2] * X[:, 3] / 2


def steps(X: np.ndarray) -> np.ndarray:
    return 2.0 * (X[:, 0] > 0.3) - 3.0 * (X[:, 0] > 0.9) * (X[:, 1] > -0.5) + (X[:, 2] < -1)


@pytest.fixture(scope="module")
def towns() -> Rows:
    rows = made(smooth)
    rng = np.random.default_rng(1)
    parts = []
    for X, y in ((rows.X, rows.y), (rows.X_test, rows.y_test)):
        town = rng.integers(0, 4, len(X))
        frame = pd.DataFrame(X, columns=list("abcd"))
        frame["town"] = pd.Categorical.from_codes(town, ["Bern", "Graz", "Oslo", "Rome"])
        parts += [frame, y + np.array([0.0, 2.0, -1.0, 4.0])[town]]
    return Rows(*parts)


def stack(kernel: Any = KERNEL, trees: Any = TREES, **how: Any) -> StackingRegressor:
    return StackingRegressor([("kernel", kernel), ("trees", trees)], WEIGHTS, cv=FOLDS, **how)


def out_of_fold(estimator: Any, rows: Rows) -> np.ndarray:
    """Return predictions of rows that were not fitted, without scikit-learn's loop."""
    values = np.full(len(rows.y), np.nan)
    for fit, held in FOLDS.split(rows.X):
        X, X_held = (np.asarray(rows.X)[index] for index in (fit, held))
        values[held] = clone(estimator).fit(X, rows.y[fit]).predict(X_held)
    return values


class TestWeights:
    @pytest.mark.parametrize(
        "kernel", [KERNEL, pytest.param(SEARCH, marks=pytest.mark.slow)], ids=["fit", "search"]
    )
    @pytest.mark.parametrize(
        "name", ["california_housing", pytest.param("energy", marks=pytest.mark.slow)]
    )
    def test_a_stack_is_about_as_good_as_its_better_member(self, kernel, name):
        rows = sample(name)
        best = min(rows.error(clone(kernel)), rows.error(clone(TREES)))
        combined = stack(kernel)
        assert rows.error(combined) < 1.04 * best
        weights = combined.final_estimator_.coef_
        assert (weights >= 0).all()
        assert 0.95 < weights.sum() < 1.05

    def test_where_both_err_differently_the_stack_beats_both(self, houses):
        best = min(houses.error(clone(KERNEL)), houses.error(clone(TREES)))
        combined = stack()
        assert houses.error(combined) < 0.98 * best
        assert combined.final_estimator_.coef_.min() > 0.2

    @pytest.mark.parametrize(
        "kernel", [KERNEL, pytest.param(SEARCH, marks=pytest.mark.slow)], ids=["fit", "search"]
    )
    def test_the_kernel_has_the_weight_of_a_smooth_function(self, kernel):
        rows = made(smooth)
        combined = stack(kernel)
        assert rows.error(combined) < 1.05 * rows.error(clone(kernel))
        assert combined.final_estimator_.coef_[0] > 0.85

    def test_trees_have_the_weight_of_steps(self):
        rows = made(steps)
        combined = stack()
        assert rows.error(combined) < 1.05 * rows.error(clone(TREES))
        assert combined.final_estimator_.coef_[1] > 0.7

    @pytest.mark.parametrize(
        "kernel", [KERNEL, pytest.param(SHORT, marks=pytest.mark.slow)], ids=["fit", "search"]
    )
    def test_weights_are_those_of_predictions_out_of_fold(self, few_houses, kernel):
        columns = np.stack([out_of_fold(one, few_houses) for one in (kernel, TREES)], axis=1)
        by_sklearn = cross_val_predict(kernel, few_houses.X.to_numpy(), few_houses.y, cv=FOLDS)
        np.testing.assert_array_equal(by_sklearn, columns[:, 0])
        expected = clone(WEIGHTS).fit(columns, few_houses.y).coef_
        combined = stack(kernel).fit(few_houses.X.to_numpy(), few_houses.y)
        np.testing.assert_allclose(combined.final_estimator_.coef_, expected, rtol=1e-9)

    def test_a_search_is_done_once_and_its_choice_is_fitted_in_folds(self, houses):
        search = clone(SEARCH).fit(houses.X, houses.y)
        chosen = KernelRidge(**search.best_params_)
        best = min(houses.error(clone(chosen)), houses.error(clone(TREES)))
        combined = stack(chosen)
        assert houses.error(combined) < best
        assert combined.final_estimator_.coef_.min() > 0.1
        assert combined.named_estimators_["kernel"].penalty_ == chosen.penalty

    def test_a_mean_of_given_weights(self, few_houses):
        members = [("kernel", KERNEL), ("trees", TREES)]
        mean = VotingRegressor(members, weights=[3, 1]).fit(few_houses.X, few_houses.y)
        ours, theirs = (
            clone(one).fit(few_houses.X, few_houses.y).predict(few_houses.X_test)
            for _, one in members
        )
        np.testing.assert_allclose(mean.predict(few_houses.X_test), 0.75 * ours + 0.25 * theirs)

    def test_rows_of_weight_zero_are_in_no_member_and_no_weight(self):
        rows = made(smooth)
        wrong, weight = np.arange(len(rows.y)) % 8 == 0, np.ones(len(rows.y))
        y = np.where(wrong, 50.0, rows.y)
        weight[wrong] = 0
        combined = stack().fit(rows.X, y, sample_weight=weight)
        assert combined.final_estimator_.coef_[0] > 0.85
        assert np.abs(combined.predict(rows.X_test) - rows.y_test).mean() < 0.2


class TestColumns:
    def test_the_column_of_trees_is_that_of_predictions_out_of_fold(self, few_houses):
        column = cross_val_predict(TREES, few_houses.X, few_houses.y, cv=FOLDS)
        by_hand = clone(KERNEL).fit(np.column_stack([column, few_houses.X]), few_houses.y)
        trees = clone(TREES).fit(few_houses.X, few_houses.y)
        test = np.column_stack([trees.predict(few_houses.X_test), few_houses.X_test])
        both = StackingRegressor([("trees", TREES)], KERNEL, cv=FOLDS, passthrough=True)
        both.fit(few_houses.X, few_houses.y)
        np.testing.assert_allclose(
            both.predict(few_houses.X_test), by_hand.predict(test), rtol=1e-6
        )

    def test_the_column_of_trees_tells_a_kernel_where_steps_are(self):
        rows = made(steps)
        both = StackingRegressor([("trees", TREES)], KERNEL, cv=FOLDS, passthrough=True)
        assert rows.error(both) < 0.9 * rows.error(clone(KERNEL))

    @pytest.mark.parametrize(
        "kernel", [KERNEL, pytest.param(SEARCH, marks=pytest.mark.slow)], ids=["fit", "search"]
    )
    def test_the_column_of_a_kernel_tells_trees_what_is_smooth(self, kernel):
        rows = made(smooth)
        both = StackingRegressor([("kernel", kernel)], TREES, cv=FOLDS, passthrough=True)
        assert rows.error(both) < 0.7 * rows.error(clone(TREES))


class TestFrames:
    """Frames with text go through both members by the names of their columns."""

    def test_categories_reach_both_members(self, towns):
        trees = HistGradientBoostingRegressor(categorical_features="from_dtype", **FEW_TREES)
        combined = stack(trees=trees)
        best = min(towns.error(clone(KERNEL)), towns.error(clone(trees)))
        assert towns.error(combined) < 1.05 * best < 1.0
        assert combined.final_estimator_.coef_[0] > 0.5  # little, of a kernel that sees no towns
        names = ["a", "b", "c", "d", "town"]
        assert list(combined.named_estimators_["kernel"].feature_names_in_) == names

    @pytest.mark.slow
    def test_text_reaches_trees_by_an_encoder_of_theirs(self, towns):
        plain = [frame.assign(town=frame["town"].astype(str)) for frame in (towns.X, towns.X_test)]
        text = Rows(plain[0], towns.y, plain[1], towns.y_test)
        trees = make_pipeline(TableEncoder(), TREES)
        best = min(text.error(clone(KERNEL)), text.error(clone(trees)))
        combined = stack(trees=trees)
        assert text.error(combined) < 1.05 * best < 1.0
        assert combined.final_estimator_.coef_[0] > 0.5

    def test_a_further_column_needs_numbers_in_the_others(self, towns):
        both = StackingRegressor([("trees", TREES)], KERNEL, cv=FOLDS, passthrough=True)
        encoded = make_pipeline(TableEncoder(), both)
        assert towns.error(encoded) < towns.error(make_pipeline(TableEncoder(), TREES))

    def test_or_is_put_into_the_frame(self, towns):
        trees = make_pipeline(TableEncoder(), TREES)
        column = cross_val_predict(trees, towns.X, towns.y, cv=FOLDS)
        trees.fit(towns.X, towns.y)
        wider = Rows(
            towns.X.assign(trees=column), towns.y,
            towns.X_test.assign(trees=trees.predict(towns.X_test)), towns.y_test,
        )  # fmt: skip
        assert wider.error(clone(KERNEL)) < towns.error(clone(trees))


class TestClasses:
    MEMBERS = (
        KernelRidgeClassifier(random_state=0),
        pytest.param(
            KernelRidgeClassifierCV(**SPACE, budget=3_000_000, random_state=0),
            marks=pytest.mark.slow,
        ),
    )

    @pytest.mark.parametrize("kernel", MEMBERS, ids=["fit", "search"])
    @pytest.mark.parametrize(
        "names",
        [["low", "top"], pytest.param(["low", "middle", "top"], marks=pytest.mark.slow)],
        ids=len,
    )
    def test_probabilities_of_both_are_weighed(self, houses, kernel, names):
        bounds = np.quantile(houses.y, np.linspace(0, 1, len(names) + 1)[1:-1])
        y, y_test = (
            np.array(names)[np.searchsorted(bounds, part)] for part in (houses.y, houses.y_test)
        )
        rows = Rows(houses.X, y, houses.X_test, y_test)
        trees = HistGradientBoostingClassifier(**FEW_TREES)
        best = min(rows.error(clone(kernel)), rows.error(clone(trees)))
        combined = StackingClassifier([("kernel", kernel), ("trees", trees)], LogisticRegression())
        assert rows.error(combined) < best + 0.01
        assert combined.stack_method_ == ["predict_proba"] * 2
        assert list(combined.classes_) == names
        weights = combined.final_estimator_.coef_
        k = len(names) if len(names) > 2 else 1  # columns of a member
        for member in (0, k):
            assert weights[0, member] > 0.2  # of the first class by its own column; or of the last
            assert weights[-1, member + k - 1] > 0.2
