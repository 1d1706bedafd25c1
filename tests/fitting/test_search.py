"""The order of a search of many rows: a sample, cells, and the sample again where these lose."""

from __future__ import annotations

import itertools
from dataclasses import replace
from unittest.mock import MagicMock

import numpy as np
import pytest
from trials import trial

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.fitting import TrainingData
from gramian.fitting.search import fit as automatic
from gramian.fitting.search import larger_fit
from gramian.fitting.search.settings import SearchSettings
from gramian.search import Budget, Space


class Told:
    """A search that says which steps it makes."""

    is_nothing = False

    def is_noise(self):
        return self.is_nothing

    def __init__(self, *names: str) -> None:
        self.names = names

    def sampled_steps(self):
        yield "screen"

    def whole_steps(self):
        yield "fit"

    def steps(self):
        yield "cells"


@pytest.mark.parametrize("wins", [True, False])
def test_the_sample_is_fitted_whole_where_cells_are_no_better(wins, monkeypatch):
    monkeypatch.setattr(automatic, "members_of_cells", lambda _: ["a member"] if wins else [])
    found = list(automatic._by_cells(Told(), Told()))
    assert found == ["screen", "cells"] + ([] if wins else ["fit"])
    noise = Told()
    noise.is_nothing = True
    assert list(automatic._by_cells(noise, Told())) == ["screen"]


@pytest.mark.parametrize(("loss", "count"), [(0.9, 1), (1.04, 1), (1.06, 0), (float("nan"), 0)])
def test_cells_are_taken_unless_the_sample_has_a_clearly_smaller_error(loss, count, monkeypatch):
    for name in ("importances", "CellCenters"):
        monkeypatch.setattr(larger_fit, name, lambda *_: None)
    by_cells = MagicMock(models=[MagicMock()], weights=[1.0])
    by_cells.squared_error.return_value, by_cells.search.best_stem.return_value.loss = loss, 1.0
    assert len(larger_fit.members_of_cells(by_cells)) == count


@pytest.fixture
def search():
    rng = RandomStream(0)
    X = xp.to_float64(rng.standard_normal((60, 2), np.float32))
    data = TrainingData(as_rows(X), np.sin(X[:, :1]))

    def run(budget):
        settings = SearchSettings(budget=Budget.of(budget))
        return automatic.search_fit(data, settings, RandomStream(0))

    return run


class TestCpuTime:
    def test_it_limits_a_search_and_the_wall_clock_does_not(self, search, monkeypatch):
        # Each reading of the CPU takes a tenth of a second; the wall clock jumps.
        cpu, wall = itertools.count(), itertools.count(step=1e6)
        monkeypatch.setattr("time.monotonic", lambda: float(next(wall)))
        monkeypatch.setattr("time.process_time", lambda: next(cpu) / 10)
        short, long = search("3 cpu s"), search("1000 cpu s")
        assert len(short.trials) < len(long.trials)
        assert 2 < short.seconds < 6
        assert long.seconds < 1000
        assert short.left_out
        assert not long.left_out

    def test_cells_stay_in_the_process(self, monkeypatch):
        def apart(budget):
            settings = SearchSettings(budget=Budget.of(budget))
            return automatic._search(settings, MagicMock(), MagicMock(), MagicMock()).apart

        assert not apart("3 cpu s")
        assert apart("3 s")


class TestLeftOut:
    @pytest.fixture
    def log(self, caplog):
        def run(gain, budget, left_out=("learned metrics",)):
            caplog.clear()
            search = MagicMock(left_out=left_out, fits=[])
            search.clock.budget = Budget.of(budget)
            trials = [trial("screen", 1.0), replace(trial("fit", (1 - gain) ** 2), elapsed=4.0)]
            with caplog.at_level("INFO"):
                automatic._report_left_out(search, trials, [])
            return [(record.levelname, record.getMessage()) for record in caplog.records]

        return run

    def test_a_line_names_the_steps_and_the_fall(self, log):
        (line,) = log(0.25, "3 s", ("learned metrics", "kernels"))
        assert line == (
            "WARNING",
            "the budget ended the search before planned steps: learned metrics, kernels; the "
            "held-out error fell by 25.0 % in the second half of its time",
        )

    @pytest.mark.parametrize(("gain", "budget"), [(0.01, "3 s"), (0.25, 1000)])
    def test_it_is_a_remark_without_a_fall_or_for_evaluations(self, log, gain, budget):
        (line,) = log(gain, budget)
        assert line[0] == "INFO"

    def test_nothing_is_said_of_a_search_that_has_ended(self, log):
        assert log(0.25, "3 s", ()) == []

    @pytest.mark.parametrize(
        ("budget", "step"),
        [(1e3, "kernels and inputs"), (4e4, "learned metrics"), (2e5, "lengthscales and kernels")],
    )
    def test_steps_by_the_size_of_the_budget(self, search, budget, step):
        left_out = search(budget).left_out
        assert any(step in name for name in left_out)


class TestNothingToGain:
    @staticmethod
    def trials(y, shape=(150, 3), **settings):
        """Return the trials of a search without a budget, and whether the result is constant."""
        rng = RandomStream(1)
        X = xp.to_float64(rng.standard_normal(shape, np.float32))
        noise = xp.to_float64(rng.standard_normal((shape[0], 1), np.float32))
        data = TrainingData(as_rows(X), y(X, noise))
        searched = automatic.search_fit(data, SearchSettings(**settings), RandomStream(0))
        is_constant = not any(bool(part.coef.any()) for part in searched.model.parts)
        return [trial.step for trial in searched.trials], is_constant

    @pytest.mark.filterwarnings("ignore:nothing was learned")
    def test_noise_ends_a_search_after_the_screen(self):
        steps, is_constant = self.trials(lambda X, noise: noise)
        assert set(steps) == {"screen", "refit"}
        assert is_constant

    def test_a_weak_signal_does_not(self):
        steps, is_constant = self.trials(lambda X, noise: X[:, :1] + 1.5 * noise)
        assert {"screen", "metric", "fit"} <= set(steps)
        assert not is_constant

    def test_an_exact_default_ends_a_search_at_once(self):
        steps, is_constant = self.trials(lambda X, noise: X.sum(axis=1, keepdims=True))
        assert steps == ["fit", "refit"]
        assert not is_constant

    def test_a_linear_target_ends_a_search_at_once(self):
        steps, _ = self.trials(lambda X, noise: 3 * X.sum(axis=1, keepdims=True) + noise, (300, 5))
        assert steps == ["fit", "refit"]

    def test_a_search_goes_on_beyond_a_linear_default(self):
        def target(X, noise):
            return 3 * X.sum(axis=1, keepdims=True) + X[:, :1] * X[:, 1:2] + noise

        steps, _ = self.trials(target, (300, 5))
        assert {"screen", "metric"} <= set(steps)

    @pytest.mark.filterwarnings("ignore:nothing was learned")
    def test_noise_ends_a_search_though_folds_choose_their_penalties(self):
        rng = np.random.default_rng(0)
        X, noise = rng.standard_normal((500, 10)), rng.standard_normal((500, 1))
        data = TrainingData(as_rows(X), noise)
        searched = automatic.search_fit(data, SearchSettings(), RandomStream(0))
        # Three inputs of one kernel, then the best of these with the other three.
        assert [trial.step for trial in searched.trials] == ["screen"] * 6 + ["refit"]

    def test_smooth_kernels_alone_show_no_noise(self):
        space = Space(kernels=("gaussian",))
        steps, _ = self.trials(lambda X, noise: np.sin(20 * X[:, :1]), space=space)
        assert "fit" in steps
