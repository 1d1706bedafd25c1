"""A Parquet set larger than the memory limit, fitted through the command line."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.exceptions import ConvergenceWarning

from gramian import KernelModel, KernelRidge
from gramian import _arrays as xp
from gramian.data import Standardizer, as_rows

from ..lib.results import shown, write

FEATURES = 20
GROUP = 131_072
GROUPS_PER_FILE = 16
NOISE = 0.1
KINDS = ("float32", "float64")
LIMIT = "500MB"
FIT = {
    "--target": "y",
    "--landmarks": "1000",
    "--lengthscale": "5",
    "--penalty": "1e-7",
    "--max-iter": "10",
}
NOTES = f"""\
{FEATURES} normal float32 features and a smooth target with noise of deviation {NOISE}, in Parquet
files of {GROUPS_PER_FILE} row groups of {GROUP:,} rows, not compressed, fitted by

    gramian fit DIR {" ".join(f"{k} {v}" for k, v in FIT.items())} --memory-limit {LIMIT}

`peak MB` is the largest resident set of that process, libraries included (of `gramian info`, which
only loads them: the first row). `RMSE` is that of the model on fresh rows without noise, in units
of the target's deviation. `passes`: reading of the targets, standardization (with the check for
missing values), a check of the rows, landmarks, right-hand side, one per iteration."""


# A process inherits the peak of the one that starts it, so a small one must.
LAUNCHER = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({
    "code": done.returncode, "output": done.stdout, "wall": time.perf_counter() - start,
    "cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss * 1024,
}))
"""


@dataclass(frozen=True)
class Ended:
    """Output, seconds and largest memory of a process that has ended."""

    code: int
    output: str
    wall: float
    cpu: float
    peak: int


def run(*command: str) -> Ended:
    """Run a console script of this environment."""
    script = str(Path(sys.executable).parent / command[0])
    launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, script, *command[1:]]
    done = subprocess.run(launch, stdout=subprocess.PIPE, text=True, check=True)
    ended = Ended(**json.loads(done.stdout))
    if ended.code != 0:
        raise SystemExit(f"{' '.join(command)} failed with {ended.code}: {ended.output}")
    return ended


def target(X: np.ndarray) -> np.ndarray:
    return np.sin(X[:, 0]) + 0.5 * np.cos(X[:, 1] + X[:, 2]) + 0.3 * X[:, 3] * np.tanh(X[:, 4])


def rows(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((count, FEATURES), dtype=np.float32)
    return X, target(X) + NOISE * rng.standard_normal(count, dtype=np.float32)


def generate(folder: Path, n: int, *, kind: str = "float32") -> int:
    """Write n rows and return the bytes."""
    folder.mkdir(parents=True)
    rng, names = np.random.default_rng(0), [*(f"x{j}" for j in range(FEATURES)), "y"]
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name in names])
    for number, start in enumerate(range(0, n, GROUP * GROUPS_PER_FILE)):
        left = min(GROUP * GROUPS_PER_FILE, n - start)
        path = folder / f"part-{number:03}.parquet"
        with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
            for done in range(0, left, GROUP):
                X, y = rows(rng, min(GROUP, left - done))
                columns = [*X.T.astype(kind), y.astype(kind)]
                file.write_batch(pa.record_batch(columns, schema=schema))
    return sum(path.stat().st_size for path in folder.iterdir())


def fit(data: Path, out: Path, limit: str) -> tuple[Ended, dict[str, Any]]:
    options = [word for option in FIT.items() for word in option]
    ended = run(
        "gramian", "fit", str(data), *options, "--memory-limit", limit, "--out", str(out), "--json"
    )
    return ended, json.loads(ended.output)


def test_error(model: Path) -> float:
    X, _ = rows(np.random.default_rng(1), 20_000)
    truth = target(X)
    prediction = KernelModel.load(model).predict(X)[:, 0]
    return float(np.sqrt(((prediction - truth) ** 2).mean()) / truth.std())


def streamed(work: Path, n: int) -> dict[str, Any]:
    data, out = work / f"rows-{n}", work / f"model-{n}"
    size = generate(data, n)
    ended, said = fit(data, out, LIMIT)
    shutil.rmtree(data)
    row = {"rows": n, "MB on disk": round(size / 1e6), "peak MB": round(ended.peak / 1e6)}
    row |= {"seconds": ended.wall, "CPU seconds": ended.cpu, "iterations": said["iterations"]}
    return shown(row | {"RMSE": test_error(out)})


def libraries() -> dict[str, Any]:
    ended = run("gramian", "info")
    row = {"rows": 0, "MB on disk": 0, "peak MB": round(ended.peak / 1e6)}
    return shown(row | {"seconds": ended.wall, "CPU seconds": ended.cpu})


def equal(work: Path, n: int, limit: str, kind: str) -> dict[str, Any]:
    """Fit the same rows from disk in little memory, and as an array."""
    data, out = work / f"subsample-{kind}", work / f"model-{kind}"
    size = generate(data, n, kind=kind)
    ended, _ = fit(data, out, limit)
    model = KernelModel.load(out)
    X, y = in_memory(data, model)
    est = KernelRidge(
        standardize=False,
        lengthscale=float(FIT["--lengthscale"]),
        penalty=float(FIT["--penalty"]),
        landmarks=int(FIT["--landmarks"]),
        max_iter=int(FIT["--max-iter"]),
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        est.fit(X, y)
    fresh = rows(np.random.default_rng(1), 20_000)[0].astype(kind)
    there = replace(est.model_, standardizer=model.standardizer).predict(fresh)
    here = replace(model, target_shift=None, target_scale=None).predict(fresh)
    row = {"rows": n, "type": kind, "MB on disk": round(size / 1e6), "memory limit": limit}
    row |= {"peak MB": round(ended.peak / 1e6)}
    row |= {"landmarks equal": np.array_equal(_points(model), _points(est.model_))}
    row |= {"relative difference of coefficients": _far(model.coef, est.model_.coef)}
    return shown(row | {"of predictions": _far(here, there)})


def in_memory(data: Path, model: KernelModel) -> tuple[np.ndarray, np.ndarray]:
    """Return standardized rows and targets as arrays, by the same arithmetic as the fit."""
    table = pq.read_table(data)
    X = np.stack([table[f"x{j}"].to_numpy() for j in range(FEATURES)], axis=1)
    y = as_rows(table["y"].to_numpy()[:, None])
    X, y = model.standardizer.apply(as_rows(X)), Standardizer.fit(y).apply(y)
    return tuple(part.take(np.arange(len(part))) for part in (X, y))


def _far(a: np.ndarray, b: np.ndarray) -> float:
    return float(xp.norm(a - b) / xp.norm(b))


def _points(model: KernelModel) -> np.ndarray:
    return model.centers.take(np.arange(len(model.centers)))


def main(options: argparse.Namespace) -> None:
    sizes = (1_000_000,) if options.quick else (2_000_000, 20_000_000)
    if options.work is not None:
        Path(options.work).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gramian-", dir=options.work) as folder:
        work = Path(folder)
        tables = {
            "Equal to the fit in memory": [equal(work, 200_000, "80MB", k) for k in KINDS],
            "Streamed": [libraries(), *(streamed(work, n) for n in sizes)],
        }
    if not options.quick:
        write("out_of_core", tables, NOTES)
