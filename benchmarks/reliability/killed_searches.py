"""Searches that are killed while their journal grows, and resumed from it."""

from __future__ import annotations

import contextlib
import io
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gramian import KernelRidgeCV
from gramian._files.atomic import LEFTOVER_AGE_SECONDS
from gramian.callbacks import Checkpoint
from gramian.callbacks.journal import RECORD_MARK, Journal
from gramian.cli import main
from gramian.model import load_model

from ..lib.process import in_child
from ..lib.results import Row

ROWS, FEATURES, BUDGET_EVALUATIONS = 400, 4, 10_000_000
TIMES = {"seconds", "elapsed"}
"""Facts that no two searches share."""

POLL_SECONDS = 0.002


def sample() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, FEATURES))
    y = np.sin(X[:, 1]) + 0.3 * X[:, 2] * X[:, 0] + 0.1 * rng.standard_normal(ROWS)
    return X, y


def search_in_python(path: Path) -> str:
    """Return the record and the model of a `KernelRidgeCV`."""
    callbacks = [Checkpoint(path)]
    estimator = KernelRidgeCV(budget=BUDGET_EVALUATIONS, random_state=0, callbacks=callbacks)
    estimator.fit(*sample())
    return record_of([estimator.history_, estimator.kernel_evaluations_], estimator.model_)


def search_by_command(path: Path) -> str:
    """Return the record and the model of ``gramian tune``."""
    table, out = path.with_suffix(".csv"), path.with_suffix(".model")
    np.savetxt(table, np.c_[sample()], delimiter=",", header="a,b,c,d,y", comments="")
    command = f"tune {table} --target y --budget {BUDGET_EVALUATIONS} --checkpoint {path}"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if main([*command.split(), "--out", str(out)]) != 0:
            raise RuntimeError(command)
    model = load_model(out)
    names = "members", "trials", "kernel_evaluations"
    return record_of([model.info[name] for name in names], model)


SEARCHES: dict[str, Callable[[Path], str]] = {
    "KernelRidgeCV": search_in_python,
    "gramian tune": search_by_command,
}


def record_of(facts: Any, model: Any) -> str:
    """Return facts without their times, and kernels and coefficients to the bit, as a text."""
    coefficients = [part.coef.tobytes().hex() for part in model.parts]
    return repr([_timeless(facts), [part.kernel for part in model.parts], coefficients])


def _timeless(facts: Any) -> Any:
    if isinstance(facts, dict):
        return {key: _timeless(fact) for key, fact in facts.items() if key not in TIMES}
    return [_timeless(fact) for fact in facts] if isinstance(facts, list | tuple) else facts


def kill_searches(name: str, count: int, folder: Path) -> Row:
    """Kill a search after a random step, or within the next one; resume it, and compare.

    The growth of the journal times the kill: the load of the machine has no part in it.
    """
    search, rng = SEARCHES[name], random.Random(name)
    start = time.perf_counter()
    expected = in_child(lambda: search(folder / "whole"))
    if not str(expected).startswith("["):  # the text of an error, which others would equal
        raise RuntimeError(expected)
    step_count = steps_in(folder / "whole")
    seconds = time.perf_counter() - start
    identical, steps = 0, []
    for i in range(count):
        path, step, more = folder / str(i), rng.randrange(step_count), rng.random()

        def wait(path: Path = path, step: int = step, more: float = more) -> None:
            deadline = time.monotonic() + 100 * seconds  # of a child that fails
            while marks_in(path) < step and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
            time.sleep(more * seconds / step_count)

        in_child(lambda path=path: search(path), kill_after=wait)
        steps.append(steps_in(path))
        age_leftovers(folder)
        identical += in_child(lambda path=path: search(path)) == expected
    row: Row = {"solver": name, "kills": count, "identical": identical}
    row |= {"at": " ".join(map(str, sorted(steps)))}
    row["before the end"] = sum(at < step_count for at in steps)
    return row | {"left over": leftovers(folder)}


def leftovers(folder: Path) -> int:
    return sum(name.endswith(".part") for name in os.listdir(folder))


def age_leftovers(folder: Path) -> None:
    """Date the files of killed processes back, so that the next save removes them."""
    for path in folder.glob("*.part"):
        written = time.time() - 2 * LEFTOVER_AGE_SECONDS
        os.utime(path, (written, written))


def marks_in(path: Path) -> int:
    return path.read_bytes().count(RECORD_MARK) if path.exists() else 0


def steps_in(path: Path) -> int:
    return len(Journal(path, {}, resume=True)) if path.exists() else 0
