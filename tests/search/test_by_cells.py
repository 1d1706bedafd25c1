"""Cells that are chosen and fitted: within the time, checked, and none of them bad."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.kernels import Gaussian, Laplacian, Matern32
from gramian.metric import RecursiveFeatureMachine
from gramian.paths.sample import Sample
from gramian.search import (
    Budget,
    CellSearch,
    Clock,
    Material,
    Search,
    SearchState,
    Space,
    Split,
    Trial,
)
from gramian.search.cells import all_cells, by_cells, cell_fit, cell_sizes, cell_solver
from gramian.search.cells.cell_sizes import inflated_rows

SPACE = Space(("laplacian",), ("standard",), (0.25, 1.0), None, averages=False)


def rows(n: int, d: int = 2) -> np.ndarray:
    return RandomStream(0).standard_normal((n, d), np.float64)


def smooth(X: np.ndarray) -> np.ndarray:
    return np.sin(3 * X[:, :1]) + X[:, 1:2]


def noisy(X: np.ndarray) -> np.ndarray:
    """Return a function for either distance, with noise that a mean of two fits has less of."""
    noise = xp.to_float64(RandomStream(1).standard_normal((len(X), 1), np.float32))
    return np.sin(2 * xp.norm(X, axis=1, keepdims=True)) + np.sin(3 * X[:, :1]) + 0.3 * noise


def by_sample(n: int = 1200, *, t: int = 1, weighted: bool = False, **how: object) -> CellSearch:
    """Return a search by cells, after one on a quarter of the rows."""
    X, rng = rows(n), RandomStream(0)
    Y = how.get("target", smooth)(X) * np.ones(t) * np.arange(1.0, t + 1, dtype=np.float32)
    w = xp.to_float64(rng.random(n, np.float32)) + 0.5 if weighted else None
    index = xp.sort(rng.permutation(n)[: n // 4])
    some = None if w is None else w[index]
    sample = Material.of(X[index], Y[index], some, rng=rng)
    found = Search(sample, how.get("space", SPACE), how.get("clock", Clock()))
    list(found.sampled_steps())
    held = index[sample.splits[0].validation]
    learn = np.ones(n, np.bool_)
    learn[held] = False
    whole = Material.of(X, Y, w, splits=[Split(np.flatnonzero(learn), held)], rng=rng)
    return CellSearch(found, whole, how.get("folds", ()))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_sizes, "USUAL_ROWS", 300)
    monkeypatch.setattr(cell_sizes, "LEAST_ROWS", 100)


class TestAllCells:
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("t", [1, 3])
    def test_each_is_the_plain_solution_of_its_rows(self, weighted, t):
        search = by_sample(t=t, weighted=weighted)
        trials = list(search.steps())
        found, total = search.models[0], 0
        assert found.cells.count >= 4
        w, learn = search.material.weights, search.material.splits[0].train
        for number, index in enumerate(found.cells.members(search.material.X[learn], rng=None)):
            rows_of = learn[index]
            a, b = found.starts[number], found.starts[number + 1]
            X, Y = search.material.X[rows_of], search.material.Y[rows_of]
            assert np.array_equal(found.centers[a:b], X)
            ridge = xp.to_float64(np.ones(len(X), np.float32)) if w is None else 1 / w[rows_of]
            K = found.kernel(X, X) + found.shifts[number] * np.diag(ridge)
            assert np.allclose(K @ found.coef[a:b], Y, atol=1e-6)
            total += len(X)
        assert total == len(found.centers)
        assert [trial.step for trial in trials][-1] == "cells"
        assert set(found.shifts) == {found.fit.shift}

    @pytest.mark.slow
    def test_they_are_better_than_the_sample(self, monkeypatch):
        monkeypatch.setattr(cell_sizes, "USUAL_ROWS", 1000)
        search = by_sample(4000)
        list(search.steps())
        assert search.models[0].loss < 0.8 * search.search.best_stem().loss

    @pytest.mark.slow
    def test_processes_find_the_bits_of_threads(self, monkeypatch):
        monkeypatch.setattr(cell_sizes, "rows_measured", lambda *_: (300, 1200))
        found, cells, real = [], [], all_cells.run_apart

        def run_apart(*args: object, **more: object) -> object:
            for one in real(*args, **more):
                cells.append(one)
                yield one

        for pay in (True, False):
            monkeypatch.setattr(all_cells, "default_threads", lambda: 2)
            monkeypatch.setattr(all_cells, "processes_pay", lambda *_, pay=pay: pay)
            monkeypatch.setattr(all_cells, "run_apart", run_apart if pay else None)
            search = by_sample()
            search.search.clock = Clock(Budget(1000.0))
            list(search.steps())
            found.append((search.models[0], search.search.clock.meter.evaluations))
        (one, spent), (other, expected) = found
        assert len(cells) == one.cells.count - 1 > 2
        assert np.array_equal(one.coef, other.coef)
        assert np.array_equal(one.values, other.values)
        assert spent == expected

    def test_values_are_those_of_the_held_out_rows(self):
        search = by_sample()
        list(search.steps())
        found, held = search.models[0], search.material.splits[0].validation
        Z, values = search.material.X[held], np.zeros((len(held), 1), np.float64)
        for share in found.cells.route(Z):
            a, b = found.starts[share.cell], found.starts[share.cell + 1]
            K = found.kernel(Z[share.index], found.centers[a:b])
            values[share.index] += share.weight[:, None] * (K @ found.coef[a:b])
        assert np.allclose(values, found.values, atol=1e-8)

    def test_there_is_time_for_some_of_the_rows(self, monkeypatch):
        search = by_sample()
        monkeypatch.setattr(cell_sizes, "rows_measured", lambda *_: (100, 400))
        search.search.clock = Clock(Budget(1000.0))
        list(search.steps())
        found = search.models[0]
        distinct = len(np.unique(found.centers, axis=0))
        assert distinct == 400
        assert found.cells.count >= 4
        assert found.loss < 0.5

    def test_they_are_chosen_by_cells_with_the_metric_of_the_sample(self):
        search = by_sample()
        search.search.space = Space(
            ("laplacian",), ("standard",), (0.25, 1.0), RecursiveFeatureMachine(rounds=2)
        )
        list(search.steps())
        assert search.pilot.space.machine is None
        assert len(search.pilot.material.splits) == 3
        assert all(fit.stem.maps == (None,) * 3 for fit in search.pilot.fits)

    def test_they_try_flatter_metrics_which_the_sample_does_not(self):
        machine = RecursiveFeatureMachine(rounds=1, powers=(0.5,), landmarks=20, rows=60)
        search = by_sample(space=replace(SPACE, multiples=(1.0,), machine=machine))
        list(search.steps())
        assert search.pilot.flattens
        assert not search.search.flattens
        assert {fit.recipe.power for fit in search.pilot.fits} >= {0.5, 0.25}
        assert search.models[0].fit.recipe.power in {f.recipe.power for f in search.pilot.fits}


class TestFolds:
    """Cells that choose hold out what the folds that were given hold out."""

    def groups(self, n: int, pilot: SearchState, X: np.ndarray) -> list[tuple[set[int], set[int]]]:
        """Return the groups of the rows that each cell is fitted to, and of those held out."""
        number = {tuple(row): i % 10 for i, row in enumerate(X.tolist())}
        return [
            tuple({number[tuple(pilot.material.X[i].tolist())] for i in part.tolist()}
                  for part in (split.train, split.validation))
            for split in pilot.material.splits
        ]  # fmt: skip

    def test_they_take_turns(self):
        n = 1200
        group = np.arange(n) % 10
        folds = [
            Split(np.flatnonzero(group // 2 != k), np.flatnonzero(group // 2 == k))
            for k in range(5)
        ]
        search = by_sample(n, folds=folds)
        list(search.steps())
        found = self.groups(n, search.pilot, search.material.X)
        assert [held for _, held in found] == [{0, 1}, {2, 3}, {4, 5}]
        assert all(learn | held == set(range(10)) for learn, held in found)
        assert all(not learn & held for learn, held in found)

    def test_one_without_enough_rows_leaves_it_to_chance(self):
        some = np.arange(20)
        search = by_sample(1200, folds=[Split(np.arange(20, 1200), some)])
        list(search.steps())
        for split in search.pilot.material.splits:
            total = len(split.train) + len(split.validation)
            assert len(split.validation) == total // 5


class TestSeveral:
    """Cells of both distances, and their mean."""

    BOTH = Space(("laplacian", "l1_laplacian"), ("standard",), (0.25, 1.0), None)

    def searched(self, **how: object) -> tuple[CellSearch, list[Trial]]:
        search = by_sample(3000, space=replace(self.BOTH, **how), target=noisy)
        return search, list(search.steps())

    @pytest.fixture(autouse=True)
    def both(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(by_cells, "CLOSE_LOSS_RATIO", 10.0)

    @pytest.mark.slow
    def test_the_mean_is_that_of_both_and_no_worse(self):
        search, trials = self.searched()
        kernels = {model.fit.recipe.kernel for model in search.models}
        assert kernels == {"laplacian", "l1_laplacian"}
        assert sum(search.weights) == pytest.approx(1.0)
        assert all(0 < w < 1 for w in search.weights)
        first, second = (model.values for model in search.models)
        w = search.weights[0]
        assert_close(search.predict_held_out(), w * first + (1 - w) * second)
        assert search.squared_error() < min(model.loss for model in search.models)
        assert [trial.step for trial in trials][-3:] == ["cells", "cells", "average"]
        assert trials[-1].loss == pytest.approx(search.squared_error())

    @pytest.mark.slow
    def test_without_averages_there_is_one(self):
        search, _ = self.searched(averages=False)
        assert len(search.models) == 1
        assert search.weights == [1.0]

    def test_another_distance_that_is_far_off_has_no_cells(self, monkeypatch):
        monkeypatch.setattr(by_cells, "CLOSE_LOSS_RATIO", 1.0)
        assert len(self.searched()[0].models) == 1

    @pytest.mark.parametrize("left", [1e9, 0.0])
    def test_another_one_has_to_have_time(self, left, monkeypatch):
        search = by_sample(clock=Clock(Budget(1e9)), space=self.BOTH)
        add = search._add

        def added(found: object) -> None:
            add(found)
            search.search.clock.started = time.monotonic() - 1e9 + left

        monkeypatch.setattr(search, "_add", added)
        list(search.steps())
        assert len(search.models) == (2 if left else 1)


class TestPrecise:
    """Penalties below what float32 tells are for cells that are factorised."""

    @pytest.mark.parametrize(("rows_of", "shift"), [(1500, 1e-5), (1501, 0.01)])
    def test_larger_cells_have_a_usual_one(self, rows_of, shift, monkeypatch):
        search = by_sample()
        list(search.steps())
        fit = replace(search.pilot.fits[0], shift=1e-5, penalty=2e-8)
        monkeypatch.setattr(CellSearch, "_affordable", lambda *_: (rows_of, 1200))
        found, size = search._with_size(fit, 1000)
        assert size == (rows_of, 1200)
        assert found.shift == shift
        assert found.penalty == pytest.approx(2e-3 * shift)

    def test_cells_that_choose_by_iterations_have_none(self, monkeypatch):
        monkeypatch.setattr("gramian.search.all_rows.full_fit.DIRECT_ROWS", 50)
        search = by_sample(target=lambda X: smooth(X))
        list(search.steps())
        assert search.search.space.precise
        assert min(fit.shift for fit in search.pilot.fits) >= 0.01


class TestTime:
    @pytest.mark.parametrize("evaluations", [1e5, 1e6, 4e7])
    def test_larger_budgets_have_larger_cells(self, evaluations):
        search = by_sample(clock=Clock(Budget(evaluations=evaluations)))
        list(search.steps())
        sizes = [] if not search.models else xp.diff(search.models[0].starts).tolist()
        assert search.search.clock.meter.evaluations <= 1.1 * evaluations
        if evaluations == 4e7:
            assert max(sizes) > 300

    def test_cells_that_have_no_time_are_none(self):
        clock = Clock(Budget(seconds=1e9))
        search = by_sample(clock=clock)
        clock.started = -math.inf
        list(search.steps())
        assert not search.models or math.isfinite(search.models[0].loss)

    @pytest.mark.parametrize("rows", [100, 333, 5000])
    def test_rows_with_bands(self, rows):
        assert inflated_rows(5000, rows) >= 5000
        assert inflated_rows(5000, rows) <= 5000 * 1.1**7


class TestBadCells:
    def sample(self, Y: np.ndarray) -> Sample:
        X = rows(400)
        return Sample(X[:300], Y[:300], X[300:], Y[300:])

    def fit(self, sample: Sample, shift: float, kernel=None) -> cell_fit.CellFit:
        kernel = Laplacian(1.0) if kernel is None else kernel
        return cell_fit.fit_cell(kernel, sample, shift, clock=Clock(), rng=RandomStream(0))

    def test_a_good_one_keeps_its_shift(self):
        assert self.fit(self.sample(smooth(rows(400))), 0.01).shift == 0.01

    def test_noise_that_is_interpolated_has_a_larger_shift(self):
        noise = xp.to_float64(RandomStream(3).standard_normal((400, 1), np.float32))
        found = self.fit(self.sample(noise), 1e-10, Gaussian(3.0))
        assert found.shift > 1e-10
        assert not cell_fit.is_bad(found.values, self.sample(noise))

    def test_of_one_that_stays_bad_the_best_is_taken(self, monkeypatch):
        monkeypatch.setattr(cell_fit, "is_bad", lambda *_: True)
        found = self.fit(self.sample(smooth(rows(400))), 0.01)
        assert found.shift == 0.01

    @pytest.mark.parametrize("weighted", [False, True])
    def test_one_without_time_has_landmarks(self, weighted, monkeypatch):
        monkeypatch.setattr(cell_fit, "DIRECT_ROWS", 100)
        monkeypatch.setattr(cell_fit, "LATE_LANDMARKS", 200)
        X = rows(700)
        Y = smooth(X)
        w = np.linspace(0.5, 1.5, 600, dtype=np.float32) if weighted else None
        sample = Sample(X[:600], Y[:600], X[600:], Y[600:], w)
        kernel = Matern32(0.7)
        found = cell_fit.fit_cell(
            kernel, sample, 1e-3, clock=Clock(), left=0.0, rng=RandomStream(0)
        )
        assert sample.loss(found.values) < 0.2 * sample.loss(np.zeros_like(found.values))
        assert int(found.coef.any(axis=1).sum()) <= 200
        said = xp.to_float64(kernel(sample.held_X, sample.X)) @ found.coef
        assert_close(said, found.values)

    def test_one_that_is_solved_is_left_alone(self, monkeypatch):
        monkeypatch.setattr(cell_fit, "DIRECT_ROWS", 100)
        monkeypatch.setattr(cell_fit, "_with_landmarks", None)
        found = self.fit(self.sample(smooth(rows(400))), 0.01)
        assert bool(found.coef.all())

    def test_one_without_any_number_is_the_mean(self, monkeypatch):
        real = cell_fit._solve_cell

        def solved(*args: object) -> cell_fit.CellFit:
            found = real(*args)
            return cell_fit.CellFit(found.coef, math.nan * found.values, found.shift)

        monkeypatch.setattr(cell_fit, "_solve_cell", solved)
        found = self.fit(self.sample(smooth(rows(400))), 0.01)
        assert not bool(found.coef.any())
        assert not bool(found.values.any())

    def test_numbers_that_are_none_are_bad(self):
        sample = self.sample(smooth(rows(400)))
        assert cell_fit.is_bad(xp.to_float64(np.full((100, 1), math.nan)), sample)
        assert not cell_fit.is_bad(sample.held_Y, sample)

    def test_rows_that_cannot_be_divided_are_drawn_from(self):
        search = by_sample()
        search.material.X[:900] = 0.5
        list(search.steps())
        assert max(xp.diff(search.models[0].starts).tolist()) <= 450

    def test_few_held_out_rows_do_not_condemn_a_cell(self):
        sample = self.sample(smooth(rows(400)))
        few = Sample(sample.X, sample.Y, sample.held_X[:3], sample.held_Y[:3])
        assert not cell_fit.is_bad(sample.held_Y[:3] + 3.0, few)
        assert cell_fit.is_bad(sample.held_Y[:3] + 300.0, few)

    def test_a_cell_of_one_class_is_not_bad_for_a_small_error(self):
        sample = self.sample(xp.to_float64(np.ones((400, 1), np.float32)))
        assert not cell_fit.is_bad(0.99 * xp.to_float64(np.ones((100, 1), np.float32)), sample)
        assert cell_fit.is_bad(0.5 * xp.to_float64(np.ones((100, 1), np.float32)), sample)
        assert cell_fit.is_bad(xp.to_float64(np.full((100, 1), 12.0, dtype=np.float32)), sample)

    @pytest.mark.parametrize("shift", [1e-3, 0.01, 1.0])
    def test_float32_and_many_rows(self, shift, monkeypatch):
        monkeypatch.setattr(cell_fit, "DIRECT_ROWS", 50)
        Y = smooth(rows(400)) + 0.1 * xp.to_float64(
            np.random.default_rng(0).standard_normal((400, 1)).astype(np.float32)
        )
        exact = self.fit(self.sample(Y), shift)
        sample = self.sample(Y)
        single = Sample(
            *(xp.cast(x, np.float32) for x in (sample.X, sample.Y, sample.held_X, sample.held_Y))
        )
        found = self.fit(single, shift)
        assert found.shift == shift
        assert float(np.abs(found.values - exact.values).max()) < 0.05


class TestSizes:
    @pytest.fixture
    def measured(self, monkeypatch):
        """Return sizes for a time that is left, where a cell of 200 rows takes a second."""
        monkeypatch.setattr(cell_sizes, "SIZE_STEP_ROWS", 100)

        def sizes(left: float) -> tuple[int, int]:
            return cell_sizes.rows_measured(Clock(Budget(left)), 10_000, 1.0, 200)

        return sizes

    def test_more_time_makes_larger_cells_of_all_rows(self, measured):
        assert measured(1e4)[0] > measured(200.0)[0] > 100
        assert measured(200.0)[1] == 10_000

    def test_little_time_leaves_rows_out(self, measured):
        (least, few), (_, more) = measured(4.0), measured(8.0)
        assert least == 100
        assert 100 < few < more < 10_000
        assert more == pytest.approx(2 * few, rel=0.05)
        assert measured(1e-9) == (100, 100)


class TestMeasured:
    def fits(
        self, monkeypatch, seconds: list[float], sizes: list[tuple[int, int]]
    ) -> tuple[int, ...]:
        """Return the rows of the cells that were divided, where each cell takes so many seconds."""
        now = [0.0]
        monkeypatch.setattr("time.monotonic", lambda: now[0])
        search = by_sample()
        search.search.clock = Clock(Budget(1000.0))
        seen: list[int] = []
        real = all_cells.AllCells.divide

        def divided(self, stem, rows, most=None):
            seen.append(rows)
            return real(self, stem, rows, most)

        def fit_cell(kernel, sample, shift, **more):
            now[0] += next(took, 1.0)
            return cell_fit.CellFit(
                xp.to_float64(sample.Y), np.zeros((len(sample.held_X), 1), np.float32), shift
            )

        monkeypatch.setattr(all_cells.AllCells, "divide", divided)
        monkeypatch.setattr(cell_solver, "fit_cell", fit_cell)
        found, took = iter(sizes), iter([1.0, *seconds])
        monkeypatch.setattr(cell_sizes, "rows_measured", lambda *_: next(found))
        list(search.steps())
        return tuple(seen[1:])

    def test_slow_cells_become_smaller(self, monkeypatch):
        found = self.fits(monkeypatch, [400.0, 90.0], [(400, 1176), (100, 1176), (100, 1176)])
        assert found == (400, 100)

    def test_fast_cells_become_larger(self, monkeypatch):
        found = self.fits(monkeypatch, [1.0, 1.0], [(100, 1176), (400, 1176), (400, 1176)])
        assert found == (100, 400)

    def test_cells_that_were_slow_do_not_become_larger_again(self, monkeypatch):
        found = self.fits(monkeypatch, [400.0, 1.0], [(400, 1176), (100, 1176), (400, 1176)])
        assert found == (400, 100)


def test_a_cell_without_time_is_not_tried_again(monkeypatch):
    tries = []
    real = cell_fit._solve_cell
    monkeypatch.setattr(cell_fit, "_solve_cell", lambda *a: tries.append(1) or real(*a))
    monkeypatch.setattr(cell_fit, "is_bad", lambda *_: True)
    X = rows(50)
    sample = Sample(X, smooth(X), X, smooth(X))
    for left, count in ((0.0, 1), (math.inf, 2)):
        tries.clear()
        rng = RandomStream(0)
        cell_fit.fit_cell(Gaussian(1.0), sample, 1e-3, clock=Clock(), left=left, rng=rng)
        assert len(tries) == count  # a larger shift does not help here
