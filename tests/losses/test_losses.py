"""Each loss: slope and curvature are its derivatives, the constant is the best, links are maps."""

from __future__ import annotations

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian import losses
from gramian._arrays import RandomStream
from gramian.losses import Expectile, Gamma, Huber, Logistic, Loss, Poisson, Quantile, Softmax
from gramian.losses.base import LINK_OF_NAME, link_of

ALL = {
    "logistic": (Logistic(), 1),
    "softmax": (Softmax(), 4),
    "huber": (Huber(delta=0.7), 2),
    "quantile": (Quantile(0.3, smoothing=0.2), 2),
    "quantiles": (Quantile((0.1, 0.5, 0.9), smoothing=0.2), 1),
    "poisson": (Poisson(), 2),
    "gamma": (Gamma(), 2),
    "expectile": (Expectile(0.8), 2),
}


def targets(loss: Loss, n: int, t: int, rng: RandomStream) -> np.ndarray:
    y = rng.standard_normal((n, t), np.float64)
    if isinstance(loss, Softmax):
        labels = rng.integers(t, size=(n,))
        codes = np.full((n, t), -1 / (t - 1))
        np.put_along_axis(codes, labels[:, None], 1.0, 1)
        return codes
    if isinstance(loss, Logistic):
        return xp.to_float64(np.where(y > 0.4, 1.0, -1.0))
    if isinstance(loss, Poisson):
        return xp.to_float64(np.random.default_rng(0).poisson(np.exp(y)))
    return np.exp(y) if isinstance(loss, Gamma) else y


@pytest.fixture(params=ALL)
def case(request, rng) -> tuple[Loss, np.ndarray, np.ndarray]:
    loss, t = ALL[request.param]
    y = targets(loss, 200, t, rng)
    return loss, rng.standard_normal((200, loss.outputs(t)), np.float64), y


def test_every_loss_is_tested_here():
    assert {type(loss) for loss, _ in ALL.values()} == {
        type(losses.make(n)) for n in losses.names()
    }


def test_slopes_are_derivatives_of_the_values(case):
    loss, f, y = case
    step = 1e-5
    found = np.empty_like(f)
    for j, unit in enumerate(np.eye(f.shape[1])):  # the value of a row depends on the row alone
        change = loss.values(f + step * unit, y) - loss.values(f - step * unit, y)
        found[:, j] = change.reshape(len(f), -1).sum(axis=1) / (2 * step)
    far = np.abs(f - y).min(axis=1) > step if isinstance(loss, Expectile) else np.ones(len(f), bool)
    assert_close(loss.slopes(f, y)[far], found[far], rtol=1e-6, atol=1e-8)


def test_curvatures_are_derivatives_of_the_slopes(case, rng):
    loss, f, y = case
    z = rng.standard_normal(f.shape, np.float64)
    step = 1e-6
    found = (loss.slopes(f + step * z, y) - loss.slopes(f - step * z, y)) / (2 * step)
    kinks = np.abs(found - loss.curvature_product(f, y, z)) > 1e-6
    if not isinstance(loss, Huber | Expectile):  # whose curvature jumps
        assert not bool(kinks.any())
    assert int(kinks.sum()) <= 1
    diagonal = np.stack(
        [
            loss.curvature_product(f, y, np.broadcast_to(unit, f.shape))[:, j]
            for j, unit in enumerate(np.eye(f.shape[1], dtype=np.float32))
        ],
        axis=1,
    )
    assert_close(loss.curvatures(f, y), diagonal)


def test_no_constant_is_better(case, rng):
    loss, _, y = case
    w = rng.random(len(y), np.float64) + 0.5
    exact = loss if not isinstance(loss, Quantile) else Quantile(loss.levels)

    def mean(constant: np.ndarray) -> np.ndarray:
        each = exact.values(xp.expand(constant, (len(y), -1)), y)
        return (w[:, None] * each).sum()

    best = exact.constant(y, w)
    for _ in range(20):
        away = best + 0.01 * rng.standard_normal(best.shape, np.float64)
        assert float(mean(best)) <= float(mean(away)) + 1e-9


