"""Checkpoints resume exactly or refuse in words; validation and progress tell the truth."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from close import assert_close
from safetensors.numpy import safe_open, save_file
from squares import with_squares

from gramian import _arrays as xp
from gramian import kernels, solvers
from gramian._arrays import RandomStream
from gramian._files.tensors import write_tensors
from gramian.callbacks import (
    Checkpoint,
    Validate,
    checkpoint_file,
    load_state,
    save_state,
)
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import (
    PCG,
    Direct,
    Falkon,
    State,
    max_iterations,
    patience,
    solve,
    tolerance,
)

N, M, D = 40, 9, 3
CASES = [
    pytest.param(name, kind, id=f"{name}-{kind.__name__}")
    for name in solvers.names()
    for kind in solvers.make(name).problem_types
]


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = RandomStream(0)
    X = rng.standard_normal((N, D), np.float64)
    return X, np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1)


def problem_of(kind: type = NystromProblem, **changes: Any) -> Any:
    X, y = data()
    parts = {"X": X, "kernel": kernels.Gaussian(1.0), "y": y, "penalty": 1e-3, "m": M} | changes
    K = KernelOperator(parts["kernel"], parts["X"], parts["X"])
    weights = parts.get("weights")
    if kind is FullProblem:
        return FullProblem(K, parts["y"], parts["penalty"], weights)
    index = np.arange(parts["m"])
    at = NystromProblem.at(
        K, index, parts["y"], parts["penalty"], weights, parts.get("landmark_weight")
    )
    return at if kind is NystromProblem else with_squares(at)


def assert_same_state(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    for f in fields(a):
        x, y = getattr(a, f.name), getattr(b, f.name)
        if isinstance(x, np.ndarray):
            assert x.dtype == y.dtype
            assert x.shape == y.shape
            assert x.strides == y.strides, f.name  # BLAS rounds otherwise for another layout
            assert np.array_equal(x, y), f.name
        elif is_dataclass(x):
            assert_same_state(x, y)
        else:
            assert x == y


CG = "residual direction energy active checked checked_at lanczos best least"
EIGENPRO = "seed settings first lost least epochs"
FIELDS = {
    "direct": ("State", ""),
    "pcg": ("PCGState", f"{CG} seed wide direct"),
    "falkon": ("FalkonState", "cg penalty wide order warm"),
    "askotch": (
        "ASkotchState",
        "ahead momentum recent best least convexity curvature squares weighted first smoothness "
        "restarts lost seed",
    ),
    "eigenpro2": ("EigenProState", EIGENPRO),
    "eigenpro3": ("EigenPro3State", f"{EIGENPRO} last count"),
    "sketchysaga": (
        "SagaState",
        "table average size least halvings halved_last seed settings",
    ),
}
"""The names that checkpoints of format 2 hold beside those of a plain `State`."""


class TestStateFiles:
    @pytest.mark.parametrize("name", FIELDS)
    def test_names_in_files_of_this_format_stay(self, name):
        state_type, names = solvers.solvers[name].state_type, FIELDS[name][1].split()
        assert state_type.__name__ == FIELDS[name][0]
        assert [f.name for f in fields(state_type)] == ["iteration", "coef", "metrics", *names]

    def test_files_without_names_that_were_added_later_are_read(self, tmp_path, monkeypatch):
        problem, solver = problem_of(FullProblem), solvers.ASkotch(20)
        state = solve(problem, solver, stop=[max_iterations(3)]).state
        later = {f.name for f in fields(state) if f.metadata}
        assert later == {"curvature", "squares", "weighted", "first"}
        known = checkpoint_file.fields
        with monkeypatch.context() as patch:  # as an older version wrote it
            patch.setattr(
                checkpoint_file, "fields", lambda s: [f for f in known(s) if f.name not in later]
            )
            save_state(tmp_path / "state", state)
        loaded = load_state(tmp_path / "state")
        assert (loaded.curvature, len(loaded.squares), loaded.first) == (0.0, 0, 0)
        assert loaded.convexity == state.convexity
        stop = [max_iterations(5)]
        assert solve(problem, solver, stop=stop, state=loaded).state.iteration == 5

    @pytest.mark.parametrize(("name", "kind"), CASES)
    @pytest.mark.parametrize("iterations", [0, 5])
    def test_every_kind_of_state_comes_back(self, name, kind, iterations, tmp_path):
        stop = [max_iterations(iterations)]
        state = solve(problem_of(kind), solvers.make(name), stop=stop).state
        state.metrics["valid_rmse"] = 0.1
        save_state(tmp_path / "state", state)
        assert_same_state(load_state(tmp_path / "state"), state)

    @pytest.mark.parametrize("rows", [6, 1])
    def test_tensors_of_a_state_lie_in_memory_as_new_ones(self, rows):
        memory = np.arange(16.0, dtype=np.float64)
        for odd in (
            memory[1 : 1 + 2 * rows].reshape(rows, 2),
            memory[: 2 * rows].reshape(2, rows).T,
        ):
            state = State(0, odd)
            assert np.array_equal(state.coef, odd)
            assert xp.is_contiguous(state.coef)
            assert state.coef.ctypes.data % 16 == 0
        assert State(0, state.coef).coef is state.coef

    def test_a_plain_state(self, tmp_path):
        state = State(3, RandomStream(0).standard_normal((5, 1), np.float32))
        save_state(tmp_path / "state", state)
        assert_same_state(load_state(tmp_path / "state"), state)

    def test_saving_does_not_change_the_state(self, tmp_path):
        state = solve(problem_of(), Falkon(), stop=[max_iterations(2)]).state
        kept = copy.deepcopy(state)
        save_state(tmp_path / "state", state)
        assert_same_state(state, kept)

    def test_nothing_is_pickled(self, tmp_path):
        save_state(tmp_path / "state", State(0, np.zeros((2, 1), np.float32)))
        with safe_open(tmp_path / "state", framework="np") as file:
            assert json.loads(file.metadata()["gramian_state"])["format"] == 2

    def test_a_file_cut_anywhere_is_refused_in_words(self, tmp_path):
        path = tmp_path / "state"
        save_state(path, solve(problem_of(), Falkon(), stop=[max_iterations(2)]).state)
        whole = path.read_bytes()
        for length in [*range(0, 40, 3), *range(40, len(whole), 97), len(whole) - 1]:
            path.write_bytes(whole[:length])
            with pytest.raises(ValueError, match=r"not a checkpoint of|is a damaged checkpoint of"):
                load_state(path)

    @pytest.mark.parametrize("change", ["format", "type", "values", "about"])
    def test_a_header_without_a_part_is_refused(self, change, tmp_path):
        path = tmp_path / "state"
        save_state(path, State(0, np.zeros((2, 1), np.float32)))
        rewrite(path, lambda header, tensors: header.pop(change))
        with pytest.raises(ValueError, match="damaged"):
            load_state(path)

    @pytest.mark.parametrize("header", ["[]", "null", "{", '{"format": "x"}', "3"])
    def test_a_header_that_is_none(self, header, tmp_path):
        save_file({"coef": np.zeros(1, np.float32)}, tmp_path / "f", {"gramian_state": header})
        with pytest.raises(ValueError, match="damaged"):
            load_state(tmp_path / "f")

    def test_a_newer_format_says_so(self, tmp_path):
        path = tmp_path / "state"
        save_state(path, State(0, np.zeros((2, 1), np.float32)))
        rewrite(path, lambda header, tensors: header.update(format=4))
        with pytest.raises(ValueError, match="newer version of gramian: upgrade"):
            load_state(path)

    def test_another_safetensors_file(self, tmp_path):
        save_file({"a": np.zeros(3, np.float32)}, tmp_path / "other")
        with pytest.raises(ValueError, match="not a checkpoint"):
            load_state(tmp_path / "other")

    def test_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            load_state(tmp_path / "nothing")


def rewrite(path: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], Any]) -> None:
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["gramian_state"])
        tensors = {name: xp.copy(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    change(header, tensors)
    write_tensors(path, tensors, {"gramian_state": json.dumps(header)})


class TestDamage:
    """Files that are not as they were written."""

    @pytest.mark.parametrize("name", ["falkon", "sketchysaga"])
    def test_any_flipped_bit_is_noticed(self, name, tmp_path):
        path, rng = tmp_path / "state", random.Random(0)
        save_state(path, solve(problem_of(), solvers.make(name), stop=[max_iterations(3)]).state)
        load_state(path)
        whole = path.read_bytes()
        for at in rng.sample(range(8 * len(whole)), 200):
            damaged = bytearray(whole)
            damaged[at // 8] ^= 1 << (at % 8)
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match="checkpoint"):
                load_state(path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda header, tensors: xp.fill_(tensors["coef"], np.nan),
            lambda header, tensors: tensors.update(coef=xp.cast(tensors["coef"], np.int32)),
            lambda header, tensors: tensors.update(coef=xp.copy(tensors["coef"][:-1])),
            lambda header, tensors: tensors.update(table=xp.copy(tensors["table"][:, :1])),
            lambda header, tensors: tensors.update(size=tensors["table"]),
            lambda header, tensors: tensors.update(more=np.zeros(1, np.float32)),
            lambda header, tensors: tensors.pop("average"),
            lambda header, tensors: header["values"].pop("seed"),
            lambda header, tensors: header["values"].update(seed=-1),
            lambda header, tensors: header["values"].update(seed=2**70),
            lambda header, tensors: header["values"].update(halvings=1.5),
            lambda header, tensors: header["values"].update(halvings=True),
            lambda header, tensors: header["values"].update(least="small"),
            lambda header, tensors: header["values"].update(least=float("nan")),
            lambda header, tensors: header["values"].update(metrics=[1, 2]),
            lambda header, tensors: header["values"].update(more=1),
            lambda header, tensors: header.update(values=None),
            lambda header, tensors: header.update(type=["SagaState"]),
            lambda header, tensors: header.update(about=[1]),
        ],
    )
    def test_what_cannot_be_a_state_even_with_the_right_digest(self, change, tmp_path):
        problem, solver, path = problem_of(), solvers.make("sketchysaga"), tmp_path / "state"
        solve(problem, solver, stop=[max_iterations(1)], callbacks=[Checkpoint(path)])
        rewrite(path, lambda header, tensors: None)
        assert Checkpoint(path).restore(problem, solver) is not None
        rewrite(path, change)
        with pytest.raises(ValueError, match="checkpoint"):
            Checkpoint(path).restore(problem, solver)

    @pytest.mark.parametrize(
        ("name", "kind", "change"),
        [
            ("falkon", NystromProblem, lambda tensors: xp.add_(tensors["cg.coef"][0], 9)),
            ("falkon", NystromProblem, lambda tensors: xp.multiply_(tensors["cg.residual"], 1e-3)),
            ("pcg", FullProblem, lambda tensors: xp.add_(tensors["coef"][0], 1e3)),
            ("pcg", FullProblem, lambda tensors: xp.multiply_(tensors["residual"], 1e-3)),
            ("askotch", FullProblem, lambda tensors: xp.add_(tensors["coef"][0], 1e4)),
            ("skotch", FullProblem, lambda tensors: xp.add_(tensors["coef"][0], 1e4)),
            ("eigenpro1", FullProblem, lambda tensors: xp.add_(tensors["coef"][0], 1e4)),
            ("eigenpro2", FullProblem, lambda tensors: xp.add_(tensors["coef"][0], 1e4)),
            ("eigenpro3", NystromProblem, lambda tensors: xp.add_(tensors["coef"][0], 1e4)),
            ("eigenpro3", NystromProblem, lambda tensors: xp.add_(tensors["last"][0], 1e4)),
            ("sketchysaga", NystromProblem, lambda tensors: xp.add_(tensors["average"][0], 1e-2)),
            ("sketchysaga", NystromProblem, lambda tensors: xp.add_(tensors["table"][0], 1)),
        ],
    )
    def test_a_state_that_disagrees_with_the_problem(
        self, name, kind, change, tmp_path, monkeypatch
    ):
        # After two steps with a factor of all rows the residual of FALKON is rounding.
        monkeypatch.setattr("gramian.preconditioners.falkon.CHEAP_PRODUCTS", 0.0)
        solver, path = solvers.make(name), tmp_path / "state"
        solve(problem_of(kind), solver, stop=[max_iterations(2)], callbacks=[Checkpoint(path)])
        rewrite(path, lambda header, tensors: change(tensors))
        problem = problem_of(kind)
        with pytest.raises(ValueError, match=r"but the recomputed|from the average of its table"):
            solve(problem, solver, state=Checkpoint(path).restore(problem, solver))

    def test_a_file_of_an_older_version(self, tmp_path):
        path, stop = tmp_path / "state", [max_iterations(2)]
        state = solve(problem_of(), Falkon(), stop=stop, callbacks=[Checkpoint(path)]).state
        with safe_open(path, framework="np") as file:
            header = json.loads(file.metadata()["gramian_state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        save_file(tensors, path, {"gramian_state": json.dumps(header)})
        with pytest.raises(ValueError, match="digest is missing"):
            load_state(path)
        save_file(tensors, path, {"gramian_state": json.dumps(header | {"format": 1})})
        assert_same_state(load_state(path), state)
        with pytest.raises(ValueError, match=r"older version of gramian.*Delete it"):
            Checkpoint(path).restore(problem_of(), Falkon())


class TestOtherData:
    """Any single entry that differs is refused, with each solver."""

    @pytest.mark.parametrize(("name", "kind"), CASES)
    @pytest.mark.parametrize("what", ["X", "y", "weights"])
    def test_one_number(self, name, kind, what, tmp_path, monkeypatch):
        monkeypatch.setattr("gramian.data.rows.base.default_block_size.__defaults__", (8 * D,))
        X, y = data()
        parts = {"X": X, "y": y, "weights": np.linspace(1, 2, N, dtype=np.float64)}
        solver, path = solvers.make(name), tmp_path / "state"
        stop = [max_iterations(1)]
        solve(problem_of(kind, **parts), solver, stop=stop, callbacks=[Checkpoint(path)])
        assert Checkpoint(path).restore(problem_of(kind, **parts), solver) is not None
        changed = xp.copy(parts[what])
        changed[N - 1 if what == "weights" else (N - 1, 0)] *= 1 + 1e-15
        problem = problem_of(kind, **parts | {what: changed})
        with pytest.raises(ValueError, match=r"another problem: .*differ"):
            Checkpoint(path).restore(problem, solver)

    def test_rows_beyond_the_first_thousands(self, tmp_path):
        X = RandomStream(0).standard_normal((6000, 2), np.float32)
        y, path = np.sin(X[:, :1]), tmp_path / "state"
        save(path, problem_of(X=X, y=y))
        assert Checkpoint(path).restore(problem_of(X=X, y=y), Falkon()) is not None
        other = xp.copy(X)
        other[3000:] = xp.flip(other[3000:], 0)
        with pytest.raises(ValueError, match="another problem: rows differ"):
            Checkpoint(path).restore(problem_of(X=other, y=y), Falkon())


class TestCheckpoint:
    @pytest.fixture
    def saved(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Return the iterations whose states have been saved."""
        numbers: list[int] = []

        def record(path: Path, state: State, *more: Any) -> None:
            numbers.append(state.iteration)
            save_state(path, state, *more)

        monkeypatch.setattr("gramian.callbacks.checkpoint.save_state", record)
        return numbers

    @pytest.mark.parametrize(("name", "kind"), CASES)
    def test_going_on_from_the_file_changes_nothing(self, name, kind, tmp_path):
        solver, stop = solvers.make(name), [max_iterations(9)]
        whole = solve(problem_of(kind), solver, stop=stop)
        checkpoint = Checkpoint(tmp_path / "state")
        solve(problem_of(kind), solver, stop=[max_iterations(4)], callbacks=[checkpoint])
        problem = problem_of(kind)
        state = Checkpoint(tmp_path / "state").restore(problem, solver)
        resumed = solve(problem, solver, stop=stop, state=state)
        assert np.array_equal(resumed.state.coef, whole.state.coef)
        assert resumed.state.iteration == whole.state.iteration

    @pytest.mark.parametrize(
        ("every", "expected"), [(1, [*range(8)]), (3, [0, 3, 6, 7]), (10, [0, 7])]
    )
    def test_every_few_iterations_and_at_the_end(self, every, expected, saved, tmp_path):
        checkpoint = Checkpoint(tmp_path / "state", every=every)
        solve(problem_of(), Falkon(), stop=[max_iterations(7)], callbacks=[checkpoint])
        assert saved == expected
        assert load_state(tmp_path / "state").iteration == 7

    def test_every_few_seconds_and_at_the_end(self, saved, tmp_path, monkeypatch):
        clock = iter(range(100))
        monkeypatch.setattr("gramian.callbacks.checkpoint.time.monotonic", lambda: next(clock))
        checkpoint = Checkpoint(tmp_path / "state", every_seconds=2)
        solve(problem_of(), Falkon(), stop=[max_iterations(7)], callbacks=[checkpoint])
        assert saved == [0, 2, 4, 6, 7]  # the clock is read after each save, and for each state

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RuntimeError])
    def test_whatever_ends_the_run_the_last_state_is_saved(self, error, saved, tmp_path):
        def end(problem: Any, state: State) -> None:
            if state.iteration == 4:
                raise error

        callbacks = [Checkpoint(tmp_path / "state", every_seconds=1e6), end]
        with pytest.raises(error):
            solve(problem_of(), Falkon(), stop=[max_iterations(7)], callbacks=callbacks)
        assert saved == [0, 4]

    def test_a_fit_survives_a_disk_that_is_full_for_a_while(self, tmp_path, monkeypatch, caplog):
        tried: list[int] = []

        def full(path: Path, state: State, *more: Any) -> None:
            tried.append(state.iteration)
            if 2 <= state.iteration < 5:
                raise OSError(28, "No space left on device")
            save_state(path, state, *more)

        monkeypatch.setattr("gramian.callbacks.checkpoint.save_state", full)
        whole = solve(problem_of(), Falkon(), stop=[max_iterations(7)])
        callbacks = [Checkpoint(tmp_path / "state")]
        found = solve(problem_of(), Falkon(), stop=[max_iterations(7)], callbacks=callbacks)
        assert np.array_equal(found.state.coef, whole.state.coef)
        assert tried == list(range(8))
        assert load_state(tmp_path / "state").iteration == 7
        said = "the checkpoint could not be written, and the fit continues: No space left on device"
        assert [record.getMessage() for record in caplog.records] == [said]  # once, not thrice

    def test_a_fit_survives_what_takes_the_place_of_its_checkpoint(self, tmp_path, caplog):
        def replaced(problem: Any, state: State) -> None:
            if state.iteration == 2:
                (tmp_path / "state").write_text("notes")

        callbacks = [Checkpoint(tmp_path / "state"), replaced]
        found = solve(problem_of(), Falkon(), stop=[max_iterations(4)], callbacks=callbacks)
        assert found.state.iteration == 4
        assert (tmp_path / "state").read_text() == "notes"
        assert "not a checkpoint of gramian, and is not overwritten" in caplog.text

    def test_an_address_is_refused_before_there_is_a_fit(self):
        with pytest.raises(ValueError, match="s3://bucket/state is an address"):
            Checkpoint("s3://bucket/state")

    def test_a_pipe_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ValueError, match="is not a regular file"):
            Checkpoint(tmp_path / "pipe").restore(problem_of(), Falkon())

    def test_a_state_that_diverged_does_not_replace_a_good_one(self, tmp_path):
        problem, checkpoint = problem_of(), Checkpoint(tmp_path / "state")
        checkpoint(problem, State(1, np.zeros((M, 2), np.float32)))
        checkpoint(problem, State(2, np.full((M, 2), np.nan)))
        assert load_state(tmp_path / "state").iteration == 1

    @pytest.mark.parametrize("resume", [True, False])
    def test_a_file_of_another_kind_is_left_alone(self, resume, tmp_path):
        (tmp_path / "data.parquet").write_bytes(b"PAR1" + bytes(100))
        before = (tmp_path / "data.parquet").read_bytes()
        checkpoint = Checkpoint(tmp_path / "data.parquet", resume=resume)
        with pytest.raises(ValueError, match="not a checkpoint of gramian, and is not overwritten"):
            checkpoint.restore(problem_of(), Falkon())
        with pytest.raises(ValueError, match="is not overwritten"):
            checkpoint(problem_of(), State(0, np.zeros((M, 2), np.float32)))
        assert (tmp_path / "data.parquet").read_bytes() == before
        with pytest.raises(ValueError, match="is a folder"):
            Checkpoint(tmp_path).restore(problem_of(), Falkon())

    def test_no_file_no_state(self, tmp_path):
        assert Checkpoint(tmp_path / "state").restore(problem_of(), Falkon()) is None

    def test_resume_can_be_switched_off(self, tmp_path):
        save(tmp_path / "state", problem_of())
        assert Checkpoint(tmp_path / "state", resume=False).restore(problem_of(), Falkon()) is None

    @pytest.mark.parametrize(
        ("what", "changes"),
        [
            ("targets", {"y": data()[1] + 1e-12}),
            ("targets", {"y": xp.flip(data()[1], 0)}),
            ("kernel", {"kernel": kernels.Gaussian(1.0 + 1e-12)}),
            ("kernel", {"kernel": kernels.Matern32(1.0)}),
            ("penalty", {"penalty": 1.1e-3}),
            ("shape", {"m": M + 1}),
            ("shape", {"y": xp.copy(data()[1][:, :1])}),
            ("centers", {"X": xp.flip(data()[0], 0)}),
            (
                "rows",
                {"X": np.concatenate([data()[0][:-1], xp.to_float64(np.ones((1, D), np.float32))])},
            ),
            ("weights", {"weights": xp.to_float64(np.full((N,), 2.0, dtype=np.float32))}),
            (
                "landmark weights",
                {"landmark_weight": xp.to_float64(np.arange(1.0, M + 1, dtype=np.float32))},
            ),
            ("shape", {"X": xp.cast(data()[0], np.float32)}),
        ],
    )
    def test_another_problem_is_refused_by_what_differs(self, what, changes, tmp_path):
        save(tmp_path / "state", problem_of())
        with pytest.raises(ValueError, match=rf"another problem: .*{what}.* differ.*Delete it"):
            Checkpoint(tmp_path / "state").restore(problem_of(**changes), Falkon())

    def test_another_solver_is_refused(self, tmp_path):
        save(tmp_path / "state", problem_of())
        with pytest.raises(ValueError, match="another problem: the solver differ"):
            Checkpoint(tmp_path / "state").restore(problem_of(), Direct())

    def test_another_preconditioner_starts_from_the_coefficients(self, tmp_path):
        """Its coordinates mean something else: going on in them would lead to a wrong solution."""
        save(tmp_path / "state", problem_of())
        problem, solver = problem_of(), Falkon(preconditioner_penalty=0.1)
        state = Checkpoint(tmp_path / "state").restore(problem, solver)
        stop = [tolerance(1e-12), max_iterations(300)]
        resumed = solve(problem, solver, stop=stop, state=state).state.coef
        expected = solve(problem_of(), Falkon(), stop=stop).state.coef
        K = problem.K.dense()
        assert_close(K @ resumed, K @ expected, rtol=0, atol=1e-8)

    def test_a_damaged_file_is_refused(self, tmp_path):
        save(tmp_path / "state", problem_of())
        content = bytearray((tmp_path / "state").read_bytes())
        content[-1] ^= 1
        (tmp_path / "state").write_bytes(content)
        with pytest.raises(ValueError, match=r"damaged.*digest.*delete it to start"):
            Checkpoint(tmp_path / "state").restore(problem_of(), Falkon())

    def test_copies_and_pickles_hold_no_data(self, tmp_path):
        checkpoint = Checkpoint(tmp_path / "state", every=2)
        problem = problem_of(
            X=xp.to_float64(np.random.default_rng(0).standard_normal((500, D)).astype(np.float32)),
            y=xp.to_float64(np.zeros((500, 1), np.float32)),
        )
        before = len(pickle.dumps(checkpoint))
        solve(problem, Falkon(), stop=[max_iterations(1)], callbacks=[checkpoint])
        assert len(pickle.dumps(checkpoint)) == before
        other = copy.deepcopy(checkpoint)
        assert (other.path, other.every, other.resume) == (checkpoint.path, 2, True)

    @pytest.mark.parametrize("every", [0, -1])
    def test_an_interval_that_is_none(self, every, tmp_path):
        with pytest.raises(ValueError, match="every must be a whole number of at least 1"):
            Checkpoint(tmp_path / "state", every=every)


