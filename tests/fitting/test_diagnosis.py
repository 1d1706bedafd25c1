"""What is said before a fit that takes long, and after one that explains little."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from close import assert_close
from plain import PLAIN

from gramian import KernelRidge, KernelRidgeClassifier, kernels
from gramian.callbacks import Validate
from gramian.data import as_rows
from gramian.fitting.methods import diagnosis
from gramian.fitting.plans import solver_choice
from gramian.landmarks import Bless
from gramian.operators import KernelOperator
from gramian.problems import FullProblem
from gramian.solvers import Direct, solve

X = np.random.default_rng(0).uniform(-3, 3, (400, 2))
Y = np.sin(X[:, 0]) + X[:, 1]


def warnings_of(caplog, est, X=X, y=Y, **more) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING, "gramian"):
        est.fit(X, y, **more)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("landmarks", [None, 30])
@pytest.mark.parametrize("lengthscale", [1e-3, 1e6])
def test_a_weak_fit_is_said(caplog, landmarks, lengthscale):
    """Of rows that are their own centers a tiny lengthscale explains all: held-out rows do not."""
    train, held = slice(0, 300), slice(300, None)
    callbacks = [Validate(X[held], Y[held])]
    est = KernelRidge(lengthscale=lengthscale, penalty=1e-2, landmarks=landmarks, kernel="gaussian")
    est.set_params(callbacks=callbacks, random_state=0)
    said = warnings_of(caplog, est, X[train], Y[train])
    assert est.stop_reason_ == "converged"
    assert len(said) == 1
    r2 = 1 - np.mean((est.predict(X[held]) - Y[held]) ** 2) / np.mean(
        (Y[held] - Y[train].mean()) ** 2
    )
    assert said[0].startswith(f"R2 is {r2:.2g} on 100 held-out rows, although the solver converged")
    assert "lengthscale or the penalty" in said[0]


@pytest.mark.parametrize("landmarks", [None, 30])
def test_a_weak_fit_is_said_by_the_training_rows(caplog, landmarks):
    weights = np.random.default_rng(1).uniform(0.1, 2, 400)
    est = KernelRidge(
        lengthscale=1.0, penalty=30.0, landmarks=landmarks, random_state=0, kernel="gaussian"
    )
    said = warnings_of(caplog, est, sample_weight=weights)
    assert len(said) == 1
    assert said[0].startswith(f"R2 is {est.score(X, Y, weights):.2g} on 400 training rows")


def test_a_good_fit_is_not(caplog):
    est = KernelRidge(
        lengthscale=1.0, landmarks=30, penalty=1e-6, random_state=0, kernel="gaussian"
    )
    assert warnings_of(caplog, est) == []
    assert est.score(X, Y) > 0.9


def test_what_is_no_solution_or_no_regression_is_not(caplog):
    one = KernelRidge(
        lengthscale=1e-3,
        landmarks=30,
        max_iter=1,
        tol=0.0,
        random_state=0,
        kernel="gaussian",
        penalty=1e-6,
    )
    with pytest.warns(UserWarning, match="stopped after"):
        assert warnings_of(caplog, one) == []
    labels = np.random.default_rng(0).integers(0, 2, 400)
    classes = KernelRidgeClassifier(
        lengthscale=1e3, landmarks=30, penalty=1.0, random_state=0, kernel="gaussian"
    )
    assert warnings_of(caplog, classes, y=labels) == []


def test_a_constant_target_is_no_weak_fit(caplog):
    est = KernelRidge(
        lengthscale=1e-3, landmarks=30, penalty=1e-2, random_state=0, kernel="gaussian"
    )
    assert warnings_of(caplog, est, y=np.ones(400)) == []


# --- long fits -----------------------------------------------------------------------------------


class Seconds:
    """A plan that takes a given time."""

    def __init__(self, seconds):
        self.seconds, self.asked = seconds, 0

    def __call__(self, *_arguments):
        self.asked += 1
        return self

    def __str__(self):
        return "falkon with many landmarks"


def test_a_long_fit_is_said_before(caplog, monkeypatch):
    plan = Seconds(5400)
    monkeypatch.setattr(diagnosis, "plan", plan)
    monkeypatch.setattr(diagnosis, "SLOW_OPERATIONS", 1.0)
    est = KernelRidge(
        lengthscale=1.0, landmarks=30, random_state=0, kernel="gaussian", penalty=1e-6
    )
    said = warnings_of(caplog, est)
    assert said == [
        "this fit may take 90 minutes: falkon with many landmarks; half as many landmarks take "
        "half the time or less"
    ]
    assert "landmarks='auto'" in warnings_of(caplog, est.set_params(landmarks=None))[0]
    plan.seconds = 599
    assert warnings_of(caplog, est) == []


def test_nothing_is_measured_for_small_fits(monkeypatch):
    plan = Seconds(5400)
    monkeypatch.setattr(diagnosis, "plan", plan)
    KernelRidge(lengthscale=1.0, landmarks=30, kernel="gaussian", penalty=1e-6).fit(X, Y)
    assert plan.asked == 0


@pytest.mark.parametrize(("n", "m", "asked"), [(10**8, 20_000, 1), (10_000, 100, 0)])
def test_what_may_be_long_is_told_by_the_size(monkeypatch, n, m, asked):
    plan = Seconds(5400)
    monkeypatch.setattr(diagnosis, "plan", plan)
    settings, rows = KernelRidge(landmarks=30, **PLAIN)._settings(), as_rows(X)
    solver, size = solver_choice.solver_and_size(settings, rows, 1)
    found = diagnosis.long_fit(settings, rows, solver, replace(size, n=n, m=m))
    assert (plan.asked, found is not None) == (asked, bool(asked))


def test_landmarks_of_unknown_number_have_no_plan(caplog, monkeypatch):
    monkeypatch.setattr(diagnosis, "SLOW_OPERATIONS", 1.0)
    est = KernelRidge(
        lengthscale=1.0,
        landmarks=Bless(penalty=1e-2),
        random_state=0,
        kernel="gaussian",
        penalty=1e-6,
    )
    assert warnings_of(caplog, est) == []


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalties", [None, (1e-2, 1e-1)])
def test_residuals_of_a_solved_full_problem_need_no_kernel(weighted, penalties, rng):
    X = rng.standard_normal((40, 2), np.float64)
    y = rng.standard_normal((40, 2), np.float64)
    w = rng.random(40, np.float32) + 0.5 if weighted else None
    K = KernelOperator(kernels.Gaussian(1.0), (rows := as_rows(X)), rows)
    problem = FullProblem(K, y, 1e-2, w, penalties=penalties)
    coef, index = solve(problem, Direct()).state.coef, np.arange(3, 40, 5)
    before = K.meter.evaluations
    found = diagnosis._residuals(problem, coef, index, y[index])
    assert K.meter.evaluations == before
    assert_close(found, (y - K @ coef)[index])
