"""KernelRidge(cells=...): exact kernels by cells, and the plain fit where there is one cell."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse
from safetensors import safe_open

from gramian import KernelRidge, KernelRidgeClassifier
from gramian import _arrays as xp
from gramian._messages.checks import readable_bytes
from gramian._parallel.processes import processes_pay, run_apart
from gramian.callbacks import Checkpoint
from gramian.cells import KMeansCells, MedianSplits, RandomCells
from gramian.fitting.cells import fit as by_cells
from gramian.fitting.cells import problems as cell_fits
from gramian.fitting.cells import solver as cell_solver
from gramian.fitting.plans import cells as cell_memory
from gramian.model import CellCenters, KernelModel, load_model
from gramian.problems import Problem

RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.05 * RNG.standard_normal(600)
PLAIN = {"kernel": "matern32", "lengthscale": 1.5, "penalty": 1e-5, "random_state": 0}


def ridge(cells: object, **more: object) -> KernelRidge:
    return KernelRidge(**{**PLAIN, "cells": cells, **more})


class TestOneCell:
    @pytest.mark.parametrize("solver", ["direct", "pcg", "askotch"])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_is_the_plain_fit_to_the_last_bit(self, solver, dtype):
        x = X.astype(dtype)
        settings = {**PLAIN, "penalty": 1e-3, "solver": solver}
        a = KernelRidge(cells=1000, **settings).fit(x, Y)
        b = KernelRidge(landmarks=None, **settings).fit(x, Y)
        assert a.model_.cells.cells.count == 1
        np.testing.assert_array_equal(a.dual_coef_, b.dual_coef_)
        np.testing.assert_array_equal(a.predict(x), b.predict(x))

    def test_that_chooses_by_itself_is_the_plain_one(self):
        a = KernelRidge(cells=1000, random_state=0, standardize=True).fit(X, Y)
        b = KernelRidge(landmarks=None, random_state=0, standardize=True).fit(X, Y)
        assert a.kernel_ == b.kernel_
        assert a.penalty_ == pytest.approx(b.penalty_)
        np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-6)


class TestCells:
    @pytest.mark.parametrize(
        "cells", [100, "kmeans", MedianSplits(100, 0.2), KMeansCells(100, 0.3), RandomCells(200)],
        ids=repr,
    )  # fmt: skip
    @pytest.mark.parametrize("t", [1, 2])
    def test_predict_new_rows(self, cells, t):
        y = Y if t == 1 else np.c_[Y, X[:, 2]]
        est = ridge(cells).fit(X[:450], y[:450])
        assert est.score(X[450:], y[450:]) > 0.9
        assert est.predict(X[450:]).shape == ((150,) if t == 1 else (150, 2))

    def test_each_has_the_ridge_of_all_rows(self):
        est = ridge(100, standardize=False, solver="direct").fit(X, Y)
        model = est.model_
        shift = 1e-5 * 600
        for cell in range(model.cells.cells.count):
            part = model.of_cell(cell)
            Z = next(part.centers.blocks(len(part.centers)))[1]
            K = part.kernel(Z, Z) + shift * np.eye(len(Z), dtype=np.float64)
            where = [int(np.flatnonzero((z == X).all(axis=1))[0]) for z in Z]
            assert np.allclose(K @ part.coef[:, 0], Y[where], atol=1e-7)
        assert [row["ridge"] for row in est.history_] == [pytest.approx(shift)] * len(est.history_)

    def test_weights_that_are_whole_numbers_are_repeated_rows_in_one_cell(self):
        w = RNG.integers(1, 4, 600).astype(float)
        a = ridge(1000, standardize=False).fit(X, Y, w)
        again = np.repeat(np.arange(600), w.astype(int))
        b = ridge(5000, standardize=False).fit(X[again], Y[again])
        np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-5)

    def test_predictions_have_no_jumps(self):
        line = X[0] + np.linspace(-1, 1, 5001)[:, None] * np.array([1.0, 0.7, 0.3])
        jumps = {}
        for overlap in (0.0, 0.2):
            est = ridge(MedianSplits(100, overlap)).fit(X, Y)
            jumps[overlap] = np.abs(np.diff(est.predict(line))).max()
        assert jumps[0.2] < 0.01 < jumps[0.0]

    def test_classes(self):
        labels = np.where(Y > 0.7, "a", np.where(Y < -0.7, "b", "c"))
        est = KernelRidgeClassifier(cells=100, random_state=0).fit(X[:450], labels[:450])
        assert est.model_.cells.cells.count > 4
        assert est.score(X[450:], labels[450:]) > 0.8

    def test_gradients_and_importances(self):
        est = ridge(100, metric="learned").fit(X, Y)
        step = 1e-5 * np.eye(3)
        found = est.gradient(X[:50])
        for j in range(3):
            near = (est.predict(X[:50] + step[j]) - est.predict(X[:50] - step[j])) / 2e-5
            assert np.quantile(np.abs(near - found[:, j]), 0.9) < 1e-4
        assert est.feature_importances_[2] < 0.2

    def test_the_choice_is_made_at_the_density_of_a_cell(self):
        est = KernelRidge(cells=150, random_state=0).fit(X, Y)
        assert est.score(X, Y) > 0.95
        assert est.penalty_ * 600 == pytest.approx(est.history_[0]["ridge"])

    @pytest.mark.parametrize(
        "x",
        [
            np.ones((300, 2)),
            np.repeat(RNG.standard_normal((3, 2)), 100, axis=0),
            np.c_[RNG.standard_normal(300), np.zeros(300)],
            np.r_[np.zeros((290, 1)), 1e5 * RNG.standard_normal((10, 1))],
            RNG.standard_normal((300, 200)),
        ],
        ids=["all the same", "three rows", "a constant column", "a cluster", "wide"],
    )
    def test_awkward_rows(self, x):
        est = ridge(40).fit(x, RNG.standard_normal(len(x)))
        assert np.isfinite(est.predict(x)).all()

    def test_a_cell_that_diverges_has_a_larger_ridge(self, monkeypatch):
        real, seen = cell_solver.solve, []

        def solve(problem: object, *args: object, **more: object) -> object:
            result = real(problem, *args, **more)
            seen.append(problem.penalty)
            bad = len(seen) == 1
            return type(result)(**{**vars(result), "reason": "diverged"}) if bad else result

        monkeypatch.setattr(cell_solver, "solve", solve)
        monkeypatch.setattr(by_cells, "workers_of", lambda *_: 1)
        est = ridge(200).fit(X, Y)
        ridges = sorted(row["ridge"] for row in est.history_)
        assert ridges[-1] == pytest.approx(10 * ridges[0])
        monkeypatch.setattr(cell_solver, "TRIES", 1)
        seen.clear()
        with pytest.raises(FloatingPointError, match="diverged"):
            ridge(200).fit(X, Y)

    def test_a_time_limit_is_shared(self):
        est = ridge(100, solver="pcg", time_limit=1e-6, tol=0.0)
        with pytest.warns(match="time_limit"):
            est.fit(X, Y)
        assert est.stop_reason_ == "time_limit"

    def test_plan(self):
        big = np.zeros((100_000, 4), np.float32)
        plan = ridge(2000).plan(big)
        assert plan.cells >= 50
        assert f"each of {plan.cells:,} cells" in str(plan)
        whole = ridge(None, landmarks=None).plan(big)
        assert plan.kernel_evaluations < whole.kernel_evaluations / 10
        assert plan.disk_bytes == 0
        few = ridge(500, memory_limit="100MB").plan(np.zeros((1_000_000, 8), np.float32))
        assert few.disk_bytes > 32_000_000
        assert f"{readable_bytes(few.disk_bytes)} of temporary files" in str(few)
        with pytest.raises(ValueError, match="for targets and blocks of rows"):
            ridge(2000, memory_limit="1MB").plan(big)
        with pytest.raises(ValueError, match="for targets and blocks of rows"):
            ridge(2000, memory_limit="1MB").check_memory(big)

    def test_a_table(self, tmp_path):
        import pandas as pd

        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
            kind=np.where(X[:, 2] > 0, "x", "y"), target=Y
        )
        est = ridge(150).fit(frame, "target")
        assert est.score(frame) > 0.9
        est.save(tmp_path / "m")
        again = load_model(tmp_path / "m")
        np.testing.assert_array_equal(again.predict(frame)[:, 0], est.predict(frame))


class Killed(BaseException):
    pass


class TestGoingOn:
    @pytest.fixture
    def killed(self, monkeypatch, tmp_path):
        """A checkpoint of a fit that was killed in its fourth cell."""
        real, count, path = cell_solver.solve, [], tmp_path / "c"

        def solve(*args: object, **more: object) -> object:
            count.append(1)
            if len(count) == 4:
                raise Killed
            return real(*args, **more)

        with monkeypatch.context() as patch:
            patch.setattr(cell_solver, "solve", solve)
            patch.setattr(by_cells, "workers_of", lambda *_: 1)
            with pytest.raises(Killed):
                ridge(100, callbacks=[Checkpoint(path)]).fit(X, Y)
        return path

    def test_solves_only_the_other_cells(self, killed, monkeypatch):
        real, count = cell_solver.solve, []
        monkeypatch.setattr(cell_solver, "solve", lambda *a, **m: count.append(1) or real(*a, **m))
        est = ridge(100, callbacks=[Checkpoint(killed)]).fit(X, Y)
        whole = ridge(100).fit(X, Y)
        cells = est.model_.cells.cells.count
        assert len(count) == 2 * cells - 3
        np.testing.assert_array_equal(est.dual_coef_, whole.dual_coef_)
        assert est.history_ == whole.history_
        count.clear()
        ridge(100, callbacks=[Checkpoint(killed)]).fit(X, Y)
        assert not count

    @pytest.mark.parametrize(
        ("more", "x", "said"),
        [
            ({"penalty": 1e-4}, X, "ridge differ"),
            ({"lengthscale": 2.0}, X, "kernel differ"),
            ({"random_state": 1}, X + 1e-9 * X[::-1], "cells differ"),
            ({"solver": "pcg"}, X, "solver differ"),
            ({}, X, "rows differ"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_another_fit_is_refused(self, killed, more, x, said):
        y = Y if said != "rows differ" else Y + 1e-9 * np.cos(X[:, 0])
        with pytest.raises(ValueError, match=said):
            ridge(100, callbacks=[Checkpoint(killed)], **more).fit(x, y)

    @pytest.mark.slow
    def test_cells_for_want_of_time_are_solved_again(self, tmp_path):
        checkpoint = Checkpoint(tmp_path / "c")
        with pytest.warns(match="time_limit"):
            ridge(
                100, solver="pcg", time_limit=1e-6, tol=1e-9, callbacks=[checkpoint]
            ).fit(X, Y)  # fmt: skip
        est = ridge(100, solver="pcg", tol=1e-9, callbacks=[checkpoint]).fit(X, Y)
        assert est.stop_reason_ == "converged"


class Parts:
    """What is told of the stages and parts of a fit."""

    def __init__(self) -> None:
        self.stages, self.parts = [], []

    def __call__(self, problem: object, state: object) -> None:
        pass

    def stage(self, name: str) -> None:
        self.stages.append(name)

    def part(self, done: int, total: int) -> None:
        self.parts.append((done, total))


def test_progress_is_told_by_cell():
    told = Parts()
    est = ridge(100, callbacks=[told]).fit(X, Y)
    cells = est.model_.cells.cells.count
    assert told.parts == [(done, cells) for done in range(1, cells + 1)]
    assert told.stages[-1] == "fitting cells"


@pytest.mark.parametrize(
    "solver", ["direct", "pcg", pytest.param("askotch", marks=pytest.mark.slow)]
)
def test_several_cells_at_once_are_the_same(solver, monkeypatch):
    found = []
    for workers in (1, 3):
        monkeypatch.setattr(by_cells, "workers_of", lambda *_, count=workers: count)
        found.append(ridge(100, solver=solver, penalty=1e-3).fit(X, Y).predict(X))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-8, atol=1e-10)


def test_an_error_in_one_of_several_cells_ends_the_others(monkeypatch):
    """Workers meet their stopping rule at once, so that no schedule changes which cells begin."""
    real, begun, stopped = cell_solver.solve, [], []

    def wait_for(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "the cells under way go on"
            time.sleep(0.001)

    def solve_until_stopped(problem: Problem, *args: object, stop: list, **more: object) -> object:
        cell = problem.targets.tobytes()
        begun.append(cell)
        if cell == cells[0]:
            return real(problem, *args, stop=stop, **more)
        if cell == cells[1]:
            raise FloatingPointError("of a test")
        wait_for(lambda: stop[0]([]) == "callback")
        stopped.append(cell)
        return real(problem, *args, stop=stop, **more)

    def solve_in_turn(problem: Problem, *args: object, **more: object) -> object:
        cells.append(problem.targets.tobytes())
        return real(problem, *args, **more)

    cells: list[bytes] = []
    monkeypatch.setattr(by_cells, "workers_of", lambda *_: 1)
    monkeypatch.setattr(cell_solver, "solve", solve_in_turn)
    ridge(10).fit(X, Y)
    assert len(set(cells)) == len(cells) > 16
    monkeypatch.setattr(by_cells, "workers_of", lambda *_: 2)
    monkeypatch.setattr(cell_solver, "solve", solve_until_stopped)
    monkeypatch.setattr(cell_fits, "processes_pay", lambda *_: False)  # they have another `solve`
    with pytest.raises(FloatingPointError, match="of a test"):
        ridge(10).fit(X, Y)
    wait_for(lambda: len(stopped) == len(begun) - 2)
    assert len(begun) <= 4  # the first alone, the one that fails, and one of each worker


def logging_twice(word: str) -> str:
    logging.getLogger("gramian").warning("seen %s", word)
    logging.getLogger("gramian").info("not asked for")
    return 2 * word


def one_over(number: int) -> float:
    return 1 / number


@pytest.mark.slow
class TestProcesses:
    """Where they pay, cells are solved by processes."""

    @pytest.fixture(autouse=True)
    def pay(self, monkeypatch):
        monkeypatch.setattr(by_cells, "workers_of", lambda *_: 2)
        monkeypatch.setattr(cell_fits, "MEASURED_CELLS", 1)
        monkeypatch.setattr(cell_fits, "processes_pay", lambda *_: True)

    def test_they_find_the_bits_of_threads(self, monkeypatch):
        found = ridge(100, solver="pcg").fit(X, Y)
        monkeypatch.setattr(cell_fits, "processes_pay", lambda *_: False)
        expected = ridge(100, solver="pcg").fit(X, Y)
        np.testing.assert_array_equal(found.dual_coef_, expected.dual_coef_)
        assert [row["iteration"] for row in found.history_] == [
            row["iteration"] for row in expected.history_
        ]

    def test_what_they_log_is_heard(self, caplog):
        found = list(run_apart(2, logging_twice, ["a", "b"], logger=logging.getLogger("gramian")))
        assert found == ["aa", "bb"]
        said = [(record.levelname, record.getMessage()) for record in caplog.records]
        assert said == [("WARNING", "seen a"), ("WARNING", "seen b")]

    def test_an_error_there_is_one_here(self):
        with pytest.raises(ZeroDivisionError):
            list(run_apart(2, one_over, [1, 0, 2], logger=logging.getLogger("gramian")))

    def test_a_checkpoint_has_them(self, tmp_path, monkeypatch):
        path = tmp_path / "c"
        first = ridge(100, callbacks=[Checkpoint(path)]).fit(X, Y)
        monkeypatch.setattr(cell_fits, "run_apart", lambda *_, **__: iter(()))  # nothing is left
        monkeypatch.setattr(cell_solver, "solve", None)
        again = ridge(100, callbacks=[Checkpoint(path)]).fit(X, Y)
        np.testing.assert_array_equal(first.dual_coef_, again.dual_coef_)

    def test_without_memory_for_them_there_are_threads(self, monkeypatch):
        monkeypatch.setattr(cell_fits, "run_apart", None)
        assert ridge(100, memory_limit="200MB").fit(X, Y).score(X, Y) > 0.5


def test_when_processes_pay(monkeypatch):
    assert processes_pay(0.05, 1000, 2)
    assert not processes_pay(0.05, 1000, 1)
    assert not processes_pay(0.05, 150, 2)  # threads end before processes have begun
    assert not processes_pay(0.5, 1000, 2)  # threads do not wait for each other
    monkeypatch.setattr("multiprocessing.parent_process", lambda: "another")
    assert not processes_pay(0.05, 1000, 2)


def test_rows_in_a_file_are_the_same(monkeypatch):
    a = ridge(100).fit(X, Y)
    monkeypatch.setattr(cell_memory, "MEMORY_SHARE", 10**12)
    b = ridge(100).fit(X, Y)
    np.testing.assert_array_equal(a.dual_coef_, b.dual_coef_)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"cells": 0}, "cells must be"),
        ({"cells": 2.5}, "must be None, the largest number of rows of a cell"),
        ({"cells": "tree"}, "unknown partition"),
        ({"landmarks": 50}, "leave one of them out"),
        ({"early_stopping": True}, "cannot be combined with cells"),
        ({"warm_start": True}, "cannot be combined with cells"),
        ({"callbacks": [len]}, "each cell has its own"),
        ({"solver": "falkon"}, "falkon"),
        ({"memory_limit": "5kB"}, "for targets and blocks of rows"),
    ],
)
def test_what_does_not_go_with_cells(more, said):
    with pytest.raises(ValueError, match=said):
        ridge(**{"cells": 100, **more}).fit(X, Y)


def test_sparse_rows_are_refused():
    with pytest.raises(ValueError, match="cells divide dense rows"):
        ridge(100).fit(scipy.sparse.csr_array(X), Y)


class TestFile:
    @pytest.mark.parametrize("cells", [100, KMeansCells(100), RandomCells(200)], ids=repr)
    def test_predictions_are_the_same(self, cells, tmp_path):
        est = ridge(cells).fit(X, Y)
        est.save(tmp_path / "m")
        again = KernelModel.load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict(X)[:, 0], est.predict(X))
        with safe_open(tmp_path / "m", "np") as file:
            header = json.loads(file.metadata()["gramian"])
        assert header["format"] == 10
        assert header["cells"]["kind"] in ("tree", "centers", "mean")

    def test_parts_that_do_not_fit_are_refused(self, tmp_path):
        model = ridge(100).fit(X, Y).model_
        cells = model.cells
        with pytest.raises(ValueError, match="whole numbers, not"):
            CellCenters(cells.cells, cells.starts[:-1])
        with pytest.raises(ValueError, match="must not decrease"):
            CellCenters(cells.cells, xp.flip(cells.starts, 0))
        short = CellCenters(cells.cells, cells.starts.clip(max=10))
        wrong = KernelModel(model.kernel, model.centers, model.coef, cells=short)
        with pytest.raises(ValueError, match="dense centers"):
            wrong.save(tmp_path / "m")
        few = next(model.centers.blocks(1000))[1][:, :2]
        with pytest.raises(ValueError, match="features"):
            KernelModel(model.kernel, few, model.coef, cells=cells).save(tmp_path / "m")
        with pytest.raises(ValueError, match="lack a field"):
            CellCenters.from_parts({}, {})
