"""
Memory by solver
================

The memory of a fit, in addition to the rows, limits the choice of the solver. A plan estimates it
before anything is computed.
"""

# %%
# A sparse file of ten million zero rows takes no disk space, and a plan uses only the sizes.
# Smaller sizes use the beginning of the file.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from gramian import KernelRidge

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "zeros.npy"
zeros = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(10_000_000, 10))

contenders = {
    "direct, all rows": dict(solver="direct", landmarks=None),
    "pcg, all rows": dict(solver="pcg", landmarks=None),
    "askotch, all rows": dict(solver="askotch", landmarks=None),
    "falkon, 1,000 landmarks": dict(solver="falkon", landmarks=1000),
    "falkon, 5 √n landmarks": dict(solver="falkon"),
    "cells of 2,000 rows": dict(cells=2000),
}
sizes = np.array([10_000, 100_000, 1_000_000, 10_000_000])
memory = {name: [] for name in contenders}
for n in sizes:
    for name, settings in contenders.items():
        if name.startswith("falkon, 5"):
            settings = {**settings, "landmarks": int(5 * n**0.5)}
        model = KernelRidge(
            "gaussian", lengthscale=1.0, penalty=1e-6, memory_limit="1000TB", **settings
        )
        given = min(settings.get("landmarks") or 1, n)
        model.landmarks = given if settings.get("landmarks") else None
        memory[name].append(model.plan(zeros[:n]).memory_bytes)

# %%
# The horizontal lines are the memory of typical machines.
figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
for (name, taken), marker in zip(memory.items(), "osv^Dx", strict=True):
    axes.loglog(sizes, taken, marker=marker, label=name)
for size, name in ((16e9, "a laptop, 16 GB"), (1e12, "a server, 1 TB")):
    axes.axhline(size, color="0.6", linestyle=":")
    axes.text(sizes[0], size * 1.2, name, color="0.4")
axes.set(xlabel="rows", ylabel="bytes beside the rows", ylim=(1e7, 1e17))
axes.grid(alpha=0.3)
axes.legend(loc="upper left", fontsize=9)
plt.show()
folder.cleanup()

# %%
# ``KernelRidge(memory_limit="8GB")`` refuses a fit that needs more before it starts. Which solver
# when: :doc:`/choosing`.
