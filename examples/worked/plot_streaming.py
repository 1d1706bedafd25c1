"""
A file larger than memory
=========================

A Parquet file is never loaded as a whole. Each pass of a fit reads it block by block, the first
pass keeps the decoded rows in a temporary file, and ``memory_limit`` bounds the allocated memory.
"""

# %%
# A million rows of 24 features, written in parts: 96 MB as float32 numbers. A real file might have
# a billion.
import tempfile
import threading
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from gramian import KernelRidge

folder = tempfile.TemporaryDirectory()
path, names = Path(folder.name) / "rows.parquet", [f"x{j}" for j in range(24)]
rng = np.random.default_rng(0)
schema = pa.schema([(name, pa.float32()) for name in [*names, "y"]])
with pq.ParquetWriter(path, schema) as file:
    for _ in range(40):
        X = rng.standard_normal((25_000, len(names)), np.float32)
        y = np.sin(X[:, 0]) + 0.5 * np.cos(X[:, 1] + X[:, 2]) + 0.1 * rng.standard_normal(len(X))
        file.write_table(pa.table([*X.T, y.astype(np.float32)], schema=schema))

# %%
# During the fit, another thread records the allocated memory of the process.


def held() -> float:
    """Return the megabytes that the process has allocated; on Linux."""
    status = Path("/proc/self/status").read_text()
    kinds = ("RssAnon:", "RssShmem:")
    return sum(int(status.split(kind)[1].split()[0]) for kind in kinds) / 1e3


def watched(fit):
    """Return seconds and megabytes above the start, all through a fit."""
    seen, done, began, before = [], threading.Event(), time.perf_counter(), held()

    def look():
        while not done.wait(0.02):
            seen.append((time.perf_counter() - began, held() - before))

    watcher = threading.Thread(target=look)
    watcher.start()
    fit()
    done.set()
    watcher.join()
    return np.array(seen).T


settings = dict(lengthscale=4.0, penalty=1e-4, landmarks=150, solver="falkon", random_state=0)
streamed = KernelRidge("gaussian", **settings, memory_limit="80MB")
print(streamed.plan(str(path), "y"))
curves = {"from the file": watched(lambda: streamed.fit(str(path), "y"))}

loaded = KernelRidge("gaussian", **settings)


def load_and_fit():
    """Hold the whole table, as most libraries do."""
    table = pq.read_table(path).to_pandas()
    loaded.fit(table, "y")


curves["loaded, then fitted"] = watched(load_and_fit)

# %%
# The two models agree up to rounding, and one of them never held the rows in memory.
figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
for name, (seconds, megabytes) in curves.items():
    axes.plot(seconds, megabytes, label=name)
axes.axhline(96, color="0.6", linestyle=":")
end = max(seconds[-1] for seconds, _ in curves.values())
axes.text(end, 100, "the rows, 96 MB", color="0.4", ha="right", va="bottom")
axes.axhline(80, color="0.6", linestyle="--")
axes.text(end, 70, 'memory_limit="80MB"', color="0.4", ha="right", va="top")
axes.set(xlabel="seconds", ylabel="megabytes above the start", ylim=(0, None))
axes.legend()
plt.show()

new = pd.DataFrame(rng.standard_normal((1000, len(names)), np.float32), columns=names)
apart = abs(streamed.predict(new) - loaded.predict(new)).max()
print(f"largest difference of predictions: {apart:.1e}")
folder.cleanup()

# %%
# On the command line, which also takes a folder of files:
#
# .. code-block:: console
#
#    gramian fit rows.parquet --target y --landmarks 150 --memory-limit 80MB --out my.model
