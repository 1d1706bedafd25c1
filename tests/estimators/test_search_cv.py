"""KernelRidgeCV and KernelRidgeClassifierCV: parameters, attributes, many rows, and files."""

from __future__ import annotations

import pickle
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import (
    accuracy_score,
    explained_variance_score,
    make_scorer,
    mean_absolute_error,
    mean_pinball_loss,
    r2_score,
)
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import gramian
from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeClassifierCV, KernelRidgeCV
from gramian import _arrays as xp
from gramian.data import as_rows
from gramian.estimators.search import base as search_base
from gramian.estimators.search import results
from gramian.estimators.search.scoring import Scoring
from gramian.fitting.search import data as search_data
from gramian.fitting.search import fit as automatic
from gramian.fitting.search import larger_fit
from gramian.fitting.search import plan as search_plan
from gramian.kernels import Gaussian
from gramian.metric import RecursiveFeatureMachine
from gramian.model import load_model as load
from gramian.scoring.predictions import Predictions
from gramian.scoring.scorers import find_metric
from gramian.search import CellSearch
from gramian.search.cells import cell_sizes, cell_solver

N, D = 120, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = 10 * np.sin(2 * X[:, 0]) + X[:, 1] + 100
LABELS = np.array(["no", "yes"])[(Y > 100).astype(int)]
THREE = np.digitize(Y, [96, 104])
SMALL = {"kernel": ["laplacian", "gaussian"], "metric": None, "standardize": True}
LEARNED = {"kernel": ["gaussian"], "metric": RecursiveFeatureMachine(1, (0.5,)), "average": False}


def ridge(**settings: object) -> KernelRidgeCV:
    return KernelRidgeCV(**(SMALL | {"random_state": 0} | settings))


def classifier(**settings: object) -> KernelRidgeClassifierCV:
    return KernelRidgeClassifierCV(**(SMALL | {"random_state": 0} | settings))


@pytest.fixture(scope="module")
def fitted() -> KernelRidgeCV:
    return ridge().fit(X, Y)


@pytest.fixture(scope="module")
def learned() -> KernelRidgeCV:
    return ridge(**LEARNED, cv=2).fit(X, Y)


class TestParameters:
    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"kernel": "gausian"}, "did you mean gaussian?"),
            ({"kernel": ["gaussian", "sum"]}, "kernel objects, or names of kernels"),
            ({"kernel": Gaussian(1.0), "metric": "learned"}, "take them as given"),
            ({"kernel": "tanimoto", "standardize": "quantile"}, "take them as given"),
            ({"kernel": []}, "kernel must be 'auto', a name, a kernel object or a list"),
            ({"kernel": [3]}, "not 3"),
            ({"lengthscale": 2.0}, "multiples of the median"),
            ({"lengthscale": ["0 median"]}, "multiples of the median"),
            ({"lengthscale": []}, "multiples of the median"),
            ({"metric": "pca"}, "metric must be 'auto'"),
            ({"standardize": "minmax"}, "standardize must be 'auto'"),
            ({"test_fraction": 1.0}, "test_fraction must be between 0 and 1, such as 0.2, not 1.0"),
            ({"test_fraction": 0.99}, "a search needs 5 at least"),
            ({"average": "yes"}, "average must be True or False"),
            ({"budget": "soon"}, "budget must be a time"),
            ({"scoring": "accuracy"}, "scoring must be one of"),
            ({"scoring": "mean_absolute_error"}, "did you mean neg_mean_absolute_error?"),
            ({"scoring": "jaccard"}, "jaccard cannot score these predictions of a regression"),
            ({"callbacks": print}, "callbacks must be a list"),
            ({"memory_limit": "much"}, "memory_limit"),
            *[({"cv": cv}, "cv must be None, a number of folds of at least 2")
              for cv in (1, 0, -2, True, 2.5, "five", [])],
            ({"cv": N + 1}, f"cv={N + 1} folds need as many rows, but there are only {N}"),
            ({"cv": [([0, 1], [N])]}, f"must be between 0 and {N - 1}, not {N}"),
            ({"cv": [([0, 1], [2]), ([3], [])]}, "split 1 of cv"),
        ],
        ids=str,
    )  # fmt: skip
    def test_what_cannot_be_used_is_refused_in_words(self, wrong, message):
        with pytest.raises(ValueError, match=message.replace("?", r"\?")):
            ridge(**wrong).fit(X, Y)

    def test_scores_of_the_other_task_are_refused(self):
        with pytest.raises(ValueError, match="scoring must be one of error, accuracy"):
            classifier(scoring="r2").fit(X, LABELS)

    def test_a_search_that_exceeds_the_memory_is_refused(self):
        with pytest.raises(ValueError, match=f"{N} rows of 3 features needs about .* 10 MB; raise"):
            ridge(memory_limit="10 MB").fit(X, Y)
        assert ridge(memory_limit="100 MB", budget=50_000).fit(X, Y).best_params_

    def test_a_failed_fit_keeps_the_last(self):
        est = ridge(budget=50_000).fit(X, Y)
        before = est.predict(X)
        with pytest.raises(ValueError, match="cv must"):
            est.set_params(cv=1).fit(X[:50], Y[:50])
        np.testing.assert_array_equal(est.predict(X), before)

    def test_a_kernel_twice_is_once(self):
        est = ridge(kernel=["laplacian", "laplacian"], budget=100_000).fit(X, Y)
        assert sum(row["step"] == "screen" for row in est.history_) == 1

    @pytest.mark.parametrize("kernel", ["matern12", "matern52", "rational_quadratic"])
    def test_other_kernels_and_their_metric(self, kernel):
        est = ridge(**LEARNED | {"kernel": kernel}, budget=1_000_000).fit(X, Y)
        assert est.best_params_["kernel"] == kernel
        assert est.score(X, Y) > 0.9

    def test_they_are_cloned_and_listed(self):
        est = ridge(budget="3 s")
        assert clone(est).get_params() == est.get_params()
        assert list(est.get_params()) == [
            "average", "blend", "budget", "callbacks", "conformal", "conformal_groups", "cv",
            "engine", "kernel", "lengthscale", "memory_limit", "metric", "random_state",
            "scoring", "standardize", "test_fraction", "verbose",
        ]  # fmt: skip


