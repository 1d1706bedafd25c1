"""Progress: every stage is shown, on a terminal by a bar, on a pipe by a line now and then."""

from __future__ import annotations

import functools
import importlib
import time

import pytest
from clock import wait_until
from plain import PLAIN_OPTIONS

from gramian.callbacks import Progress
from gramian.cli.outputs import progress

EVERY = 0.02


@pytest.fixture
def said(monkeypatch):
    """Print a line every few milliseconds, and keep them."""
    lines: list[str] = []
    write = progress._write_line
    short = functools.partial(progress.command_progress, every_seconds=EVERY)
    monkeypatch.setattr("gramian.cli.commands.fit.command_progress", short)
    monkeypatch.setattr(progress, "_write_line", lambda line: (write(line), lines.append(line)))
    return lines


def with_lines_before(function, said):
    """Return a function that waits for a line of the stage in which it is called."""

    def run(*arguments, **named):
        count = len(said)
        wait_until(lambda: len(said) >= count + 2)  # the first may be of the stage before
        return function(*arguments, **named)

    return run


def slow(monkeypatch, said, name):
    module, _, attribute = name.rpartition(".")
    found = importlib.import_module(module)  # not its parent's function of that name
    monkeypatch.setattr(found, attribute, with_lines_before(getattr(found, attribute), said))


def test_a_piped_run_says_where_it_is(gramian, train, tmp_path, monkeypatch, said):
    # A factor of all rows would leave one iteration.
    monkeypatch.setattr("gramian.preconditioners.falkon.CHEAP_PRODUCTS", 0.0)
    steps = ("cli.commands.fit.open_training", "fitting.methods.squared_error.choose_landmarks")
    for name in (*steps, "fitting.fit.solve"):
        slow(monkeypatch, said, f"gramian.{name}")
    monkeypatch.setattr(
        "gramian.callbacks.Validate.__call__",
        with_lines_before(
            lambda _self, _problem, state: state.metrics.update(valid_rmse=0.5), said
        ),
    )
    options = ("--target", "y", "--landmarks", 20, "--validation", 0.2, "--json")
    done = gramian("fit", train, *options, "--out", tmp_path / "y.model")
    assert done.code == 0, done.err
    lines = done.err.splitlines()
    for stage in ("reading", "choosing landmarks", "preparing", "iterating 2: "):
        assert any(line.startswith(f"gramian: {stage}") for line in lines), stage
    iterating = [line for line in lines if "iterating 2" in line][-1]
    assert "prediction_error" in iterating
    assert "valid_rmse 0.5" in iterating
    assert iterating.endswith(" s")


def test_a_short_run_says_nothing(gramian, train, tmp_path):
    options = ("--target", "y", "--landmarks", 20, *PLAIN_OPTIONS, "--out", tmp_path / "y.model")
    assert gramian("fit", train, *options).err == ""


def test_nothing_is_said_after_the_end(capsys, said):
    with progress.command_progress(3, every_seconds=EVERY):
        wait_until(lambda: len(said) >= 2)
    assert capsys.readouterr().err.count("gramian: reading, ") == len(said)
    time.sleep(4 * EVERY)
    assert capsys.readouterr().err == ""


def test_a_terminal_has_a_bar_with_the_stages(train, tmp_path, monkeypatch, gramian):
    stages = []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(Progress, "stage", lambda _self, name: stages.append(name))
    options = ("--target", "y", "--landmarks", 20, *PLAIN_OPTIONS, "--out", tmp_path / "y.model")
    assert gramian("fit", train, *options).code == 0
    assert stages == ["reading", "choosing landmarks", "preparing"]
