"""
A path of penalties
===================

BLESS-R draws landmarks for a large penalty first, then for smaller penalties, each time based on
the previous landmarks. With ``penalty="auto"`` the fit follows the same path and keeps the penalty
whose model predicts held-out rows best: one run chooses penalty and landmarks.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq

from gramian import KernelRidge
from gramian.data import sample_path
from gramian.landmarks import BlessR

table = pq.read_table(sample_path("california_housing"))
table = table.filter(np.asarray(table["split"]) == 0).drop_columns("split")

model = KernelRidge(
    "gaussian", lengthscale=1.5, penalty="auto", landmarks=BlessR(700), random_state=0
).fit(table, "target")
path = {name: [row[name] for row in model.path_] for name in model.path_[0]}

# %%
# ``path_`` has a row for each penalty. The effective dimension is the number of parameters that
# the data support at this penalty; the number of landmarks follows it.
figure, (above, below) = plt.subplots(2, 1, figsize=(7, 6), layout="constrained", sharex=True)
above.semilogx(path["penalty"], np.sqrt(path["error"]) / 1000, marker="o")
above.axvline(model.penalty_, color="C3", linestyle="--", label="chosen")
above.set(ylabel="held-out error (1,000 dollars)", title="Prices of Californian houses")
above.legend()
below.loglog(path["penalty"], path["landmarks"], marker="o", label="landmarks")
below.loglog(path["penalty"], path["effective_dimension"], marker="s", label="effective dimension")
below.set(xlabel="penalty")
below.invert_xaxis()
below.legend()
plt.show()
