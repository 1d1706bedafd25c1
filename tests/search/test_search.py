"""A search finds what is plain to see, keeps its budget, and has a result whenever it ends."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import numpy as np
import pytest
from close import assert_close

from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeCV
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.fitting import TrainingData
from gramian.fitting.search.fit import Searched, search_fit
from gramian.fitting.search.settings import SearchSettings, choose_default_recipe
from gramian.metric import RecursiveFeatureMachine
from gramian.operators import CostMeter
from gramian.search import (
    Budget,
    Clock,
    Effort,
    Material,
    Recipe,
    Search,
    Space,
    Split,
    Trial,
    search_state,
)
from gramian.search.all_rows import fits as on_all_rows
from gramian.search.all_rows import full_fit
from gramian.search.cost import of_fit, of_refit
from gramian.search.folds import random_splits
from gramian.search.samples import screen as on_samples
from gramian.search.search_state import handicap_loss

SMALL = Space(kernels=("laplacian", "gaussian"), inputs=("standard",), machine=None, averages=False)
WHOLE = Space(machine=RecursiveFeatureMachine(rounds=2), fits=6)


def rows(n: int, d: int = 3, seed: int = 0) -> np.ndarray:
    return RandomStream(seed).standard_normal((n, d), np.float64)


def smooth(X: np.ndarray) -> np.ndarray:
    return np.sin(2 * X[:, :1]) + X[:, 1:2]


def fitted(
    X: np.ndarray, Y: np.ndarray, space: Space = SMALL, *, coded: bool = False, **how: object
):
    classes = (0, 1) if coded else None
    data = TrainingData(as_rows(X), Y, classes=classes)
    rng = RandomStream(0)
    return search_fit(data, SearchSettings(space=space, **how), rng)


def searched(
    X: np.ndarray, Y: np.ndarray, space: Space, **how: object
) -> tuple[Search, list[Trial]]:
    """Return a search of standardised rows, and its trials."""
    material = Material.of(X, Y, rng=RandomStream(0))
    found = Search(material, space, how.pop("clock", Clock()), **how)
    return found, list(found.steps())


def predictions(found: Searched, X: np.ndarray) -> np.ndarray:
    return found.model.predict(as_rows(X))


class TestDefaultRecipe:
    """The recipe that an estimator's defaults choose is fitted first, and may be the result."""

    def test_it_is_the_first_fit(self):
        X, recipe = rows(150), Recipe("gaussian", "standard", 3.0)
        _, trials = searched(X, smooth(X), SMALL, default_recipe=recipe)
        fits = [trial for trial in trials if trial.step == "fit"]
        assert fits[0].recipe == recipe
        assert len({trial.recipe for trial in fits}) == len(fits) > 1

    def test_the_result_is_at_least_as_good(self):
        X = rows(150)
        found, trials = searched(
            X, smooth(X), SMALL, default_recipe=Recipe("gaussian", "standard", 3.0)
        )
        assert found.squared_error(found.predict_held_out()) <= trials[-1].loss
        assert found.squared_error(found.predict_held_out()) <= found.fits[0].loss

    def test_without_one_the_best_recipe_of_the_screen_is_fitted(self):
        X = rows(150, 6)
        found, trials = searched(X, np.sin(3 * X[:, :1]), WHOLE)
        fits = [trial.recipe for trial in trials if trial.step == "fit"]
        plain = min(found.screen, key=handicap_loss).recipe
        assert plain.rounds == 0
        assert plain in fits[: len(found.heads()) + 1]
        _, trials = searched(X, np.sin(3 * X[:, :1]), WHOLE, default_recipe=plain)
        assert [t.recipe for t in trials if t.step == "fit"].count(plain) == 1

    def test_an_average_has_the_members_that_the_budget_covers(self, monkeypatch):
        """Without time for all last fits, the best fit and the heaviest others are the result."""
        X = rows(150)
        found, _ = searched(X, smooth(X) + rows(150, 1, seed=5), WHOLE)
        weights = [0.0] * len(found.fits)
        order = sorted(range(len(found.fits)), key=lambda i: found.loss(found.fits[i]))
        weights[order[0]], weights[order[1]], weights[order[2]] = 0.2, 0.3, 0.5
        for count in (1, 2, 3):
            last = (found.fits[i] for i in (order[0], order[2], order[1])[:count])
            ends = sum(on_all_rows._refit_seconds(found, fit) for fit in last)
            monkeypatch.setattr(type(found.clock), "allows", lambda _, s, __, e=ends: s <= e + 1e-9)
            members = on_all_rows._affordable_members(found, weights)
            assert members == sorted((order[0], order[2], order[1])[:count])

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [0, 1])
    def test_a_search_is_no_worse_on_an_almost_exact_function(self, seed):
        """Its least ridge was larger than that of leave-one-out, and its error 1.7 to 2 times."""
        X = rows(1200, 6, seed)
        y = X[:, 0] * X[:, 1] * X[:, 2] + X.sum(axis=1) + 0.003 * np.abs(X[:, 3])
        usual, found = (
            model(random_state=0).fit(X[:200], y[:200]) for model in (KernelRidge, KernelRidgeCV)
        )
        errors = [np.square(m.predict(X[200:]) - y[200:]).mean() for m in (usual, found)]
        assert errors[1] <= errors[0]

    @pytest.mark.parametrize("coded", [False, True])
    def test_it_is_what_kernel_ridge_chooses(self, coded):
        X = rows(120)
        Y = smooth(X) + 0.1 * rows(120, 1, seed=7)
        Y = np.sign(Y) if coded else Y
        material = Material.of(X, Y, coded=coded, rng=RandomStream(0))
        data = TrainingData(as_rows(X), Y, classes=(0, 1) if coded else None)
        rng = RandomStream(0)
        recipe, loss = choose_default_recipe(material, data, SearchSettings(), rng)
        assert 0 < loss < 1
        model = (KernelRidgeClassifier if coded else KernelRidge)(random_state=0)
        model.fit(X, Y[:, 0])
        assert recipe is not None
        assert type(model.kernel_) is type(recipe.make_kernel())
        assert (recipe.inputs == "quantile") == (model.model_.quantiles is not None)
        for other in (SearchSettings(cv=3), SearchSettings(space=SMALL)):
            assert choose_default_recipe(material, data, other, rng) is None


