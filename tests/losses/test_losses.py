"""Each loss: slope and curvature are its derivatives, the constant is the best, links are maps."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gramian import losses
from gramian.losses import Expectile, Gamma, Huber, Logistic, Loss, Poisson, Quantile, Softmax
from gramian.losses.links import LINK_OF_NAME, link_of

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


def targets(loss: Loss, n: int, t: int, rng: torch.Generator) -> Tensor:
    y = torch.randn(n, t, dtype=torch.float64, generator=rng)
    if isinstance(loss, Softmax):
        labels = torch.randint(t, (n,), generator=rng)
        return torch.full((n, t), -1 / (t - 1)).double().scatter_(1, labels[:, None], 1.0)
    if isinstance(loss, Logistic):
        return torch.where(y > 0.4, 1.0, -1.0).double()
    if isinstance(loss, Poisson):
        return torch.poisson(y.exp(), generator=rng)
    return y.exp() if isinstance(loss, Gamma) else y


@pytest.fixture(params=ALL)
def case(request, rng) -> tuple[Loss, Tensor, Tensor]:
    loss, t = ALL[request.param]
    y = targets(loss, 200, t, rng)
    return loss, torch.randn(200, loss.outputs(t), dtype=torch.float64, generator=rng), y


def test_every_loss_is_tested_here():
    assert {type(loss) for loss, _ in ALL.values()} == {
        type(losses.make(n)) for n in losses.names()
    }


def test_slopes_are_derivatives_of_the_values(case):
    loss, f, y = case
    at = f.clone().requires_grad_()
    (found,) = torch.autograd.grad(loss.values(at, y).sum(), at)
    torch.testing.assert_close(loss.slopes(f, y), found)


def test_curvatures_are_derivatives_of_the_slopes(case, rng):
    loss, f, y = case
    z = torch.randn(f.shape, dtype=torch.float64, generator=rng)
    step = 1e-6
    found = (loss.slopes(f + step * z, y) - loss.slopes(f - step * z, y)) / (2 * step)
    kinks = (found - loss.curvature_product(f, y, z)).abs() > 1e-6
    if not isinstance(loss, Huber | Expectile):  # whose curvature jumps
        assert not bool(kinks.any())
    assert int(kinks.sum()) <= 1
    diagonal = torch.stack(
        [
            loss.curvature_product(f, y, unit.expand_as(f))[:, j]
            for j, unit in enumerate(torch.eye(f.shape[1]))
        ],
        dim=1,
    )
    torch.testing.assert_close(loss.curvatures(f, y), diagonal)


def test_no_constant_is_better(case, rng):
    loss, _, y = case
    w = torch.rand(len(y), dtype=torch.float64, generator=rng) + 0.5
    exact = loss if not isinstance(loss, Quantile) else Quantile(loss.levels)

    def mean(constant: Tensor) -> Tensor:
        each = exact.values(constant.expand(len(y), -1), y)
        return (w[:, None] * each).sum()

    best = exact.constant(y, w)
    for _ in range(20):
        away = best + 0.01 * torch.randn(best.shape, dtype=torch.float64, generator=rng)
        assert float(mean(best)) <= float(mean(away)) + 1e-9


def test_values_of_an_output_are_convex(case, rng):
    loss, f, y = case
    g = torch.randn(f.shape, dtype=torch.float64, generator=rng)
    middle = loss.values((f + g) / 2, y)
    assert bool((middle <= (loss.values(f, y) + loss.values(g, y)) / 2 + 1e-12).all())


def test_smoothed_pinball_tends_to_the_exact_one(rng):
    f, y = torch.randn(2, 500, 1, dtype=torch.float64, generator=rng)
    exact = Quantile(0.2)
    torch.testing.assert_close(exact.values(f, y), torch.maximum(0.2 * (y - f), 0.8 * (f - y)))
    for width in (0.1, 1e-3):
        above = exact.smooth_kink(width).values(f, y) - exact.values(f, y)
        assert float(above.min()) > -1e-12
        assert float(above.max()) <= 0.6932 * width
    assert (exact.kink, exact.smooth_kink(0.1).kink, Logistic().kink) == (0.0, 0.1, None)


def test_whole_weights_are_repeated_targets(case, rng):
    loss, _, y = case
    w = torch.randint(1, 4, (len(y),), generator=rng)
    w[y[:, 0] > 0] = 3
    z, ones = y.repeat_interleave(w, dim=0), torch.ones(int(w.sum()), dtype=torch.float64)
    assert loss.unit(y, w.double()) == pytest.approx(loss.unit(z, ones), rel=1e-12)
    surrogate = loss.surrogate(y, w.double()).repeat_interleave(w, dim=0)
    torch.testing.assert_close(surrogate, loss.surrogate(z, ones))
    torch.testing.assert_close(loss.constant(y, w.double()), loss.constant(z, ones))


def test_units_change_nothing(rng):
    y = 7 + 3 * torch.randn(300, 1, dtype=torch.float64, generator=rng)
    f = y + torch.randn(300, 1, dtype=torch.float64, generator=rng)
    for given in (Huber(delta=2.0), Quantile(0.3, smoothing=0.5)):
        unit = given.unit(y, torch.ones(300, dtype=torch.float64))
        scaled = given.for_unit(unit)
        power = 2 if isinstance(given, Huber) else 1
        torch.testing.assert_close(
            given.values(f, y), unit**power * scaled.values(f / unit, y / unit)
        )
    assert Huber().for_unit(5.0) == Huber(1.35)


@pytest.mark.parametrize("name", LINK_OF_NAME)
def test_links_and_their_gradients(name, rng):
    f = torch.randn(5, 3, dtype=torch.float64, generator=rng)
    link, x = link_of(name), torch.randn(5, 2, dtype=torch.float64, generator=rng)
    A = torch.randn(2, 3, dtype=torch.float64, generator=rng)
    at = x.clone().requires_grad_()
    expected = torch.stack(
        [torch.autograd.grad(link.map(f + at @ A)[:, j].sum(), at)[0] for j in range(3)], dim=1
    )
    found = link.along(f + x @ A, A.T.expand(5, 3, 2))
    torch.testing.assert_close(found, expected)


def test_sorted_quantiles_lose_nothing(rng):
    loss = Quantile((0.1, 0.5, 0.9))
    y = torch.randn(400, 1, dtype=torch.float64, generator=rng)
    f = torch.randn(400, 3, dtype=torch.float64, generator=rng)
    sorted_f = loss.link.map(f)
    assert bool((sorted_f.diff(dim=1) >= 0).all())
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
        (lambda: Poisson().check(torch.tensor([[-1.0]])), "at least 0, but y has -1"),
        (lambda: Gamma().check(torch.tensor([[0.0]])), "positive targets, but y has 0"),
        (lambda: link_of("cube"), "sorted, not 'cube'"),
        (lambda: losses.make("pinball"), "unknown loss 'pinball'"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
