"""Displays show the numbers of the estimator, on the axes that they are given."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from tensors import as_tensor

from gramian import (
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    NystromTransformer,
)
from gramian.landmarks import BlessR, KMeans, Uniform
from gramian.plots import (
    ConvergenceDisplay,
    ImportanceDisplay,
    LandmarkDisplay,
    PenaltyPathDisplay,
    ReliabilityDisplay,
)
from gramian.plots.reliability import wilson

GAUSSIAN = {"kernel": "gaussian", "lengthscale": 1.0, "penalty": 1e-5, "random_state": 0}


@pytest.fixture(autouse=True)
def no_window():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


@pytest.fixture
def ax():
    return mpl.figure.Figure().subplots()


def made_rows(n=300, d=3, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (n, d)).astype(dtype)
    return X, 1000 + np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)


class TestConvergence:
    def test_errors_are_those_of_the_history(self, ax):
        est = KernelRidge(**GAUSSIAN, landmarks=60, tol=1e-5).fit(*made_rows())
        shown = ConvergenceDisplay.from_estimator(est, ax=ax, color="C2")
        assert shown.y.tolist() == [row["prediction_error"] for row in est.history_]
        assert shown.line_.get_xydata()[:, 0].tolist() == list(range(est.n_iter_ + 1))
        assert (shown.goal, shown.goal_line_.get_ydata()[0]) == (1e-5, 1e-5)
        assert shown.y[-1] <= shown.goal < shown.y[-2]
        assert (shown.ax_, shown.figure_, ax.get_yscale()) == (ax, ax.figure, "log")
        assert shown.line_.get_color() == "C2"

    def test_any_quantity_against_any_other(self, ax):
        est = KernelRidge(**GAUSSIAN, landmarks=60).fit(*made_rows())
        shown = ConvergenceDisplay.from_estimator(est, x="kernel_evaluations", name="f", ax=ax)
        assert shown.x.tolist() == [row["kernel_evaluations"] for row in est.history_]
        assert ax.get_xlabel() == "kernel evaluations"
        assert ax.get_legend().get_texts()[0].get_text() == "f"

    def test_error_on_held_out_rows(self, ax):
        est = KernelRidge(**GAUSSIAN, landmarks=60, early_stopping=True, solver="eigenpro3")
        est.set_params(max_iter=3, patience=9)
        with pytest.warns(UserWarning, match="still fell"):
            est.fit(*made_rows())
        shown = ConvergenceDisplay.from_estimator(est, ax=ax)
        assert shown.y.tolist() == [row["valid_rmse"] for row in est.history_]
        assert shown.goal is None

    def test_search_shows_the_least_error_so_far(self, ax):
        search = KernelRidgeCV(budget=2_000_000, random_state=0).fit(*made_rows())
        shown = ConvergenceDisplay.from_estimator(search, ax=ax)
        assert (np.diff(shown.y) <= 0).all()
        last = [row["error"] for row in search.history_ if row["step"] in ("fit", "average")]
        assert shown.y[-1] == np.nanmin(last or [row["error"] for row in search.history_])
        assert ax.get_xlabel() == "seconds"

    def test_a_worse_trial_of_a_search_changes_nothing(self, ax):
        search = KernelRidgeCV(budget=1_000_000, random_state=0).fit(*made_rows())
        trial = {**search.history_[0], "step": "fit"}
        search.history_ = [{**trial, "error": error} for error in (3.0, np.nan, 4.0, 2.0)]
        assert ConvergenceDisplay.from_estimator(search, ax=ax).y.tolist() == [3.0, 3.0, 2.0]

    def test_refusals_say_what_there_is(self):
        X, y = made_rows()
        with pytest.raises(NotFittedError):
            ConvergenceDisplay.from_estimator(KernelRidge())
        for settings in ({"solver": "direct"}, {"cells": 100}):
            with pytest.raises(ValueError, match="no iterations to draw"):
                ConvergenceDisplay.from_estimator(KernelRidge(**GAUSSIAN, **settings).fit(X, y))
        falkon = KernelRidge(**GAUSSIAN, landmarks=60).fit(X, y)
        with pytest.raises(ValueError, match=r"no 'second'.*did you mean seconds"):
            ConvergenceDisplay.from_estimator(falkon, x="second")
        with pytest.raises(ValueError, match="history_, which this LogisticRegression"):
            ConvergenceDisplay.from_estimator(LogisticRegression().fit(X, y > 1000))


class TestPenaltyPath:
    @pytest.mark.slow
    def test_path_of_landmarks(self, ax):
        X, y = made_rows()
        est = KernelRidge("gaussian", lengthscale=1.0, landmarks=BlessR(60), cv=3, random_state=0)
        shown = PenaltyPathDisplay.from_estimator(est.fit(X, y), ax=ax)
        assert shown.penalties.tolist() == [row["penalty"] for row in est.path_]
        assert np.allclose(shown.errors**2, [row["error"] for row in est.path_])
        assert shown.chosen == est.penalty_ == shown.penalties[shown.errors.argmin()]
        assert shown.fold_errors.shape == (len(est.path_), 3)
        assert len(shown.fold_lines_) == 3
        assert shown.chosen_line_.get_xdata()[0] == est.penalty_

    def test_classes_have_shares_of_wrong_labels(self, ax):
        X, y = made_rows()
        est = KernelRidgeClassifier("gaussian", lengthscale=1.0, landmarks=BlessR(60))
        est.set_params(random_state=0).fit(X, y > 1000)
        shown = PenaltyPathDisplay.from_estimator(est, ax=ax)
        assert shown.errors.tolist() == [row["error"] for row in est.path_]
        assert "wrong labels" in ax.get_ylabel()

    @pytest.mark.slow
    def test_best_fit_of_a_search(self, ax):
        search = KernelRidgeCV(budget=3_000_000, random_state=0, average=False).fit(*made_rows())
        shown = PenaltyPathDisplay.from_estimator(search, ax=ax)
        assert len(shown.penalties) > 2
        assert (np.diff(shown.penalties) < 0).all()
        rows_times_penalty = 300 * search.best_params_["penalty"]  # more rows, less penalty
        assert np.isclose(240 * shown.chosen, rows_times_penalty)
        assert np.isclose(shown.errors.min() ** 2, -search.best_score_)

    def test_a_penalty_that_was_given_has_no_path(self):
        with pytest.raises(ValueError, match="no path of penalties"):
            PenaltyPathDisplay.from_estimator(KernelRidge(**GAUSSIAN).fit(*made_rows()))


class TestLandmarks:
    def test_landmarks_are_rows_in_units_of_X(self, ax):
        X, y = made_rows()
        est = KernelRidge(**GAUSSIAN, landmarks=40).fit(X, y)
        shown = LandmarkDisplay.from_estimator(est, X, features=(2, 0), ax=ax, color="C3")
        assert np.array_equal(shown.landmarks, X[est.landmark_index_][:, [2, 0]])
        assert np.array_equal(shown.points, X[:, [2, 0]])
        assert np.array_equal(shown.landmarks_.get_offsets(), shown.landmarks)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 2", "feature 0")

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_unexplained_share_is_the_residual_of_the_projection(self, dtype, ax):
        X, y = made_rows(dtype=dtype)
        est = KernelRidge(**GAUSSIAN, landmarks=40, standardize=False).fit(X, y)
        shown = LandmarkDisplay.from_estimator(est, X, ax=ax)
        square = ((X[:, None].astype(float) - X[None, est.landmark_index_]) ** 2).sum(axis=2)
        K, M = np.exp(-square / 2), np.exp(-square[est.landmark_index_] / 2)
        expected = 1 - (K * np.linalg.solve(M, K.T).T).sum(axis=1)
        assert np.allclose(shown.unexplained, expected, atol=1e-3 if dtype == np.float32 else 1e-8)
        assert shown.unexplained[est.landmark_index_].max() < 1e-3
        assert shown.colorbar_ is not None

    @pytest.mark.parametrize("kind", [NystromTransformer, KernelPCA, KernelKMeans])
    def test_other_estimators(self, kind, ax):
        X, _ = made_rows()
        est = kind(kernel="gaussian", lengthscale=1.0, landmarks=Uniform(40), random_state=0).fit(X)
        shown = LandmarkDisplay.from_estimator(est, X, ax=ax)
        assert np.array_equal(shown.landmarks, X[est.landmark_index_][:, :2])

    def test_columns_of_a_table_by_name(self, ax):
        X, y = made_rows()
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind="u", y=y)
        est = KernelRidge(**GAUSSIAN, landmarks=40).fit(frame, "y")
        shown = LandmarkDisplay.from_estimator(est, frame, features=("c", 0), rows=100, ax=ax)
        assert np.array_equal(shown.landmarks, X[est.landmark_index_][:, [2, 0]])
        assert shown.points.shape == (100, 2)
        assert shown.unexplained.shape == (100,)
        assert shown.names == ("c", "a")

    def test_refusals(self):
        X, y = made_rows()
        est = KernelRidge(**GAUSSIAN, landmarks=40).fit(X, y)
        with pytest.raises(ValueError, match="must be the rows of the fit"):
            LandmarkDisplay.from_estimator(est, X[:40])
        with pytest.raises(ValueError, match="feature 3 does not exist"):
            LandmarkDisplay.from_estimator(est, X, features=(0, 3))
        with pytest.raises(ValueError, match="feature 'a' does not exist"):
            LandmarkDisplay.from_estimator(est, X, features=("a", 1))
        with pytest.raises(ValueError, match="2 columns"):
            LandmarkDisplay.from_estimator(est, X, features=(0,))
        for landmarks in (None, KMeans(20)):
            est = KernelRidge(**GAUSSIAN, landmarks=landmarks).fit(X, y)
            with pytest.raises(ValueError, match="no landmarks among its rows"):
                LandmarkDisplay.from_estimator(est, X)


class TestReliability:
    def test_two_classes_as_scikit_learn_has_them(self, ax):
        X, y = made_rows()
        labels = np.where(y > 1000, "yes", "no")
        est = KernelRidgeClassifier(**GAUSSIAN).fit(X[:200], labels[:200])
        shown = ReliabilityDisplay.from_estimator(est, X[200:], labels[200:], bins=5, ax=ax)
        chances = est.predict_proba(X[200:])[:, 1]
        share, probability = calibration_curve(labels[200:], chances, n_bins=5, pos_label="yes")
        assert np.allclose(shown.share, share)
        assert np.allclose(shown.probability, probability)
        assert shown.rows.sum() == 100
        assert np.allclose(shown.line_.get_xydata(), np.stack([probability, share], axis=1))
        assert ax.get_xlabel() == "probability of 'yes'"

    def test_several_classes_show_the_one_predicted(self, ax):
        chances = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.1, 0.8, 0.1], [0.7, 0.2, 0.1]])
        shown = ReliabilityDisplay.from_predictions(["b", "c", "b", "a"], chances, bins=4, ax=ax)
        assert np.allclose(shown.probability, [2 / 3, 0.8])
        assert np.allclose(shown.share, [2 / 3, 1])
        assert "the class predicted" in ax.get_xlabel()

    def test_table_that_holds_the_truth(self, ax):
        X, y = made_rows()
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y > 1000)
        est = KernelRidgeClassifier(**GAUSSIAN).fit(frame, "y")
        shown = ReliabilityDisplay.from_estimator(est, frame, ax=ax)
        given = ReliabilityDisplay.from_estimator(est, frame, y > 1000, ax=ax)
        assert np.array_equal(shown.share, given.share)

    def test_interval_of_chance_is_that_of_wilson(self):
        share, rows = np.array([0.0, 0.3, 1.0]), np.array([1, 40, 7])
        low, high = wilson(share, rows)
        for s, n, ends in zip(share, rows, zip(low, high, strict=True), strict=True):
            known = binomtest(round(s * n), n).proportion_ci(0.9, method="wilson")
            assert np.allclose(ends, (known.low, known.high))

    def test_numbers_of_rows_below(self):
        top, below = mpl.figure.Figure().subplots(2)
        shown = ReliabilityDisplay.from_predictions(
            [0, 1, 1], [0.1, 0.1, 0.9], ax=top, rows_ax=below
        )
        assert [bar.get_height() for bar in shown.bars_] == [2, 1]
        assert (top.get_xlabel(), below.get_xlabel()) == ("", "probability of 1")

    @pytest.mark.parametrize(
        ("y", "chances", "message"),
        [
            ([0, 1], [0.2, 0.3, 0.4], r"must have shape \(2, 2\)"),
            ([0, 1], [0.2, 1.3], "must be between 0 and 1"),
            ([0, 1], [0.2, np.nan], "must be between 0 and 1"),
            ([0, 1, 2], [0.2, 0.3, 0.4], r"must have shape \(3, 3\)"),
        ],
    )
    def test_refusals(self, y, chances, message):
        with pytest.raises(ValueError, match=message):
            ReliabilityDisplay.from_predictions(y, chances)

    def test_regressor_is_refused(self):
        X, y = made_rows()
        with pytest.raises(ValueError, match="KernelRidge has no probabilities"):
            ReliabilityDisplay.from_estimator(KernelRidge(**GAUSSIAN).fit(X, y), X, y)


class TestImportances:
    def test_largest_are_on_top_and_the_rest_is_summed(self, ax):
        X, y = made_rows(d=5)
        est = KernelRidge(**GAUSSIAN).fit(pd.DataFrame(X, columns=list("abcde")), y)
        shown = ImportanceDisplay.from_estimator(est, most=2, ax=ax)
        shares = np.sort(est.feature_importances_)[::-1]
        assert shown.importances.tolist() == shares[:2].tolist()
        assert shown.names[0] == "a"
        assert np.isclose(shown.other_importance, shares[2:].sum())
        assert np.allclose(
            [bar.get_width() for bar in shown.bars_], [*shares[:2], shown.other_importance]
        )
        assert [label.get_text() for label in ax.get_yticklabels()][2] == "all others"
        assert ax.yaxis_inverted()

    def test_rows_without_gradients_are_refused(self):
        X, y = made_rows()
        est = KernelRidge(**GAUSSIAN).fit(csr_array(X), y)
        with pytest.raises(ValueError, match="no importances to draw"):
            ImportanceDisplay.from_estimator(est)


def test_new_axes_are_made_and_others_are_drawn_on_later(ax):
    shown = ReliabilityDisplay.from_predictions([0, 1], [0.1, 0.9])
    first = shown.figure_
    assert shown.plot(ax) is shown
    assert shown.figure_ is ax.figure is not first


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'gramian\[plots\]'"):
        ReliabilityDisplay.from_predictions([0, 1], [0.1, 0.9])


@pytest.mark.slow
def test_importing_the_displays_does_not_import_matplotlib(tmp_path):
    import subprocess

    code = "import gramian.plots, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_rows_that_torch_holds(ax):
    X, y = made_rows()
    est = KernelRidge(**GAUSSIAN, landmarks=40).fit(as_tensor(X), y)
    shown = LandmarkDisplay.from_estimator(est, as_tensor(X), ax=ax)
    assert np.array_equal(shown.landmarks, X[est.landmark_index_][:, :2])
