"""The command line in this process, and small tables to feed it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramian.cli import main

PYTHON = re.compile(
    r"(?<![\w-])(max_iter|memory_limit|random_state|early_stopping|cv|tol|penalty|landmarks|solver|engine)="
    r"|(?<![\w-])(max_iter|memory_limit|random_state|early_stopping)\b"
)
"""Parameters as Python spells them: the command line has options."""


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def gramian(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Return a function that runs a command; its arguments may be of any type."""

    def run(*arguments: object) -> Done:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def report(gramian: Callable[..., Done]) -> Callable[..., Any]:
    """Return a function that runs a command with --json, which must be quiet, for its report."""

    def run(*arguments: object) -> Any:
        done = gramian(*arguments, "--json")
        assert done.code == 0, done.err
        assert done.err == ""
        assert done.out.count("\n") == 1
        return json.loads(done.out)

    return run


@pytest.fixture
def error(gramian: Callable[..., Done]) -> Callable[..., str]:
    """Return a function that runs a command that must be refused, for what it says: one line."""

    def run(*arguments: object, code: int = 2) -> str:
        done = gramian(*arguments)
        assert done.code == code, done
        assert done.out == ""
        assert done.err.startswith("gramian: error: ")
        assert done.err.count("\n") == 1
        assert not PYTHON.search(done.err), done.err
        return done.err

    return run


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a table of three features and a target, and gives its path.

    The features are far from mean 0 and deviation 1, each in its own way. Further arguments are
    columns to add or to replace.
    """

    def write(name: str = "train.parquet", n: int = 61, seed: int = 0, **columns: Any) -> Path:
        x = np.random.default_rng(seed).standard_normal((n, 3))
        x = x * [1.0, 30.0, 0.01] + [5.0, -200.0, 0.0]
        y = 1000 + 50 * np.sin(x[:, 0]) + x[:, 1] / 2
        table = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y} | columns
        pq.write_table(pa.table(table), tmp_path / name, row_group_size=20)
        return tmp_path / name

    return write


@pytest.fixture
def train(save: Callable[..., Path]) -> Path:
    """Give a table of 61 rows."""
    return save("train.parquet")


@pytest.fixture
def fresh(save: Callable[..., Path]) -> Path:
    """Give another table, of 17 rows."""
    return save("fresh.parquet", n=17, seed=1)


@pytest.fixture
def fit(report: Callable[..., Any], tmp_path: Path) -> Callable[..., Path]:
    """Return a function that fits a model of column y to a table and gives the model's path."""

    def run(data: Path, *more: object, penalty: float = 1e-4, name: str = "y.model") -> Path:
        out = tmp_path / name
        # A second --target would be another target.
        target = () if "--target" in more else ("--target", "y")
        report("fit", data, *target, "--penalty", penalty, *more, "--out", out)
        return out

    return run
