"""Leave-one-out predictions and generalised cross-validation, against refits and hat matrices."""

import pickle

import numpy as np
import pytest
import scipy.sparse

from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeCV
from gramian.estimators.ridge import base
from gramian.fitting.uncertainty.left_out_predictions import left_out
from gramian.kernels import Gaussian

rng = np.random.default_rng(0)
N = 60
X = rng.normal(size=(N, 2))
Y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=N)
TWO = np.column_stack([Y, np.cos(X[:, 1])])
WEIGHTS = rng.uniform(0.2, 3.0, N)
PENALTY = 1e-3
PLAIN = {"kernel": "gaussian", "lengthscale": 1.0, "standardize": False, "solver": "direct"}


def fitted(X=X, y=Y, weights=None, landmarks=None, penalty=PENALTY, **settings):
    est = KernelRidge(landmarks=landmarks, penalty=penalty, random_state=0, **(PLAIN | settings))
    return est.fit(X, y, sample_weight=weights)


def refits(est, X, y, weights=None, penalty=PENALTY, **settings):
    """Predict each row by a fit without it, of the same N times penalty.

    A landmark is no center of its own fit, unless another row equals it.
    """
    w = np.ones(len(X)) if weights is None else weights
    found = []
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        centers = None
        if est.landmark_index_ is not None:
            alone = not (X[others] == X[i]).all(axis=1).any()
            centers = X[[j for j in est.landmark_index_ if not (alone and j == i)]]
        same_shift = penalty * w.sum() / w[others].sum()
        one = fitted(X[others], y[others], w[others], centers, same_shift, **settings)
        found.append(one.predict(X[i : i + 1])[0])
    return np.array(found)


def hat_matrix(X, weights, centers, penalty=PENALTY):
    def entries(a, b):
        return Gaussian(1.0)(a, b)

    W = np.diag(weights)
    A, B = entries(X, centers), entries(centers, centers)
    return A @ np.linalg.solve(A.T @ W @ A + weights.sum() * penalty * B, A.T @ W)


@pytest.mark.parametrize("landmarks", [None, 15, 60], ids=["full", "landmarks", "all as landmarks"])
class TestRefits:
    def test_each_row_is_predicted_by_the_others(self, landmarks):
        est = fitted(landmarks=landmarks)
        np.testing.assert_allclose(est.loo_predictions_, refits(est, X, Y), atol=1e-10)

    def test_a_row_of_any_weight_is_left_out_whole(self, landmarks):
        est = fitted(weights=WEIGHTS, landmarks=landmarks)
        np.testing.assert_allclose(est.loo_predictions_, refits(est, X, Y, WEIGHTS), atol=1e-10)

    def test_two_targets(self, landmarks):
        est = fitted(y=TWO, weights=WEIGHTS, landmarks=landmarks)
        assert est.loo_predictions_.shape == (N, 2)
        np.testing.assert_allclose(est.loo_predictions_, refits(est, X, TWO, WEIGHTS), atol=1e-10)

    def test_float32(self, landmarks):
        single = X.astype(np.float32)
        est = fitted(single, landmarks=landmarks)
        np.testing.assert_allclose(est.loo_predictions_, refits(est, single, Y), atol=1e-5)

    def test_one_feature_and_rows_that_are_there_twice(self, landmarks):
        x = np.repeat(X[:30, :1], 2, axis=0)
        short = {"lengthscale": 0.2}  # or landmarks are combinations of others, to rounding
        est = fitted(x, landmarks=landmarks, **short)
        np.testing.assert_allclose(est.loo_predictions_, refits(est, x, Y, **short), atol=1e-8)

    def test_penalty_near_rounding(self, landmarks):
        est = fitted(landmarks=landmarks, penalty=1e-11, lengthscale=0.5)
        centers, off = None, []
        for i in range(0, N, 6):
            others, shift = np.arange(N) != i, 1e-11 * N / (N - 1)
            if landmarks is not None:
                centers = X[est.landmark_index_[est.landmark_index_ != i]]
            one = fitted(X[others], Y[others], None, centers, shift, lengthscale=0.5)
            off.append(one.predict(X[i : i + 1])[0] - est.loo_predictions_[i])
        assert np.abs(off).max() < 1e-3 * np.abs(est.loo_predictions_).max()