class TestWhatItChooses:
    def test_a_smooth_kernel_for_a_smooth_function(self):
        X = rows(200, 2)
        found = fitted(X, np.sin(X[:, :1] + X[:, 1:2]))
        assert found.members[0].recipe.kernel == "gaussian"

    def test_a_rough_kernel_for_a_rough_function(self):
        X = rows(300, 1)
        walk = np.floor(X[:, :1] * 6) % 2
        found = fitted(X, walk)
        assert found.members[0].recipe.kernel == "laplacian"

    @pytest.mark.parametrize(("frequency", "multiple"), [(0.2, 4.0), (9.0, 0.125)])
    def test_a_lengthscale_among_those_that_were_given(self, frequency, multiple):
        X = rows(300, 1)
        multiples = (0.125, 4.0)
        space = Space(("gaussian",), ("standard",), multiples, None, averages=False)
        found = fitted(X, np.sin(frequency * X), space)
        assert found.members[0].recipe.multiple == multiple

    def test_a_lengthscale_by_walking(self):
        X = rows(400, 1)
        found = fitted(X, np.sin(15 * X), Space(("gaussian",), ("standard",), machine=None))
        assert found.members[0].recipe.multiple <= 0.25

    def test_quantiles_for_features_with_heavy_tails(self):
        X = rows(300)
        space = Space(("gaussian",), machine=None, averages=False)
        found = fitted(np.sinh(np.sinh(X)), np.sin(X[:, :1] + X[:, 1:2]), space)
        assert found.members[0].recipe.inputs == "quantile"

    @pytest.mark.slow
    def test_a_metric_where_few_features_matter(self):
        X = rows(300, 8)
        found = fitted(X, np.sin(2 * X[:, 3:4]), WHOLE)
        member = max(found.members, key=lambda each: each.weight)
        assert member.recipe.rounds > 0
        assert float(member.importances[3]) > 0.8

    def test_the_metric_that_was_given_is_the_one_that_learns(self):
        X = rows(200, 4)
        machine = RecursiveFeatureMachine(rounds=1, powers=(0.3,))
        found = fitted(X, smooth(X), Space(("gaussian",), ("standard",), machine=machine))
        learned = {(t.recipe.rounds, t.recipe.power) for t in found.trials if t.step == "metric"}
        assert learned == {(0, 0.5), (1, 0.3)}

    def test_without_a_metric_each_kernel_of_a_distance_may_be_fitted(self):
        X = rows(200, 2)
        space = Space(inputs=("standard",), machine=None)
        found, _ = searched(X, np.sin(X[:, :1] + X[:, 1:2]), space)
        assert {stem.recipe.kernel for stem in found.stems} == set(space.kernels)

    def test_what_was_asked_for_decides(self):
        X = rows(200, 2)
        found, _ = searched(X, smooth(X), SMALL, score=lambda values: -float(values.std()))
        best = min(found.fits, key=found.loss)
        assert float(best.values.std()) == max(float(fit.values.std()) for fit in found.fits)
        assert found.fits[found.weights.index(1.0)] is best

    def test_an_average_is_no_worse_than_its_best_member(self):
        X = rows(150, 4)
        found, trials = searched(X, smooth(X) + rows(150, 1, seed=5), WHOLE)
        losses = [trial.loss for trial in trials if trial.step == "fit"]
        (average,) = [trial for trial in trials if trial.step == "average"]
        assert average.loss <= min(losses)
        expected = np.square(average.values - found.material.truth).mean()
        assert average.loss == pytest.approx(float(expected), rel=1e-6)
        assert_close(found.predict_held_out(), average.values)

    def test_the_result_is_fitted_to_all_rows(self):
        X = rows(150, 2)
        (member,) = fitted(X, smooth(X)).members
        assert member.all_rows
        assert len(member.centers) == 150
        assert member.shift == pytest.approx(member.penalty * 150)

    def test_the_same_seed_gives_the_same_bits(self):
        X = rows(80, 3)
        one, other = fitted(X, smooth(X), WHOLE), fitted(X, smooth(X), WHOLE)
        assert np.array_equal(predictions(one, X), predictions(other, X))
        assert [t.losses for t in one.trials] == [t.losses for t in other.trials]


