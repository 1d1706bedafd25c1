"""Objectives of a Nystrom fit: values by dense formulas, gradients by differences and by torch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gramian.kernels import Gaussian, Kernel, L1Laplacian, Laplacian, Matern32, Matern52
from gramian.metric._entries import entries
from gramian.metric.objectives import RELATIVE_JITTER, NystromFit, Parameters, Rows

KERNELS = [Gaussian(), Laplacian(), Matern32(), Matern52(), L1Laplacian()]
OBJECTIVES: dict[str, Callable[[NystromFit, Rows], tuple[float, Parameters]]] = {
    "held_out": lambda fit, others: fit.log_held_out(others),
    "complexity": lambda fit, _: fit.complexity(),
}

each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
each_objective = pytest.mark.parametrize("objective", OBJECTIVES)


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def problem(d: int = 3, m: int = 7) -> tuple[Parameters, Rows, Rows]:
    X = rows(60, d)
    Y = np.stack([np.sin(2 * X[:, 0]), np.square(X[:, -1])], axis=1)
    w = 0.5 + np.random.default_rng(1).random(60)
    at = Parameters(np.linspace(0.6, 1.2, d), np.array(np.log(0.01)), 1.01 * X[:m])
    return at, Rows(X[:40], Y[:40], w[:40]), Rows(X[40:], Y[40:], w[40:])


def odd_problem(case: str) -> tuple[Parameters, Rows, Rows]:
    """Return a problem with rows that repeat, a flat column, or landmarks at rows."""
    at, some, others = problem()
    Z = at.Z.copy()
    if case == "repeated":
        some = Rows(*(np.repeat(part, 2, axis=0) for part in (some.X, some.Y, some.weights)))
    elif case == "flat":
        for X in (some.X, others.X, Z):
            X[:, 1] = 0.7
    else:
        Z[:4] = some.X[:4]
    return Parameters(at.log_scales, at.log_penalty, Z), some, others


def matrix(kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return kernel(X, Z)


def dense(kernel: Kernel, at: Parameters, rows: Rows) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the Nystrom matrix of the rows, W, and N penalty."""
    Z = at.Z * np.exp(at.log_scales)
    K_mm = matrix(kernel, Z, Z) + RELATIVE_JITTER * np.eye(len(Z))
    K_nm = matrix(kernel, rows.X * np.exp(at.log_scales), Z)
    W, shift = np.diag(rows.weights), rows.total * np.exp(at.log_penalty)
    return K_nm @ np.linalg.solve(K_mm, K_nm.T), W, float(shift)