class TestCenters:
    """A landmark leaves as a row and as a center."""

    @pytest.mark.parametrize("change", ["offset", "feature far from zero"])
    def test_are_found_where_features_have_an_offset(self, change):
        day = 1.6e9 + np.arange(N) // 10
        x = X + 1e5 if change == "offset" else np.column_stack([X, day])
        est = fitted(x, landmarks=15)
        np.testing.assert_allclose(est.loo_predictions_, refits(est, x, Y), atol=1e-5)

    def test_errors_are_as_large_as_on_fresh_rows(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(1400, 4))
        y = np.sin(x).sum(axis=1) + 0.4 * rng.normal(size=1400)
        plain = {"kernel": "laplacian", "lengthscale": 3.0, "penalty": 1e-6}
        est = fitted(x[:400], y[:400], landmarks=150, **plain)
        off = np.abs(est.loo_predictions_ - y[:400])
        is_landmark = np.isin(np.arange(400), est.landmark_index_)
        fresh, std = est.predict(x[400:], return_std=True)
        z = (fresh - y[400:]) / std
        error = np.sqrt(np.mean((fresh - y[400:]) ** 2))
        assert np.sqrt(np.mean(off**2)) == pytest.approx(error, rel=0.05)
        assert np.sqrt(np.mean(off[is_landmark] ** 2)) == pytest.approx(error, rel=0.1)
        assert 0.95 < np.sqrt(np.mean(z**2)) < 1.05

    @pytest.mark.parametrize(
        "centers",
        [np.concatenate([X[:10], X[:10], X[20:25]]), np.concatenate([X[:10], X[:5] + 0.1])],
        ids=["given twice", "some are no rows"],
    )
    def test_given_centers(self, centers):
        est = fitted(landmarks=centers)
        expected = []
        for i in range(N):
            others, rest = np.arange(N) != i, centers[(centers != X[i]).any(axis=1)]
            one = fitted(X[others], Y[others], None, rest, PENALTY * N / (N - 1))
            expected.append(one.predict(X[i : i + 1])[0])
        np.testing.assert_allclose(est.loo_predictions_, expected, atol=1e-10)

    @pytest.mark.parametrize("lengthscale", [10.0, 30.0])
    def test_landmarks_that_others_span_cost_nothing(self, lengthscale):
        est = fitted(landmarks=40, lengthscale=lengthscale)
        found = refits(est, X, Y, lengthscale=lengthscale)
        np.testing.assert_allclose(est.loo_predictions_, found, atol=1e-8)

    @pytest.mark.parametrize("kind", ["sparse", "metric"])
    def test_rows_that_are_mapped_or_sparse(self, kind):
        x = np.where(np.abs(X) > 0.7, X, 0.0) if kind == "sparse" else X
        given = {"metric": np.array([[1.0, 0.3], [0.2, 2.0]])} if kind == "metric" else {}
        rows = scipy.sparse.csr_array(x) if kind == "sparse" else x
        est = fitted(rows, landmarks=20, **given)
        np.testing.assert_allclose(est.loo_predictions_, refits(est, x, Y, **given), atol=1e-8)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("landmarks", [None, 15], ids=["full", "landmarks"])
def test_generalised_cross_validation_is_its_formula(landmarks, weights):
    est = fitted(y=TWO, weights=weights, landmarks=landmarks)
    w = np.ones(N) if weights is None else weights
    H = hat_matrix(X, w, X if landmarks is None else X[est.landmark_index_])
    r = TWO - H @ TWO
    expected = (w[:, None] * r**2).mean(axis=0) / w.mean() / (1 - np.trace(H) / N) ** 2
    np.testing.assert_allclose(est.gcv_, expected, rtol=1e-7)
    if weights is None:
        one = fitted(landmarks=landmarks)
        assert one.gcv_ == pytest.approx(N * (r[:, 0] ** 2).sum() / (N - np.trace(H)) ** 2)


def test_rows_of_weight_zero_are_predicted_by_the_model():
    weights = np.where(np.arange(N) < 10, 0.0, WEIGHTS)
    est = fitted(weights=weights)
    np.testing.assert_allclose(est.loo_predictions_[:10], est.predict(X[:10]))
    others = fitted(X[10:], Y[10:], WEIGHTS[10:])
    np.testing.assert_allclose(est.loo_predictions_[10:], others.loo_predictions_, atol=1e-12)