class TestSplits:
    def held(self, cv: object, **how: object) -> int:
        """Return how many rows were held out, from the predictions of a fit."""
        seen = []
        ridge(cv=cv, callbacks=[lambda trial: seen.append(trial)], **how).fit(X, Y)
        return next(len(trial.values) for trial in seen if trial.values is not None)

    @pytest.mark.parametrize(
        ("cv", "held"),
        [
            (None, N),
            (3, N),
            (np.int64(2), N),
            (KFold(4), N),
            (ShuffleSplit(2, test_size=10, random_state=0), 20),
            ([(np.arange(60), np.arange(60, 70))], 10),
            (list(GroupKFold(3).split(X, Y, np.arange(N) // 10)), N),
        ],
        ids=str,
    )
    def test_rows_are_held_out_as_they_say(self, cv, held):
        assert self.held(cv, lengthscale="median", kernel="laplacian") == held

    def test_pairs_that_can_be_read_once(self):
        est = ridge(cv=iter(list(KFold(3).split(X))), kernel="laplacian").fit(X, Y)
        assert est.score(X, Y) > 0.9

    def test_rows_of_weight_zero_are_in_no_split(self):
        w = np.arange(N) % 2.0
        y = np.where(w > 0, Y, 1e6)
        est = ridge(cv=[(np.arange(60), np.arange(60, N))], kernel="gaussian")
        est.fit(X, y, sample_weight=w)
        assert r2_score(Y[w > 0], est.predict(X[w > 0])) > 0.9

    def test_weights_count(self):
        w = np.where(X[:, 2] > 0, 1.0, 1e-6)
        y = np.where(X[:, 2] > 0, Y, RNG.standard_normal(N) * 100)
        est = ridge().fit(X, y, sample_weight=w)
        assert r2_score(Y[w == 1], est.predict(X[w == 1])) > 0.9
        assert est.score(X, y, w) > 0.9


class TestAttributes:
    def test_results_are_columns_of_one_length(self, fitted):
        table = fitted.cv_results_
        assert {len(column) for column in table.values()} == {len(table["params"])}
        assert set(table["step"]) <= {"screen", "kernel", "metric", "fit", "average"}
        assert pd.DataFrame(table).shape[0] == len(table["params"])

    def test_ranks_are_those_of_scores(self, fitted):
        table = fitted.cv_results_
        assert table["rank_test_score"].min() == 1
        order = np.argsort(table["rank_test_score"], kind="stable")
        assert (np.diff(table["mean_test_score"][order]) <= 0).all()

    def test_the_best_row_is_a_fit_with_the_best_score(self, fitted):
        table = fitted.cv_results_
        fits = np.isin(table["step"], ["fit", "average"])
        assert fits[fitted.best_index_]
        assert fitted.best_score_ == table["mean_test_score"][fits].max()
        assert table["mean_test_score"][fitted.best_index_] == fitted.best_score_

    def test_history_has_a_row_for_each_trial(self, fitted):
        frame = pd.DataFrame(fitted.history_)
        assert (xp.diff(frame["elapsed"])[1:] >= 0).all()
        assert (frame["gain"] >= 0).all()
        assert frame["step"].iloc[-1] == "refit"
        error = np.sqrt(-fitted.best_score_)
        assert frame["error"][frame["step"] != "refit"].min() == pytest.approx(error, rel=0.1)
        assert frame["kernel_evaluations"].max() <= fitted.kernel_evaluations_

    def test_errors_are_in_the_unit_of_the_target(self):
        one = ridge(kernel="laplacian").fit(X, Y)
        other = ridge(kernel="laplacian").fit(X, 1000 * Y)
        assert other.best_score_ == pytest.approx(1e6 * one.best_score_, rel=1e-6)
        assert other.history_[0]["error"] == pytest.approx(1000 * one.history_[0]["error"])

    @pytest.mark.parametrize(
        "settings",
        [SMALL, {"standardize": False}, {"standardize": "quantile"},
         {"standardize": "auto"}, LEARNED, {"budget": 100_000}],
        ids=str,
    )  # fmt: skip
    def test_the_best_parameters_repeat_the_fit(self, settings):
        scaled, y = X * [1, 3, 20], Y + np.random.default_rng(1).standard_normal(N)
        est = ridge(**{"average": False} | settings).fit(scaled, y)
        again = KernelRidge(**est.best_params_, random_state=0).fit(scaled, y)
        new = RNG.standard_normal((300, D))
        truth = 10 * np.sin(2 * new[:, 0]) + new[:, 1] + 100
        errors = [np.std(e.predict(new * [1, 3, 20]) - truth) for e in (est, again)]
        draws = 6 if est.best_params_["metric"] else 1.3  # its metric is learned on other rows
        assert errors[1] < draws * errors[0]

    def test_members_of_an_average(self):
        noisy = Y + 5 * RNG.standard_normal(N)
        est = ridge(kernel="auto").fit(X, noisy)
        weights = [weight for weight, _ in est.members_]
        assert sum(weights) == pytest.approx(1)
        assert est.best_params_ == est.members_[int(np.argmax(weights))][1]
        if len(weights) > 1:
            assert len(est.kernel_) == len(weights)
        alone = ridge(kernel="auto", average=False).fit(X, noisy)
        assert len(alone.members_) == 1

    def test_a_learned_metric_and_its_importances(self, learned):
        assert learned.metric_.shape == (D, D)
        assert learned.feature_importances_.sum() == pytest.approx(1)
        assert learned.feature_importances_.argmax() == 0

    def test_gradients_are_slopes_of_predictions(self, learned, fitted):
        for est in (learned, fitted):
            found, h = est.gradient(X[:5]), 1e-5
            for j in range(D):
                step = h * np.eye(D)[j]
                slope = (est.predict(X[:5] + step) - est.predict(X[:5] - step)) / (2 * h)
                np.testing.assert_allclose(found[:, j], slope, rtol=1e-3, atol=1e-3)

    def test_features_have_their_names(self):
        est = ridge(budget=100_000).fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
        assert est.feature_names_in_.tolist() == ["a", "b", "c"]
        assert est.n_features_in_ == D


class TestTestRows:
    """Rows of ``test_fraction``: neither the search nor its fits see them."""

    @pytest.mark.parametrize("settings", [{}, {"conformal": "split"}, {"scoring": "r2"}], ids=str)
    def test_no_choice_and_no_fit_depends_on_them(self, settings, monkeypatch):
        is_test, share = np.zeros(N, dtype=bool), search_base.share

        def recorded(*arguments):
            index = share(*arguments)
            is_test[index] = True
            return index

        monkeypatch.setattr(search_base, "share", recorded)
        est = ridge(test_fraction=0.25, **settings).fit(X, Y)
        assert is_test.sum() == 30
        changed = np.where(is_test, Y + 1e6, Y)
        other = ridge(test_fraction=0.25, **settings).fit(X, changed)
        np.testing.assert_array_equal(other.predict(X), est.predict(X))
        assert other.best_score_ == est.best_score_
        assert other.test_score_ < est.test_score_
        errors = est.predict(X[is_test]) - Y[is_test]
        expected = -np.square(errors).mean()
        if "scoring" in settings:
            expected = 1 + expected / Y[~is_test].var()
        assert est.test_score_ == pytest.approx(expected, rel=1e-4)
        if "conformal" in settings:
            low, high = est.predict_interval(X[is_test], 0.8).T
            assert ((low < Y[is_test]) & (Y[is_test] < high)).mean() > 0.5

    def test_the_columns_of_a_table_are_encoded_without_them(self):
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.arange(N) % 7)
        frame["kind"] = frame["kind"].astype(str).astype("category")
        est = ridge(test_fraction=0.5, kernel="laplacian").fit(frame, Y)
        assert -300 < est.test_score_ < 0

    def test_pairs_of_cv_number_all_rows(self):
        pairs = list(KFold(3).split(X))
        assert ridge(test_fraction=0.25, cv=pairs).fit(X, Y).test_score_ > -Y.var()

    def test_weights_count(self):
        weights = np.where(np.arange(N) % 2, 1.0, 0.0)
        targets = np.where(weights > 0, Y, 1e6)
        est = ridge(test_fraction=0.25).fit(X, targets, sample_weight=weights)
        assert -Y.var() < est.test_score_ < 0

    @pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
    @pytest.mark.parametrize("scoring", [None, "accuracy", "roc_auc", "neg_log_loss"])
    def test_scores_of_classes(self, scoring, y):
        est = classifier(scoring=scoring, test_fraction=0.3, kernel="laplacian").fit(X, y)
        least = {"accuracy": 0.6, "roc_auc": 0.6}.get(scoring, -1)
        assert least < est.test_score_ <= 1

    def test_without_them_there_is_no_score(self, fitted):
        assert fitted.test_score_ is None


class TestScores:
    @pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error", None])
    def test_of_the_squared_error(self, scoring):
        seen = []
        est = ridge(scoring=scoring, callbacks=[seen.append], average=False).fit(X, Y)
        best = min((t for t in seen if t.step == "fit"), key=lambda t: t.loss)
        squared = best.loss * Y.var()
        assert est.best_score_ == pytest.approx(best.loss * -1 + 1 if scoring == "r2" else -squared)

    def test_of_the_root(self):
        one = ridge(scoring="neg_root_mean_squared_error").fit(X, Y)
        assert one.best_score_ == pytest.approx(-np.sqrt(-ridge().fit(X, Y).best_score_))

    def test_the_absolute_error_is_that_of_the_held_out_rows(self):
        seen, splits = [], list(KFold(3).split(X))
        est = ridge(
            scoring="neg_mean_absolute_error", callbacks=[seen.append], average=False, cv=splits
        ).fit(X, Y)
        held = np.concatenate([test for _, test in splits])
        errors = [
            mean_absolute_error(Y[held], trial.values[:, 0] * Y.std() + Y.mean())
            for trial in seen
            if trial.step == "fit"
        ]
        assert est.best_score_ == pytest.approx(-min(errors), rel=1e-5)
        table = est.cv_results_
        assert np.isnan(table["mean_test_score"][table["step"] == "screen"]).all()
        assert sorted(-table["mean_test_score"][table["step"] == "fit"]) == pytest.approx(
            sorted(errors), rel=1e-5
        )

    @pytest.mark.parametrize(
        ("scoring", "best"),
        [
            ("neg_mean_absolute_percentage_error", -0.1),
            (make_scorer(mean_pinball_loss, greater_is_better=False, alpha=0.9), -2.0),
            (make_scorer(explained_variance_score), 0.5),
            ("smape", -0.1),
            ("relative_error", -0.1),
        ],
        ids=str,
    )
    def test_of_other_metrics_and_scorers(self, scoring, best):
        seen, splits = [], list(KFold(3).split(X))
        settings = {"callbacks": [seen.append], "average": False, "cv": splits}
        est = ridge(scoring=scoring, test_fraction=None, **settings).fit(X, Y)
        held = np.concatenate([test for _, test in splits])
        metric = find_metric(scoring, "regression", "scoring")
        sign = 1 if metric.higher_is_better else -1
        scores = [
            sign * Predictions.of(Y[held], trial.values * Y.std() + Y.mean())
            .measure(metric)
            for trial in seen
            if trial.step == "fit"
        ]  # fmt: skip
        assert est.best_score_ == pytest.approx(max(scores), rel=1e-5)
        assert est.best_score_ > best
        tested = ridge(scoring=scoring, test_fraction=0.3).fit(X, Y)
        assert best < tested.test_score_ <= 1

    def test_a_scorer_with_the_name_of_a_metric(self):
        def rmse(estimator, rows, y):
            return -mean_absolute_error(y, estimator.predict(rows))

        settings = {"average": False, "cv": list(KFold(3).split(X))}
        expected = ridge(scoring="mae", **settings).fit(X, Y).best_score_
        assert ridge(scoring=rmse, **settings).fit(X, Y).best_score_ == pytest.approx(expected)

    def test_losses_of_a_scorer_start_at_its_score_of_the_truth(self):
        scorer = make_scorer(lambda y, values: 5.0 - mean_absolute_error(y, values))
        est = ridge(scoring=scorer, average=False).fit(X, Y)
        errors = [row["error"] for row in est.history_ if row["step"] == "fit"]
        assert min(errors) == pytest.approx(5.0 - est.best_score_)
        assert min(errors) > 0

    def test_losses_below_the_best_score_have_no_gains(self):
        """A share of zero is undefined, and a share of a negative loss has the wrong sign."""
        found = []
        ridge(callbacks=[found.append], average=False).fit(X, Y)
        fit = next(trial for trial in found if trial.step == "fit")
        trials = [replace(fit, loss=loss) for loss in (0.5, 0.25, 0.0, 0.125, -2.0, -1.0)]
        rows = results.history(SimpleNamespace(trials=trials, unit=1.0), Scoring("mine", abs))
        assert [row["gain"] for row in rows] == [0.0, 0.5, 1.0, 0.0, 0.0, 0.0]

    @pytest.mark.parametrize("scoring", ["neg_brier_score", "f1_weighted", "matthews_corrcoef"])
    def test_of_scorers_of_classes(self, scoring):
        weights = np.random.default_rng(0).random(N)
        settings = {"scoring": scoring, "kernel": "laplacian", "lengthscale": "median"}
        est = classifier(**settings, test_fraction=0.3).fit(X, THREE, sample_weight=weights)
        low, high = (-0.7, 0) if "brier" in scoring else (0.2, 1)
        assert low < est.best_score_ <= high
        assert low < est.test_score_ <= high

    @pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
    @pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "roc_auc"])
    def test_of_classes(self, scoring, y):
        est = classifier(scoring=scoring, kernel="laplacian", lengthscale="median").fit(X, y)
        assert 0.6 < est.best_score_ <= 1

    def test_the_share_of_right_labels_is_that_of_the_held_out_rows(self):
        seen, splits = [], list(KFold(3).split(X))
        est = classifier(scoring="accuracy", callbacks=[seen.append], cv=splits, average=False)
        est.fit(X, LABELS)
        held = np.concatenate([test for _, test in splits])
        codes = 2.0 * (LABELS == "yes") - 1
        shares = [
            accuracy_score(codes[held] > 0, trial.values[:, 0] + codes.mean() > 0)
            for trial in seen
            if trial.step == "fit"
        ]
        assert est.best_score_ == pytest.approx(max(shares))

    def test_the_log_loss(self):
        est = classifier(scoring="neg_log_loss", kernel="laplacian", cv=2).fit(X, THREE)
        assert -1 < est.best_score_ < 0

    def one_class(self, scoring: str, y: np.ndarray) -> KernelRidgeClassifierCV:
        last = np.unique(y)[-1]
        yes, no = np.flatnonzero(y == last), np.flatnonzero(y != last)
        cv = [(np.concatenate([no, yes[10:]]), yes[:10])]
        est = classifier(scoring=scoring, cv=cv, kernel="laplacian", lengthscale="median")
        return est.fit(X, y)

    @pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
    @pytest.mark.parametrize("scoring", ["balanced_accuracy", "neg_log_loss"])
    def test_held_out_rows_of_one_class(self, scoring, y):
        assert np.isfinite(self.one_class(scoring, y).best_score_)

    @pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
    def test_which_have_no_curve(self, y):
        with pytest.raises(
            ValueError, match="scoring='roc_auc' requires held-out rows of at least two"
        ):
            self.one_class("roc_auc", y)