class TestSignal:
    @pytest.mark.parametrize(("ratio", "is_noise"), [(0.5, False), (1.0, True)])
    def test_a_sample_predicts_at_the_common_penalty_of_its_splits(self, ratio, is_noise):
        material = Material.of(rows(60), rows(60, 1, seed=1), rng=RandomStream(0))
        found = Search(material, Space(), Clock())
        loss = ratio * found.squared_error(np.zeros_like(material.truth))
        found.stems = [SimpleNamespace(loss=loss, fits=[SimpleNamespace(values=material.truth)])]
        assert found.is_noise() == is_noise

    def test_noise_is_predicted_by_its_mean(self):
        X = rows(200)
        y = rows(200, 1, seed=1) + 5
        found = predictions(fitted(X, y), X)
        assert_close(found, xp.expand(y.mean(), (200, 1)))

    @pytest.mark.parametrize("seed", range(2))
    def test_labels_without_signal_are_those_of_the_larger_class(self, seed):
        X = rows(200)
        rng = RandomStream(seed)
        codes = 2.0 * xp.to_float64(rng.random((200, 1), np.float32) < 0.25) - 1
        found = predictions(fitted(X, codes, coded=True), X)
        assert bool((found < 0).all())

    def test_a_weak_signal_is_kept(self):
        X = rows(300)
        found = predictions(fitted(X, 0.4 * X[:, :1] + rows(300, 1, seed=1)), X)
        assert float(found.std()) > 0.2

    def test_of_weights_the_error_is_weighted(self):
        """Half of the rows are noise, of hardly any weight; the others follow a function."""
        X = rows(200)
        half = np.arange(200) % 2 == 0
        y = np.where(half[:, None], smooth(X), 10 * rows(200, 1, seed=3))
        w = xp.to_float64(np.where(half, 1.0, 1e-6))
        data = TrainingData(as_rows(X), y, w)
        found = search_fit(data, SearchSettings(space=SMALL), RandomStream(0))
        errors = (predictions(found, X) - smooth(X))[half]
        assert float(errors.std()) < 0.2