def save(path: Path, problem: NystromProblem) -> None:
    solve(problem, Falkon(), stop=[max_iterations(3)], callbacks=[Checkpoint(path)])


class TestValidate:
    new = RandomStream(9).standard_normal((7, D), np.float64)

    def test_the_error_is_that_of_the_predictions(self):
        problem = problem_of()
        y = xp.to_float64(np.ones((7, 2), np.float32))
        result = solve(
            problem, Falkon(), stop=[max_iterations(3)], callbacks=[Validate(self.new, y)]
        )
        predicted = problem.model(result.state.coef).predict(self.new)
        expected = float(np.sqrt(((predicted - y) ** 2).mean()))
        assert result.history[-1]["valid_rmse"] == pytest.approx(expected, rel=1e-12)
        assert result.history[0]["valid_rmse"] == 1  # the zero function

    def test_the_error_is_in_the_units_of_standardised_targets(self):
        validate = Validate(self.new, xp.to_float64(np.ones((7, 2), np.float32)), scale=2.5)
        result = solve(problem_of(), Falkon(), stop=[max_iterations(0)], callbacks=[validate])
        assert result.history[0]["valid_rmse"] == 2.5

    def test_a_vector_of_targets(self):
        problem = problem_of(y=xp.copy(data()[1][:, :1]))
        validate = Validate(self.new, np.ones(7))
        result = solve(problem, Falkon(), stop=[max_iterations(0)], callbacks=[validate])
        assert result.history[0]["valid_rmse"] == 1

    def test_sparse_rows_beside_dense_ones(self):
        y, errors = np.ones((7, 2), np.float32), []
        for rows in (self.new, scipy.sparse.csr_array(self.new)):
            told = solve(
                problem_of(), Falkon(), stop=[max_iterations(2)], callbacks=[Validate(rows, y)]
            )
            errors.append([row["valid_rmse"] for row in told.history])
        assert errors[1] == pytest.approx(errors[0], rel=1e-6)

    def test_every_few_iterations(self):
        validate = Validate(self.new, np.ones((7, 2), np.float32), every=3)
        history = solve(
            problem_of(), Falkon(), stop=[max_iterations(7)], callbacks=[validate]
        ).history
        assert [row["iteration"] for row in history if "valid_rmse" in row] == [0, 3, 6]

    def test_it_is_there_for_closed_forms_too(self):
        validate = Validate(self.new, np.ones((7, 2), np.float32), every=5)
        assert "valid_rmse" in solve(problem_of(), Direct(), callbacks=[validate]).history[-1]

    def test_it_costs_the_solver_nothing(self):
        validate = Validate(self.new, np.ones((7, 2), np.float32))
        with_it = solve(problem_of(), Falkon(), stop=[max_iterations(3)], callbacks=[validate])
        without = solve(problem_of(), Falkon(), stop=[max_iterations(3)])
        evaluations = [r.history[-1]["kernel_evaluations"] for r in (with_it, without)]
        assert evaluations[0] == evaluations[1]
        assert np.array_equal(with_it.state.coef, without.state.coef)

    def test_rules_may_watch_it(self):
        X, y = data()
        stop = [patience("valid_rmse", 2), max_iterations(200)]
        result = solve(problem_of(), Falkon(), stop=stop, callbacks=[Validate(xp.flip(X, 0), y)])
        assert result.reason == "no_progress"

    def test_errors_of_codes(self):
        """One target: its sign. Several: the place of the largest."""
        X, _ = data()
        place = xp.cast(X[:, 0] > 0, np.int64) + xp.cast(X[:, 1] > 0.5, np.int64)
        codes = xp.to_float64(np.eye(3, dtype=np.int64)[place]) - 0.5
        for y in (codes, xp.copy(codes[:, :1])):
            problem = problem_of(y=y)
            validate = [Validate(X, y, coded=True)]
            result = solve(problem, Falkon(), stop=[max_iterations(20)], callbacks=validate)
            f = problem.model(result.state.coef).predict(X)
            wrong = (f[:, 0] > 0) != (y[:, 0] > 0) if y.shape[1] == 1 else f.argmax(1) != place
            assert 0 < xp.to_float64(wrong).mean() < 0.5
            assert result.history[-1]["valid_error"] == pytest.approx(
                float(xp.to_float64(wrong).mean())
            )

    def test_targets_of_another_number_are_refused(self):
        validate = Validate(self.new, np.ones(6, np.float32))
        with pytest.raises(
            ValueError, match=r"must have shape \(7, 2\), rows by targets, not \(6,\)"
        ):
            solve(problem_of(), Falkon(), callbacks=[validate])

    def test_an_interval_that_is_none(self):
        with pytest.raises(ValueError, match="every must be a whole number"):
            Validate(self.new, np.ones(7, np.float32), every=0)


def test_pcg_and_falkon_of_one_problem_do_not_mix(tmp_path):
    problem = replace(problem_of(FullProblem))
    solve(problem, PCG(), stop=[max_iterations(2)], callbacks=[Checkpoint(tmp_path / "state")])
    with pytest.raises(ValueError, match="another problem"):
        Checkpoint(tmp_path / "state").restore(problem_of(m=N), Falkon())
