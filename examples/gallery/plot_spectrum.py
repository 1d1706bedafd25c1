"""
Spectrum and effective dimension
================================

The eigenvalues of the kernel matrix determine how difficult a problem is. Eigenvalues above the
penalty are parameters that the data support; their number, with a soft threshold, is the effective
dimension. A model needs several times as many landmarks.
"""

# %%
# 1,500 blocks of Californian houses, and four kernels with the median lengthscale.
import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq

from gramian import _arrays as xp
from gramian import effective_dimension, kernels
from gramian.data import sample_path
from gramian.operators import KernelOperator

table = pq.read_table(sample_path("california_housing")).to_pandas().sample(1500, random_state=0)
X = table.drop(columns=["target", "split"]).to_numpy(float)  # in float32, small ones are rounding
X = (X - X.mean(axis=0)) / X.std(axis=0)
rng = np.random.default_rng(0)
pairs = rng.integers(len(X), size=(2, 5000))
median = float(np.median(np.linalg.norm(X[pairs[0]] - X[pairs[1]], axis=1)))

names = ["laplacian", "matern32", "matern52", "gaussian"]
penalties = np.geomspace(1e-9, 1e-1, 40)
spectra = {}
for name in names:
    kernel = kernels.make(name, lengthscale=median)
    K = KernelOperator(kernel, X, X).dense() / len(X)
    spectra[name] = xp.flip(np.linalg.eigvalsh(K), 0).clip(min=1e-17)

# %%
# ``effective_dimension`` needs only a sample of the rows, and no eigenvalues. The crosses are from
# BLESS and would take as long for a million rows.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for i, (name, eigenvalues) in enumerate(spectra.items()):
    dimension = (eigenvalues / (eigenvalues + penalties[:, None])).sum(axis=1)
    left.loglog(np.arange(1, len(X) + 1), eigenvalues, label=name)
    right.loglog(penalties, dimension, label=name)
    kernel = kernels.make(name, lengthscale=median)
    some = [1e-5, 1e-4, 1e-3, 1e-2]
    found = [effective_dimension(kernel, X, penalty, random_state=0) for penalty in some]
    right.plot(some, found, "x", color=f"C{i}", markersize=8, label="BLESS" if i == 3 else None)
left.set(xlabel="number", ylabel="eigenvalue of K / n", ylim=(1e-14, 2), title="spectrum")
right.axhline(len(X), color="0.6", linestyle=":", label="rows")
right.set(xlabel="penalty", title="effective dimension")
for axes in (left, right):
    axes.grid(alpha=0.3)
    axes.legend()
plt.show()

# %%
# The smoother the kernel, the faster eigenvalues fall, and the fewer landmarks are needed. If the
# effective dimension is close to the number of rows, the model memorizes single rows, and no
# landmarks can replace them.
