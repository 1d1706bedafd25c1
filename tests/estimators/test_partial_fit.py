"""partial_fit: one pass over the rows of each call, with the centers of the first."""

from __future__ import annotations

import numpy as np
import pytest
from plain import PLAIN

from gramian import KernelRidge, KernelRidgeClassifier
from gramian.solvers import EigenPro3, SketchySAGA


def data(n=600):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def estimator(solver="eigenpro3", **changes):
    return KernelRidge(
        landmarks=40,
        solver=solver,
        penalty=1e-5,
        random_state=0,
        **({"kernel": "gaussian", "lengthscale": "median"} | changes),
    )


@pytest.mark.parametrize("solver", ["eigenpro3", "sketchysaga"])
def test_it_learns_from_parts(solver):
    X, y = data()
    est = estimator(solver)
    errors = []
    for _ in range(4):
        for part in np.split(np.arange(500), 2):
            est.partial_fit(X[part], y[part])
        errors.append(np.mean((est.predict(X[500:]) - y[500:]) ** 2))
    assert errors[-1] < 0.2 * y.var()
    assert errors[-1] < 1.05 * errors[0]
    assert est.n_iter_ == 8
    assert est.model_.centers.shape == (40, 2)
    assert est.solver_settings_["batch"] >= 1


def test_the_first_call_is_a_fit_of_one_epoch():
    X, y = data()
    part = estimator(lengthscale=1.0, standardize=False).partial_fit(X, y)
    assert part.n_iter_ == 1
    assert [row["iteration"] for row in part.history_] == [0, 1]
    centers = part.model_.centers.take(np.arange(40))
    assert np.array_equal(centers, X[part.landmark_index_])
    again = part.partial_fit(X, y)
    assert [row["iteration"] for row in again.history_] == [0, 1, 2]


def test_classes_are_those_of_the_first_call():
    X, y = data()
    labels = np.where(y > 0.3, "high", np.where(y < -0.3, "low", "middle"))
    est = KernelRidgeClassifier(
        landmarks=40,
        solver="eigenpro3",
        penalty=1e-5,
        random_state=0,
        kernel="gaussian",
        lengthscale="median",
    )
    with pytest.raises(ValueError, match="classes, all labels, must be given in the first call"):
        est.partial_fit(X, labels)
    est.partial_fit(X[labels != "low"], labels[labels != "low"], classes=["high", "low", "middle"])
    for _ in range(5):
        for part in np.array_split(np.arange(len(X)), 2):
            est.partial_fit(X[part], labels[part], classes=["high", "low", "middle"])
    assert est.classes_.tolist() == ["high", "low", "middle"]
    assert est.score(X, labels) > 0.8
    with pytest.raises(ValueError, match="classes must be the same as in the first call"):
        est.partial_fit(X, labels, classes=["high", "low"])


def test_a_failed_call_changes_nothing():
    X, y = data()
    est = estimator().partial_fit(X, y)
    before = est.dual_coef_.copy()
    with pytest.raises(ValueError, match="features"):
        est.partial_fit(X[:, :1], y)
    with pytest.raises(ValueError, match="targets have 2 columns"):
        est.partial_fit(X, np.stack([y, y], axis=1))
    assert np.array_equal(est.dual_coef_, before)
    assert est.n_features_in_ == 2


def test_solvers_that_cannot_do_not_have_it():
    assert not hasattr(KernelRidge(**PLAIN), "partial_fit")
    assert not hasattr(KernelRidge(solver="falkon", landmarks=9, **PLAIN), "partial_fit")
    for solver in ("eigenpro3", EigenPro3(), SketchySAGA(batch=9)):
        assert hasattr(KernelRidge(solver=solver, **PLAIN), "partial_fit")


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"solver": "eigenpro2"}, 0.05),
        pytest.param({"solver": "eigenpro1"}, 0.05, marks=pytest.mark.slow),
        ({"solver": "eigenpro3", "landmarks": 60}, 0.05),
        ({"solver": "sketchysaga", "landmarks": 60}, 0.05),
    ],
)
def test_fit_by_name_with_penalty_zero(settings, error):
    X, y = data()
    est = KernelRidge(
        penalty=0,
        max_iter=20,
        random_state=0,
        **({"kernel": "gaussian", "lengthscale": "median"} | settings),
    )
    if settings["solver"] == "sketchysaga":
        # The tolerance is a share of the deviation of the target.
        est.set_params(penalty=1e-4, tol=0.2)
    est.fit(X[:500], y[:500])
    assert np.mean((est.predict(X[500:]) - y[500:]) ** 2) < error
    assert set(est.solver_settings_) >= {"batch", "step"}
    plan = est.plan(X)
    assert plan.solver == settings["solver"]
    assert plan.memory_bytes > 0


def test_penalty_zero_with_another_solver_is_refused():
    X, y = data()
    with pytest.raises(ValueError, match="Falkon needs a positive penalty, not 0"):
        KernelRidge(penalty=0, landmarks=9, kernel="gaussian", lengthscale="median").fit(X, y)


def test_each_call_draws_three_seeds_from_a_shared_random_state():
    X, y = data()
    state = np.random.RandomState(0)
    est = estimator("sketchysaga").set_params(random_state=state)
    est.partial_fit(X, y).partial_fit(X, y)
    other = np.random.RandomState(0)
    other.randint(2**31 - 1, size=6)
    assert state.randint(1000) == other.randint(1000)