class TestAwkward:
    @pytest.mark.parametrize("n", [5, 7, 30])
    def test_few_rows(self, n, dtype):
        X = xp.cast(rows(n), dtype)
        found = fitted(X, smooth(X), WHOLE)
        assert bool(np.isfinite(predictions(found, X)).all())

    @pytest.mark.parametrize(
        ("X", "y"),
        [
            (rows(80, 1), np.sin(rows(80, 1))),
            (rows(30, 60), rows(30, 60)[:, :1]),
            (np.ones((40, 2), np.float64), rows(40, 1)),
            (np.concatenate([rows(80), np.ones((80, 2), np.float32)], axis=1), smooth(rows(80))),
            (np.eye(6, dtype=np.float64)[np.arange(80) % 6], rows(80, 1)),
            (np.tile(rows(20), (4, 1)) + 1e-9 * rows(80), np.tile(smooth(rows(20)), (4, 1))),
            (np.sinh(np.sinh(rows(80))) ** 3, np.sinh(rows(80, 1, seed=1)) ** 3),
            (rows(80), np.full((80, 1), 7.0, dtype=np.float64)),
            (rows(80), np.zeros((80, 1), np.float64)),
            (rows(80), smooth(rows(80)) + 1e9),
            (1e8 + rows(80), smooth(rows(80))),
            (rows(80), np.concatenate([smooth(rows(80)), rows(80, 1, seed=2) * 1e6], axis=1)),
        ],
        ids=["one feature", "more features than rows", "constant rows", "constant features",
             "one-hot", "near-duplicates", "heavy tails", "constant target", "zeros",
             "offset of the target", "offset of the rows", "two targets"],
    )  # fmt: skip
    def test_tables_as_they_are(self, X, y, dtype):
        machine = RecursiveFeatureMachine(rounds=1, powers=(0.5,))
        space = Space(("matern32", "l1_laplacian"), machine=machine, fits=3)
        if dtype == np.float32:
            X, y = xp.cast(X, np.float32), xp.cast(y, np.float32)
        found = fitted(X, y, space)
        values = predictions(found, X)
        assert bool(np.isfinite(values).all())
        assert float(np.square(values - y).mean()) <= 1.001 * float(
            np.square(y - y.mean(axis=0)).mean()
        ) + 1e-5 * float(np.square(y).mean())
        for member in found.members:
            assert math.isfinite(member.penalty)

    def test_a_constant_target_is_predicted_exactly(self):
        X = rows(50)
        found = predictions(fitted(X, np.full((50, 1), 7.25, dtype=np.float64)), X)
        assert bool((found == 7.25).all())

    def test_fewer_than_five_rows_are_refused(self):
        X = rows(4)
        with pytest.raises(ValueError, match="n_samples = 4"):
            fitted(X, smooth(X))

    def test_without_a_step_there_is_no_result(self):
        X = rows(20)
        found = Search(Material.of(X, smooth(X), rng=RandomStream(0)), SMALL, Clock())
        with pytest.raises(ValueError, match="no step has finished"):
            found.members()


class TestSplitsOfDifferentKinds:
    """The shifts of a path are chosen once, and are those that its products can tell apart."""

    def fits(self, X, Y, splits):
        rng = RandomStream(1)
        material = Material.of(X, Y, splits=splits, rng=rng)
        found = Search(material, SMALL, Clock())
        next(found.steps())
        return full_fit.full_fit(material, found.stems[0], 1.0, clock=Clock())

    def test_iterations_do_not_take_the_shifts_of_a_factorisation(self, monkeypatch):
        monkeypatch.setattr(full_fit, "DIRECT_ROWS", 100)
        X = xp.cast(rows(400), np.float32)
        order = np.arange(400)
        splits = [Split(order[:80], order[80:120]), Split(order[:300], order[300:])]
        fit = self.fits(X, smooth(X), splits)
        shifts = {round(penalty * 300, 6) for penalty, _ in fit.losses}
        assert shifts == set(full_fit.PATH_SHIFTS)

    def test_many_targets_have_the_shifts_of_the_first_pilot(self, monkeypatch):
        monkeypatch.setattr(full_fit, "DIRECT_ROWS", 50)
        monkeypatch.setattr(full_fit, "PILOT_ROWS", 100)
        pilots = iter([(10.0, 3.0), (0.03, 0.01)])
        monkeypatch.setattr(full_fit, "_shifts", lambda *_: next(pilots))
        X = xp.cast(rows(300), np.float32)
        Y = smooth(X) * np.arange(1.0, 7.0, dtype=np.float32)
        order = np.arange(300)
        splits = [Split(order[:200], order[200:]), Split(order[100:], order[:100])]
        assert len(self.fits(X, Y, splits).losses) == 2


