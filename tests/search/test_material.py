"""The parts of a search: budgets, rows and their splits, spaces, and weights of an average."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import LinearMap
from gramian.operators import CostMeter
from gramian.search import Budget, Clock, Effort, Material, Recipe, Space
from gramian.search.all_rows.average import LEAST_WEIGHT, average_fits
from gramian.search.cost import of_fit, of_refit, of_sample
from gramian.search.folds import random_folds, random_splits


class TestBudget:
    @pytest.mark.parametrize(
        ("given", "seconds"),
        [("30 s", 30), ("30s", 30), (" 2 MIN ", 120), ("1.5 min", 90), (".5 h", 1800),
         ("1 minute", 60), ("2e1 seconds", 20), ("1 hour", 3600), ("3. s", 3)],
    )  # fmt: skip
    def test_a_time(self, given, seconds):
        assert Budget.of(given) == Budget(seconds=seconds)

    @pytest.mark.parametrize("given", [1000, 1e6, np.int64(5), np.float32(7), Fraction(9, 2)])
    def test_kernel_evaluations(self, given):
        assert Budget.of(given) == Budget(evaluations=float(given))

    @pytest.mark.parametrize(
        ("given", "seconds"), [("30 cpu s", 30), ("2 CPU min", 120), ("1.5cpu  h", 5400)]
    )
    def test_cpu_time(self, given, seconds):
        assert Budget.of(given) == Budget(seconds, is_cpu=True)

    @pytest.mark.parametrize("given", [None, "auto", Budget()])
    def test_neither(self, given):
        assert Budget.of(given) == Budget(math.inf, math.inf)

    @pytest.mark.parametrize(
        "wrong",
        ["", "s", ". s", "30", "30 years", "-1 s", "0 s", "1.2.3 s", "٣ s", "cpu s",
         "30 cpu", "30 cpus", "30 cpu 5 s", 0, -5, 0.5, math.nan,
         True, [30], {"seconds": 30}],
    )  # fmt: skip
    def test_what_is_refused_is_named(self, wrong):
        with pytest.raises(ValueError, match="budget must be a time such as '30 s'") as error:
            Budget.of(wrong)
        assert repr(wrong) in str(error.value)


class TestClock:
    @pytest.fixture
    def now(self, monkeypatch) -> list[float]:
        now = [100.0]
        monkeypatch.setattr("time.monotonic", lambda: now[0])
        return now

    def test_time_is_spent(self, now):
        found = Clock(Budget(seconds=10), started=100.0)
        assert found.allows(10)
        assert not found.allows(10.5)
        now[0] = 106.0
        assert (found.seconds, found.remaining_seconds) == (6, 4)
        assert not found.allows(5)

    def test_nothing_is_free_once_it_is_over(self, now):
        found = Clock(Budget(seconds=10), started=100.0)
        now[0] = 110.0
        assert not found.allows(0.0)
        now[0] = 120.0
        assert found.remaining_seconds == 0

    def test_evaluations_are_spent(self):
        meter = CostMeter()
        found = Clock(Budget(evaluations=100), meter=meter)
        meter.evaluations += 60
        assert found.allows(1e9, 40)
        assert not found.allows(0.0, 41)
        assert found.evaluations_left == 40

    def test_without_a_budget_all_is_allowed(self):
        assert Clock().allows(1e9, 1e30)


def label(n: int, rng: RandomStream) -> np.ndarray:
    return (np.arange(n) % 10).clip(max=2)[rng.permutation(n)]


class TestSplits:
    @pytest.mark.parametrize("n", [5, 6, 29, 1499])
    @pytest.mark.parametrize("coded", [False, True])
    def test_each_of_few_rows_is_held_out_once(self, n, coded, rng):
        found = random_splits(np.eye(3, dtype=np.float32)[label(n, rng)], coded, rng)
        assert len(found) == 5
        assert np.array_equal(xp.sort(np.concatenate([s.validation for s in found])), np.arange(n))
        for split in found:
            both = np.concatenate([split.train, split.validation])
            assert np.array_equal(xp.sort(both), np.arange(n))

    @pytest.mark.parametrize("coded", [False, True])
    def test_three_fifths_of_more_rows_are(self, coded, rng):
        found = random_splits(2.0 * label(1999, rng)[:, None].clip(max=1) - 1, coded, rng)
        assert len(found) == 3
        assert len(np.unique(np.concatenate([s.validation for s in found]))) == 1200
        for split in found:
            both = np.concatenate([split.train, split.validation])
            assert np.array_equal(xp.sort(both), np.arange(1999))

    @pytest.mark.parametrize(("n", "held"), [(2000, 400), (30_000, 2000)])
    def test_a_part_of_many_rows_is(self, n, held, rng):
        (found,) = random_splits(rng.standard_normal((n, 1), np.float32), False, rng)
        assert len(found.validation) == held
        both = np.concatenate([found.train, found.validation])
        assert np.array_equal(xp.sort(both), np.arange(n))

    @pytest.mark.parametrize("n", [100, 2000])
    @pytest.mark.parametrize("classes", [2, 3])
    def test_classes_have_their_share(self, n, classes, rng):
        place = label(n, rng).clip(max=classes - 1)
        codes = np.eye(3, dtype=np.float32)[place] if classes == 3 else 2.0 * place[:, None] - 1
        for split in random_splits(codes, True, rng):
            share = xp.bincount(place[split.validation]) / len(split.validation)
            assert_close(share, xp.bincount(place) / n, atol=0.021, rtol=0)

    def test_rows_to_learn_from_are_in_random_order(self, rng):
        for n in (100, 2000):
            for split in random_splits(
                np.random.default_rng(0).standard_normal((n, 1)).astype(np.float32), False, rng
            ):
                assert not np.array_equal(split.train, xp.sort(split.train))

    def test_no_more_folds_than_rows(self, rng):
        assert (
            len(
                random_folds(
                    np.random.default_rng(0).standard_normal((3, 1)).astype(np.float32),
                    False,
                    5,
                    rng,
                )
            )
            == 3
        )

    def test_a_class_of_one_row(self, rng):
        place = np.zeros(40, np.int64)
        place[7] = 1
        found = random_splits(2.0 * place[:, None] - 1, True, rng)
        assert sum(7 in split.validation for split in found) == 1


class TestMaterial:
    @pytest.fixture
    def material(self, rng) -> Material:
        X = np.exp(rng.standard_normal((50, 3), np.float32))
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        w, scales = (
            np.arange(50.0, dtype=np.float32) + 1,
            np.array([1.0, 2.0, 4.0], dtype=np.float64),
        )
        Y = np.arange(50.0, dtype=np.float32)[:, None]
        return Material.of(X, Y, w, rng=rng, scales=scales)

    def test_a_sample_keeps_rows_together(self, material):
        for split in material.splits:
            found = material.sample("standard", split)
            assert np.array_equal(found.X, material.X[split.train])
            assert np.array_equal(found.Y[:, 0] + 1, found.weights)
            assert np.array_equal(found.held_Y[:, 0] + 1, found.held_weights)

    def test_what_is_held_out(self, material):
        assert np.array_equal(xp.cast(material.truth[:, 0], np.int64), material.held_out_index)
        assert np.array_equal(material.held_weights, material.truth[:, 0] + 1)

    def test_quantiles_are_normal(self, material):
        X = material.inputs("quantile")
        assert X is material.inputs("quantile")
        assert float(np.abs(X).max()) < 3.5
        assert_close(np.median(X, axis=0), np.zeros(3, X.dtype), atol=0.15, rtol=0)

    def test_one_scale_for_all(self, material):
        assert_close(
            material.inputs("common"),
            material.X * np.array([1.0, 2.0, 4.0], dtype=np.float32) / 7**0.5,
        )

    @pytest.mark.parametrize("scales", [None, [2.0, 2.0, 2.0], [1.0, 1.0, 1e4]])
    def test_there_is_none_where_it_is_no_other(self, material, scales):
        scales = None if scales is None else np.array(scales, dtype=np.float64)
        found = replace(material, scales=scales)
        assert found.common is None
        assert found.inputs("common") is found.X

    @pytest.mark.parametrize(
        "map_",
        [
            None,
            LinearMap(scales=[1.0, 2, 3]),
            LinearMap(np.arange(6.0, dtype=np.float32).reshape(3, 2)),
        ],
    )
    @pytest.mark.parametrize("inputs", ["standard", "common"])
    def test_inputs_and_a_metric_are_one_map(self, material, map_, inputs):
        X = material.inputs(inputs)
        expected = X if map_ is None else map_.forth(X)
        one = material.compose(inputs, map_)
        assert_close(material.X if one is None else one.forth(material.X), expected)


class TestSpace:
    def test_neighbours_are_half_and_double(self):
        space = Space()
        assert space.beside(1.0, []) == [0.5, 2.0]
        assert space.beside(1.0, [0.5, 1.0]) == [2.0]
        assert space.beside(1 / 32, []) == [1 / 16]
        assert space.beside(32.0, []) == [16.0]

    def test_neighbours_of_multiples_that_were_given(self):
        space = Space(multiples=(0.5, 1.0, 4.0))
        assert space.beside(1.0, []) == [0.5, 4.0]
        assert space.beside(0.5, []) == [1.0]
        assert space.beside(4.0, [1.0]) == []

    def test_the_first_is_the_nearest_to_the_usual_one(self):
        assert Space().first("gaussian") == 0.5
        assert Space(multiples=(0.25, 3.0)).first("gaussian") == 0.25
        assert Space(multiples=(0.25, 3.0)).first("laplacian") == 3.0

    def test_kernels_of_a_distance_share_a_metric(self):
        assert Space().groups() == [("laplacian", "matern32", "gaussian"), ("l1_laplacian",)]
        assert Space(kernels=("l1_laplacian",)).groups() == [("l1_laplacian",)]

    def test_a_recipe_says_what_it_is(self):
        recipe = Recipe("laplacian", "quantile", 0.5, 2, 0.25)
        assert str(recipe) == "laplacian, 0.5 medians, quantile inputs, metric of round 2, M^0.25"
        assert recipe.make_kernel().medians == 0.5


class TestCosts:
    def test_samples_shrink_with_the_budget(self, rng):
        material = Material.of(
            np.random.default_rng(0).standard_normal((3000, 2)).astype(np.float32),
            np.random.default_rng(0).standard_normal((3000, 1)).astype(np.float32),
            rng=rng,
        )

        def cost(landmarks: int, rows: int) -> float:
            return of_sample(material, landmarks, rows)

        effort = Effort()
        assert effort.screening(math.inf, cost) == effort
        for most in (1e6, 1e5, 5e4):
            small = effort.screening(most, cost).learning(most, cost)
            assert cost(small.screen_landmarks, small.screen_rows) <= most
            assert cost(small.machine.landmarks, small.machine.rows) <= most
            assert small.machine.rounds == effort.machine.rounds

    def test_those_of_few_rows_are_counted(self, rng):
        material = Material.of(
            np.random.default_rng(0).standard_normal((100, 2)).astype(np.float32),
            np.random.default_rng(0).standard_normal((100, 1)).astype(np.float32),
            rng=rng,
        )
        assert of_sample(material, 10, 40) == 5 * (40 + 10 + 20) * 10
        assert of_fit(material) == 5 * (80 * 80 + 20 * 80)
        assert of_refit(material) == 100 * 100


class TestAveraged:
    def squared(self, truth: np.ndarray):
        return lambda values: float(np.square(values - truth).mean())

    @pytest.mark.parametrize("seed", range(30))
    def test_never_worse_than_the_best_alone(self, seed):
        rng = RandomStream(seed)
        truth = rng.standard_normal((20, 1), np.float32)
        noise = rng.random(6, np.float32) ** 3
        values = [truth + s * rng.standard_normal((20, 1), np.float32) for s in noise]
        loss = self.squared(truth)
        weights = average_fits(values, loss)
        mean = sum(w * v for w, v in zip(weights, values, strict=True))
        assert loss(mean) <= min(map(loss, values)) + 1e-12
        assert sum(weights) == pytest.approx(1)
        assert all(w == 0 or w >= LEAST_WEIGHT / 2 for w in weights)

    def test_opposite_errors_cancel(self):
        truth, error = np.zeros((9, 1), np.float32), np.arange(9.0, dtype=np.float32)[:, None]
        weights = average_fits([error, -error, error + 5], self.squared(truth))
        assert weights == [0.5, 0.5, 0.0]

    def test_a_member_that_was_needed_and_is_too_small(self):
        """The mean of 1 and 19 parts is best, and neither of them is without the first."""
        values = [np.full((1, 1), 10.0, dtype=np.float32), np.full((1, 1), 1.0, dtype=np.float32)]

        def loss(value: np.ndarray) -> float:
            x = value.item()
            return {10.0: 1.0, 1.0: 2.0}.get(x, x / 100)

        assert average_fits(values, loss) == [1.0, 0.0]

    def test_what_is_no_number_is_left_out(self):
        truth = np.zeros((4, 1), np.float32)
        bad = np.full((4, 1), float("nan"))

        def loss(values: np.ndarray) -> float:
            value = self.squared(truth)(values)
            return value if math.isfinite(value) else math.inf

        assert average_fits([bad, truth + 1, truth - 1], loss) == [0.0, 0.5, 0.5]
