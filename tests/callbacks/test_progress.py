"""Progress: a bar in terminals and notebooks, lines elsewhere, of fits and of searches."""

from __future__ import annotations

import copy
import logging
import pickle
import re
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from clock import wait_until
from sklearn.base import clone
from trials import TRIALS, trial

from gramian import KernelRidge, KernelRidgeCV, kernels
from gramian.callbacks import Progress
from gramian.callbacks.progress import can_draw_bars
from gramian.operators import KernelOperator
from gramian.problems import NystromProblem
from gramian.solvers import Falkon, max_iterations, solve

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3))
Y = np.sin(2 * X[:, 0])
PLAIN = {"kernel": "gaussian", "lengthscale": 1.0, "penalty": 1e-3, "random_state": 0}


def run_falkon(progress: Progress, iterations: int) -> None:
    x = X
    operator = KernelOperator(kernels.Gaussian(1.0), x, x[:20])
    problem = NystromProblem(operator, Y[:, None], 1e-3)
    solve(problem, Falkon(), stop=[max_iterations(iterations)], callbacks=[progress])


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr("gramian.callbacks.progress.can_draw_bars", lambda: True)


@pytest.fixture
def notebook(monkeypatch):
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


@pytest.mark.usefixtures("terminal")
class TestBar:
    def test_a_fit_writes_to_stderr_only(self, capsys):
        with Progress(total=3) as bar:
            run_falkon(bar, 3)
        out, err = capsys.readouterr()
        assert out == ""
        assert "3/3 [00:00] iterating 3: prediction_error" in err

    def test_the_bar_is_full_after_fewer_iterations(self, capsys):
        with Progress(total=10) as bar:
            run_falkon(bar, 3)
        assert "3/3" in capsys.readouterr().err

    def test_the_bar_stays_as_it_was_after_an_error(self, capsys):
        bar = Progress(total=10)
        state = SimpleNamespace(iteration=3, metrics={})
        with pytest.raises(ZeroDivisionError), bar:
            _ = bar(None, state) or 1 / 0
        assert "3/10" in capsys.readouterr().err
        assert bar._bar is None

    def test_parts_of_a_stage(self, capsys):
        with Progress(total=100) as bar:
            bar.stage("fitting cells")
            for number in range(3):
                bar.part(number + 1, 4)
        said = capsys.readouterr().err
        assert "0/4 [00:00] fitting cells" in said
        assert "3/3 [00:00] fitting cells 3 of 4" in said

    def test_a_search_has_a_line_for_each_step(self, capsys):
        with Progress(total=20.0) as bar:
            for one in TRIALS:
                bar(one)
        said = capsys.readouterr().err
        for text in ("screen 0.8", "metric 0.6 (14.3 % less)", "average 0.15 (50.0 % less)"):
            assert said.count(f"{text}\n") == 1, text

    def test_the_bar_of_a_search_counts_seconds_or_trials(self, capsys):
        for total, position in ((20.0, "3.5/3.5 ["), (1.0, "1.0/1.0 ["), (float("inf"), "5 [")):
            with Progress(total=total) as bar:
                for one in TRIALS[:5]:
                    bar(one)
            assert position in capsys.readouterr().err

    def test_the_clock_goes_on_while_an_iteration_lasts(self, monkeypatch, capsys):
        monkeypatch.setattr("gramian.callbacks.progress.BAR_INTERVAL_SECONDS", 0.01)
        shown = []
        with Progress() as bar:
            monkeypatch.setattr(bar._bar, "refresh", lambda: shown.append(1))
            wait_until(lambda: len(shown) >= 2)
        capsys.readouterr()

    def test_silent_outside_of_the_context(self, capsys):
        bar = Progress(total=3)
        bar.stage("reading")
        bar(trial("screen", 0.25))
        run_falkon(bar, 3)
        assert capsys.readouterr() == ("", "")

    def test_the_bar_can_be_used_again_copied_and_pickled(self, capsys):
        bar = Progress(total=2)
        for _ in range(2):
            with bar:
                run_falkon(bar, 2)
                copy.deepcopy(bar)
                pickle.loads(pickle.dumps(bar))
        # A machine that is busy redraws a bar by the clock, so its last state alone is counted.
        lines = capsys.readouterr().err.removesuffix("\n").split("\n")
        assert ["2/2" in line.rsplit("\r", 1)[-1] for line in lines] == [True, True]

    def test_no_thread_is_left(self, capsys):
        threads = threading.active_count()
        with Progress():
            assert threading.active_count() > threads
        wait_until(lambda: threading.active_count() == threads)
        capsys.readouterr()


@pytest.mark.parametrize("answer", [True, False])
def test_bars_are_drawn_in_terminals(answer, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: answer, raising=False)
    assert can_draw_bars() is answer


