"""Peak memory of fits against their plans, measured in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # a process of its own

MB = 1_000_000

SLACK = 10 * MB
"""Buffers of the BLAS, which stay after a product."""

RETURN_FREED_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "65536"}
"""glibc maps arrays from 64 kB on one by one, and unmaps them when they are freed.

By default the limit grows to 32 MB while a process runs, and freed arrays below it stay with the
process: the same direct fit took 93 to 129 MB, by chance, and takes 89.5 to 89.8 MB with this.
"""

SCRIPT = """
import json, pathlib, resource, sys, warnings
import numpy as np
from gramian import KernelRidge
from gramian.landmarks import RPCholesky

warnings.simplefilter("ignore")
status, clear = pathlib.Path("/proc/self/status"), pathlib.Path("/proc/self/clear_refs")

def memory(what):
    if status.exists():
        return int(status.read_text().split(f"Vm{what}:")[1].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

def growth(n, d, dtype, **settings):
    X = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    settings = {"kernel": "gaussian", "lengthscale": d**0.5, "penalty": 1e-6} | settings
    est = KernelRidge(max_iter=3, tol=0.0, random_state=0, **settings)
    few = settings | ({"landmarks": 20} if "landmarks" in settings else {})
    KernelRidge(**few, max_iter=1).fit(X[:100], X[:100, 0])  # libraries are loaded
    planned = est.plan(X).memory_bytes
    if clear.exists():
        clear.write_text("5")  # the peak starts again
    base = memory("RSS" if clear.exists() else "HWM")
    est.fit(X, X[:, 0])
    return planned, memory("HWM") - base

print(json.dumps({
    "direct": growth(3000, 3, "float32", solver="direct"),
    "direct, landmarks": growth(6000, 3, "float64", solver="direct", landmarks=400),
    "pcg": growth(6000, 3, "float64", solver="pcg"),
    "rpcholesky": growth(10_000, 10, "float32", landmarks=RPCholesky(500)),
}))
"""


def test_a_fit_takes_what_its_plan_says():
    """A direct fit takes 90 MB of 98 planned, with landmarks 62 of 107, RPCholesky 40 of 74."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT], env=os.environ | RETURN_FREED_MEMORY,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    too_much = {
        name: f"{used // MB} MB, planned {planned // MB}"
        for name, (planned, used) in found.items()
        if used > 1.1 * planned + SLACK
    }
    assert not too_much
    # this one must be seen: were it not, nothing above could fail
    assert found["direct"][1] > 8 * 3000**2
