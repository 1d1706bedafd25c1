"""Cells that are chosen and fitted: within the time, checked, and none of them bad."""

from __future__ import annotations

import math

import pytest
import torch

from gramian.kernels import Gaussian, Laplacian
from gramian.metric import RecursiveFeatureMachine
from gramian.paths.sample import Sample
from gramian.search import (
    Budget,
    CellSearch,
    Clock,
    Material,
    Search,
    Space,
    Split,
    cell_fit,
    cell_sizes,
)
from gramian.search.cell_sizes import inflated

pytestmark = pytest.mark.usefixtures("unchecked")

SPACE = Space(("laplacian",), ("standard",), (0.25, 1.0), None, averages=False)


def rows(n: int, d: int = 2) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def smooth(X: torch.Tensor) -> torch.Tensor:
    return (3 * X[:, :1]).sin() + X[:, 1:2]


def by_sample(n: int = 1200, *, t: int = 1, weighted: bool = False, **how: object) -> CellSearch:
    """Return a search by cells, after one on a quarter of the rows."""
    X, rng = rows(n), torch.Generator().manual_seed(0)
    Y = smooth(X).repeat(1, t) * torch.arange(1.0, t + 1)
    w = torch.rand(n, generator=rng).double() + 0.5 if weighted else None
    index = torch.randperm(n, generator=rng)[: n // 4].sort().values
    some = None if w is None else w[index]
    sample = Material.of(X[index], Y[index], some, rng=rng)
    found = Search(sample, SPACE, how.pop("clock", Clock()))
    list(found.sampled_steps())
    held = index[sample.splits[0].held]
    learn = torch.ones(n, dtype=torch.bool)
    learn[held] = False
    whole = Material.of(X, Y, w, splits=[Split(learn.nonzero()[:, 0], held)], rng=rng)
    return CellSearch(found, whole)


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
        found, total = search.found, 0
        assert found.cells.count >= 4
        w, learn = search.material.weights, search.material.splits[0].learn
        for number, index in enumerate(found.cells.members(search.material.X[learn], rng=None)):
            rows_of = learn[index]
            a, b = found.starts[number], found.starts[number + 1]
            X, Y = search.material.X[rows_of], search.material.Y[rows_of]
            assert torch.equal(found.centers[a:b], X)
            ridge = torch.ones(len(X)).double() if w is None else 1 / w[rows_of]
            K = found.kernel(X, X) + found.shifts[number] * torch.diag(ridge)
            assert torch.allclose(K @ found.coef[a:b], Y, atol=1e-6)
            total += len(X)
        assert total == len(found.centers)
        assert [trial.step for trial in trials][-1] == "cells"
        assert set(found.shifts) == {found.fit.shift}

    def test_they_are_better_than_the_sample(self, monkeypatch):
        monkeypatch.setattr(cell_sizes, "USUAL_ROWS", 1000)
        search = by_sample(4000)
        list(search.steps())
        assert search.found.loss < 0.8 * search.search.least().loss

    def test_values_are_those_of_the_held_out_rows(self):
        search = by_sample()
        list(search.steps())
        found, held = search.found, search.material.splits[0].held
        Z, values = search.material.X[held], torch.zeros(len(held), 1, dtype=torch.float64)
        for share in found.cells.route(Z):
            a, b = found.starts[share.cell], found.starts[share.cell + 1]
            K = found.kernel(Z[share.index], found.centers[a:b])
            values[share.index] += share.weight[:, None] * (K @ found.coef[a:b])
        assert torch.allclose(values, found.values, atol=1e-8)

    def test_they_are_chosen_by_cells_with_the_metric_of_the_sample(self):
        search = by_sample()
        search.search.space = Space(
            ("laplacian",), ("standard",), (0.25, 1.0), RecursiveFeatureMachine(rounds=2)
        )
        list(search.steps())
        assert search.pilot.space.machine is None
        assert len(search.pilot.material.splits) == 3
        assert all(fit.stem.maps == (None,) * 3 for fit in search.pilot.fits)


class TestTime:
    @pytest.mark.parametrize("evaluations", [1e5, 1e6, 4e7])
    def test_larger_budgets_have_larger_cells(self, evaluations):
        search = by_sample(clock=Clock(Budget(evaluations=evaluations)))
        list(search.steps())
        sizes = [] if search.found is None else search.found.starts.diff().tolist()
        assert search.search.clock.meter.evaluations <= 1.1 * evaluations
        if evaluations == 4e7:
            assert max(sizes) > 300

    def test_cells_that_have_no_time_are_none(self):
        clock = Clock(Budget(seconds=1e9))
        search = by_sample(clock=clock)
        clock.started = -math.inf
        list(search.steps())
        assert search.found is None or math.isfinite(search.found.loss)

    @pytest.mark.parametrize("rows", [100, 333, 5000])
    def test_rows_with_bands(self, rows):
        assert inflated(5000, rows) >= 5000
        assert inflated(5000, rows) <= 5000 * 1.1**7


class TestBadCells:
    def sample(self, Y: torch.Tensor) -> Sample:
        X = rows(400)
        return Sample(X[:300], Y[:300], X[300:], Y[300:])

    def fit(self, sample: Sample, shift: float, kernel=None) -> cell_fit.CellFit:
        kernel = Laplacian(1.0) if kernel is None else kernel
        return cell_fit.fit_cell(kernel, sample, shift, clock=Clock(), rng=torch.Generator())

    def test_a_good_one_keeps_its_shift(self):
        assert self.fit(self.sample(smooth(rows(400))), 0.01).shift == 0.01

    def test_noise_that_is_interpolated_has_a_larger_shift(self):
        noise = torch.randn(400, 1, generator=torch.Generator().manual_seed(3)).double()
        found = self.fit(self.sample(noise), 1e-10, Gaussian(3.0))
        assert found.shift > 1e-10
        assert not cell_fit.is_bad(found.values, self.sample(noise))

    def test_of_one_that_stays_bad_the_best_is_taken(self, monkeypatch):
        monkeypatch.setattr(cell_fit, "is_bad", lambda *_: True)
        found = self.fit(self.sample(smooth(rows(400))), 0.01)
        assert found.shift == 0.01

    def test_one_without_any_number_is_the_mean(self, monkeypatch):
        real = cell_fit._solved

        def solved(*args: object) -> cell_fit.CellFit:
            found = real(*args)
            return cell_fit.CellFit(found.coef, math.nan * found.values, found.shift)

        monkeypatch.setattr(cell_fit, "_solved", solved)
        found = self.fit(self.sample(smooth(rows(400))), 0.01)
        assert not bool(found.coef.any())
        assert not bool(found.values.any())

    def test_numbers_that_are_none_are_bad(self):
        sample = self.sample(smooth(rows(400)))
        assert cell_fit.is_bad(torch.full((100, 1), math.nan).double(), sample)
        assert not cell_fit.is_bad(sample.held_Y, sample)

    def test_rows_that_cannot_be_divided_are_drawn_from(self):
        search = by_sample()
        search.material.X[:900] = 0.5
        list(search.steps())
        assert max(search.found.starts.diff().tolist()) <= 450

    def test_few_held_out_rows_do_not_condemn_a_cell(self):
        sample = self.sample(smooth(rows(400)))
        few = Sample(sample.X, sample.Y, sample.held_X[:3], sample.held_Y[:3])
        assert not cell_fit.is_bad(sample.held_Y[:3] + 3.0, few)
        assert cell_fit.is_bad(sample.held_Y[:3] + 300.0, few)

    def test_a_cell_of_one_class_is_not_bad_for_a_small_error(self):
        sample = self.sample(torch.ones(400, 1).double())
        assert not cell_fit.is_bad(0.99 * torch.ones(100, 1).double(), sample)
        assert cell_fit.is_bad(0.5 * torch.ones(100, 1).double(), sample)
        assert cell_fit.is_bad(torch.full((100, 1), 12.0).double(), sample)

    @pytest.mark.parametrize("shift", [1e-3, 0.01, 1.0])
    def test_float32_and_many_rows(self, shift, monkeypatch):
        monkeypatch.setattr(cell_fit, "DIRECT_ROWS", 50)
        Y = smooth(rows(400)) + 0.1 * torch.randn(400, 1).double()
        exact = self.fit(self.sample(Y), shift)
        sample = self.sample(Y)
        single = Sample(*(x.float() for x in (sample.X, sample.Y, sample.held_X, sample.held_Y)))
        found = self.fit(single, shift)
        assert found.shift == shift
        assert float((found.values - exact.values).abs().max()) < 0.05
