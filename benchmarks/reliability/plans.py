"""Plans against fits: memory, kernel evaluations and seconds, each fit in a process of its own."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

from ..lib.results import Row, markdown, write

NOTES = (
    "Each fit in a fresh process with one thread, after a small fit that loads the libraries; 20 "
    "iterations. Seconds are those of the CPU, in the plan's calibration, too. MB: growth of the "
    "resident peak, in a process of its own that returns what it frees (MALLOC_MMAP_THRESHOLD_); "
    "as the C library is set, it holds some 20 MB more."
)

THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

RETURNS = {"MALLOC_MMAP_THRESHOLD_": "1000000"}
"""With this the C library returns what is freed, so that a peak is of what is in use."""

CASES: dict[str, tuple[int, int, str, str]] = {  # rows, features, dtype, settings of KernelRidge
    "direct": (3000, 10, "float32", "solver='direct'"),
    "direct, float64": (2000, 10, "float64", "solver='direct'"),
    "direct, 500 landmarks": (20000, 10, "float32", "solver='direct', landmarks=500"),
    "direct, 1000 landmarks": (10000, 10, "float64", "solver='direct', landmarks=1000"),
    "pcg": (12000, 10, "float32", "solver='pcg'"),
    "pcg, float64": (8000, 5, "float64", "solver='pcg'"),
    "pcg, 200 columns": (10000, 20, "float32", "solver=PCG(rank=200)"),
    "askotch": (12000, 10, "float32", "solver='askotch'"),
    "askotch, blocks of 500": (10000, 10, "float64", "solver=ASkotch(block=500)"),
    "falkon": (20000, 10, "float32", "landmarks=1000"),
    "falkon, float64": (20000, 10, "float64", "landmarks=1000"),
    "falkon, few features": (20000, 2, "float32", "landmarks=1000, penalty=1e-8"),
    "falkon, 2000": (10000, 10, "float32", "landmarks=2000"),
    "falkon, many features": (10000, 200, "float32", "landmarks=500"),
    "falkon, Laplacian": (20000, 10, "float32", "landmarks=500, kernel='laplacian'"),
    "falkon, auto": (20000, 10, "float32", "landmarks='auto'"),
    "falkon, RPCholesky": (20000, 10, "float32", "landmarks=RPCholesky(500)"),
    "falkon, BLESS": (20000, 10, "float32", "landmarks=Bless(500)"),
    "falkon, k-means": (10000, 10, "float32", "landmarks=KMeans(300)"),
    "eigenpro2": (8000, 10, "float32", "solver='eigenpro2', penalty=0"),
    "eigenpro3": (10000, 10, "float32", "solver='eigenpro3', landmarks=2000, penalty=0"),
    "eigenpro3, float64": (8000, 10, "float64", "solver='eigenpro3', landmarks=1000, penalty=0"),
    "sketchysaga": (10000, 10, "float32", "solver='sketchysaga', landmarks=1000"),
    "falkon, limit": (100000, 10, "float32", "landmarks=1500, memory_limit='200MB'"),
}

CHILD = """
import json, sys, time, types, warnings
from dataclasses import replace
import numpy as np
from gramian import KernelRidge
from gramian.fitting.plans import calibration
from gramian.landmarks import Bless, KMeans, RPCholesky
from gramian.solvers import PCG, ASkotch
from benchmarks.lib.process import peak_bytes, reset_peak, resident_bytes, trim_heap

warnings.simplefilter("ignore")
n, d, dtype, settings = json.loads(sys.argv[1])
given = eval(f"dict({settings})")
given = {"lengthscale": d**0.5, "max_iter": 20, "tol": 0.0, "random_state": 0} | given
given = {"standardize": False, "landmarks": None} | given
calibration.time = types.SimpleNamespace(perf_counter=time.process_time)
X = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
y = np.sin(X[:, 0])
est = KernelRidge(**given)
few = dict(given, landmarks=given["landmarks"] and 50, memory_limit=None)
if isinstance(given["landmarks"], (Bless, KMeans, RPCholesky)):
    few["landmarks"] = replace(given["landmarks"], m=50)
KernelRidge(**few).fit(X[:200], y[:200])  # libraries are loaded
plan = est.plan(X)
trim_heap()
reset_peak()
before, start = resident_bytes(), time.process_time()
est.fit(X, y)
seconds, peak = time.process_time() - start, peak_bytes() - before
print(json.dumps({
    "solver": plan.solver,
    "MB planned": round(plan.memory_bytes / 1e6), "MB": round(peak / 1e6),
    "evaluations planned": plan.kernel_evaluations,
    "evaluations": est.history_[-1]["kernel_evaluations"]
    + sum(row["kernel_evaluations"] for row in getattr(est, "path_", None) or ()),
    "s planned": round(plan.seconds, 2), "s": round(seconds, 2)}))
"""


def measured(name: str) -> Row:
    """Plan and fit a case: memory is of one process, and all else of another."""
    row: Row = {"fit": name, **run(name, THREADS), "MB": run(name, THREADS | RETURNS)["MB"]}
    row["memory, ratio"] = round(row["MB"] / max(row["MB planned"], 1), 2)
    row["evaluations, ratio"] = round(row["evaluations"] / row["evaluations planned"], 3)
    row["seconds, ratio"] = round(row["s"] / row["s planned"], 2)
    return row


def run(name: str, environment: dict[str, str]) -> Row:
    """Plan and fit a case in a process with one thread."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(CASES[name])],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr}")
    found: Row = json.loads(done.stdout)
    return found


def main(options: argparse.Namespace) -> None:
    """Make the table of all cases, of a few with --quick."""
    names = list(CASES)[:3] if options.quick else list(CASES)
    rows = [measured(name) for name in names]
    if options.quick:
        print(markdown(rows))
    else:
        write("plans", {"plans": rows}, NOTES)
