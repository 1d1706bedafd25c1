"""Steps with all rows: metrics learned again, and landmarks where time is short."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.metric import RecursiveFeatureMachine
from gramian.operators import CostMeter, KernelOperator
from gramian.search import Budget, Clock, Effort, Material, Recipe, Search, Space, Split
from gramian.search.all_rows import default_fit
from gramian.search.all_rows import fits as on_all_rows
from gramian.search.all_rows.full_fit import PATH_SHIFTS, _select_near, full_fit
from gramian.search.all_rows.metric_rounds import LEAST_POWER, flatter, next_round
from gramian.search.cost import landmarks_within, seconds_of_fit

MACHINE = RecursiveFeatureMachine(rounds=1, powers=(0.5,), landmarks=20, rows=60)
SPACE = Space(("matern32",), ("standard",), (1.0,), MACHINE, averages=False)


def begun(n: int, d: int = 6, *, weights: bool = False, splits: int = 1, kernel: str = "matern32"):
    """Return a search of rows of which one feature matters, up to its metric."""
    rng = RandomStream(0)
    X = rng.standard_normal((n, d), np.float64)
    w = xp.to_float64(rng.random(n, np.float32)) + 0.5 if weights else None
    order = rng.permutation(n)
    parts = xp.chunk(order, 4)
    divided = [Split(np.concatenate([p for p in parts if p is not held]), held) for held in parts]
    material = Material.of(X, np.sin(1.5 * X[:, :1]), w, splits=divided[:splits], rng=rng)
    space = Space((kernel,), ("standard",), (1.0,), MACHINE, averages=False)
    found = Search(material, space, Clock(), effort=Effort(20, 60, MACHINE))
    steps = found.steps()
    while not any(stem.recipe.rounds for stem in found.stems):
        next(steps)
    return found, max(found.stems, key=lambda stem: stem.recipe.rounds)


class TestNextRound:
    @pytest.mark.parametrize("weights", [False, True])
    @pytest.mark.parametrize("splits", [1, 2])
    def test_is_that_of_differences(self, weights, splits):
        found, stem = begun(200, weights=weights, splits=splits)
        fit = full_fit(found.material, stem, 1.0, clock=found.clock)
        after = next_round(found.material, fit, MACHINE, meter=CostMeter())
        material, expected = found.material, []
        for split, map_, kernel, coef in zip(
            material.splits, stem.maps, fit.kernels, fit.coefs, strict=True
        ):
            X = material.X[split.train]
            G = np.empty_like(X)
            for j, unit in enumerate(np.eye(X.shape[1])):
                values = []
                for x in (X + 1e-5 * unit, X - 1e-5 * unit):
                    r = 3**0.5 * xp.cdist(map_.forth(x), map_.forth(X)) / kernel.lengthscale
                    values.append(((1 + r) * np.exp(-r)) @ coef)
                G[:, j] = (values[0] - values[1]).sum(axis=1) / 2e-5
            w = 1.0 if not weights else material.weights[split.train][:, None]
            M = (G * w).T @ G
            expected.append(M / xp.diagonal(M).max())
        expected = np.stack(expected).mean(axis=0)
        assert np.allclose(after.gradients, expected, rtol=1e-6, atol=1e-7)
        assert after.recipe.rounds == stem.recipe.rounds + 1

    def test_sees_what_a_sample_does_not(self):
        found, stem = begun(600)
        fit = full_fit(found.material, stem, 1.0, clock=found.clock)
        after = next_round(found.material, fit, MACHINE, meter=CostMeter())
        shares = [s.gradients[0, 0] / s.gradients.trace() for s in (stem, after)]
        assert shares[1] > shares[0]
        again = full_fit(found.material, after, 1.0, clock=found.clock)
        assert again.loss < 0.9 * fit.loss

    def test_without_gradients_there_is_none(self):
        found, stem = begun(100)
        fit = full_fit(found.material, stem, 1.0, clock=found.clock)
        object.__setattr__(fit, "coefs", tuple(np.zeros_like(c) for c in fit.coefs))
        assert next_round(found.material, fit, MACHINE, meter=CostMeter()) is None

    def test_of_the_l1_distance_is_diagonal(self):
        found, stem = begun(100, kernel="l1_laplacian")
        fit = full_fit(found.material, stem, 1.0, clock=found.clock)
        after = next_round(found.material, fit, MACHINE, meter=CostMeter())
        assert after.maps[0].matrix is None

    @pytest.mark.parametrize(("worth", "rounds"), [(math.inf, True), (0.0, False)])
    def test_a_search_learns_again_where_all_rows_show_more(self, worth, rounds, monkeypatch):
        monkeypatch.setattr(on_all_rows, "SEES_MORE", worth)
        found, _ = begun(300, 12)
        list(on_all_rows.fits(found))
        assert (max(fit.recipe.rounds for fit in found.fits) > 1) is rounds


class TestFlatter:
    """Metrics of half the power, which cells try."""

    @pytest.mark.parametrize("splits", [1, 2])
    def test_the_map_has_half_the_power(self, splits):
        found, stem = begun(200, splits=splits)
        after = flatter(full_fit(found.material, stem, 1.0, clock=found.clock))
        before = stem.map.matrix
        assert after.recipe.power == stem.recipe.power / 2
        assert len(after.maps) == splits
        for map_ in (after.map, *after.maps):
            assert np.allclose(map_.matrix @ map_.matrix, before, rtol=1e-6, atol=1e-9)

    def test_of_the_l1_distance_it_is_diagonal(self):
        found, stem = begun(100, kernel="l1_laplacian")
        after = flatter(full_fit(found.material, stem, 1.0, clock=found.clock))
        assert np.allclose(after.maps[0].scales ** 2, stem.maps[0].scales)

    def test_there_is_none_without_a_metric_and_none_below_the_least_power(self):
        found, stem = begun(100)
        plain = next(s for s in found.stems if not s.recipe.rounds)
        assert flatter(full_fit(found.material, plain, 1.0, clock=found.clock)) is None
        fit = full_fit(found.material, stem, 1.0, clock=found.clock)
        while (stem := flatter(fit)) is not None:
            last = stem.recipe.power
            fit = full_fit(found.material, stem, 1.0, clock=found.clock)
        assert LEAST_POWER <= last < 2 * LEAST_POWER

    @pytest.mark.parametrize(
        ("flattens", "gain", "powers"),
        [(False, math.inf, [0.5]), (True, math.inf, [0.5, 0.25, 0.125]), (True, 0.0, [0.5, 0.25])],
    )
    def test_a_search_goes_on_as_long_as_the_error_falls(self, flattens, gain, powers, monkeypatch):
        monkeypatch.setattr(on_all_rows, "ROUND_GAIN", gain)
        monkeypatch.setattr(on_all_rows, "SEES_MORE", 0.0)
        monkeypatch.setattr(on_all_rows, "FAR_OFF", math.inf)
        found, stem = begun(300, 12)
        found.screen, found.stems, found.flattens = [], [stem], flattens
        list(on_all_rows.fits(found))
        assert [fit.recipe.power for fit in found.fits] == powers


@pytest.mark.parametrize(
    ("near", "shifts"),
    [(10.0, PATH_SHIFTS[:3]), (1.0, PATH_SHIFTS[:5]), (0.4, PATH_SHIFTS[1:6]),
     (PATH_SHIFTS[-1], PATH_SHIFTS[-3:]), (None, PATH_SHIFTS)],
)  # fmt: skip
def test_neighbours_of_a_shift(near, shifts):
    assert _select_near(PATH_SHIFTS, near) == shifts


class TestEnds:
    """A search ends where fits gain nothing, and expects the time of its last fits."""

    @pytest.mark.parametrize(
        ("losses", "stale"),
        [
            ([1.0] * 5, False), ([1.0] * 6, True), ([1.0] * 5 + [0.99], False),
            ([1.0] * 5 + [0.999], True), ([1.0, 0.5] + [0.6] * 4, False),
            ([1.0, 0.5] + [0.6] * 5, True), ([-1.0] * 5 + [-1.1], False), ([-1.0] * 6, True),
        ],
    )  # fmt: skip
    def test_fits_without_a_gain_end_it(self, losses, stale):
        assert on_all_rows._is_stale(SimpleNamespace(fits=losses, loss=float)) == stale

    def test_a_search_ends_before_the_limit_on_fits(self):
        X = RandomStream(0).standard_normal((150, 3), np.float64)
        material = Material.of(X, X[:, :1] + np.sin(X[:, 1:2]), rng=RandomStream(0))
        found = Search(material, Space(machine=None, fits=16), Clock())
        _ = list(found.steps())
        assert len(found.fits) < 16
        assert not found.left_out

    @pytest.mark.parametrize(
        ("rows", "splits", "residual", "ratio"),
        [(500, 5, 0.0, 0.06), (500, 5, 0.01, 0.8), (4000, 5, 0.0, 0.8), (2000, 1, 0.0, 0.3)],
    )
    def test_a_last_fit_factorises_once(self, rows, splits, residual, ratio):
        material = SimpleNamespace(X=np.zeros((rows, 1)), splits=[None] * splits)
        fit = SimpleNamespace(residual=residual, losses=[0.0] * 10, seconds=2.0)
        seconds = on_all_rows._refit_seconds(SimpleNamespace(material=material), fit)
        assert seconds == pytest.approx(2 * ratio)

    @pytest.mark.parametrize(("left", "goes_on"), [(3.5, False), (3.7, True)])
    def test_a_further_fit_needs_time_for_itself_and_one_last_fit(self, left, goes_on):
        found, _ = begun(200)
        found.fits = [SimpleNamespace(residual=0.01, losses=[0.0], seconds=2.0)] * 3
        found.space, found.clock = Space(averages=True), Clock(Budget(seconds=left))
        assert on_all_rows._goes_on(found) == goes_on


@pytest.mark.parametrize(("wave", "ends"), [(0.0, True), (1.0, False)])
def test_errors_of_a_linear_default_that_can_be_predicted_are_no_noise(wave, ends):
    rng = RandomStream(0)
    X, noise = (rng.standard_normal((300, d), np.float64) for d in (2, 1))
    Y = 5 * X.sum(axis=1, keepdims=True) + wave * np.sign(np.sin(5 * X[:, :1])) + 0.3 * noise
    search = Search(Material.of(X, Y, rng=RandomStream(0)), Space(), Clock())
    default = on_all_rows._fit_default(search, Recipe("gaussian", "standard", 16.0))
    assert default_fit._is_linear(search, default)
    assert default_fit.leaves_noise(search, default) == ends


class TestFewRows:
    """Metrics of five folds: the same recipe is fitted once, and the better power continues."""

    def found(self):
        X = RandomStream(0).standard_normal((150, 6), np.float64)
        Y = np.sin(2 * X[:, :1]) + X[:, 1:2]
        found = Search(Material.of(X, Y, rng=RandomStream(0)), Space(), Clock())
        _ = list(found.sampled_steps())
        return found

    def test_the_round_without_a_metric_is_the_recipe_of_the_screen(self):
        found = self.found()
        unmapped = [stem.recipe for stem in found.stems if not stem.recipe.rounds]
        assert len(unmapped) >= 2
        assert set(unmapped) <= {stem.recipe for stem in found.screen}

    def test_the_better_power_continues(self):
        radial = [s for s in self.found().stems if s.recipe.kernel == "matern32"]
        first = {s.recipe.power: s.loss for s in radial if s.recipe.rounds == 1}
        assert set(first) == {0.5, 0.25}
        assert {s.recipe.power for s in radial if s.recipe.rounds > 1} == {0.5}
        assert first[0.5] < first[0.25]


class TestLandmarks:
    def test_take_the_place_of_a_fit_without_time(self, monkeypatch):
        """What is left is enough for some landmarks with all rows, and not for all rows."""
        monkeypatch.setattr(on_all_rows, "seconds_of_fit", lambda *_: math.inf)
        monkeypatch.setattr(on_all_rows, "LANDMARK_COUNTS", (90, 40, 10))
        found, _ = begun(200)
        found.clock = Clock(Budget(seconds=1000.0))
        trials = list(on_all_rows.fits(found))
        assert [trial.step for trial in trials] == ["landmarks"]
        assert len(found.stems[-1].fits[0].centers) == 90
        assert found.stems[-1].fits[0].total == 150
        assert found.best_stem() is found.stems[-1]
        assert not found.members()[0].all_rows

    def test_take_the_place_of_a_fit_without_an_iteration(self, monkeypatch):
        """The setup of a fit may take longer than predicted; its result is the mean."""

        def interrupted(*settings, **more):
            return replace(full_fit(*settings, **more), iterations=0, residual=1.0)

        full_fit = on_all_rows.full_fit
        monkeypatch.setattr(on_all_rows, "full_fit", interrupted)
        monkeypatch.setattr(on_all_rows, "LANDMARK_COUNTS", (90, 40, 10))
        found, _ = begun(200)
        found.clock = Clock(Budget(seconds=1000.0))
        trials = list(on_all_rows.fits(found))
        assert [trial.step for trial in trials] == ["landmarks"]
        assert found.fits == []
        assert not found.members()[0].all_rows

    def test_are_none_without_time_for_the_least(self):
        found, stem = begun(200)
        assert landmarks_within(0.0, found.material, stem, "auto", (90, 40)) is None
        assert landmarks_within(1e3, found.material, stem, "auto", (90, 40)) == 90

    def test_a_fit_has_more_seconds_with_more_rows(self, monkeypatch):
        monkeypatch.setattr("gramian.search.cost.seconds_of_evaluation", lambda *_, **__: 1e-8)
        seconds = []
        for n in (2500, 5000):
            found, stem = begun(n)
            seconds.append(seconds_of_fit(found.material, stem, "auto"))
        assert 2.5 * seconds[0] < seconds[1] < 5 * seconds[0]

    @pytest.mark.parametrize(("targets", "columns"), [(1, 7), (3, 21), (6, 12)])
    def test_a_fit_is_timed_with_a_column_of_each_target_and_shift(
        self, targets, columns, monkeypatch
    ):
        """Products with 32 columns took twice the seconds of those with one."""
        found, stem = begun(200)
        material = replace(found.material, Y=np.tile(found.material.Y, (1, targets)))
        timed, product = [], KernelOperator.__matmul__

        def watched(K, v):
            timed.append(v.shape[1])
            return product(K, v)

        monkeypatch.setattr(KernelOperator, "__matmul__", watched)
        seconds_of_fit(material, stem, "auto")
        assert set(timed) == {columns}


def test_a_metric_that_is_given_few_landmarks_is_learned():
    """The user's machine has fewer landmarks than the screen, for want of no time."""
    X = RandomStream(1).standard_normal((300, 4), np.float64)
    material = Material.of(X, np.sin(X[:, :1]), rng=RandomStream(0))
    found = Search(material, SPACE, Clock(), effort=Effort(machine=MACHINE))
    steps = [trial.step for trial in found.steps()]
    assert "metric" in steps