class TestBudgets:
    @pytest.mark.parametrize("budget", [5e4, 1e6, 5e6])
    @pytest.mark.parametrize("n", [60, 1700])
    def test_kernel_evaluations_are_kept(self, n, budget):
        X = rows(n)
        found = fitted(X, smooth(X), WHOLE, budget=Budget(evaluations=budget))
        assert found.evaluations <= 1.1 * budget
        assert found.members

    def test_iterations_end_with_the_evaluations(self, monkeypatch):
        monkeypatch.setattr(full_fit, "DIRECT_ROWS", 50)
        X = rows(300)
        rng = RandomStream(0)
        splits = random_splits(X, False, rng)[:1]
        material = Material.of(X, smooth(X), splits=splits, rng=rng)
        found = Search(material, SMALL, Clock())
        next(found.steps())
        used = []
        for most in (0.0, 2.5e5, math.inf):
            clock = Clock()
            fit = full_fit.full_fit(material, found.stems[0], 1.0, clock=clock, most=most)
            used.append((fit.iterations, clock.meter.evaluations))
        assert used[0][0] == 0 < used[1][0] < used[2][0]
        assert used[1][1] <= 2.5e5 < used[2][1]

    @pytest.mark.parametrize("budget", [1.2e6, 1.6e6, 2e6, 3e6])
    def test_rounds_of_all_rows_leave_evaluations_for_the_last_fit(self, budget, monkeypatch):
        monkeypatch.setattr(on_all_rows, "_sees_more", lambda search, fit: True)
        monkeypatch.setattr(on_all_rows, "ROUND_GAIN", math.inf)
        X = rows(300)
        space = Space(machine=RecursiveFeatureMachine(rounds=2), fits=20)
        found = fitted(X, smooth(X), space, budget=Budget(evaluations=budget))
        assert found.evaluations <= budget
        assert all(member.all_rows for member in found.members)

    def test_the_last_fit_is_left_out_where_no_evaluations_remain(self):
        X = rows(300)
        space = Space(machine=RecursiveFeatureMachine(rounds=2), fits=20)
        found = fitted(X, smooth(X), space, budget=Budget(evaluations=9e5))
        assert found.evaluations <= 9e5
        assert any(trial.step == "fit" for trial in found.trials)
        assert not any(member.all_rows for member in found.members)

    def test_a_larger_budget_is_used(self):
        X = rows(200)
        errors = []
        for budget in (5e4, 5e6):
            found = fitted(X, smooth(X), WHOLE, budget=Budget(evaluations=budget))
            new = rows(400, seed=7)
            errors.append(float(np.square(predictions(found, new) - smooth(new)).mean()))
        assert errors[1] < 0.2 * errors[0]

    @pytest.mark.slow
    def test_costs_of_fits_are_about_those_that_were_expected(self):
        X = xp.cast(rows(1900, 4), np.float32)
        found, trials = searched(X, smooth(X), SMALL, clock=Clock(Budget(evaluations=1e9)))
        fits = [t for t in trials if t.step == "fit"]
        used = (fits[-1].evaluations - fits[0].evaluations) / (len(fits) - 1)
        assert 0.2 < used / of_fit(found.material) < 2
        before = found.clock.meter.evaluations
        found.members()
        assert found.clock.meter.evaluations - before <= 1.5 * of_refit(found.material)

    @pytest.mark.parametrize("each", [0.5, 30.0])
    def test_seconds_are_kept_by_a_clock_that_each_product_moves(self, each, monkeypatch):
        """The clock is moved by kernel evaluations: no second of this machine counts."""
        meter, per_second = CostMeter(), 1e5 / each
        monkeypatch.setattr(time, "monotonic", lambda: meter.evaluations / per_second)
        X = rows(300)
        clock = Clock(Budget(seconds=10 * each), started=0.0, meter=meter)
        found, trials = searched(X, smooth(X), WHOLE, clock=clock)
        slowest = max(trial.seconds for trial in trials)
        assert clock.seconds <= 10 * each + slowest
        found.members()
        assert clock.seconds <= 10 * each + 2 * slowest

    def test_without_any_time_there_is_a_result(self, monkeypatch):
        now = iter(range(10**9))
        monkeypatch.setattr(time, "monotonic", lambda: float(next(now)))
        X = rows(100)
        found, trials = searched(X, smooth(X), WHOLE, clock=Clock(Budget(seconds=1.0), started=0.0))
        assert [trial.step for trial in trials] == ["screen"]
        (member,) = found.members()
        assert bool(member.coef.any())


