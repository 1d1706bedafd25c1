"""
Resuming after a kill
=====================

A fit with a ``Checkpoint`` writes its state to a file. If the process dies, the same call resumes
the fit, and ends with the same coefficients, to the last bit.
"""

# %%
# The process below kills itself in iteration 20, to simulate the loss of a machine.
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from gramian import KernelRidge
from gramian.callbacks import Checkpoint

fit_and_die = """
import os, signal, sys
import numpy as np
from gramian import KernelRidge
from gramian.callbacks import Checkpoint

def die(problem, state):
    if state.iteration == 20:
        os.kill(os.getpid(), signal.SIGKILL)

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (5000, 3))
y = np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(5000)
settings = dict(lengthscale=1.0, penalty=1e-5, landmarks=300, random_state=0)
saved = Checkpoint(sys.argv[1])
KernelRidge("gaussian", **settings, callbacks=[saved, die]).fit(X, y)
"""

folder = tempfile.TemporaryDirectory()
state = Path(folder.name) / "fit.state"
died = subprocess.run([sys.executable, "-c", fit_and_die, str(state)], check=False)
print(f"exit code {died.returncode}, {state.stat().st_size:,} bytes of state")

# %%
# The same data and settings, in this process. The first iteration is read from the file.
rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (5000, 3))
y = np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(5000)
settings = dict(lengthscale=1.0, penalty=1e-5, landmarks=300, random_state=0)
resumed = KernelRidge("gaussian", **settings, callbacks=[Checkpoint(state)]).fit(X, y)
whole = KernelRidge("gaussian", **settings).fit(X, y)
print("the same coefficients:", np.array_equal(resumed.dual_coef_, whole.dual_coef_))

# %%
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for fit, style, name in (
    (whole, {"color": "0.75", "linewidth": 5}, "never interrupted"),
    (resumed, {"color": "C0", "marker": "."}, "resumed"),
):
    rows = fit.history_
    axes.semilogy(
        [row["iteration"] for row in rows], [row["rel_residual"] for row in rows],
        label=name, **style,
    )  # fmt: skip
axes.axvline(20, color="C3", linestyle="--", label="killed")
axes.set(xlabel="iteration", ylabel="relative residual")
axes.legend()
plt.show()
folder.cleanup()

# %%
# On the command line: ``gramian fit --checkpoint FILE``. A checkpoint of other data or settings is
# an error.
