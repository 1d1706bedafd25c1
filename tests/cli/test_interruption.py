"""A fit that is interrupted or killed goes on to the result it would have had."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from close import assert_close
from plain import PLAIN_OPTIONS

from gramian import KernelModel
from gramian.callbacks import Validate, load_state
from gramian.cli.outputs.signals import stoppable

SHARED = Path(__file__).parents[1] / "shared"

# The program, with a breath after each checkpoint, so that there is time to stop it in mid-fit;
# with Ctrl-C as it is in a terminal, also where the tests run in the background; with the tiles of
# this process, which goes on with the fit; and with a factor of landmarks, as in this process.
SLOW = f"""
import signal, sys, time
sys.path.insert(0, {str(SHARED)!r})
import tiles
tiles.take_named()
signal.signal(signal.SIGINT, signal.default_int_handler)
from gramian.callbacks import checkpoint
from gramian.cli import main
from gramian.preconditioners import falkon

falkon.CHEAP_PRODUCTS = 0.0
save = checkpoint.save_state
checkpoint.save_state = lambda *arguments: (save(*arguments), time.sleep(0.1))
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def arguments(save, tmp_path):
    """Return a function that gives the arguments of a fit of float32 columns in a Parquet file."""
    path = save(n=601)
    table = pq.read_table(path)
    pq.write_table(table.cast(pa.schema([(n, pa.float32()) for n in "abcy"])), path)

    def make(name: str, *more: object) -> list[str]:
        files = ("--out", tmp_path / f"{name}.model", "--checkpoint", tmp_path / f"{name}.ckpt")
        files += ("--checkpoint-every", 1e-9)
        options = (
            "--validation",
            0.2,
            "--seed",
            3,
            "--target",
            "y",
            "--landmarks",
            60,
            *PLAIN_OPTIONS,
            "--penalty",
            1e-3,
        )
        return [str(a) for a in ("fit", path, *options, *files, *more)]

    return make