class TestClassifier:
    def test_labels_and_values(self):
        est = classifier(cv=2).fit(X, LABELS)
        assert est.classes_.tolist() == ["no", "yes"]
        assert est.decision_function(X).shape == (N,)
        assert est.score(X, LABELS) > 0.9
        assert ((est.decision_function(X) > 0) == (est.predict(X) == "yes")).all()

    def test_three_classes(self):
        est = classifier(cv=2).fit(X, THREE)
        assert est.decision_function(X).shape == (N, 3)
        assert est.score(X, THREE) > 0.8

    def test_class_weights_move_the_border(self):
        few = np.where(X[:, 0] + RNG.standard_normal(N) > 1.5, 1, 0)
        plain, balanced = classifier(cv=2).fit(X, few), classifier(cv=2, class_weight="balanced")
        assert balanced.fit(X, few).predict(X).mean() > plain.predict(X).mean()

    def test_the_best_parameters_repeat_the_fit(self):
        est = classifier(average=False, cv=2).fit(X, LABELS)
        again = KernelRidgeClassifier(**est.best_params_, random_state=0).fit(X, LABELS)
        new = RNG.standard_normal((300, D))
        assert (est.predict(new) == again.predict(new)).mean() > 0.95


class TestFiles:
    @pytest.fixture
    def frame(self) -> pd.DataFrame:
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        frame["place"] = np.array(["north", "south"])[(X[:, 2] > 0).astype(int)]
        frame.loc[::9, "b"] = None
        return frame.assign(target=Y, label=LABELS)

    @pytest.mark.parametrize("by", ["frame", "path"])
    def test_tables_with_text_and_gaps(self, frame, by, tmp_path):
        table = frame.drop(columns="label")
        table.to_csv(tmp_path / "x.csv", index=False)
        given = table if by == "frame" else tmp_path / "x.csv"
        est = ridge(cv=2, average=False).fit(given, "target")
        assert est.score(given) > 0.8
        assert est.feature_names_in_.tolist() == ["a", "b", "c", "place"]
        assert est.feature_importances_.shape == (4,)
        again = KernelRidge(**est.best_params_, random_state=0).fit(given, "target")
        assert np.std(again.predict(given) - est.predict(given)) < 0.5

    def test_labels_of_a_table(self, frame):
        table = frame.drop(columns="target")
        est = classifier(cv=2).fit(table, "label")
        assert est.score(table) > 0.85
        assert set(est.predict(table)) == {"no", "yes"}

    @pytest.mark.parametrize("settings", [LEARNED, {"standardize": "quantile"}, {}], ids=str)
    def test_saved_and_loaded_to_the_bit(self, settings, tmp_path):
        est = ridge(cv=2, **settings).fit(X, Y)
        est.model_.save(tmp_path / "m")
        loaded = gramian.load(tmp_path / "m")
        np.testing.assert_array_equal(loaded.predict(X), est.predict(X))

    def test_pickled_to_the_bit(self, learned):
        again = pickle.loads(pickle.dumps(learned))
        np.testing.assert_array_equal(again.predict(X), learned.predict(X))
        assert again.best_params_ == learned.best_params_


