"""Lengthscales by gradients: the features and landmarks that the descent finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gramian import KernelRidge, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.kernels import Gaussian, L1Laplacian, Matern32
from gramian.metric import LengthscaleDescent
from gramian.metric.base import draw_sample
from gramian.metric.objectives import RELATIVE_JITTER

MATERN = Matern32()
SMALL = LengthscaleDescent(landmarks=40, rows=600, batch=300, steps=60, rate=0.1)


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return RandomStream(seed).standard_normal((n, d), np.float64)


class TestWhatItFinds:
    def learn(self, X, Y, kernel=MATERN, how=SMALL, **more):
        kernel = replace(kernel, lengthscale="median")
        return how.learn(kernel, as_rows(X), Y, rng=RandomStream(0), **more)

    @pytest.mark.parametrize("kernel", [MATERN, L1Laplacian()], ids=lambda k: type(k).__name__)
    @pytest.mark.parametrize("objective", ["held_out", "complexity"])
    def test_two_of_eight_features(self, kernel, objective, dtype):
        X = xp.cast(5 + 3 * rows(700, 8), dtype)  # neither the mean nor the unit matters
        Y = np.sin(X[:, :1] / 2) + 2 * np.cos(X[:, 3:4] / 3)
        found = self.learn(X, Y - Y.mean(), kernel, replace(SMALL, objective=objective))
        assert set(found.importances.argsort(stable=True)[-2:].tolist()) == {0, 3}
        assert float(found.importances[[0, 3]].sum()) > 0.7
        errors = [each.error for each in found.rounds]
        assert min(errors) < 0.7 * errors[0]

    def test_landmarks_move_if_they_may(self):
        X, kernel = rows(700, 2), Gaussian("median")
        Y = np.exp(-4 * np.square(X - 1).sum(axis=1, keepdims=True))  # a bump, and nothing else
        sample = draw_sample(as_rows(X), Y, None, 700, rng=RandomStream(0))
        few = replace(SMALL, landmarks=10)
        ends = {}
        for moves in (True, False):
            how = replace(few, move_landmarks=moves)
            looks = list(how.descend(sample, kernel, rng=RandomStream(0)))
            assert np.array_equal(looks[0].landmarks, looks[-1].landmarks) is not moves
            assert looks[0].penalty != looks[-1].penalty
            ends[moves] = min(look.error for look in looks)
        assert [look.steps for look in looks] == [0, 10, 20, 30, 40, 50, 60]
        assert ends[True] < 0.3 * ends[False]

    def test_a_look_is_the_error_of_its_parameters(self):
        X = rows(500, 3)
        Y = np.sin(X[:, :1])
        sample = draw_sample(as_rows(X), Y, None, 500, rng=RandomStream(0))
        *_, look = SMALL.descend(sample, Gaussian("median"), rng=RandomStream(0))
        kernel = Gaussian(1.0)
        Z, A = look.landmarks * look.scales, sample.X * look.scales
        K, K_mm = (
            kernel(A, Z),
            kernel(Z, Z) + RELATIVE_JITTER * xp.to_float64(np.eye(len(Z), dtype=np.float32)),
        )
        coef = np.linalg.solve(K.T @ K + len(A) * look.penalty * K_mm, K.T @ sample.Y)
        errors = kernel(sample.held_X * look.scales, Z) @ coef - sample.held_Y
        expected = float(np.square(errors).mean() / np.square(sample.Y).mean())
        assert look.error == pytest.approx(expected, rel=1e-3)

    def test_odd_rows(self):
        X = np.concatenate([rows(40, 2), np.ones((40, 1), np.float32)], axis=1).repeat(
            2, 1
        )  # repeated, and flat
        Y = np.sin(X[:, :1])
        for how in (SMALL, replace(SMALL, landmarks=500)):  # n below landmarks
            assert bool(np.isfinite(self.learn(X, Y, how=how).map.scales).all())
        assert bool(np.isfinite(self.learn(X, 0 * Y).map.scales).all())
        assert self.learn(X[:, :1], Y).map.inputs == 1

    def test_through_the_estimator(self):
        X = rows(500, 6)
        y = np.sin(2 * X[:, 2])
        how = {"landmarks": 100, "random_state": 0, "kernel": "matern32"}
        plain = KernelRidge(**how).fit(X[:400], y[:400]).score(X[400:], y[400:])
        learned = KernelRidge(**how, metric=SMALL, lengthscale=1.0).fit(X[:400], y[:400])
        assert learned.score(X[400:], y[400:]) > 0.5 + 0.5 * plain
        assert int(learned.feature_importances_.argmax()) == 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"objective": "loo"}, "held_out, complexity, not 'loo'"),
        ({"steps": 0}, "steps"),
        ({"rate": -1.0}, "rate"),
        ({"penalty": 0.0}, "penalty"),
    ],
)
def test_parameters_that_cannot_be(parameters, message):
    with pytest.raises(ValueError, match=message):
        LengthscaleDescent(**parameters)


def test_a_kernel_without_such_gradients():
    X = rows(30, 2)
    with pytest.raises(
        ValueError, match=r"l1 Laplacian, not .*metric='learned' supports other kernels"
    ):
        SMALL.learn(kernels.make("linear"), as_rows(X), X, rng=RandomStream(0))