def stopped(arguments: list[str], checkpoint: Path, iteration: int, how: int) -> tuple[int, str]:
    """Start a fit, and end it with a signal when the checkpoint has reached an iteration."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *arguments], stderr=subprocess.PIPE, text=True
    )
    try:
        while process.poll() is None and reached(checkpoint) < iteration:
            time.sleep(0.005)
        process.send_signal(how)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    return process.returncode, said


def reached(checkpoint: Path) -> int:
    return load_state(checkpoint).iteration if checkpoint.exists() else -1


def coef(path: Path) -> np.ndarray:
    return KernelModel.load(path).coef


@pytest.fixture(autouse=True)
def attended():
    """End at SIGHUP, as processes do whose parents do not say otherwise, like `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(autouse=True)
def many_iterations():
    """Build the factor of FALKON from landmarks: one of all rows leaves nothing to interrupt."""
    # A test may undo what it has patched.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gramian.preconditioners.falkon.CHEAP_PRODUCTS", 0.0)
        yield


@pytest.fixture
def whole(report, arguments, tmp_path):
    """The coefficients and the report of the fit that nobody stops."""
    said = report(*arguments("whole"))
    return coef(tmp_path / "whole.model"), said


@pytest.mark.slow
def test_killed_at_a_random_iteration(gramian, whole, arguments, tmp_path):
    expected, said = whole
    model, checkpoint = tmp_path / "killed.model", tmp_path / "killed.ckpt"
    at = random.randint(1, said["iterations"] - 2)
    code, _ = stopped(arguments("killed"), checkpoint, at, signal.SIGKILL)
    assert code == -signal.SIGKILL, f"at iteration {at}"
    assert not model.exists()

    done = gramian(*arguments("killed"))
    assert done.code == 0, done.err
    assert f"resuming from {checkpoint} at iteration" in done.err
    difference = float(np.abs(coef(model) - expected).max())
    assert difference <= 1e-12 * float(np.abs(expected).max()), f"killed at iteration {at}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "expected", "why"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "terminated (SIGTERM)"),
        (signal.SIGHUP, 129, "the terminal was closed (SIGHUP)"),
    ],
)
def test_interrupted_with_a_checkpoint(how, expected, why, gramian, whole, arguments, tmp_path):
    model, checkpoint = tmp_path / "stopped.model", tmp_path / "stopped.ckpt"
    code, said = stopped(arguments("stopped"), checkpoint, 2, how)
    at = reached(checkpoint)
    assert at >= 2
    assert code == expected
    assert said == (
        f"gramian: {why}; {model} holds the model of iteration {at}; to resume from {checkpoint}, "
        "run the same command again\n"
    )
    trained = KernelModel.load(model).info
    assert (trained["stop_reason"], trained["iterations"]) == ("interrupted", at)
    assert gramian(*arguments("stopped")).code == 0
    assert_close(coef(model), whole[0], rtol=1e-12, atol=0)


def test_what_is_saved_seldom_is_saved_at_the_end(gramian, whole, arguments, tmp_path):
    given = arguments("seldom", "--max-iter", 7)
    given[given.index("--checkpoint-every") + 1] = "1000000"
    assert gramian(*given).code == 0
    assert reached(tmp_path / "seldom.ckpt") == 7


def test_a_data_file_is_neither_overwritten_nor_said_to_be_deleted(error, train, tmp_path):
    other = tmp_path / "other.parquet"
    other.write_bytes(train.read_bytes())
    out = tmp_path / "y.model"
    said = error("fit", train, "--target", "y", "--out", out, "--checkpoint", other)
    assert "other.parquet is not a checkpoint of gramian, and is not overwritten" in said
    assert "elete" not in said
    assert other.read_bytes() == train.read_bytes()


def test_handlers_of_others_are_left_alone():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with stoppable():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_finished_fit_is_not_changed_by_running_it_again(gramian, whole, arguments, tmp_path):
    assert gramian(*arguments("whole")).code == 0
    assert np.array_equal(coef(tmp_path / "whole.model"), whole[0])


@pytest.mark.usefixtures("whole")
def test_a_checkpoint_of_another_fit_is_refused(error, arguments):
    said = error(*arguments("whole", "--penalty", "0.5"))
    assert "is a checkpoint of another problem: penalty differ" in said


def test_interrupted_without_a_checkpoint(gramian, train, tmp_path, monkeypatch):
    def interrupt(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("gramian.cli.commands.fit.open_training", interrupt)
    options = ("--target", "y", "--kernel", "gaussian", "--out", tmp_path / "y.model")
    done = gramian("fit", train, *options)
    assert done.code == 130
    assert done.err.startswith("gramian: interrupted; nothing is saved. With --checkpoint FILE")
    assert done.err.count("\n") == 1


@pytest.fixture
def interrupted(monkeypatch):
    """Return a function that has fits interrupted when they look at held-out rows."""
    look = Validate.__call__

    def at(iteration: int) -> None:
        def looked(self: Validate, problem: Any, state: Any) -> None:
            if state.iteration == iteration:
                raise KeyboardInterrupt
            look(self, problem, state)

        monkeypatch.setattr(Validate, "__call__", looked)

    return at


def test_a_model_is_written_without_a_checkpoint_too(
    gramian, report, arguments, interrupted, tmp_path
):
    given = [
        a for a in arguments("y") if "checkpoint" not in a and "ckpt" not in a and a != "1e-09"
    ]
    out = tmp_path / "y.model"
    interrupted(3)
    done = gramian(*given, "--history", tmp_path / "y.csv")
    assert done.code == 130
    assert done.err == (
        f"gramian: interrupted; {out} holds the model of iteration 3. With --checkpoint FILE, a "
        "fit can be resumed\n"
    )
    assert report("info", out)["trained"]["stop_reason"] == "interrupted"
    assert (tmp_path / "y.csv").read_text().count("\n") == 5
    interrupted(-1)
    assert gramian(*given, "--max-iter", 3).code == 0
    whole = coef(out)
    interrupted(3)
    gramian(*given)
    assert np.array_equal(coef(out), whole)


@pytest.mark.slow
def test_the_best_state_is_written_if_the_fit_may_stop_early(
    gramian, arguments, interrupted, tmp_path
):
    given = [*arguments("y"), "--early-stopping", "--patience", 90, "--tol", 0]
    best = json.loads(gramian(*given, "--json").out)["best_iteration"]
    (tmp_path / "y.ckpt").unlink()
    whole = coef(tmp_path / "y.model")
    interrupted(best + 2)
    done = gramian(*given)
    assert f"y.model holds the model of iteration {best}; to resume" in done.err
    assert np.array_equal(coef(tmp_path / "y.model"), whole)


@pytest.mark.parametrize("how", ["before the first state", "at the first state"])
def test_before_there_is_anything_nothing_is_written(
    how, gramian, arguments, interrupted, tmp_path, monkeypatch
):
    out = tmp_path / "y.model"
    out.write_text("of yesterday")
    if how.startswith("before"):

        def interrupt(*_arguments: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("gramian.solvers.Falkon.factor", interrupt)
    interrupted(0)
    done = gramian(*arguments("y"))
    assert done.code == 130
    assert done.err == (
        f"gramian: interrupted before the first iteration; {tmp_path / 'y.ckpt'} is not "
        "written yet\n"
    )
    assert out.read_text() == "of yesterday"


def test_a_model_that_cannot_be_written(gramian, arguments, interrupted, tmp_path, monkeypatch):
    def full(*_arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gramian.model.kernel_model.write_model", full)
    interrupted(2)
    done = gramian(*arguments("y"))
    assert done.code == 130
    assert (
        f"{tmp_path / 'y.model'} could not be written: No space left on device; to resume"
        in done.err
    )


def test_an_error_in_mid_fit_leaves_the_model_until_then(
    gramian, report, arguments, interrupted, tmp_path, monkeypatch
):
    given = [
        a for a in arguments("y") if "checkpoint" not in a and "ckpt" not in a and a != "1e-09"
    ]
    assert gramian(*given, "--max-iter", 3).code == 0
    whole = coef(tmp_path / "y.model")
    (tmp_path / "y.model").unlink()
    look = Validate.__call__

    def broken(self: Validate, problem: Any, state: Any) -> None:
        if state.iteration == 3:
            raise OSError(5, "Input/output error")
        look(self, problem, state)

    monkeypatch.setattr(Validate, "__call__", broken)
    done = gramian(*given)
    assert done.code == 2
    assert done.err == (
        f"gramian: warning: an error ended the fit; {tmp_path / 'y.model'} holds the model of "
        "iteration 3\ngramian: error: Input/output error\n"
    )
    assert np.array_equal(coef(tmp_path / "y.model"), whole)
    assert report("info", tmp_path / "y.model")["trained"]["stop_reason"] == "error"


def test_a_checkpoint_on_a_full_disk_costs_no_fit(gramian, arguments, tmp_path, monkeypatch):
    def full(*_arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gramian.callbacks.checkpoint.save_state", full)
    done = gramian(*arguments("y"))
    assert done.code == 0
    assert done.err.count("and the fit continues: No space left on device") == 1
    monkeypatch.undo()
    assert gramian(*arguments("z")).code == 0
    assert np.array_equal(coef(tmp_path / "y.model"), coef(tmp_path / "z.model"))
