"""Progress: every stage is shown, on a terminal by a bar, on a pipe by a line now and then."""

from __future__ import annotations

import functools
import importlib
import time

import pytest

from gramian.callbacks import ProgressBar
from gramian.cli import progress

EVERY = 0.02


@pytest.fixture
def often(monkeypatch):
    """Say a line every few milliseconds, and let reading and an iteration take longer."""
    short = functools.partial(progress.progress, every_seconds=EVERY)
    monkeypatch.setattr("gramian.cli.fit.progress", short)


def slowed(function, seconds):
    def run(*arguments, **named):
        time.sleep(seconds)
        return function(*arguments, **named)

    return run


def slow(monkeypatch, name, seconds=8 * EVERY):
    module, _, attribute = name.rpartition(".")
    found = importlib.import_module(module)  # not its parent's function of that name
    monkeypatch.setattr(found, attribute, slowed(getattr(found, attribute), seconds))


@pytest.mark.usefixtures("often")
def test_a_piped_run_says_where_it_is(gramian, train, tmp_path, monkeypatch):
    for name in ("cli.fit.open_training", "fitting.fit.start", "fitting.fit.solve"):
        slow(monkeypatch, f"gramian.{name}")
    monkeypatch.setattr(
        "gramian.callbacks.Validate.__call__",
        slowed(lambda _self, _problem, state: state.metrics.update(valid_rmse=0.5), 3 * EVERY),
    )
    options = ("--target", "y", "--landmarks", 20, "--validation", 0.2, "--json")
    done = gramian("fit", train, *options, "--out", tmp_path / "y.model")
    assert done.code == 0, done.err
    lines = done.err.splitlines()
    for stage in ("reading", "choosing landmarks", "preparing", "iterating 2: "):
        assert any(line.startswith(f"gramian: {stage}") for line in lines), stage
    iterating = [line for line in lines if "iterating 2" in line][-1]
    assert "rel_residual" in iterating
    assert "valid_rmse 0.5" in iterating
    assert iterating.endswith(" s")


def test_a_short_run_says_nothing(gramian, train, tmp_path):
    options = ("--target", "y", "--landmarks", 20, "--out", tmp_path / "y.model")
    assert gramian("fit", train, *options).err == ""


@pytest.mark.usefixtures("often")
def test_nothing_is_said_after_the_end(capsys):
    with progress.progress(3, every_seconds=EVERY):
        time.sleep(4 * EVERY)
    said = capsys.readouterr().err
    assert said.count("gramian: reading, 0 s\n") >= 2
    time.sleep(4 * EVERY)
    assert capsys.readouterr().err == ""


def test_a_terminal_has_a_bar_with_the_stages(train, tmp_path, monkeypatch, gramian):
    stages = []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(ProgressBar, "stage", lambda _self, name: stages.append(name))
    options = ("--target", "y", "--landmarks", 20, "--out", tmp_path / "y.model")
    assert gramian("fit", train, *options).code == 0
    assert stages == ["reading", "choosing landmarks", "preparing"]
