"""penalty=[...]: a penalty for each target, as scikit-learn's alpha of n_targets numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sklearn.kernel_ridge
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from gramian import KernelRidge, KernelRidgeClassifier, load, solvers
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.callbacks.fingerprint import fingerprint
from gramian.data import as_rows
from gramian.kernels import Gaussian
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import solve, tolerance
from gramian.solvers.loop.loop import max_iterations

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(150, 3)), RNG.normal(size=(40, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2], 50 + X[:, 0], RNG.normal(size=150)])
EACH = [1e-4, 1e-2, 1e-4, 1.0]
PLAIN: dict[str, Any] = {
    "kernel": "gaussian", "lengthscale": 1.5, "random_state": 0, "tol": 1e-10, "max_iter": 1000,
}  # fmt: skip
SOLVERS = [("direct", None), ("pcg", None), ("direct", 40), ("falkon", 40)]


def fitted(penalty: Any = EACH, y: np.ndarray = Y, **settings: Any) -> KernelRidge:
    return KernelRidge(penalty=penalty, **(PLAIN | settings)).fit(X, y)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize(("solver", "landmarks"), SOLVERS)
def test_each_target_is_fitted_as_by_itself(solver, landmarks, standardize):
    given = {"solver": solver, "landmarks": landmarks, "standardize": standardize}
    est = fitted(**given)
    alone = [fitted(p, Y[:, k], **given).predict(NEW) for k, p in enumerate(EACH)]
    np.testing.assert_allclose(est.predict(NEW), np.column_stack(alone), atol=1e-6)
    np.testing.assert_array_equal(est.penalty_, EACH)
    assert est.penalty == EACH


def test_they_are_scikit_learns_alphas():
    theirs = sklearn.kernel_ridge.KernelRidge(
        alpha=150 * np.array(EACH), kernel="rbf", gamma=0.5 / 1.5**2
    ).fit(X, Y)
    for penalty in (EACH, tuple(EACH), np.array(EACH)):
        est = fitted(penalty, standardize=False)
        np.testing.assert_allclose(est.predict(NEW), theirs.predict(NEW), atol=1e-8)
    np.testing.assert_allclose(est.dual_coef_, theirs.dual_coef_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("solver", "landmarks"), SOLVERS)
def test_with_weights_and_float32(solver, landmarks):
    weights = RNG.integers(0, 3, 150)
    given = {"solver": solver, "landmarks": landmarks, "standardize": False, "tol": 1e-6}
    est = KernelRidge(penalty=EACH, **PLAIN | given).fit(X.astype(np.float32), Y, weights)
    index = np.flatnonzero(weights)  # landmarks are numbered among these
    index = index if landmarks is None else index[est.landmark_index_]
    Z, W = X[index], np.diag(weights.astype(float))
    K, G = (np.exp(-cdist(x, Z, "sqeuclidean") / 2 / 1.5**2) for x in (X, Z))
    new = np.exp(-cdist(NEW, Z, "sqeuclidean") / 2 / 1.5**2)
    for k, penalty in enumerate(EACH):
        matrix = K.T @ W @ K + weights.sum() * penalty * G
        coef = np.linalg.lstsq(matrix, K.T @ W @ Y[:, k], rcond=1e-13)[0]
        expected = new @ coef
        got = est.predict(NEW.astype(np.float32))[:, k]
        np.testing.assert_allclose(got, expected, atol=2e-2 * np.abs(expected).max())


@pytest.mark.parametrize(("solver", "landmarks"), SOLVERS)
def test_equal_penalties_are_one(solver, landmarks):
    same = fitted([1e-3] * 4, solver=solver, landmarks=landmarks)
    one = fitted(1e-3, solver=solver, landmarks=landmarks)
    np.testing.assert_allclose(same.predict(NEW), one.predict(NEW), atol=1e-7)


def test_of_one_target():
    np.testing.assert_allclose(
        fitted([0.1], Y[:, 0]).predict(NEW), fitted(0.1, Y[:, 0]).predict(NEW), atol=1e-10
    )


# --- solvers -------------------------------------------------------------------------------------


def problem(kind: type) -> FullProblem | NystromProblem:
    rows, targets = as_rows(X), Y
    K = KernelOperator(Gaussian(1.5), rows, rows)
    if kind is FullProblem:
        return FullProblem(K, targets, 0.1, penalties=tuple(EACH))
    return replace(NystromProblem.at(K, np.arange(40), targets, 0.1), penalties=tuple(EACH))


@pytest.mark.parametrize("name", sorted(set(solvers.names()) - {"newton"}))
def test_each_solver_takes_them_or_says_who_does(name):
    solver = solvers.make(name)
    for kind in (FullProblem, NystromProblem):
        if not solver.takes(kind):
            continue
        given = problem(kind)
        if not solver.takes_penalties:
            with pytest.raises(ValueError, match=r"one penalty for all targets; .*direct, falkon"):
                solve(given, solver)
            continue
        result = solve(given, solver, stop=[tolerance(1e-10), max_iterations(500)])
        residual = given.apply(result.state.coef) - given.rhs
        assert float(xp.norm(residual) / xp.norm(given.rhs)) < 1e-7


@pytest.mark.parametrize("preconditioner", ["rpcholesky", "nystrom", "cells", "none"])
@pytest.mark.parametrize("weighted", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_preconditioners_have_each_penalty(preconditioner, weighted):
    given, weights = problem(FullProblem), np.linspace(0.5, 2.0, 150, dtype=np.float32)
    given = replace(given, weights=weights if weighted else None, penalties=(1e-6, 1e-3, 1.0, 1e-6))
    solver = solvers.PCG(preconditioner=preconditioner, rank=80)
    stop = [tolerance(1e-10), max_iterations(2000)]
    found = solve(given, solver, stop=stop, rng=RandomStream(0))
    for columns, one in given.by_penalty():
        alone = solve(one, solvers.make("direct")).state.coef
        values = one.K @ alone
        assert np.allclose(one.K @ found.state.coef[:, columns], values, atol=1e-5)
    if preconditioner in ("rpcholesky", "nystrom"):
        least = replace(given, penalty=1e-6, penalties=None)
        same = solve(least, solver, stop=stop, rng=RandomStream(0))
        assert found.state.iteration <= 1.5 * same.state.iteration


def test_a_checkpoint_of_others_is_another_problem():
    one = problem(FullProblem)
    other = replace(one, penalties=tuple(reversed(EACH)))
    assert fingerprint(one)["penalty"] != fingerprint(other)["penalty"]
    assert fingerprint(replace(one, penalties=None))["penalty"] == repr(0.1)


def test_a_problem_checks_them():
    with pytest.raises(ValueError, match="there are 2 penalties, but 4 targets"):
        replace(problem(FullProblem), penalties=(0.1, 0.2))
    with pytest.raises(ValueError, match="penalties must be positive and finite"):
        replace(problem(FullProblem), penalties=(0.1, 0.2, 0.3, 0.0))


# --- with the rest -------------------------------------------------------------------------------


def test_files_copies_and_searches_of_them(tmp_path):
    est = fitted()
    est.save(tmp_path / "each.model")
    np.testing.assert_array_equal(load(tmp_path / "each.model").predict(NEW), est.predict(NEW))
    assert clone(est).penalty == EACH
    search = GridSearchCV(KernelRidge(**PLAIN), {"penalty": [EACH, [1e3] * 4]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"penalty": EACH}


def test_a_given_matrix_and_early_stopping():
    K, new = (np.exp(-cdist(x, X, "sqeuclidean") / 2 / 1.5**2) for x in (X, NEW))
    settings = {"penalty": EACH, "standardize": False}
    matrix = KernelRidge("precomputed", **settings).fit(K, Y)
    expected = fitted(standardize=False).predict(NEW)
    np.testing.assert_allclose(matrix.predict(new), expected, atol=1e-8)
    stopped = fitted(solver="falkon", landmarks=40, early_stopping=True)
    assert stopped.best_iteration_ is not None
    assert np.isfinite(stopped.predict(NEW)).all()


def test_kernel_and_lengthscale_are_chosen_beside_them():
    est = KernelRidge(penalty=EACH, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(est.penalty_, EACH)
    assert est.score(X, Y) > 0.5
    assert est.plan(X, Y).solver == "direct"


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "penalty", [[], [1e-3, 0.0], [1e-3, -1.0], [1.0, np.nan], [1.0, np.inf], [[1.0]], ["a", "b"]]
)
def test_numbers_that_are_no_penalties_are_refused(penalty):
    with pytest.raises(ValueError, match="penalty must be a positive number for each target"):
        fitted(penalty)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"penalty": [0.1, 0.2]}, "penalty has 2 numbers, but y has 4 targets"),
        ({"solver": "askotch"}, "ASkotch has one penalty for all targets; .*direct, falkon, pcg"),
        ({"solver": "eigenpro2"}, "has one penalty for all targets"),
        ({"cells": 50}, "cells=50 has one penalty for all targets, not 4"),
        ({"loss": "huber"}, "loss='huber' has one penalty for all targets, not 4"),
        ({"conformal": "split"}, "a fit with one penalty for all targets"),
    ],
)
def test_what_has_one_penalty_says_so(settings, match):
    with pytest.raises(ValueError, match=match):
        fitted(**settings)


def test_closed_forms_have_one_penalty():
    est = fitted()
    with pytest.raises(ValueError, match="a closed form needs one penalty"):
        est.predict(NEW, return_std=True)
    assert not hasattr(est, "gcv_")
    with pytest.raises(ValueError, match="a fit with one penalty for all targets"):
        est.predict_interval(NEW)
    with pytest.raises(ValueError, match="has one penalty for all targets"):
        KernelRidge(penalty=EACH, solver="eigenpro3").partial_fit(X, Y)
    with pytest.raises(ValueError, match="classes share one penalty"):
        KernelRidgeClassifier(penalty=[0.1, 0.2, 0.3]).fit(X, RNG.integers(0, 3, 150))
    with pytest.raises(ValueError, match="has one penalty for all targets"):
        KernelRidge(penalty=EACH, solver="askotch").plan(X, Y)