def differences(value: Callable[[Parameters], float], at: Parameters) -> list[np.ndarray]:
    """Return gradients by central differences."""
    found = []
    for i, part in enumerate(at.all()):
        slopes = np.empty_like(part)
        for position in np.ndindex(part.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [each.copy() for each in at.all()]
                moved[i][position] += step
                ends.append(value(Parameters(*moved)))
            slopes[position] = (ends[0] - ends[1]) / 2e-5
        found.append(slopes)
    return found


def assert_close(found: Parameters, expected: list[np.ndarray], tol: float) -> None:
    for one, other in zip(found.all(), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tol * np.abs(other).max())


@each_kernel
def test_entries_are_those_of_the_kernel(kernel):
    X, Z = rows(9, 4), rows(5, 4, seed=1)
    np.testing.assert_allclose(entries(kernel, X, Z), matrix(kernel, X, Z), atol=1e-12)


@each_kernel
def test_predictions_are_those_of_the_dense_nystrom_system(kernel):
    at, some, others = problem()
    K, W, shift = dense(kernel, at, some)
    both = Rows(np.concatenate([some.X, others.X]), np.zeros((60, 2)), np.ones(60))
    K_all, _, _ = dense(kernel, at, both)
    expected = K_all[40:, :40] @ np.linalg.solve(W @ K + shift * np.eye(40), W @ some.Y)
    fit = NystromFit.of(kernel, at, some)
    np.testing.assert_allclose(fit.predict(others.X), expected, atol=1e-9)
    errors = np.square(expected - others.Y).mean(axis=1)
    held_out = (errors * others.weights).sum() / others.weights.sum()
    assert fit.held_out(others) == pytest.approx(held_out)
    assert fit.log_held_out(others)[0] == pytest.approx(np.log(held_out))


@each_kernel
def test_complexity_by_its_definition(kernel):
    at, some, _ = problem()
    K, W, shift = dense(kernel, at, some)
    coef = np.linalg.solve(W @ K + shift * np.eye(40), W @ some.Y)
    f = K @ coef
    fit = (np.square(f - some.Y) * some.weights[:, None]).sum() + shift * (coef * f).sum()
    dimension = np.linalg.solve(W @ K + shift * np.eye(40), W @ K).trace()
    missed = some.total - (W @ K).trace()
    N, fit = some.total, fit / 2  # two targets
    expected = (fit + dimension + missed / shift * fit / N) / N
    assert NystromFit.of(kernel, at, some).complexity()[0] == pytest.approx(expected, rel=1e-6)


@each_objective
@pytest.mark.parametrize("d", [1, 3])
@each_kernel
def test_gradients_are_finite_differences(kernel, d, objective):
    at, some, others = problem(d)
    of = OBJECTIVES[objective]
    expected = differences(lambda at: of(NystromFit.of(kernel, at, some), others)[0], at)
    assert_close(of(NystromFit.of(kernel, at, some), others)[1], expected, 1e-5)


@each_objective
@pytest.mark.parametrize("case", ["repeated", "flat", "at rows"])
@each_kernel
def test_gradients_of_odd_rows(kernel, case, objective):
    at, some, others = odd_problem(case)
    of = OBJECTIVES[objective]
    found = of(NystromFit.of(kernel, at, some), others)[1]
    expected = differences(lambda at: of(NystromFit.of(kernel, at, some), others)[0], at)
    # at a kink, central differences have an error of the size of the step
    assert_close(found, expected, 1e-3 if case == "at rows" else 1e-5)


@each_objective
@each_kernel
def test_where_landmarks_meet_gradients_are_finite(kernel, objective):
    at, some, others = problem()
    at = Parameters(at.log_scales, at.log_penalty, np.tile(some.X[:5], (2, 1)))
    _, found = OBJECTIVES[objective](NystromFit.of(kernel, at, some), others)
    assert all(np.isfinite(part).all() for part in found.all())


@each_objective
@pytest.mark.parametrize("kernel", [Gaussian(), L1Laplacian()], ids=lambda k: type(k).__name__)
def test_gradients_are_those_of_torch(kernel, objective):
    torch = pytest.importorskip("torch")
    at, some, others = problem()
    log_scales, log_penalty, Z = (torch.tensor(part, requires_grad=True) for part in at.all())

    def k(X, Z):
        difference = (X[:, None] - Z) * log_scales.exp()
        power = 1 if isinstance(kernel, L1Laplacian) else 2
        return torch.exp(-difference.abs().pow(power).sum(dim=2) / power)

    X, Y, w = (torch.tensor(part) for part in (some.X, some.Y, some.weights))
    shift, K_nm = w.sum() * log_penalty.exp(), k(X, Z)
    K_mm = k(Z, Z) + RELATIVE_JITTER * torch.eye(len(Z), dtype=torch.float64)
    H = K_nm.T @ (w[:, None] * K_nm) + shift * K_mm
    coef = torch.linalg.solve(H, K_nm.T @ (w[:, None] * Y))
    if objective == "held_out":
        held_X, held_Y, held_w = (torch.tensor(p) for p in (others.X, others.Y, others.weights))
        value = (held_w @ (k(held_X, Z) @ coef - held_Y).square()).mean().div(held_w.sum()).log()
    else:
        fit = (w[:, None] * Y * (Y - K_nm @ coef)).sum() / Y.shape[1]
        G = K_nm.T @ (w[:, None] * K_nm)
        dimension, trace = torch.linalg.solve(H, G).trace(), torch.linalg.solve(K_mm, G).trace()
        value = (fit + dimension + (w.sum() - trace) / shift * fit / w.sum()) / w.sum()
    value.backward()
    found, gradients = OBJECTIVES[objective](NystromFit.of(kernel, at, some), others)
    assert found == pytest.approx(value.item())
    assert_close(gradients, [p.grad.numpy() for p in (log_scales, log_penalty, Z)], 1e-7)


def test_rows_of_weight_two_are_rows_twice():
    at, some, others = problem()
    twice = Rows(np.tile(some.X, (2, 1)), np.tile(some.Y, (2, 1)), np.ones(80))
    two = Rows(some.X, some.Y, np.full(40, 2.0))
    for of in OBJECTIVES.values():
        one, other = (of(NystromFit.of(Gaussian(), at, r), others) for r in (twice, two))
        assert one[0] == pytest.approx(other[0])
        assert_close(one[1], other[1].all(), 1e-7)
