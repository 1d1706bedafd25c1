"""
Convergence with and without a preconditioner
=============================================

The worse a problem is conditioned, the more steps an iterative solver needs, and small penalties
make kernel matrices very ill-conditioned. A preconditioner is a cheap approximate inverse that is
applied in every step. It does not change the solution, only the number of steps to reach it.
"""

# %%
# The same problem, all 3,000 rows as centers, with four preconditioners of conjugate gradient.
import warnings

import matplotlib.pyplot as plt
import pyarrow.parquet as pq
from sklearn.exceptions import ConvergenceWarning

from gramian import KernelRidge
from gramian.data import sample_path
from gramian.solvers import PCG

table = pq.read_table(sample_path("california_housing")).to_pandas().sample(3000, random_state=0)
y = table["target"].to_numpy()
X = table.drop(columns=["target", "split"]).to_numpy()

solvers = {
    "none": PCG(preconditioner="none"),
    "50 columns of K": PCG(rank=50),
    "200 columns of K": PCG(rank=200),
    "800 columns of K": PCG(rank=800),
}

# %%
# ``history_`` has a row for each iteration: the residual, seconds, kernel evaluations. A fit that
# does not reach ``tol`` within ``max_iter`` warns, which is intended in this example.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for name, solver in solvers.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelRidge(
            "matern32",
            lengthscale=3,
            penalty=1e-6,
            landmarks=None,
            solver=solver,
            max_iter=150,
            tol=1e-8,
            random_state=0,
        ).fit(X, y)
    residuals = [row["rel_residual"] for row in model.history_]
    left.semilogy([row["iteration"] for row in model.history_], residuals, label=name)
    right.semilogy([row["seconds"] for row in model.history_], residuals, label=name)
left.set(xlabel="iteration", ylabel="relative residual", ylim=(1e-8, 5))
right.set(xlabel="seconds")
left.legend(title="preconditioner")
figure.suptitle("Conjugate gradient on (K + nλI) α = y")
plt.show()

# %%
# More columns need fewer steps. Each step costs the same kernel evaluations, so more columns also
# take less time, until they cost more than they save. ``solver="auto"`` chooses their number.