class TestOthers:
    def test_in_a_pipeline(self):
        est = make_pipeline(MinMaxScaler(), ridge(cv=2, kernel="gaussian")).fit(X, Y)
        assert est.score(X, Y) > 0.9

    def test_in_a_grid(self):
        small = ridge(cv=2, kernel="laplacian", lengthscale="median", budget=100_000)
        grid = GridSearchCV(small, {"standardize": [True, "quantile"]}, cv=2).fit(X, Y)
        assert set(grid.best_params_) == {"standardize"}

    def test_several_targets(self):
        both = np.c_[Y, X[:, 1]]
        est = ridge(cv=2).fit(X, both)
        assert est.predict(X).shape == (N, 2)
        assert est.score(X, both) > 0.8

    def test_float32_rows(self):
        est = ridge(cv=2).fit(X.astype(np.float32), Y.astype(np.float32))
        assert all(part.centers.dtype == np.float32 for part in est.model_.parts)
        assert est.score(X.astype(np.float32), Y) > 0.9


class TestManyRows:
    """Limits of thousands of rows, made small: what comes after the search of a sample."""

    X = RNG.standard_normal((900, 3)).astype(np.float32)
    Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(900)

    @pytest.fixture(autouse=True)
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(search_data, "MOST_ROWS", 200)
        monkeypatch.setattr(larger_fit, "LANDMARK_COUNTS", (400, 100))

    @pytest.fixture
    def cells(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Cells of 200 rows."""
        monkeypatch.setattr(cell_sizes, "USUAL_ROWS", 200)
        monkeypatch.setattr(cell_sizes, "LEAST_ROWS", 100)

    def fit(self, **settings: object) -> KernelRidgeCV:
        return ridge(**{"kernel": "gaussian", "average": False, "cv": 2} | settings)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_one_cell_of_all_rows_is_the_plain_fit(self, weighted):
        w = np.where(np.arange(900) % 3 == 0, 50.0, 10.0) if weighted else None
        est = self.fit().fit(self.X, self.Y, w)
        assert est.model_.cells.cells.count == 1
        assert 800 <= len(est.model_.centers) < 900  # some are held out
        assert est.best_params_["landmarks"] is None
        again = KernelRidge(**est.best_params_, random_state=0).fit(self.X, self.Y, w)
        assert np.abs(est.predict(self.X) - again.predict(self.X)).mean() < 0.03

    @pytest.mark.parametrize("weighted", [False, True])
    def test_cells(self, weighted, cells):
        w = np.where(np.arange(900) % 3 == 0, 50.0, 10.0) if weighted else None
        est = self.fit().fit(self.X, self.Y, w)
        assert est.model_.cells.cells.count > 4
        assert est.score(self.X, self.Y) > 0.95
        steps = list(est.cv_results_["step"])
        assert steps[-1] == "cells"
        assert est.best_index_ == len(steps) - 1

    def test_cells_of_classes(self, cells):
        y = np.where(self.Y > 0.5, "up", np.where(self.Y < -0.5, "down", "flat"))
        est = KernelRidgeClassifierCV(kernel="gaussian", cv=2, random_state=0).fit(self.X, y)
        assert est.model_.cells.cells.count > 4
        assert est.score(self.X, y) > 0.85

    def test_cells_have_a_learned_metric_and_importances(self, cells):
        est = self.fit(metric="learned").fit(self.X, self.Y)
        assert est.feature_importances_[2] < 0.2
        assert est.gradient(self.X[:5]).shape == (5, 3)

    def test_cells_in_a_file(self, cells, tmp_path):
        est = self.fit().fit(self.X, self.Y)
        est.save(tmp_path / "m.gramian")
        again = load(tmp_path / "m.gramian")
        np.testing.assert_array_equal(again.predict(self.X)[:, 0], est.predict(self.X))

    def test_ctrl_c_between_cells_keeps_the_search_on_a_sample(self, cells, monkeypatch):
        def interrupted(*args: object, **more: object) -> object:
            raise KeyboardInterrupt

        monkeypatch.setattr(cell_solver, "fit_cell", interrupted)
        est = self.fit().fit(self.X, self.Y)
        assert est.interrupted_
        assert est.model_.cells is None
        assert est.score(self.X, self.Y) > 0.8

    def test_beyond_the_memory_there_are_landmarks(self, monkeypatch):
        monkeypatch.setattr(search_plan, "HELD_BYTES", 0)
        est = self.fit().fit(self.X, self.Y)
        assert est.model_.centers.shape == (400, 3)
        assert est.best_params_["landmarks"] == 400
        assert est.score(self.X, self.Y) > 0.95

    def test_beyond_the_memory_cells_have_a_random_part_of_the_rows(self, cells, monkeypatch):
        monkeypatch.setattr(search_plan, "HELD_BYTES", 600 * 12)
        est = self.fit().fit(self.X, self.Y)
        centers = est.model_.cells.starts[-1]
        assert est.model_.cells.cells.count > 2
        assert 500 < centers < 900  # 600 rows less those held out, and bands
        assert est.score(self.X, self.Y) > 0.95

    def test_a_memory_limit_says_how_many_rows_become_cells(self, cells, monkeypatch):
        rows, seen = as_rows(self.X), []
        least = search_plan._memory(rows, 1, 0)
        some = search_plan.rows_by_cells(rows, 1, least + 20_000)
        assert 300 < some < 700
        assert search_plan.rows_by_cells(rows, 1, least + 2**20) == 900
        monkeypatch.setattr(automatic, "cell_search", lambda *given: seen.append(given[-2]) or None)
        self.fit(memory_limit=least + 20_000).fit(self.X, self.Y)
        assert seen == [some]

    def test_cells_that_choose_hold_out_what_folds_do(self, cells, monkeypatch):
        seen: list[CellSearch] = []
        search = automatic.cell_search

        def searched(*given: Any) -> Any:
            seen.append(search(*given))
            return seen[-1]

        monkeypatch.setattr(automatic, "cell_search", searched)
        far = self.X[:, 0] > 0
        cv = [(np.flatnonzero(~far), np.flatnonzero(far)), (np.flatnonzero(far), np.arange(9))]
        weights = (np.arange(900) != 7).astype(float)
        self.fit(cv=cv).fit(self.X, self.Y, weights)
        (found,) = seen
        X, stays = self.X[weights > 0], weights[far] > 0
        held = X[found.folds[0].validation]
        np.testing.assert_array_equal(held, self.X[far][stays])
        np.testing.assert_array_equal(
            X[found.folds[1].validation], np.delete(self.X[:9], 7, axis=0)
        )
        assert len(found.folds[0].train) + len(held) == 899

    def test_landmarks_that_are_no_better_are_not_taken(self, monkeypatch):
        monkeypatch.setattr(search_plan, "HELD_BYTES", 0)
        monkeypatch.setattr(larger_fit, "LANDMARK_COUNTS", (5,))
        est = self.fit().fit(self.X, self.Y)
        assert est.model_.centers.shape == (200, 3)

    @pytest.mark.parametrize("held_bytes", [0, 10**9])
    def test_noise_is_its_mean(self, held_bytes, monkeypatch):
        monkeypatch.setattr(search_plan, "HELD_BYTES", held_bytes)
        noise = np.random.default_rng(5).standard_normal(900)
        with pytest.warns(UserWarning, match="nothing was learned: no trial predicts held-out"):
            est = self.fit().fit(self.X, noise)
        assert np.ptp(est.predict(self.X)) == 0

    def test_a_search_that_was_ended_early(self):
        est = self.fit(callbacks=[lambda trial: True]).fit(self.X, self.Y)
        assert est.score(self.X, self.Y) > 0.9

    @pytest.mark.parametrize("budget", [100_000, 2_000_000])
    def test_the_budget_is_kept(self, budget):
        est = self.fit(budget=budget).fit(self.X, self.Y)
        assert est.kernel_evaluations_ <= 1.1 * budget

    def test_pairs_are_numbers_of_all_rows(self, monkeypatch):
        monkeypatch.setattr(search_plan, "HELD_BYTES", 0)
        seen = []
        cv = [(np.arange(0, 600), np.arange(600, 900))]
        self.fit(cv=cv, callbacks=[seen.append]).fit(self.X, self.Y)
        held = next(len(trial.values) for trial in seen if trial.values is not None)
        assert 40 < held < 95  # a third of a sample of 200

    @pytest.mark.parametrize("metric", [None, RecursiveFeatureMachine(1, (0.5,))])
    @pytest.mark.parametrize("standardize", [True, "quantile", "auto"])
    @pytest.mark.parametrize("held_bytes", [0, 10**9])
    def test_maps_and_inputs_are_those_of_the_sample(
        self, held_bytes, metric, standardize, monkeypatch
    ):
        monkeypatch.setattr(search_plan, "HELD_BYTES", held_bytes)
        est = self.fit(metric=metric, standardize=standardize, lengthscale="median")
        scaled = self.X * np.float32([1, 5, 30])
        assert est.fit(scaled, self.Y).score(scaled, self.Y) > 0.9

    @pytest.mark.parametrize("held_bytes", [0, 10**9])
    def test_files_that_are_read_in_order(self, held_bytes, monkeypatch, tmp_path):
        monkeypatch.setattr(search_plan, "HELD_BYTES", held_bytes)
        frame = pd.DataFrame(self.X, columns=["a", "b", "c"]).assign(target=self.Y)
        frame.to_csv(tmp_path / "x.csv", index=False)
        est = self.fit().fit(tmp_path / "x.csv", "target")
        assert est.score(tmp_path / "x.csv") > 0.9
