"""A forked child computes, whatever its parent was doing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # a process of its own

SCRIPT = """
import os, sys, threading, time, warnings
import numpy as np
import threadpoolctl
from gramian import KernelRidge

warnings.simplefilter("ignore")
threadpoolctl.threadpool_limits(2, "blas")
X = np.random.default_rng(0).standard_normal((300, 3))
y = np.sin(X[:, 0])

def fit(m):
    est = KernelRidge(landmarks=m, lengthscale=2.0, penalty=1e-3, max_iter=3, random_state=0)
    return est.fit(X, y).predict(X[:3])

def for_ever():
    while True:
        fit(60)

expected = fit(200)  # with the threads of the BLAS: the 200 landmarks' matrix is large enough
threading.Thread(target=for_ever, daemon=True).start()
codes = []
for _ in range(4):
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.allclose(fit(200), expected, atol=1e-8) else 1)
    codes.append(os.waitpid(child, 0)[1])
print(codes, flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_children_of_a_parent_that_fits_in_another_thread():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "[0, 0, 0, 0]\n", done.stderr


LIMITS = """
import os, threading, time
from gramian._parallel.workers import one_thread_if_small

def for_ever():
    while True:
        with one_thread_if_small(1):
            pass

with one_thread_if_small(1):
    pass
threading.Thread(target=for_ever, daemon=True).start()
for _ in range(200):
    child = os.fork()
    if child == 0:
        with one_thread_if_small(1):
            pass
        os._exit(0)
    end = time.monotonic() + 10
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, 9)
            print("a child waits for a lock that nobody has", flush=True)
            os._exit(1)
        time.sleep(0.005)
print("all ended", flush=True)
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_children_of_a_parent_that_sets_the_threads_of_lapack():
    done = subprocess.run(
        [sys.executable, "-c", LIMITS], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout == "all ended\n", done.stderr
