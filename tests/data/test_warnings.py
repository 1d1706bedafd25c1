"""No warning reaches the user: in a fresh process, where no library has warned before."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # a process of its own

SCRIPT = """
import warnings
from importlib.util import find_spec
import numpy as np, pandas as pd, pyarrow as pa, scipy.sparse
from gramian.data import Cast, Standardizer, Subset, as_rows, check_finite

x = np.arange(12.0).reshape(6, 2)
x.flags.writeable = False
tensors = []
if find_spec("torch"):
    import torch
    tensors.append(torch.ones(6, 2, requires_grad=True))
filters = list(warnings.filters)
frame = pd.DataFrame({"a": [1, 2], 3: [0.5, None]})
table = pa.table({"a": pa.array([1, None]), "b": [True, False]})
sparse = scipy.sparse.csr_array(x)
for data in (x, x.astype(">f4"), x[::-1], *tensors, frame, table, sparse, sparse.tocoo()):
    rows = as_rows(data)
    if not isinstance(data, (pd.DataFrame, pa.Table)):
        rows = Subset(Cast(Standardizer.fit(rows).apply(rows), np.float32), np.array([1, 0]))
    for _, block in rows.blocks(1):
        block @ np.ones((2, 1), block.dtype)
    rows.take(np.array([0]))
assert list(warnings.filters) == filters
"""


def test_everything_is_read_without_a_warning() -> None:
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