STEPS = 12
"""Trials of the search that is ended at each of them."""


class TestEnds:
    X = rows(90)

    def run(self, watcher: object) -> Searched:
        space = Space(
            ("laplacian", "gaussian", "l1_laplacian"), ("standard",), (0.5, 1.0),
            RecursiveFeatureMachine(rounds=1, powers=(0.5,)),
        )  # fmt: skip
        return fitted(self.X, smooth(self.X), space, watchers=(watcher,))

    def test_there_are_as_many_steps_as_are_ended(self):
        assert len(self.run(lambda trial: None).trials) == STEPS

    @pytest.mark.parametrize("how", ["a watcher says so", "Ctrl-C"])
    @pytest.mark.parametrize("at", range(1, STEPS + 1))
    def test_at_each_step_the_best_is_kept(self, at, how):
        seen: list[Trial] = []

        def watcher(trial: Trial) -> bool:
            seen.append(trial)
            if len(seen) == at and how == "Ctrl-C":
                raise KeyboardInterrupt
            return len(seen) == at

        found = self.run(watcher)
        assert found.interrupted == (how == "Ctrl-C")
        made = [trial.step for trial in found.trials if trial.step != "refit"]
        assert len(made) == min(at, len(made))
        values = predictions(found, self.X)
        assert float(np.square(values - smooth(self.X)).mean()) < float(
            np.square(smooth(self.X)).mean()
        )

    @pytest.mark.parametrize(
        ("module", "name"),
        [
            (on_samples, "learn_metrics"),
            (on_samples, "at_maps"),
            (on_all_rows, "full_fit"),
            (on_all_rows, "average_fits"),
            (search_state, "refit"),
        ],
    )
    def test_ctrl_c_within_a_step(self, module, name, monkeypatch):
        def interrupted(*args: object, **more: object) -> object:
            raise KeyboardInterrupt

        monkeypatch.setattr(module, name, interrupted)
        if name == "refit":  # the first time only: the fits without the held-out rows follow
            calls = iter([interrupted])
            before = __import__("gramian.search.all_rows.last_fit", fromlist=["refit"]).refit
            monkeypatch.setattr(
                module, name, lambda *a, **k: next(calls, before)(*a, **k)
            )  # fmt: skip
        found = self.run(lambda trial: None)
        assert found.interrupted
        values = predictions(found, self.X)
        assert float(np.square(values - smooth(self.X)).mean()) < float(
            np.square(smooth(self.X)).mean()
        )

    def test_ctrl_c_before_there_is_anything_is_raised(self, monkeypatch):
        def interrupted(*args: object, **more: object) -> object:
            raise KeyboardInterrupt

        monkeypatch.setattr(on_samples, "screen_kernels", interrupted)
        with pytest.raises(KeyboardInterrupt):
            self.run(lambda trial: None)

    def test_the_fit_of_the_first_part_goes_with_its_own_map(self):
        """Without a last fit, coefficients, map and lengthscale are those of one split."""
        X = rows(120, 4)
        machine = RecursiveFeatureMachine(rounds=1, powers=(0.5,))
        space = Space(("gaussian",), ("standard",), (1.0,), machine, averages=False)
        found, _ = searched(X, smooth(X), space, effort=Effort(machine=machine))
        fit = max(found.fits, key=lambda each: each.stem.recipe.rounds)
        member = search_state.refit(found.material, fit, 1.0, clock=Clock(), ends=0.0, most=0.0)
        assert not member.all_rows
        held = found.material.splits[0].validation
        Z = X[held] if member.map is None else member.map.forth(X[held])
        K = member.kernel(Z, member.centers)
        assert_close(K @ member.coef, fit.values[: len(held)], atol=1e-6, rtol=0)


@pytest.mark.slow
def test_entries_are_evaluated_once_where_evaluations_are_counted():
    X = xp.cast(rows(2100, 4), np.float32)
    pairs = []
    for budget in (Budget(), Budget(evaluations=1e12)):
        _, trials = searched(X, smooth(X), SMALL, clock=Clock(budget))
        fits = [trial for trial in trials if trial.step == "fit"]
        pairs.append(fits[1].evaluations - fits[0].evaluations)
    n = len(X) - 420
    assert pairs[1] < 1.6 * n * len(X)
    assert pairs[0] > 3 * pairs[1]
