"""Everyday waits: imports, small fits, dense solutions, landmarks, epochs."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..lib.process import THREADS
from ..lib.results import Row
from ..lib.tables import Tables, asked

BEFORE = "GRAMIAN_BEFORE"
"""Variable that names the folder `src` of an earlier commit, built, to stand beside."""

IMPORTS, FITS, LANDMARKS, EPOCHS = "Imports", "Fits", "Landmarks", "EigenPro 3"
STARTS = 10
SMALL_FITS = {100: ("default", "gaussian"), 1000: ("default", "gaussian", "falkon")}
"""Fits of few rows, by their number; fits of more rows are "direct"."""

NOTES = f"""\
CPU seconds of one process with one thread, each case in a process of its own. `before`: the sources
of an earlier commit, in the same run ({BEFORE}); `scikit-learn`: its `KernelRidge`, and for
"falkon" its `Nystroem` and `Ridge`, with the same kernel and penalty, in the same dtype.
Imports: the median of {STARTS} starts, with bytecode; `torch` is `import torch` alone. Fits:
normal rows of 8 features, the median of some fits after a first one; "default" chooses kernel,
lengthscale and penalty, "gaussian" has the median lengthscale and penalty 1e-6, "direct"
lengthscale 3 and penalty 1e-6, "falkon" the same with 200 random landmarks. RMSE is that of
predictions of the rows. Landmarks: 300 of 160,000 normal rows of 8 features. EigenPro 3: 5 epochs
of 30,000 normal rows of 20 features, setup and all; RMSE on 2,000 others, in units of the target's
deviation; `before` is 6bcbae0, a projection after each batch, with the compiled code of now."""

HEAD = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
def rows(n, d, dtype, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
def seconds(work, repeats):
    found = []
    for _ in range(repeats):
        start = time.process_time(); result = work(); found.append(time.process_time() - start)
    return float(np.median(found)), result
"""

FIT = """
n, dtype, what, repeats = {n}, "{dtype}", "{what}", {repeats}
X, y = rows(n, 8, dtype)
if what.startswith("scikit-learn"):
    from scipy.spatial.distance import pdist
    from sklearn.kernel_approximation import Nystroem
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    ell = float(np.median(pdist(X[:1000]))) if what.endswith("gaussian") else 3.0
    rbf = dict(kernel="rbf", gamma=0.5 / ell**2)
    est = KernelRidge(alpha=n * 1e-6, **rbf)
    if what.endswith("falkon"):
        features = Nystroem(**rbf, n_components=200, random_state=0)
        est = make_pipeline(features, Ridge(alpha=n * 1e-6))
else:
    from gramian import KernelRidge
    est = {{
        "default": lambda: KernelRidge(random_state=0),
        "gaussian": lambda: KernelRidge("gaussian", lengthscale="median", penalty=1e-6,
            standardize=False, random_state=0),
        "direct": lambda: KernelRidge("gaussian", lengthscale=3.0, penalty=1e-6,
            standardize=False, solver="direct", random_state=0),
        "falkon": lambda: KernelRidge("gaussian", lengthscale=3.0, penalty=1e-6,
            standardize=False, solver="falkon", landmarks=200, random_state=0),
    }}[what]()
if n <= 2000:
    est.fit(X, y)
s, _ = seconds(lambda: est.fit(X, y), repeats)
error = float(np.sqrt(np.mean((est.predict(X).ravel() - y) ** 2)))
print(json.dumps({{"CPU s": s, "RMSE": error}}))
"""

SELECT = """
from gramian import RandomStream
from gramian import kernels, landmarks
from gramian.data import as_rows
from gramian.operators import KernelOperator
X, _ = rows(160_000, 8, "float32")
X = as_rows(X)
K = KernelOperator(kernels.Gaussian(3.0), X, X)
chosen = landmarks.{what}(300)
s, found = seconds(lambda: chosen.select(K, rng=RandomStream(0)), 3)
print(json.dumps({{"CPU s": s, "sum of points": float(found.points.sum(dtype=float))}}))
"""

