"""Estimators with other losses than the square: targets, units, links, files, refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import log_loss, mean_pinball_loss
from sklearn.model_selection import cross_val_score

import gramian
from gramian import KernelRidge, KernelRidgeClassifier, losses
from gramian.callbacks import Checkpoint, Validate
from gramian.losses import Expectile, Huber, Loss, Quantile
from gramian.solvers import Falkon, Newton

PLAIN = {"kernel": "gaussian", "lengthscale": 1.5, "penalty": 1e-4, "random_state": 0}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]


def noisy(f: np.ndarray, scale: float = 0.3) -> np.ndarray:
    return f + scale * np.random.default_rng(1).standard_normal(len(f))


def test_probabilities_of_two_classes(data):
    X, f = data
    y = np.where(np.random.default_rng(1).random(600) < 1 / (1 + np.exp(-2 * f)), "yes", "no")
    est = KernelRidgeClassifier(loss="logistic", landmarks=80, **PLAIN).fit(X[:400], y[:400])
    p = est.predict_proba(X[400:])
    odds = est.decision_function(X[400:])
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-odds)), rtol=1e-12)
    np.testing.assert_array_equal(est.predict(X[400:]), est.classes_[p.argmax(axis=1)])
    assert log_loss(y[400:], p) < 0.93 * log_loss(y[400:], np.tile([0.5, 0.5], (200, 1)))
    assert est.stop_reason_ == "converged"
    assert isinstance(est.solver_, Newton)
    assert est.landmark_index_.shape == (80,)


def test_several_classes_and_weights_of_classes(data):
    X, f = data
    y = np.digitize(noisy(f), [-0.5, 1.0])
    est = KernelRidgeClassifier(loss="logistic", class_weight={0: 1, 1: 1, 2: 5}, **PLAIN)
    plain = KernelRidgeClassifier(loss="softmax", **PLAIN).fit(X, y)
    p, before = est.fit(X, y).predict_proba(X), plain.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert p[:, 2].mean() > 1.3 * before[:, 2].mean()
    # the constant is not penalised: mean probabilities are nearly the shares of the classes
    np.testing.assert_allclose(before.mean(axis=0), np.bincount(y) / 600, atol=0.01)


def test_counts_are_positive_and_their_mean_is_right(data):
    X, f = data
    y = np.random.default_rng(1).poisson(100 * np.exp(f))
    est = KernelRidge(loss="poisson", **PLAIN).fit(X, y)
    predicted = est.predict(X)
    assert predicted.min() > 0
    assert abs(predicted.mean() / y.mean() - 1) < 1e-3
    assert est.score(X, y) > 0.9
    flat = KernelRidge(loss="poisson", **{**PLAIN, "penalty": 1e8}).fit(X, y).predict(X)
    np.testing.assert_allclose(flat, y.mean(), rtol=1e-4)


def test_poisson_is_that_of_scikit_learn_on_the_same_features(data):
    X, f = data
    y = np.random.default_rng(1).poisson(np.exp(f))
    est = KernelRidge(loss="poisson", standardize=False, tol=1e-6, **PLAIN).fit(X, y)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * 1.5**2))
    values, vectors = np.linalg.eigh(K)
    features = vectors[:, values > 1e-10] * np.sqrt(values[values > 1e-10])
    # scikit-learn knows no constant beside the function: rates of the mean have it, too
    mean = y.mean()
    other = PoissonRegressor(alpha=1e-4 / mean, fit_intercept=False, tol=1e-10, max_iter=10_000)
    theirs = mean * other.fit(features, y / mean).predict(features)
    np.testing.assert_allclose(est.predict(X), theirs, rtol=1e-4)


def test_quantiles_do_not_cross_and_have_their_share(data):
    X, f = data
    y = f + (0.2 + np.abs(X[:, 2])) * np.random.default_rng(1).standard_normal(600)
    levels = (0.1, 0.25, 0.5, 0.75, 0.9)
    settings = {**PLAIN, "landmarks": 60, "penalty": 1e-3}
    est = KernelRidge(loss=Quantile(levels), tol=1e-3, **settings).fit(X, y)
    q = est.predict(X)
    assert q.shape == (600, 5)
    assert (np.diff(q, axis=1) >= 0).all()
    np.testing.assert_allclose((y[:, None] <= q).mean(axis=0), levels, atol=0.06)
    median = KernelRidge(loss="quantile", tol=1e-3, **settings).fit(X, y).predict(X)
    assert median.shape == (600,)
    np.testing.assert_allclose(mean_pinball_loss(y, median), mean_pinball_loss(y, q[:, 2]), 1e-3)


@pytest.mark.parametrize("loss", ["huber", Expectile(0.8), Quantile(0.3, smoothing=0.1)])
def test_units_and_offsets_of_targets_do_not_matter(loss, data):
    X, f = data
    y = noisy(f)
    scaled = {"huber": Huber(2.0), Expectile(0.8): loss}.get(loss, Quantile(0.3, smoothing=100.0))
    small = {"huber": Huber(0.002)}.get(loss, loss)
    one = KernelRidge(loss=small, **PLAIN).fit(X, y).predict(X)
    other = KernelRidge(loss=scaled, **PLAIN).fit(X, 1e6 + 1000 * y).predict(X)
    np.testing.assert_allclose((other - 1e6) / 1000, one, atol=2e-3)


def test_outliers_move_huber_less(data):
    X, f = data
    y = noisy(f, 0.1)
    y[::20] += 50
    squared = KernelRidge(landmarks=60, **PLAIN).fit(X, y).predict(X)
    huber = KernelRidge(loss="huber", landmarks=60, **PLAIN).fit(X, y).predict(X)
    assert np.abs(huber - f).mean() < 0.3 * np.abs(squared - f).mean()


def test_several_targets_do_not_meet(data):
    X, f = data
    Y = np.stack([noisy(f), 3 * f**2], axis=1)
    both = KernelRidge(loss=Huber(0.5), tol=1e-7, **PLAIN).fit(X, Y).predict(X)
    for j in range(2):
        alone = KernelRidge(loss=Huber(0.5), tol=1e-7, **PLAIN).fit(X, Y[:, j]).predict(X)
        np.testing.assert_allclose(both[:, j], alone, atol=1e-4)


@pytest.mark.slow
def test_what_is_auto_is_chosen_by_the_loss(data, caplog):
    X, f = data
    y = np.random.default_rng(1).random(600) < 1 / (1 + np.exp(-3 * f))
    caplog.set_level("INFO", logger="gramian")
    est = KernelRidgeClassifier(loss="logistic", random_state=0).fit(X[:400], y[:400])
    assert "mean loss on held-out rows" in caplog.text
    assert est.penalty_ > 0
    p = est.predict_proba(X[400:])
    assert log_loss(y[400:], p) < 0.6
    again = KernelRidgeClassifier(loss="logistic", random_state=0).fit(X[:400], y[:400])
    np.testing.assert_array_equal(again.predict_proba(X[400:]), p)
    scores = cross_val_score(est, X, y, cv=3, scoring="neg_log_loss")
    assert scores.mean() > -0.6


def test_rows_of_other_kinds_give_the_same_function(data, tmp_path):
    X, f = data
    y = (f > 0).astype(int)
    Z = X[:80]
    settings = {**PLAIN, "landmarks": Z, "standardize": False, "loss": "logistic", "tol": 1e-8}
    dense = KernelRidgeClassifier(**settings).fit(X, y).decision_function(X)
    sparse = KernelRidgeClassifier(**settings).fit(scipy.sparse.csr_array(X), y)
    np.testing.assert_allclose(
        sparse.decision_function(scipy.sparse.csr_array(X)), dense, atol=1e-5
    )
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(3)}), tmp_path / "x.parquet")
    filed = KernelRidgeClassifier(**settings).fit(tmp_path / "x.parquet", y)
    np.testing.assert_allclose(filed.decision_function(tmp_path / "x.parquet"), dense, atol=1e-5)
    narrow = KernelRidgeClassifier(**settings).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(narrow.decision_function(X.astype(np.float32)), dense, atol=2e-2)


def test_weights_of_zero_and_repeated_rows(data):
    X, f = data
    y = np.random.default_rng(1).poisson(np.exp(f))
    w = np.random.default_rng(2).integers(0, 3, 600)
    settings = {**PLAIN, "loss": "poisson", "standardize": False, "landmarks": X[:50], "tol": 1e-8}
    weighted = KernelRidge(**settings).fit(X, y, sample_weight=w).predict(X)
    repeated = KernelRidge(**settings).fit(np.repeat(X, w, axis=0), np.repeat(y, w)).predict(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-5)


@pytest.mark.parametrize("loss", [*losses.names(), Quantile((0.1, 0.5, 0.9)), Huber(0.2)], ids=repr)
@pytest.mark.parametrize("centers", ["landmarks", "all rows"])
def test_whole_weights_are_repeated_rows(data, loss, centers):
    """With weights that change the spread of the targets, in whose units tolerances are."""
    X, f = (part[:150] for part in data)
    y = noisy(f, 0.1)
    w = np.where(y > np.quantile(y, 0.6), 3, np.random.default_rng(2).integers(1, 3, len(y)))
    classes = loss in ("logistic", "softmax")
    if classes:
        y = np.digitize(y, [0.0] if loss == "logistic" else [-0.5, 0.5])
    elif loss in ("poisson", "gamma"):
        y = np.exp(y)
    est = (KernelRidgeClassifier if classes else KernelRidge)(
        **PLAIN, loss=loss, tol=1e-9, max_iter=200, standardize=False,
        landmarks=X[:40] if centers == "landmarks" else None,
    )  # fmt: skip
    predict = "predict_proba" if classes else "predict"
    repeated = est.fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    expected = getattr(repeated, predict)(X)
    weighted = getattr(est.fit(X, y, sample_weight=w), predict)(X)
    np.testing.assert_allclose(weighted, expected, atol=1e-5 * np.ptp(expected))


def test_files_pickles_and_old_models(data, tmp_path):
    X, f = data
    y = np.random.default_rng(1).poisson(np.exp(f))
    for est in (
        KernelRidge(loss="poisson", **PLAIN).fit(X, y),
        KernelRidge(loss=Quantile((0.2, 0.8)), tol=1e-2, **PLAIN).fit(X, f),
        KernelRidgeClassifier(loss="logistic", **PLAIN).fit(X, f > 0),
    ):
        est.save(tmp_path / "model")
        for other in (gramian.load(tmp_path / "model"), pickle.loads(pickle.dumps(est))):
            np.testing.assert_array_equal(other.predict(X), est.predict(X))
            if hasattr(est, "classes_"):
                np.testing.assert_array_equal(other.predict_proba(X), est.predict_proba(X))


@pytest.mark.slow
def test_frames_with_names(data, tmp_path):
    X, f = data
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind=np.where(f > 0, "u", "v"), price=f)
    est = KernelRidge(loss=Quantile((0.1, 0.9)), tol=1e-2, **PLAIN).fit(frame, "price")
    est.save(tmp_path / "model")
    assert est.model_.target == ("price_q0.1", "price_q0.9")
    np.testing.assert_array_equal(
        gramian.load(tmp_path / "model").predict(frame), est.predict(frame)
    )


def test_gradients_are_those_of_the_predictions(data):
    X, f = data
    y = np.random.default_rng(1).poisson(np.exp(f))
    est = KernelRidge(loss="poisson", **PLAIN).fit(X, y)
    step = np.zeros((1, 3))
    step[0, 1] = 1e-5
    slope = (est.predict(X[:20] + step) - est.predict(X[:20] - step)) / 2e-5
    np.testing.assert_allclose(est.gradient(X[:20])[:, 1], slope, rtol=1e-5, atol=1e-7)
    assert est.feature_importances_.shape == (3,)


def test_a_checkpoint_goes_on(data, tmp_path):
    X, f = data
    y = f > 0
    whole = KernelRidgeClassifier(loss="logistic", **PLAIN).fit(X, y)
    saved = {"callbacks": [Checkpoint(tmp_path / "state")], "loss": "logistic", **PLAIN}
    with pytest.warns(match="max_iter"):
        KernelRidgeClassifier(max_iter=3, **saved).fit(X, y)
    rest = KernelRidgeClassifier(**saved).fit(X, y)
    np.testing.assert_array_equal(rest.dual_coef_, whole.dual_coef_)
    with pytest.raises(ValueError, match="targets"):
        KernelRidgeClassifier(**saved).fit(X, ~y)
    callbacks = [Checkpoint(tmp_path / "other")]
    KernelRidge(loss=Huber(0.5), callbacks=callbacks, **PLAIN).fit(X, f)
    with pytest.raises(ValueError, match="another problem: loss"):
        KernelRidge(loss=Huber(0.6), callbacks=callbacks, **PLAIN).fit(X, f)


def test_plan_knows_the_solver(data):
    X, _ = data
    est = KernelRidgeClassifier(loss="logistic", landmarks=100, **PLAIN)
    planned = est.plan(np.tile(X, (20, 1)))
    assert (planned.solver, planned.landmarks) == ("newton", 100)
    with pytest.raises(ValueError, match="landmarks"):
        est.set_params(landmarks=10_000, memory_limit="200MB").plan(np.tile(X, (20, 1)))


class Cubic(Loss):
    """A loss of a user: no dataclass, no registration."""

    def constant(self, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return y.mean(axis=0)

    def for_unit(self, unit: float) -> Cubic:
        return self

    def values(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.log(np.cosh(f - y))

    def slopes(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.tanh(f - y)

    def curvatures(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 1 - np.square(np.tanh(f - y))


def test_a_loss_of_a_user(data):
    X, f = data
    est = KernelRidge(loss=Cubic(), **PLAIN).fit(X, noisy(f))
    assert est.score(X, f) > 0.9


@pytest.mark.parametrize(
    ("est", "y", "words"),
    [
        (KernelRidge(loss="pinball"), "f", "unknown loss 'pinball'; known: squared, "),
        (KernelRidge(loss=3), "f", "neither a name"),
        (KernelRidge(loss="logistic"), "f", "loss='logistic' is not for numbers"),
        (KernelRidgeClassifier(loss="huber"), "classes", "loss='huber' is not for classes"),
        (KernelRidge(loss="poisson"), "f", "needs targets of at least 0"),
        (KernelRidge(loss="gamma"), "counts", "needs positive targets"),
        (KernelRidge(loss="huber", solver="falkon"), "f", "minimised by solver='newton'"),
        (KernelRidge(loss="huber", solver=Falkon()), "f", "minimised by solver='newton'"),
        (
            KernelRidge(solver="newton", penalty=1e-3),
            "f",
            "minimises only losses other than the square",
        ),
        (KernelRidge(loss="huber", cells=100), "f", "cells=100 cannot be combined with"),
        (KernelRidge(loss="huber", early_stopping=True), "f", "early_stopping=True cannot be"),
        (KernelRidge(loss="huber", warm_start=True), "f", "warm_start=True cannot be"),
        (KernelRidge(loss="huber", landmarks="bless_r"), "f", "no path of penalties and landmarks"),
        (KernelRidge(loss=Quantile((0.1, 0.9))), "two", "need a single target, not 2"),
        (KernelRidgeClassifier(loss="logistic"), "one", "one class only"),
    ],
)
def test_refusals(est, y, words, data):
    X, f = data
    given = {
        "f": f,
        "classes": f > 0,
        "counts": np.zeros(600),
        "two": np.stack([f, f], axis=1),
        "one": np.ones(600, int),
    }[y]
    with pytest.raises(ValueError, match=words):
        est.fit(X, given)


def test_validate_is_refused(data):
    X, f = data
    with pytest.raises(ValueError, match="Validate measures squared errors"):
        KernelRidge(loss="huber", callbacks=[Validate(X, f)]).fit(X, f)


@pytest.mark.parametrize("loss", ["huber", "quantile", "poisson", "expectile"])
def test_awkward_targets(loss, data):
    X, _ = data
    settings = {**PLAIN, "loss": loss, "tol": 1e-2}
    constant = KernelRidge(**settings).fit(X, np.full(600, 7.0)).predict(X)
    np.testing.assert_allclose(constant, 7.0, rtol=1e-3)
    few = KernelRidge(**settings).fit(X[:5, :1], np.arange(5.0)).predict(X[:5, :1])
    assert np.isfinite(few).all()
    repeated = KernelRidge(**settings).fit(np.tile(X[:3], (50, 1)), np.tile([1.0, 2, 3], 50))
    assert np.isfinite(repeated.predict(X)).all()
