"""Lengthscales by gradients: objectives against dense formulas, gradients against differences."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gramian import KernelRidge, kernels
from gramian.data import as_rows
from gramian.kernels import Gaussian, Kernel, L1Laplacian, Laplacian, Matern32, Matern52
from gramian.metric import LengthscaleDescent
from gramian.metric._entries import entries
from gramian.metric.objectives import RELATIVE_JITTER, NystromFit, Parameters, Rows
from gramian.metric.sampling import draw_sample

KERNELS = [Gaussian(), Laplacian(), Matern32(), Matern52(), L1Laplacian()]
SMALL = LengthscaleDescent(landmarks=40, rows=600, batch=300, steps=60, rate=0.1)

each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)


def rows(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def problem(d: int = 3, m: int = 7) -> tuple[Parameters, Rows, Rows]:
    X = rows(60, d)
    Y = torch.stack([(2 * X[:, 0]).sin(), X[:, -1].square()], dim=1)
    w = 0.5 + torch.rand(60, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    log_scales = torch.linspace(0.6, 1.2, d, dtype=torch.float64)
    at = Parameters(log_scales, torch.tensor(0.01, dtype=torch.float64).log(), 1.01 * X[:m])
    return at, Rows(X[:40], Y[:40], w[:40]), Rows(X[40:], Y[40:], w[40:])


def dense(kernel: Kernel, at: Parameters, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
    """Return the Nystrom matrix of the rows, W, and N penalty."""
    scales = at.log_scales.exp()
    K_mm = kernel(at.Z * scales, at.Z * scales) + RELATIVE_JITTER * torch.eye(len(at.Z)).double()
    K_nm = kernel(rows.X * scales, at.Z * scales)
    W = rows.weights.diag()
    return K_nm @ torch.linalg.solve(K_mm, K_nm.t()), W, rows.total * at.log_penalty.exp()


# --- objectives ----------------------------------------------------------------------------------


@each_kernel
def test_entries_are_those_of_the_kernel(kernel):
    X, Z = rows(9, 4), rows(5, 4, seed=1)
    assert torch.allclose(entries(kernel, X, Z), kernel(X, Z), atol=1e-12)


@each_kernel
def test_predictions_are_those_of_the_dense_nystrom_system(kernel):
    at, some, others = problem()
    K, W, shift = dense(kernel, at, some)
    both = Rows(
        torch.cat([some.X, others.X]), torch.cat([some.Y, others.Y]), torch.ones(60).double()
    )
    K_all, _, _ = dense(kernel, at, both)
    expected = K_all[40:, :40] @ torch.linalg.solve(W @ K + shift * torch.eye(40), W @ some.Y)
    fit = NystromFit.of(kernel, at, some)
    assert torch.allclose(fit.predict(others.X), expected, atol=1e-9)
    errors = (expected - others.Y).square().mean(dim=1)
    held_out = (errors * others.weights).sum() / others.weights.sum()
    assert float(fit.held_out(others)) == pytest.approx(float(held_out))


@each_kernel
def test_complexity_by_its_definition(kernel):
    at, some, _ = problem()
    K, W, shift = dense(kernel, at, some)
    eye = torch.eye(40).double()
    coef = torch.linalg.solve(W @ K + shift * eye, W @ some.Y)
    f = K @ coef
    fit = ((f - some.Y).square() * some.weights[:, None]).sum() + shift * (coef * f).sum()
    dimension = torch.linalg.solve(W @ K + shift * eye, W @ K).trace()
    missed = some.total - (W @ K).trace()
    N, fit = some.total, fit / 2  # two targets
    expected = (fit + dimension + missed / shift * fit / N) / N
    found = NystromFit.of(kernel, at, some).complexity()
    assert float(found) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("objective", ["held_out", "complexity"])
@pytest.mark.parametrize("d", [1, 3])
@each_kernel
def test_gradients_are_finite_differences(kernel, d, objective):
    at, some, others = problem(d)
    at = at.copies(free=True)

    def value(*parameters: Tensor) -> Tensor:
        fit = NystromFit.of(kernel, Parameters(*parameters), some)
        return fit.held_out(others) if objective == "held_out" else fit.complexity()

    assert torch.autograd.gradcheck(value, at.all(), eps=1e-6, atol=1e-5, rtol=1e-4)


@each_kernel
def test_where_points_meet_gradients_are_finite(kernel):
    at, some, others = problem()
    at = replace(at, Z=torch.cat([some.X[:5], some.X[:5]])).copies(free=True)  # rows, and twice
    NystromFit.of(kernel, at, some).held_out(others).backward()
    assert all(bool(p.grad.isfinite().all()) for p in at.all())


# --- descent -------------------------------------------------------------------------------------


class TestWhatItFinds:
    def learn(self, X, Y, kernel=KERNELS[2], how=SMALL, **more):
        kernel = replace(kernel, lengthscale="median")
        return how.learn(kernel, as_rows(X), Y, rng=torch.Generator().manual_seed(0), **more)

    @pytest.mark.parametrize("kernel", [Matern32(), L1Laplacian()], ids=lambda k: type(k).__name__)
    @pytest.mark.parametrize("objective", ["held_out", "complexity"])
    def test_two_of_eight_features(self, kernel, objective, dtype):
        X = (5 + 3 * rows(700, 8)).to(dtype)  # neither the mean nor the unit matters
        Y = (X[:, :1] / 2).sin() + 2 * (X[:, 3:4] / 3).cos()
        found = self.learn(X, Y - Y.mean(), kernel, replace(SMALL, objective=objective))
        assert set(found.importances.argsort()[-2:].tolist()) == {0, 3}
        assert float(found.importances[[0, 3]].sum()) > 0.7
        errors = [each.error for each in found.rounds]
        assert min(errors) < 0.7 * errors[0]

    def test_landmarks_move_if_they_may(self):
        X, kernel = rows(700, 2), Gaussian("median")
        Y = (-4 * (X - 1).square().sum(dim=1, keepdim=True)).exp()  # a bump, and nothing else
        sample = draw_sample(as_rows(X), Y, None, 700, rng=torch.Generator().manual_seed(0))
        few = replace(SMALL, landmarks=10)
        ends = {}
        for moves in (True, False):
            how = replace(few, move_landmarks=moves)
            looks = list(how.descend(sample, kernel, rng=torch.Generator().manual_seed(0)))
            assert torch.equal(looks[0].landmarks, looks[-1].landmarks) is not moves
            ends[moves] = min(look.error for look in looks)
        assert [look.steps for look in looks] == [0, 10, 20, 30, 40, 50, 60]
        assert ends[True] < 0.3 * ends[False]

    def test_a_look_is_the_error_of_its_parameters(self):
        X = rows(500, 3)
        Y = X[:, :1].sin()
        sample = draw_sample(as_rows(X), Y, None, 500, rng=torch.Generator().manual_seed(0))
        *_, look = SMALL.descend(sample, Gaussian("median"), rng=torch.Generator().manual_seed(0))
        kernel = Gaussian(1.0)
        Z, A = look.landmarks * look.scales, sample.X * look.scales
        K, K_mm = kernel(A, Z), kernel(Z, Z) + RELATIVE_JITTER * torch.eye(len(Z)).double()
        coef = torch.linalg.solve(K.t() @ K + len(A) * look.penalty * K_mm, K.t() @ sample.Y)
        errors = kernel(sample.held_X * look.scales, Z) @ coef - sample.held_Y
        expected = float(errors.square().mean() / sample.Y.square().mean())
        assert look.error == pytest.approx(expected, rel=1e-3)

    def test_rows_of_weight_two_are_rows_twice(self):
        at, some, others = problem()
        twice = Rows(torch.cat([some.X, some.X]), torch.cat([some.Y, some.Y]))
        two = Rows(some.X, some.Y, torch.full((40,), 2.0, dtype=torch.float64))
        for of in (lambda fit: fit.complexity(), lambda fit: fit.held_out(others)):
            values = [float(of(NystromFit.of(Gaussian(), at, r))) for r in (twice, two)]
            assert values[0] == pytest.approx(values[1])

    def test_odd_rows(self):
        X = torch.cat([rows(40, 2), torch.ones(40, 1)], dim=1).repeat(2, 1)  # repeated, and flat
        Y = torch.sin(X[:, :1])
        for how in (SMALL, replace(SMALL, landmarks=500)):  # n below landmarks
            assert bool(self.learn(X, Y, how=how).map.scales.isfinite().all())
        assert bool(self.learn(X, 0 * Y).map.scales.isfinite().all())
        assert self.learn(X[:, :1], Y).map.inputs == 1

    def test_through_the_estimator(self):
        X = rows(500, 6)
        y = (2 * X[:, 2]).sin()
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
        SMALL.learn(kernels.make("linear"), as_rows(X), X, rng=torch.Generator().manual_seed(0))
