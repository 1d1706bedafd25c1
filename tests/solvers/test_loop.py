"""The loop: history, stopping rules, callbacks, clocks and meters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import (
    PCG,
    Direct,
    Falkon,
    ProblemSize,
    Solver,
    State,
    max_iterations,
    patience,
    solve,
    time_limit,
    tolerance,
)
from gramian.solvers.loop import loop

N, M = 30, 7


def full(n: int = N, dtype: np.dtype = np.float64) -> FullProblem:
    X = xp.cast(RandomStream(0).standard_normal((n, 3), np.float32), dtype)
    K = KernelOperator(kernels.Gaussian(1.0), X, X)
    return FullProblem(K, xp.to_float64(X[:, :2]), 1e-2)


def nystrom(dtype: np.dtype = np.float64) -> NystromProblem:
    problem = full(dtype=dtype)
    return NystromProblem.at(problem.K, np.arange(M), problem.targets, 1e-2)


@dataclass(frozen=True)
class Scripted(Solver[Any, State]):
    """Yields one state for each of the given metrics; takes as long as `work` pretends."""

    values: Sequence[float] = ()
    work: Callable[[], None] = lambda: None
    endless: bool = True
    coef: float = 0.0
    problem_types: ClassVar[tuple[type, ...]] = (FullProblem, NystromProblem)

    def iterate(
        self, problem: Any, state: State | None = None, *, rng: RandomStream | None = None
    ) -> Iterator[State]:
        for k, value in enumerate(self.values):
            self.work()
            yield State(k, np.full((N, 2), self.coef), {"loss": value})
        k = len(self.values)
        while self.endless:
            self.work()
            yield State(k, np.full((N, 2), self.coef))
            k += 1

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        return size.vector_bytes

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        return 0

    def operations(self, size: ProblemSize, iterations: int) -> float:
        return 0.0


@dataclass
class Clock:
    """A clock that moves when it is told to."""

    now: float = 0.0
    calls: list[float] = field(default_factory=list)

    def perf_counter(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(loop, "time", fake)
    return fake


class TestHistory:
    def test_a_row_per_state(self):
        result = solve(nystrom(), Falkon(), stop=[max_iterations(4)])
        assert [row["iteration"] for row in result.history] == [0, 1, 2, 3, 4]
        for row in result.history:
            assert next(iter(row)) == "iteration"
            assert {"seconds", "kernel_evaluations", "rel_residual", "condition"} <= set(row)
        seconds = [row["seconds"] for row in result.history]
        assert seconds == sorted(seconds)

    def test_callbacks_take_no_time(self, clock):
        solver = Scripted([1.0] * 5, work=lambda: clock.pass_by(1.0))
        result = solve(
            full(),
            solver,
            stop=[max_iterations(4)],
            callbacks=[lambda problem, state: clock.pass_by(100.0)],
        )
        assert [row["seconds"] for row in result.history] == [1, 2, 3, 4, 5]

    def test_a_resumed_run_goes_on_counting(self, clock):
        problem, solver = full(), Scripted([], work=lambda: clock.pass_by(1.0))
        before = State(
            7, np.zeros((N, 2), np.float32), {"seconds": 50.0, "kernel_evaluations": 1000}
        )
        problem.K.meter.evaluations = 123  # what this process did before does not count
        result = solve(problem, solver, stop=[max_iterations(0)], state=before)
        assert result.history[0]["seconds"] == 51
        assert result.history[0]["kernel_evaluations"] == 1000

    @pytest.mark.parametrize("iterations", [0, 3])
    def test_evaluations_of_falkon(self, iterations):
        problem = nystrom()
        result = solve(problem, Falkon(), stop=[max_iterations(iterations)])
        setup = M * M + 2 * N * M  # the factor of all rows; the right-hand side
        assert result.history[-1]["kernel_evaluations"] == setup + iterations * N * M

    def test_evaluations_of_pcg(self):
        result = solve(full(), PCG(preconditioner="none"), stop=[max_iterations(3)])
        each = N * (N + 1) // 2  # a pair of rows is evaluated once
        assert [row["kernel_evaluations"] for row in result.history] == [
            0,
            each,
            2 * each,
            3 * each,
        ]

    def test_evaluations_of_closed_forms(self):
        assert solve(full(), Direct()).history[-1]["kernel_evaluations"] == N * N
        assert solve(nystrom(), Direct()).history[-1]["kernel_evaluations"] == N * M + M * M

    def test_evaluations_of_refinement_are_counted(self):
        plain = solve(nystrom(np.float32), Falkon(), stop=[max_iterations(6)])
        refined = solve(nystrom(np.float32), Falkon(refine=True), stop=[max_iterations(6)])
        extra = refined.history[-1]["kernel_evaluations"] - plain.history[-1]["kernel_evaluations"]
        assert extra > 0
        assert extra % (N * M) == 0


class TestStopping:
    def test_tolerance(self):
        result = solve(full(), Scripted([3.0, 2.0, 1.0, 0.5]), stop=[tolerance(1.0, "loss")])
        assert (result.reason, result.state.iteration) == ("converged", 2)

    def test_tolerance_ignores_rows_without_the_metric(self):
        stop = [tolerance(1.0, "other"), max_iterations(3)]
        assert solve(full(), Scripted([0.0] * 9), stop=stop).reason == "max_iterations"

    @pytest.mark.parametrize("limit", [0, 1, 5])
    def test_max_iterations(self, limit):
        result = solve(full(), Scripted(), stop=[max_iterations(limit)])
        assert (result.reason, result.state.iteration) == ("max_iterations", limit)

    def test_time_limit(self, clock):
        solver = Scripted(work=lambda: clock.pass_by(2.0))
        result = solve(full(), solver, stop=[time_limit(7.0)])
        assert (result.reason, result.history[-1]["seconds"]) == ("time_limit", 8.0)

    @pytest.mark.parametrize(("rounds", "last"), [(1, 3), (2, 4), (3, 8)])
    def test_patience(self, rounds, last):
        losses = [5.0, 4.0, 3.0, 3.5, 3.0, 2.0, 2.0, 2.0, 2.0]  # an equal value is no progress
        result = solve(full(), Scripted(losses), stop=[patience("loss", rounds)])
        assert (result.reason, result.state.iteration) == ("no_progress", last)

    def test_patience_waits_for_the_metric(self):
        stop = [patience("other", 1), max_iterations(3)]
        assert solve(full(), Scripted([1.0] * 9), stop=stop).reason == "max_iterations"

    def test_the_first_to_fire_names_the_reason(self):
        rules = [max_iterations(2), tolerance(1.0, "loss")]
        script = Scripted([9.0, 9.0, 0.0])
        assert solve(full(), script, stop=rules).reason == "max_iterations"
        assert solve(full(), script, stop=rules[::-1]).reason == "converged"

    def test_a_solver_that_ends_has_converged(self):
        result = solve(full(), Scripted([1.0, 1.0], endless=False), stop=[])
        assert (result.reason, result.state.iteration) == ("converged", 1)

    @pytest.mark.parametrize("stop", [[max_iterations(1)], [time_limit(0.0)], [max_iterations(0)]])
    def test_a_closed_form_has_always_converged(self, stop):
        assert solve(full(), Direct(), stop=stop).reason == "converged"

    def test_a_solver_without_states_is_refused(self):
        with pytest.raises(ValueError, match="Scripted yielded no state"):
            solve(full(), Scripted([], endless=False))

    def test_by_default_it_stops(self):
        result = solve(nystrom(), Falkon())
        assert result.reason == "converged"
        assert result.history[-1]["rel_residual"] <= 1e-6


class TestDivergence:
    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
    def test_a_metric_that_is_not_finite(self, bad):
        # also where a rule would be content: -inf is below every tolerance
        result = solve(full(), Scripted([1.0, bad]), stop=[tolerance(0.0, "loss")])
        assert (result.reason, result.state.iteration) == ("diverged", 1)
        assert len(result.history) == 2

    def test_coefficients_that_are_not_finite(self):
        result = solve(full(), Scripted([1.0], coef=float("nan")), stop=[max_iterations(3)])
        assert result.reason == "diverged"

    def test_in_words_of_the_log(self, caplog):
        with caplog.at_level("INFO", logger="gramian"):
            solve(full(), Scripted([float("nan")]))
        assert "iteration 0" in caplog.text
        assert "not finite" in caplog.text


class TestCallbacks:
    def test_they_are_called_after_each_iteration_in_order(self):
        calls: list[tuple[str, int]] = []
        solve(
            full(),
            Scripted(),
            stop=[max_iterations(1)],
            callbacks=[
                lambda problem, state: calls.append(("first", state.iteration)),
                lambda problem, state: calls.append(("second", state.iteration)),
            ],
        )
        assert calls == [("first", 0), ("second", 0), ("first", 1), ("second", 1)]

    def test_what_they_add_is_seen_by_the_rules(self):
        def measure(problem: Any, state: State) -> None:
            state.metrics["distance"] = 10.0 - state.iteration

        result = solve(full(), Scripted(), stop=[tolerance(6.0, "distance")], callbacks=[measure])
        assert (result.reason, result.state.iteration) == ("converged", 4)
        assert [row["distance"] for row in result.history] == [10, 9, 8, 7, 6]

    def test_they_may_ask_to_stop(self):
        result = solve(
            full(), Scripted(), stop=[], callbacks=[lambda problem, state: state.iteration == 3]
        )
        assert (result.reason, result.state.iteration) == ("callback", 3)

    def test_all_of_them_are_called_before_it_stops(self):
        seen: list[int] = []
        solve(
            full(),
            Scripted(),
            stop=[],
            callbacks=[lambda p, s: True, lambda p, s: seen.append(s.iteration)],
        )
        assert seen == [0]

    def test_only_true_means_stop(self):
        # a callback that happens to return something, as `list.append` or a count would
        result = solve(full(), Scripted(), stop=[max_iterations(2)], callbacks=[lambda p, s: "yes"])
        assert result.reason == "max_iterations"

    def test_a_rule_has_precedence(self):
        result = solve(
            full(), Scripted([0.0]), stop=[tolerance(1.0, "loss")], callbacks=[lambda p, s: True]
        )
        assert result.reason == "converged"

    def test_what_they_raise_reaches_the_caller(self):
        def fail(problem: Any, state: State) -> None:
            raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            solve(full(), Scripted(), callbacks=[fail])


def test_random_solvers_get_the_generator():
    @dataclass(frozen=True)
    class Random(Scripted):
        def iterate(self, problem, state=None, *, rng=None):
            yield State(0, rng.random((N, 2), np.float32))

    first, second = (solve(full(), Random()).state.coef for _ in range(2))
    assert np.array_equal(first, second)  # seeded with 0 unless one is given
    other = solve(full(), Random(), rng=RandomStream(1)).state.coef
    assert not np.array_equal(first, other)
    assert np.array_equal(solve(full(), Random(), rng=1).state.coef, other)
    draws = [solve(full(), Random(), rng=np.random.default_rng(s)).state.coef for s in (1, 1, 2)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
