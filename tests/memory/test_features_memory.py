"""Estimators on Nystrom features stay inside memory_limit, whatever the number of rows."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # a process of its own

MB = 10**6

LIMIT = 160 * MB

SLACK = 64 * MB
"""What is nobody's block: buffers of the BLAS and what the allocator keeps, as for products."""

SCRIPT = """
import pathlib, resource, sys
import numpy as np
from gramian import KernelCCA, KernelKMeans, KernelPCA

n, m, limit = 60_000, 300, int(sys.argv[1])  # features of all rows: 72 MB in float32

def peak():
    status = pathlib.Path("/proc/self/status")
    if status.exists():  # on Linux ru_maxrss starts from what the parent process had
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

X = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
how = {"landmarks": m, "lengthscale": 1.0, "memory_limit": limit, "random_state": 0}
pca = KernelPCA(3, fit_inverse_transform=True, **how)
work = {
    "pca": lambda X: pca.inverse_transform(pca.fit(X).transform(X)),
    "kmeans": lambda X: KernelKMeans(3, max_iter=2, **how).fit(X),
    "cca": lambda X: KernelCCA(2, **how).fit(X[:, :2], X[:, 2:]),
}[sys.argv[2]]
work(X[:400])  # warm up
base = peak()
work(X)
print(peak() - base)
"""


@pytest.mark.parametrize("case", ["pca", "kmeans", "cca"])
def test_the_peak_stays_within_the_limit(case):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(LIMIT), case],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert LIMIT // 8 < int(done.stdout) <= LIMIT + SLACK, case