def test_standardisation_is_that_of_all_rows():
    est = fitted(100 + 7 * X, 50 + 9 * Y, standardize=True)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    by_hand = fitted(scaled, (Y - Y.mean()) / Y.std())
    expected = 50 + 9 * (Y.mean() + Y.std() * by_hand.loo_predictions_)
    np.testing.assert_allclose(est.loo_predictions_, expected, rtol=1e-9)
    assert est.gcv_ == pytest.approx((9 * Y.std()) ** 2 * by_hand.gcv_)


@pytest.mark.parametrize("settings", [{"solver": "pcg"}, {"solver": "falkon", "landmarks": 15}])
def test_solvers_that_have_converged_have_them(settings):
    est = fitted(tol=1e-10, **settings)
    direct = fitted(landmarks=settings.get("landmarks"))
    np.testing.assert_allclose(est.loo_predictions_, direct.loo_predictions_, atol=1e-9)


def test_classes_have_decision_values():
    labels = np.array(["no", "yes"])[(Y > 0).astype(int)]
    est = KernelRidgeClassifier(penalty=PENALTY, landmarks=None, **PLAIN).fit(X, labels)
    codes = np.where(Y > 0, 1.0, -1.0)
    np.testing.assert_allclose(est.loo_predictions_, fitted(y=codes).loo_predictions_, atol=1e-10)


def test_of_an_average_it_is_the_average():
    rng = np.random.default_rng(2)
    many = rng.normal(size=(150, 4))
    y = np.abs(many[:, 0]) + np.sin(many[:, 1] * many[:, 2]) + 0.3 * rng.normal(size=150)
    est = KernelRidgeCV(budget=4_000_000, random_state=0).fit(many, y)
    assert len(est.members_) > 1
    one_by_one = np.zeros(150)
    for part, share, penalty in zip(est.model_.parts, est.model_.shares, est._penalty, strict=True):
        one_by_one += share * left_out(part, est._training, [penalty], None).values[:, 0]
    np.testing.assert_allclose(est.loo_predictions_, one_by_one, rtol=1e-12)
    error = np.mean((y - est.loo_predictions_) ** 2)
    assert 0.5 < error / est.gcv_ < 2
    assert np.mean((y - est.predict(many)) ** 2) < error < y.var()


REASONS = [
    ({"early_stopping": True, "solver": "falkon", "landmarks": 15}, "early_stopping=False"),
    ({"solver": "pcg", "tol": 1e-15, "max_iter": 1}, "not 'converged'"),
    ({"cells": 30, "solver": "auto"}, "each cell has its own"),
    ({"loss": "huber", "solver": "auto", "landmarks": 15}, "squared errors"),
    ({"memory_limit": "40MB", "solver": "pcg"}, "60 rows need"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("settings", "reason"), REASONS, ids=[r for _, r in REASONS])
def test_what_has_no_closed_form_says_why(settings, reason):
    limit = settings.pop("memory_limit", None)
    est = fitted(**settings)
    est.memory_limit = limit
    assert not hasattr(est, "loo_predictions_")
    assert not hasattr(est, "gcv_")
    with pytest.raises(AttributeError, match=reason):
        _ = est.gcv_


def test_copies_have_no_rows_to_leave_out():
    est = fitted()
    with pytest.raises(AttributeError, match="fit again"):
        _ = pickle.loads(pickle.dumps(est)).loo_predictions_
    with pytest.raises(AttributeError, match="require the training rows"):
        _ = KernelRidge().with_model(est.model_).gcv_


def test_another_function_is_no_solution():
    est = fitted()
    est._training = fitted(y=Y[::-1]).__dict__["_training"]
    with pytest.raises(AttributeError, match="not the exact solution"):
        _ = est.gcv_


def test_names_are_listed_without_computing_what_is_known_on_demand(monkeypatch):
    est = fitted()
    monkeypatch.setattr(KernelRidge, "_left_out", lambda self: pytest.fail("was computed"))
    monkeypatch.setattr(base, "feature_importances", lambda *_: pytest.fail("was measured"))
    names = dir(est)
    assert {"log_marginal_likelihood_", "loo_predictions_", "feature_importances_"} <= set(names)
    assert {"fit", "predict", "model_"} <= set(names)
    assert "model_" not in dir(KernelRidge())
