"""One fit of `accuracy` or `many_rows`: a process with one thread and bounded CPU seconds."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..lib.process import THREADS, bytes_before_work, peak_bytes
from ..lib.results import ROOT, Row
from ..lib.sets import errors
from ..lib.timing import clock
from .accuracy_contenders import CONTENDERS
from .accuracy_sets import Table, load
from .many_rows_contenders import MANY_ROWS
from .probabilities_contenders import PROBABILITIES

LIMIT = 1800
"""CPU seconds of one fit with its predictions."""

MAKERS = CONTENDERS | MANY_ROWS | PROBABILITIES
OUR_NAME = "gramian"
"""Contenders whose names begin so keep budgets in CPU seconds."""

LEAST_SHARE = 1e-6
"""Smallest probability in a log loss: also that of classes that a contender has not seen."""


@dataclass(frozen=True)
class Job:
    """A set, a contender, a seed, at most how many training rows, a file for the predictions."""

    path: str
    contender: str
    seed: int
    cap: int | None
    kept: str | None = None

    @property
    def key(self) -> Row:
        name = Path(self.path).stem
        return {
            "set": name, "contender": self.contender, "seed": self.seed, "cap": self.cap or "none"
        }  # fmt: skip


def fitted(job: Job) -> Row:
    """Fit, predict the test rows, and return error and seconds."""
    table = load(Path(job.path), job.cap, job.seed)
    if job.contender.startswith(OUR_NAME):  # budgets, too, are in seconds of this process alone
        time.monotonic = time.process_time
    model = MAKERS[job.contender](table.labels, job.seed)
    before = bytes_before_work()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with clock() as fit:
            model.fit(table.X, table.y)
        with clock() as predict:
            prediction = model.predict(table.X_test)
        row = {"rows": len(table.X), "features": table.X.shape[1], "test rows": len(table.X_test)}
        row["error"] = error(np.asarray(prediction), table)
        peak = peak_bytes()
        if table.labels and hasattr(model, "predict_proba"):
            prediction = shares(model, table)
            row["log loss"] = log_loss(prediction, table.y_test)
    if job.kept is not None:
        np.savez(job.kept, prediction=prediction, truth=table.y_test)
    row |= {"cpu_s": fit.cpu, "wall_s": fit.wall, "predict_s": predict.cpu}
    return row | {"MB": round((peak - before) / 1e6)} | getattr(model, "facts", {})


def error(prediction: np.ndarray, table: Table) -> float:
    """Return the share of wrong labels, or the RMSE."""
    if table.labels:
        return float((prediction != table.y_test).mean())
    return errors(prediction.ravel(), table.y_test)[0]


def shares(model: Any, table: Table) -> np.ndarray:
    """Return a probability of each class, 0 of unseen ones; xRFM has a column for every number."""
    found = np.asarray(model.predict_proba(table.X_test), np.float64)
    classes = getattr(model, "classes_", np.arange(found.shape[1]))
    each = np.zeros((len(found), 1 + max(table.y.max(), table.y_test.max(), classes.max())))
    each[:, classes] = found
    return each


def log_loss(shares: np.ndarray, y: np.ndarray) -> float:
    """Return the mean of -log p of the right class."""
    right = np.take_along_axis(shares, y[:, None], axis=1)
    return float(-np.log(np.clip(right, LEAST_SHARE, 1)).mean())


def in_own_process(job: Job, limit: int = LIMIT) -> Row:
    """Return the row of a job, or why there is none; the limit is of CPU seconds."""
    command = [sys.executable, "-m", __name__, json.dumps(asdict(job)), str(limit)]
    environment = os.environ | dict.fromkeys(THREADS, "1")
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
            timeout=10 * limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return job.key | {"failed": f"more than {10 * limit:,} s"}
    if done.returncode == -signal.SIGXCPU:
        return job.key | {"failed": f"more than {limit:,} CPU s"}
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return job.key | {"failed": said[-1][:200]}
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return job.key | row


def main(job: str, limit: str) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
    print(json.dumps(fitted(Job(**json.loads(job)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