EPOCH = """
import itertools
from gramian import RandomStream
from gramian import kernels, landmarks
from gramian.data import as_rows
from gramian.operators import KernelOperator
from gramian.problems import NystromProblem
from gramian.solvers import EigenPro3
X, y = rows(32_000, 20, "float32", {seed})
new, truth, X, y = X[30_000:], y[30_000:], as_rows(X[:30_000]), y[:30_000]
K = KernelOperator(kernels.Gaussian(5.0), X, X)
index = np.arange({p})
problem = NystromProblem.at(K, index, y[:, None], 0.0)
def run():
    states = EigenPro3().iterate(problem, rng=RandomStream({seed}))
    return list(itertools.islice(states, 6))[-1]
s, last = seconds(run, 1)
told = problem.model(last.coef).predict(new)[:, 0]
error = float(np.sqrt(np.mean((told - truth) ** 2)) / truth.std())
print(json.dumps({{"CPU s": s, "RMSE": error}}))
"""

IMPORT = """
import json, time
start = time.process_time()
{what}
print(json.dumps({{"CPU s": time.process_time() - start}}))
"""


def measured(code: str, sources: str | None) -> Row:
    """Run code in a fresh process, with the sources of another folder if one is given."""
    environment = os.environ | dict.fromkeys(THREADS, "1")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if sources is not None:
        environment["PYTHONPATH"] = sources
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, text=True, capture_output=True
    )
    result: Row = json.loads(done.stdout.splitlines()[-1])
    return result


def main(options: argparse.Namespace) -> None:
    tables = Tables("waits", (IMPORTS, FITS, LANDMARKS, EPOCHS), NOTES, options)
    here: dict[str, str | None] = {"now": None}
    if BEFORE in os.environ:
        here = {"before": str(Path(os.environ[BEFORE]).resolve())} | here
    _imports(tables, options, here)
    for (n, dtype), repeats in _sizes(options.quick).items():
        for what in SMALL_FITS.get(n, ("direct",)):
            case = {"fit": what, "rows": n, "dtype": dtype}
            form = {"n": n, "dtype": dtype, "repeats": repeats}
            code = HEAD + FIT.format(what=what, **form)
            _add(tables, options, FITS, case, code, here)
            if what != "default":
                peer = HEAD + FIT.format(what=f"scikit-learn, {what}", **form)
                _add(tables, options, FITS, case, peer, {"scikit-learn": None})
    for what in ("RecursiveRLS", "KMeans") if not options.quick else ():
        _add(tables, options, LANDMARKS, {"selector": what}, HEAD + SELECT.format(what=what), here)
    for p, seed in itertools.product((250, 1000, 2000), range(3)) if not options.quick else ():
        code = HEAD + EPOCH.format(p=p, seed=seed)
        _add(tables, options, EPOCHS, {"centers": p, "seed": seed}, code, here)


def _sizes(quick: bool) -> dict[tuple[int, str], int]:
    """Return how often fits are repeated, by rows and dtype."""
    few = {(100, "float64"): 200}
    if quick:
        return few
    return (
        few
        | {(1000, "float64"): 5}
        | {
            (n, dtype): repeats
            for n, repeats in ((2000, 3), (5000, 1), (10_000, 1))
            for dtype in ("float32", "float64")
        }
    )


def _imports(tables: Tables, options: argparse.Namespace, here: dict[str, str | None]) -> None:
    ways: dict[str, Any] = {"torch": (None, "import torch")}
    ways |= {name: (path, "from gramian import KernelRidge") for name, path in here.items()}
    missing = [name for name in ways if not tables.has(IMPORTS, sources=name)]
    missing = [name for name in missing if asked({"table": IMPORTS}, options.only)]
    found: dict[str, list[float]] = {name: [] for name in missing}
    for _ in range(2 if options.quick else STARTS):  # in turn: others may use the machine
        for name in missing:
            path, what = ways[name]
            found[name].append(measured(IMPORT.format(what=what), path)["CPU s"])
    for name, each in found.items():
        row: Row = {"sources": name, "CPU s": statistics.median(each)}
        alone = [one["CPU s"] for one in tables[IMPORTS] if one["sources"] == "torch"]
        row["/ torch"] = row["CPU s"] / statistics.median(found.get("torch") or alone)
        tables.add(IMPORTS, row)


def _add(
    tables: Tables,
    options: argparse.Namespace,
    title: str,
    case: Row,
    code: str,
    here: dict[str, str | None],
) -> None:
    for name, path in here.items():
        row = case | {"sources": name}
        if not tables.has(title, **row) and asked({"table": title} | row, options.only):
            tables.add(title, row | measured(code, path))
