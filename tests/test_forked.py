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
import torch
from gramian import KernelRidge

warnings.simplefilter("ignore")
torch.set_num_threads(2)
X = np.random.default_rng(0).standard_normal((300, 3))
y = np.sin(X[:, 0])

def fit(m):
    est = KernelRidge(landmarks=m, lengthscale=2.0, penalty=1e-3, max_iter=3, random_state=0)
    return est.fit(X, y).predict(X[:3])

def for_ever():
    while True:
        fit(60)

expected = fit(200)  # with the threads of OpenMP: the 200 landmarks' matrix is large enough
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
