"""In a process of its own, as users run it: no warning of NumPy, torch or anyone else."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # a process of its own

SCRIPT = """
import tempfile, warnings
from importlib.util import find_spec
import numpy as np, scipy.sparse
from gramian import KernelModel, KernelRidge, KernelRidgeClassifier, callbacks

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
X[:, 2] = 7.0                              # a constant feature
X = np.concatenate([X, X[:10]])            # repeated rows
y = np.sin(X[:, 0])
X.flags.writeable = y.flags.writeable = False
kinds = [X, X.astype(np.float32), np.asfortranarray(X), X.tolist(),
         scipy.sparse.csr_array(X), scipy.sparse.coo_matrix(X), X.astype(np.float16),
         X.astype(np.int8)]
if find_spec("torch"):
    import torch
    kinds.append(torch.from_numpy(X.copy()))
for x in kinds:
    for settings in ({}, {"landmarks": 10}, {"solver": "pcg", "penalty": 0.1}):
        for estimator, target in ((KernelRidge, y), (KernelRidgeClassifier, y > 0)):
            est = estimator(random_state=0, **settings).fit(x, target)
            est.predict(x)
            with tempfile.NamedTemporaryFile() as file:
                est.model_.save(file.name)
                KernelModel.load(file.name).predict(x)
KernelRidge(landmarks=10, callbacks=[callbacks.Validate(X, y)]).fit(X, y)
KernelRidge().fit(X[:1], y[:1]).predict(X)

# A warning of ours names the line that called us.
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    KernelRidge(solver="pcg", max_iter=2).fit(X, y)
    KernelRidgeClassifier(solver="pcg", max_iter=2).fit(X, y > 0)
assert [w.filename for w in caught] == ["<string>"] * 2, [w.filename for w in caught]
print("quiet")
"""


def test_no_warning_reaches_the_user():
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "quiet\n", "")