def test_values_of_an_output_are_convex(case, rng):
    loss, f, y = case
    g = rng.standard_normal(f.shape, np.float64)
    middle = loss.values((f + g) / 2, y)
    assert bool((middle <= (loss.values(f, y) + loss.values(g, y)) / 2 + 1e-12).all())


def test_smoothed_pinball_tends_to_the_exact_one(rng):
    f, y = rng.standard_normal((2, 500, 1), np.float64)
    exact = Quantile(0.2)
    assert_close(exact.values(f, y), np.maximum(0.2 * (y - f), 0.8 * (f - y)))
    for width in (0.1, 1e-3):
        above = exact.smooth_kink(width).values(f, y) - exact.values(f, y)
        assert float(above.min()) > -1e-12
        assert float(above.max()) <= 0.6932 * width
    assert (exact.kink, exact.smooth_kink(0.1).kink, Logistic().kink) == (0.0, 0.1, None)


def test_whole_weights_are_repeated_targets(case, rng):
    loss, _, y = case
    w = 1 + rng.integers(4 - 1, size=(len(y),))
    w[y[:, 0] > 0] = 3
    z, ones = np.repeat(y, w, axis=0), np.ones(int(w.sum()), np.float64)
    assert loss.unit(y, xp.to_float64(w)) == pytest.approx(loss.unit(z, ones), rel=1e-12)
    surrogate = np.repeat(loss.surrogate(y, xp.to_float64(w)), w, axis=0)
    assert_close(surrogate, loss.surrogate(z, ones))
    assert_close(loss.constant(y, xp.to_float64(w)), loss.constant(z, ones))


def test_units_change_nothing(rng):
    y = 7 + 3 * rng.standard_normal((300, 1), np.float64)
    f = y + rng.standard_normal((300, 1), np.float64)
    for given in (Huber(delta=2.0), Quantile(0.3, smoothing=0.5)):
        unit = given.unit(y, np.ones(300, np.float64))
        scaled = given.for_unit(unit)
        power = 2 if isinstance(given, Huber) else 1
        assert_close(given.values(f, y), unit**power * scaled.values(f / unit, y / unit))
    assert Huber().for_unit(5.0) == Huber(1.35)


@pytest.mark.parametrize("name", LINK_OF_NAME)
def test_links_and_their_gradients(name, rng):
    f = rng.standard_normal((5, 3), np.float64)
    link, x = link_of(name), rng.standard_normal((5, 2), np.float64)
    A = rng.standard_normal((2, 3), np.float64)
    step = 1e-5
    changes = [
        link.map(f + (x + step * unit) @ A) - link.map(f + (x - step * unit) @ A)
        for unit in np.eye(2)
    ]
    expected = np.stack(changes, axis=2) / (2 * step)
    found = link.along(f + x @ A, xp.expand(A.T, (5, 3, 2)))
    assert_close(found, expected, rtol=1e-7, atol=1e-9)


def test_sorted_quantiles_lose_nothing(rng):
    loss = Quantile((0.1, 0.5, 0.9))
    y = rng.standard_normal((400, 1), np.float64)
    f = rng.standard_normal((400, 3), np.float64)
    sorted_f = loss.link.map(f)
    assert bool((xp.diff(sorted_f) >= 0).all())
    assert float(loss.values(sorted_f, y).sum()) <= float(loss.values(f, y).sum())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Quantile(1.0), "between 0 and 1"),
        (lambda: Quantile(()), "between 0 and 1"),
        (lambda: Quantile(0.5, smoothing=-1), "smoothing must be at least 0"),
        (lambda: Expectile(0.0), "between 0 and 1"),
        (lambda: Huber(0), "delta"),
        (lambda: Quantile((0.1, 0.9)).outputs(2), "need a single target, not 2"),
        (lambda: Poisson().check(np.array([[-1.0]], dtype=np.float32)), "at least 0, but y has -1"),
        (
            lambda: Gamma().check(np.array([[0.0]], dtype=np.float32)),
            "positive targets, but y has 0",
        ),
        (lambda: link_of("cube"), "sorted, not 'cube'"),
        (lambda: losses.make("pinball"), "unknown loss 'pinball'"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