class TestLines:
    def test_trials_and_gains(self):
        lines = Progress(print)
        assert lines.line() == "reading"
        lines.stage("encoding")
        assert lines.line() == "encoding"
        for one in TRIALS:
            lines(one)
            if one.step == "metric" and one.recipe.rounds == 1:
                assert lines.line() == (
                    "learning a metric, trial 4: laplacian, 1 medians, standard inputs, metric of "
                    "round 1, M^0.5, error 0.6; screen 0.8, sample 0.7 (12.5 % less), metric 0.6 "
                    "(14.3 % less)"
                )
        assert lines.line().startswith("fitting held-out rows, too, trial 9: laplacian")
        assert "error" not in lines.line()

    def test_parts_of_a_stage(self):
        lines = Progress(print)
        lines.stage("fitting cells")
        lines.part(1, 2000)
        lines.part(2, 2000)
        assert lines.line() == "fitting cells 2 of 2,000"

    def test_a_line_now_and_then_within_the_context(self):
        said: list[str] = []
        lines = Progress(said.append, every_seconds=0.01)
        with lines:
            lines(trial("screen", 0.25))
            wait_until(lambda: len(said) >= 2)
        count = len(said)
        assert said[-1].endswith("error 0.5; screen 0.5, 0 s")
        time.sleep(0.05)
        assert len(said) == count

    def test_a_short_run_has_none(self, capsys):
        with Progress() as lines:
            run_falkon(lines, 2)
        assert capsys.readouterr() == ("", "")

    def test_a_line_of_each_second_iteration(self, caplog):
        with caplog.at_level("INFO", logger="gramian"):
            run_falkon(Progress(logging.getLogger("gramian").info, every=2), 4)
        lines = [record.getMessage() for record in caplog.records]
        assert [line.split(":")[0] for line in lines] == [f"iterating {k}" for k in (0, 2, 4)]
        assert all("prediction_error" in line and "seconds" in line for line in lines)

    def test_in_a_search(self):
        lines = Progress(print)
        KernelRidgeCV(budget=1e5, callbacks=[lines], random_state=0).fit(X, Y)
        assert lines.line().startswith("fitting held-out rows, too, trial ")
        assert ", fit " in lines.line()

    @pytest.mark.parametrize("name", ["every", "every_seconds"])
    def test_intervals_are_checked(self, name):
        with pytest.raises(ValueError, match=f"{name} must be"):
            Progress(print, **{name: 0})


class TestVerbose:
    def fit(self, verbose):
        KernelRidge(landmarks=20, verbose=verbose, **PLAIN).fit(X, Y)

    def search(self, **parameters):
        KernelRidgeCV(budget=1e5, random_state=0, **parameters).fit(X, Y)

    @pytest.mark.usefixtures("terminal")
    def test_defaults_are_silent_in_a_terminal(self, capsys):
        self.search()
        KernelRidge(landmarks=20, **PLAIN).fit(X, Y)
        assert capsys.readouterr() == ("", "")

    @pytest.mark.usefixtures("notebook")
    def test_a_search_in_a_notebook_has_a_bar_by_itself(self, capsys):
        self.search()
        assert "fitting held-out rows, too" in capsys.readouterr().err
        self.search(verbose=0)
        KernelRidge(landmarks=20, **PLAIN).fit(X, Y)
        assert capsys.readouterr() == ("", "")
        self.fit("auto")
        assert "iterating" in capsys.readouterr().err

    @pytest.mark.usefixtures("terminal")
    @pytest.mark.parametrize("verbose", [True, 1])
    def test_one_is_a_bar_in_a_terminal(self, verbose, capsys):
        self.fit(verbose)
        said = capsys.readouterr().err
        assert re.search(r"\d+/\d+ \[00:0\d\] iterating \d+: ", said)
        assert "\niterating" not in said

    def test_one_is_silent_in_a_short_script(self, capsys):
        self.fit(1)
        assert capsys.readouterr() == ("", "")

    def test_two_is_a_line_for_each_iteration(self, capsys):
        self.fit(2)
        out, err = capsys.readouterr()
        assert out == ""
        lines = [line.split(":")[0] for line in err.splitlines()]
        assert lines[:3] == ["reading", "choosing landmarks", "preparing"]
        assert lines[3:] == [f"iterating {k}" for k in range(len(lines) - 3)]

    @pytest.mark.usefixtures("terminal")
    def test_two_is_a_bar_and_lines_in_a_terminal(self, capsys):
        self.search(verbose=2)
        said = capsys.readouterr().err
        assert "screening kernels and inputs, trial 1: " in said
        assert "| 0/? [" in said or "[00:00]" in said

    def test_results_are_the_same(self, capsys):
        silent, shown = (
            KernelRidge(landmarks=20, verbose=verbose, **PLAIN).fit(X, Y) for verbose in (0, 2)
        )
        np.testing.assert_array_equal(silent.dual_coef_, shown.dual_coef_)
        capsys.readouterr()

    def test_by_cells(self, capsys):
        KernelRidge(cells=20, verbose=2, **PLAIN).fit(X, Y)
        assert "fitting cells 5 of 5" in capsys.readouterr().err

    @pytest.mark.parametrize("verbose", [-1, 0.5, "yes", None])
    @pytest.mark.parametrize("estimator", [KernelRidge, KernelRidgeCV])
    def test_other_values_are_refused(self, estimator, verbose):
        with pytest.raises(ValueError, match="verbose must be 0, 1, 2 or 'auto'"):
            estimator(verbose=verbose).fit(X, Y)


@pytest.mark.parametrize("callback", [Progress(total=9.0), Progress(print)])
def test_callbacks_can_be_cloned_and_pickled(callback):
    est = KernelRidgeCV(callbacks=[callback])
    with callback:
        again = pickle.loads(pickle.dumps(clone(est)))
    again.callbacks[0](trial("screen", 0.25))
    assert again.callbacks[0].__getstate__().keys() == callback.__getstate__().keys()
