"""`plan`, `info`, `convert`, help, and the program as it is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import typer
from plain import PLAIN, PLAIN_OPTIONS

import gramian
from gramian import kernels, solvers
from gramian.cli.app import app
from gramian.operators import compiled_tiles

COMMANDS = (
    "fit", "tune", "predict", "evaluate", "explain", "report", "plan", "export", "info", "convert",
    "sample",
)  # fmt: skip


def test_plan_counts_what_the_fit_will_do(request, report, train, tmp_path):
    options = ("--target", "y", "--landmarks", 20, "--max-iter", 3, "--tol", 1e-30)
    options += ("--validation", 0.2, "--history", tmp_path / "h.json")
    said = report("plan", train, *options[:-2])
    assert (said["rows"], said["features"]) == (49, 3)
    assert (said["solver"], said["landmarks"], said["iterations"]) == ("falkon", 20, 3)
    assert said["memory_bytes"] > 0
    assert said["seconds"] > 0
    # The factor of all rows, the right-hand side, and the iterations; the factor of landmarks.
    assert said["kernel_evaluations"] == (1 + 1 + 3) * 49 * 20 + 20 * 20
    command = request.getfixturevalue("gramian")
    assert command("fit", train, *options, "--out", tmp_path / "y.model").code == 0
    last = json.loads((tmp_path / "h.json").read_text())[-1]
    assert (last["iteration"], last["kernel_evaluations"]) == (3, said["kernel_evaluations"])


def test_plan_counts_the_targets_of_several_classes(report, save):
    y = np.array(["a", "b", "c", "d"])[np.arange(61) % 4]
    options = ("--target", "y", "--landmarks", "none", "--solver", "pcg")
    one = report("plan", save(), *options)["memory_bytes"]
    four = report("plan", save(y=y), *options)["memory_bytes"]
    assert four > one


def test_info_of_a_wide_model_has_two_screens(request, report, tmp_path):
    command = request.getfixturevalue("gramian")
    columns, rng = {}, np.random.default_rng(0)
    for j in range(2000):
        name = f"measurement number {j} of the station at the river"
        levels = [f"level {i}" for i in range(2 + j % 25)]
        is_text = j % 3 == 0
        columns[name] = rng.choice(levels, 60) if is_text else rng.normal(size=60)
    table = pd.DataFrame(columns)
    table["y"] = 2 * table["measurement number 1 of the station at the river"]
    model = tmp_path / "m.model"
    gramian.KernelRidge(landmarks=10, random_state=0, **PLAIN).fit(table, "y").save(model)
    shown = command("info", model).out
    lines = [line[start : start + 80] for line in shown.splitlines()
             for start in range(0, max(len(line), 1), 80)]  # fmt: skip
    assert len(lines) <= 48
    assert "columns (1,333) number, standardised" in shown
    assert "--all shows all" in shown
    everything = command("info", model, "--all").out
    assert everything.count("\ncolumns measurement number") == 2000
    assert len(report("info", model)["columns"]) == 2000


def test_a_fit_of_a_wide_table_groups_its_columns(request, tmp_path):
    run = request.getfixturevalue("gramian")
    columns = {f"x{j}": np.arange(20.0) ** (j % 7) for j in range(300)}
    data = tmp_path / "wide.csv"
    table = pd.DataFrame({**columns, "t": ["a", "b"] * 10, "y": np.sin(np.arange(20))})
    table.to_csv(data, index=False)
    command = ("fit", data, "--target", "y", *PLAIN_OPTIONS, "--out", tmp_path / "m.model")
    shown = run(*command).out
    assert len(shown.splitlines()) < 48
    assert "columns (257) number, standardised" in shown
    assert "(257; gramian info --all shows all)" in shown
    assert len(json.loads(run(*command, "--json").out)["columns"]) == 301


def test_info_about_this_installation(report):
    said = report("info")
    assert said["version"] == gramian.__version__
    assert (said["torch"] is None) == (find_spec("torch") is None)
    assert "numpy" in said["engines"]
    assert ("native" in said["engines"]) == bool(compiled_tiles())
    assert said["compiled_tiles"] == compiled_tiles() or "not installed" in said["compiled_tiles"]
    assert said["kernels"] == list(kernels.names())
    assert said["solvers"] == list(solvers.names())


def test_info_names_the_devices_one_by_one_and_together(report, monkeypatch):
    monkeypatch.setattr("gramian.cli.commands.info.count_devices", lambda: 2)
    cuda = [name for name in report("info")["engines"] if name.startswith("torch:cuda")]
    assert cuda == ["torch:cuda:0", "torch:cuda:1", "torch:cuda:0,1"]


def test_info_about_a_model(report, fit, train):
    said = report("info", fit(train, "--landmarks", 20, "--kernel", "matern52"))
    assert said["kernel"]["name"] == "matern52"
    assert said["centers"] == 20
    assert said["feature_names"] == ["a", "b", "c"]
    assert said["standardized"] is True
    assert said["trained"]["rows"] == 61
    assert said["trained"]["version"] == gramian.__version__


@pytest.mark.parametrize("form", ["csv", "npy"])
def test_convert_and_back(report, train, tmp_path, form):
    there, back = tmp_path / f"x.{form}", tmp_path / "back.parquet"
    assert report("convert", train, there, "--dtype", "float64")["rows"] == 61
    report("convert", there, back, "--dtype", "float64")
    np.testing.assert_array_equal(np.asarray(pq.read_table(back)), np.asarray(pq.read_table(train)))


@pytest.mark.parametrize("command", COMMANDS)
def test_help(gramian, command):
    done = gramian(command, "--help")
    assert done.code == 0
    assert "--json" in done.out
    lines = done.out.split("\n")
    assert len(lines) <= 60
    assert any(line.strip().startswith("Example: ") for line in lines[-8:])


@pytest.mark.parametrize("command", COMMANDS)
def test_help_all_lists_each_option(gramian, command):
    done = gramian(command, "--help-all")
    assert done.code == 0
    options = typer.main.get_command(app).commands[command].params
    assert [o.name for o in options if o.opts[0] not in done.out and o.name != "data"] == []


def test_a_refused_option_that_help_hides_is_still_suggested(gramian, train, tmp_path):
    done = gramian("fit", train, "--target", "y", "--out", tmp_path / "y", "--memory-limits", 5)
    assert done.code == 2
    assert "did you mean --memory-limit?" in done.err


def test_without_arguments_there_is_help(gramian):
    done = gramian()
    assert done.code == 0
    assert all(command in done.out for command in COMMANDS)


def test_help_does_not_wait_for_torch():
    code = (
        "import sys; from gramian.cli import main; main(['fit', '--help']);"
        "sys.exit(bool({'torch', 'sklearn', 'numpy'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_the_installed_program():
    program = Path(sys.executable).parent / "gramian"
    done = subprocess.run([program, "info", "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["version"] == gramian.__version__
    assert done.stderr == ""
