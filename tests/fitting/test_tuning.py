"""Hyper-parameters by the likelihood and by leave-one-out errors, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from gramian import KernelRidge, KernelRidgeCV
from gramian.fitting.choice import tuning
from gramian.fitting.choice.tuning import Criterion, tune
from gramian.kernels import Gaussian, Haversine, Matern32, Matern52, Periodic
from gramian.kernels._hyperparameters import (
    contract_gradients,
    hyperparameters,
    times_lengthscales,
    with_hyperparameters,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (90, 2))
Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1] / 3, np.cos(X[:, 1])])
Y = Y - Y.mean(axis=0) + 0.1 * RNG.standard_normal(Y.shape)
WEIGHTS = RNG.uniform(0.5, 2.0, 90)
KERNEL = 1.5 * Matern52((1.0, 2.0)) + 0.5 * Gaussian(0.7).on([0])


@pytest.mark.parametrize("name", ["likelihood", "leave_one_out"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_gradients_are_those_of_difference_quotients(name, weights):
    criterion = Criterion(name, X, Y, weights)
    values = np.array([*hyperparameters(KERNEL).values(), 0.03])

    def value(at: np.ndarray) -> float:
        return criterion(with_hyperparameters(KERNEL, at[:-1]), at[-1])[0]

    _, G = criterion(KERNEL, 0.03)
    found = [*contract_gradients(KERNEL, X, G), criterion.noise_gradient(G, 0.03)]
    steps = 1e-5 * np.eye(len(values))
    expected = [(value(values * np.exp(s)) - value(values * np.exp(-s))) / 2e-5 for s in steps]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * max(np.abs(expected)))


def test_the_leave_one_out_error_is_that_of_refits():
    noise, W = 0.03 / WEIGHTS, WEIGHTS
    squares = []
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        A = KERNEL(X[rest], X[rest]) + np.diag(noise[rest])
        left = KERNEL(X[[i]], X[rest]) @ np.linalg.solve(A, Y[rest])
        squares.append(W[i] * ((Y[i] - left) ** 2).mean())
    found, _ = Criterion("leave_one_out", X, Y, W)(KERNEL, 0.03)
    np.testing.assert_allclose(found, np.log(np.mean(squares)), rtol=1e-10)


def test_the_likelihood_and_its_maximum_are_those_of_scikit_learn():
    y = Y[:, :1]
    theirs = GaussianProcessRegressor(
        ConstantKernel(1.5) * Matern((1.0, 2.0), nu=2.5) + WhiteKernel(0.03),
        alpha=0.0, n_restarts_optimizer=3, random_state=0,
    ).fit(X, y[:, 0])  # fmt: skip
    criterion = Criterion("likelihood", X, y)
    theta = np.log([1.5, 1.0, 2.0, 0.03])
    ours, _ = criterion(1.5 * Matern52((1.0, 2.0)), 0.03)
    np.testing.assert_allclose(ours, -theirs.log_marginal_likelihood(theta), rtol=1e-8)
    tuned = tune(criterion, Matern52((1.0, 1.0)))
    np.testing.assert_allclose(tuned.value, -theirs.log_marginal_likelihood_value_, rtol=1e-6)
    factor, *lengthscales, noise = np.exp(theirs.kernel_.theta)
    found = hyperparameters(tuned.kernel)
    np.testing.assert_allclose([*found.values()], [*lengthscales, factor], rtol=1e-2)
    np.testing.assert_allclose(tuned.noise, noise, rtol=1e-2)


def test_a_known_noise_stays():
    tuned = tune(Criterion("likelihood", X, Y), Gaussian(1.0), 0.25)
    assert tuned.noise == 0.25
    free = tune(Criterion("likelihood", X, Y), Gaussian(1.0))
    assert free.value < tuned.value
    assert free.noise < 0.03


def test_the_best_of_several_starts_wins(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (60, 1))
    y = np.sin(8 * x) + 0.3 * rng.standard_normal(x.shape)
    criterion = Criterion("likelihood", x, y - y.mean())
    assert tune(criterion, Gaussian(1.0)).noise < 0.3
    # From this lengthscale alone, everything is noise.
    monkeypatch.setattr(tuning, "START_MULTIPLES", (1.0,))
    assert tune(criterion, Gaussian(1.0)).noise > 0.5


class TestKernelRidge:
    PLACES = np.column_stack([RNG.uniform(-60, 75, 300), RNG.uniform(-180, 180, 300)])
    ROWS = np.column_stack([PLACES, RNG.uniform(0, 4, 300)])
    TARGET = (
        10 * np.cos(np.radians(PLACES[:, 0])) + np.sin(3 * ROWS[:, 2])
        + 0.2 * RNG.standard_normal(300)
    )  # fmt: skip
    KERNEL = Haversine(300.0).on([0, 1]) + Matern32(60.0).on([2])

    @pytest.mark.parametrize("name", ["likelihood", "leave_one_out"])
    def test_a_sum_of_kernels_of_columns_is_tuned(self, name):
        train, test = slice(0, 200), slice(200, 300)
        given = KernelRidge(self.KERNEL, random_state=0)
        tuned = KernelRidge(self.KERNEL, lengthscale=name, random_state=0)
        before = given.fit(self.ROWS[train], self.TARGET[train])
        assert before.kernel_ == self.KERNEL
        before = before.score(self.ROWS[test], self.TARGET[test])
        after = tuned.fit(self.ROWS[train], self.TARGET[train])
        assert after.score(self.ROWS[test], self.TARGET[test]) > max(0.97, before + 0.05)
        assert hyperparameters(tuned.kernel_)["first__kernel__kernel__lengthscale"] > 1000

    def test_the_penalty_is_the_noise(self):
        est = KernelRidge("matern52", lengthscale="likelihood", standardize=False, random_state=0)
        est.fit(X, Y[:, 0])
        tuned = tune(Criterion("likelihood", X, Y[:, :1]), Matern52("median").resolve(X))
        np.testing.assert_allclose(len(X) * est.penalty_, tuned.noise, rtol=1e-4)
        np.testing.assert_allclose(est.log_marginal_likelihood_, -tuned.value, rtol=1e-8)

    def test_a_given_penalty_stays(self):
        est = KernelRidge(KERNEL, lengthscale="likelihood", penalty=1e-3, random_state=0)
        assert est.fit(X, Y).penalty_ == 1e-3
        assert est.kernel_ != KERNEL

    def test_kernels_are_compared(self, monkeypatch):
        monkeypatch.setattr(tuning, "START_MULTIPLES", (1.0,))
        est = KernelRidge("auto", lengthscale="likelihood", random_state=0).fit(X, Y)
        single = [
            KernelRidge(name, lengthscale="likelihood", random_state=0).fit(X, Y)
            for name in ("laplacian", "matern32", "gaussian", "l1_laplacian")
        ]
        best = max(single, key=lambda one: one.log_marginal_likelihood_)
        assert est.kernel_ == best.kernel_

    def test_landmarks_and_many_rows_use_a_sample(self, monkeypatch):
        monkeypatch.setattr(tuning, "MOST_ROWS", 60)
        est = KernelRidge("gaussian", lengthscale="likelihood", landmarks=40, random_state=0)
        est.fit(X, Y[:, 0])
        assert est.score(X, Y[:, 0]) > 0.9
        assert len(est.dual_coef_) == 40


class TestSearch:
    @pytest.mark.parametrize(
        "kernel",
        [
            TestKernelRidge.KERNEL,
            [TestKernelRidge.KERNEL, "gaussian"],
            [2.0 * Matern52((20.0, 20.0, 1.0))],
            "linear",
            "haversine",
        ],
        ids=["object", "object and name", "list", "linear", "places"],
    )
    def test_any_kernel_is_searched(self, kernel):
        rows = TestKernelRidge.ROWS[:, :2] if kernel == "haversine" else TestKernelRidge.ROWS
        est = KernelRidgeCV(kernel, random_state=0, verbose=0).fit(rows[:200], self.target[:200])
        expected = -0.5 if kernel == "linear" else 0.8 if kernel == "haversine" else 0.95
        assert est.score(rows[200:], self.target[200:]) > expected
        again = KernelRidge(**est.best_params_).fit(rows[:200], self.target[:200])
        assert again.score(rows[200:], self.target[200:]) > expected - 0.02
        assert est.plan(rows, self.target).seconds > 0

    target = TestKernelRidge.TARGET

    def test_fingerprints_are_searched_without_walks(self):
        bits = (RNG.random((200, 30)) < 0.3).astype(float)
        y = bits[:, :6].sum(axis=1) + 0.1 * RNG.standard_normal(200)
        est = KernelRidgeCV("tanimoto", random_state=0, verbose=0).fit(bits[:150], y[:150])
        assert est.score(bits[150:], y[150:]) > 0.8
        assert est.best_params_["kernel"] == "tanimoto"
        # A lengthscale changes nothing: one fit, not a walk of fits.
        assert [row["step"] for row in est.history_].count("fit") == 1
        assert est.plan(bits, y).seconds > 0


def test_lengthscales_of_circles_are_multiplied_or_not():
    kernel = 2.0 * Gaussian(3.0).on([0]) * Periodic(0.5, 12.0).on([0]) + Matern32((1.0, 4.0))
    all_of_them = list(hyperparameters(times_lengthscales(kernel, 10.0)).values())
    assert all_of_them == [30.0, 2.0, 5.0, 10.0, 40.0]
    others = list(hyperparameters(times_lengthscales(kernel, 10.0, circles=False)).values())
    assert others == [30.0, 2.0, 0.5, 10.0, 40.0]
    assert len(tuning._starts(kernel)) == 9
    assert len(tuning._starts(Matern32(1.0))) == 5


def test_the_maximum_of_seasons_that_change_is_found_from_any_unit():
    month = np.arange(144.0)[:, None]
    truth = Gaussian(60.0) + Gaussian(60.0) * Periodic(0.5, 12.0) + 0.3 * Matern32(3.6)
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(truth(month, month) + 1e-8 * np.eye(144))
    y = root @ rng.standard_normal((144, 1)) + 0.05**0.5 * rng.standard_normal((144, 1))
    y = (y - y.mean()) / y.std()
    criterion = Criterion("likelihood", month, y)
    starts = [Gaussian(decay) * Periodic(1.0, 12.0) for decay in (1.0, 144.0)]
    values = [tune(criterion, start).value for start in starts]
    assert max(values) - min(values) < 0.1
