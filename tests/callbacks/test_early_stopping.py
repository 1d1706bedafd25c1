"""The best state on held-out rows: kept, counted from, and saved with the last one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.callbacks import Checkpoint, KeepBest, Validate, load_state, save_state
from gramian.callbacks.checkpoint_file import read_state
from gramian.kernels import Gaussian
from gramian.operators import KernelOperator
from gramian.problems import NystromProblem
from gramian.solvers import Direct, Falkon, Interrupted, State, deadline, max_iterations, solve

N, D, M = 200, 2, 40


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return RandomStream(seed).standard_normal(shape, np.float64)


def problem_of(penalty: float = 1e-10) -> NystromProblem:
    """Return a noisy problem: what fits it well predicts other rows worse."""
    X, y = numbers(N, D), numbers(N, 1, seed=1)
    return NystromProblem(KernelOperator(Gaussian(1.0), X, X[:M]), 3 * X[:, :1] + y, penalty)


def validate(**more: Any) -> Validate:
    X = numbers(30, D, seed=2)
    return Validate(X, 3 * X[:, :1], **more)


def errors(history: list[dict[str, Any]]) -> list[float]:
    return [row["valid_rmse"] for row in history if "valid_rmse" in row]


class TestKeepBest:
    @pytest.mark.parametrize("patience", [1, 3])
    def test_the_best_state_is_kept_and_the_last_is_so_many_looks_later(self, patience):
        keep = KeepBest(patience)
        result = solve(
            problem_of(),
            Falkon(),
            callbacks=[validate(), keep],
            stop=[max_iterations(40), keep.rule],
        )
        found = errors(result.history)
        assert keep.best is not None
        assert result.reason == "early_stopping"
        assert keep.best.iteration == found.index(min(found)) == len(found) - 1 - patience > 0
        assert keep.best.metrics["valid_rmse"] == min(found)
        until = solve(problem_of(), Falkon(), stop=[max_iterations(keep.best.iteration)])
        assert np.array_equal(until.state.coef, keep.best.coef)
        assert not np.array_equal(result.state.coef, keep.best.coef)

    def test_looks_are_counted_and_not_iterations(self):
        keep = KeepBest(2, every=3)
        result = solve(
            problem_of(),
            Falkon(),
            callbacks=[validate(every=3), keep],
            stop=[max_iterations(60), keep.rule],
        )
        assert keep.best is not None
        assert result.state.iteration == keep.best.iteration + 6

    def test_it_is_kept_whatever_ends_the_run(self):
        keep = KeepBest(100)
        solve(problem_of(), Falkon(), callbacks=[validate(), keep], stop=[max_iterations(12)])
        assert keep.best is not None
        assert 0 < keep.best.iteration < 12

    def test_wrong_classes_come_first_and_squares_decide_between_equals(self):
        keep = KeepBest(9)
        looks = [(0.5, 1.0), (0.2, 3.0), (0.2, 2.0), (0.2, 2.0), (0.3, 0.1)]
        for k, (wrong, squares) in enumerate(looks):
            metrics = {"valid_error": wrong, "valid_rmse": squares}
            keep(problem_of(), State(k, np.zeros((M, 1), np.float32), metrics))
        assert keep.best is not None
        assert keep.best.iteration == 2

    @pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
    def test_a_state_without_an_error_is_not_kept(self, value):
        keep = KeepBest()
        metrics = {} if value is None else {"valid_rmse": value}
        keep(problem_of(), State(0, np.zeros((M, 1), np.float32), metrics))
        assert keep.best is None
        assert keep.rule([{"iteration": 9}]) is None

    @pytest.mark.parametrize("name", ["patience", "every"])
    def test_numbers_are_checked(self, name):
        with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1"):
            KeepBest(**{name: 0})


class TestTheFile:
    def test_holds_the_best_state_beside_the_last(self, tmp_path):
        path = tmp_path / "state"
        last, best = State(7, numbers(4, 1)), State(3, numbers(4, 1, seed=1), {"valid_rmse": 0.5})
        save_state(path, last, {}, best)
        found = read_state(path)
        assert found.best is not None
        assert np.array_equal(found.state.coef, last.coef)
        assert np.array_equal(found.best.coef, best.coef)
        assert (found.best.iteration, found.best.metrics) == (3, {"valid_rmse": 0.5})
        assert load_state(path).iteration == 7

    def test_without_one_is_read_by_older_versions(self, tmp_path):
        save_state(tmp_path / "a", State(0, numbers(4, 1)))
        save_state(tmp_path / "b", State(0, numbers(4, 1)), {}, State(0, numbers(4, 1)))
        assert [read_state(tmp_path / name).version for name in "ab"] == [2, 3]

    def test_of_a_best_state_that_does_not_fit_is_refused(self, tmp_path):
        path = tmp_path / "state"
        checkpoint = Checkpoint(path)
        checkpoint.best = State(0, numbers(M + 1, 1))
        solve(problem_of(), Falkon(), stop=[max_iterations(1)], callbacks=[checkpoint])
        with pytest.raises(ValueError, match="damaged"):
            Checkpoint(path).restore(problem_of(), Falkon())

    def test_a_run_that_goes_on_has_the_same_best_and_as_much_patience(self, tmp_path):
        def run(path: Path, most: int, state: Any = None, checkpoint: Any = None) -> Any:
            checkpoint = checkpoint or Checkpoint(path)
            keep = KeepBest(4, checkpoints=[checkpoint])
            callbacks = [validate(), keep, checkpoint]
            stop = [max_iterations(most), keep.rule]
            result = solve(problem_of(), Falkon(), stop=stop, callbacks=callbacks, state=state)
            assert checkpoint.best is None  # it is left to the next run
            return result, keep.best

        whole, best = run(tmp_path / "whole", 60)
        run(tmp_path / "part", best.iteration + 2)
        checkpoint = Checkpoint(tmp_path / "part")
        state = checkpoint.restore(problem_of(), Falkon())
        assert state is not None
        resumed, again = run(tmp_path / "part", 60, state, checkpoint)
        assert (resumed.reason, resumed.state.iteration) == (whole.reason, whole.state.iteration)
        assert again.iteration == best.iteration
        assert np.array_equal(again.coef, best.coef)


class TestWeights:
    def test_are_those_of_both_errors(self):
        X, weights = numbers(30, D, seed=2), np.linspace(0, 2, 30, dtype=np.float64)
        y = xp.to_float64(X[:, :1] > 0) * 2 - 1
        problem = problem_of()
        look = Validate(X, y, coded=True, weights=weights)
        last = solve(problem, Falkon(), stop=[max_iterations(3)], callbacks=[look])
        f = problem.model(last.state.coef).predict(X)
        square = float((weights * (f - y)[:, 0] ** 2).sum() / weights.sum())
        wrong = float((weights * (f * y < 0)[:, 0]).sum() / weights.sum())
        row = last.history[-1]
        assert row["valid_rmse"] == pytest.approx(square**0.5, rel=1e-12)
        assert row["valid_error"] == pytest.approx(wrong, rel=1e-12)


class TestTheClock:
    def test_a_deadline_counts_callbacks(self, clock):
        def slow(problem: Any, state: State) -> None:
            clock.advance(0.0625)

        stop = [max_iterations(1000), deadline(0.2)]
        result = solve(problem_of(), Falkon(), stop=stop, callbacks=[slow])
        assert result.reason == "time_limit"
        assert result.state.iteration == 3

    def test_a_closed_form_is_not_cut_off(self):
        assert solve(problem_of(), Direct(), stop=[deadline(0)]).reason == "converged"


class TestInterrupted:
    @pytest.mark.parametrize("after", [0, 3])
    def test_says_what_the_run_has_come_to(self, after):
        def stop(problem: Any, state: State) -> None:
            if state.iteration == after:
                raise KeyboardInterrupt

        with pytest.raises(Interrupted) as caught:
            solve(problem_of(), Falkon(), stop=[max_iterations(9)], callbacks=[stop])
        found = caught.value.result
        whole = solve(problem_of(), Falkon(), stop=[max_iterations(after)])
        assert found.reason == "interrupted"
        assert np.array_equal(found.state.coef, whole.state.coef)
        assert [row["iteration"] for row in found.history] == list(range(after + 1))

    def test_before_the_first_state_nothing_is_said(self, monkeypatch):
        def interrupt(*arguments: Any) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr(Falkon, "factor", interrupt)
        with pytest.raises(KeyboardInterrupt) as caught:
            solve(problem_of(), Falkon())
        assert caught.type is KeyboardInterrupt
