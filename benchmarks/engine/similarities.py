"""Kernels of fingerprints, histograms, hours and places, and of strings: pairs a second, molecules.

Data sets with SMILES strings: cep_pce_30k, qm9_gap_31k.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise
from sklearn.metrics.pairwise import haversine_distances

from benchmarks.lib.timing import set_blas_threads
from gramian import KernelRidge, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.fitting.inputs.objects import Calls, cost_of
from gramian.kernels import Kernel
from gramian.operators import Engine, KernelOperator, NativeEngine, TiledEngine, compiled_tiles

from ..lib.sets import data_set, errors
from ..lib.tables import Tables
from ..lib.timing import clock, interleaved

M = 1_000
PAIRS_TIMES_FEATURES = 4e8
"""Pairs times features of one product of the slow contenders; others have more rows."""

FEATURES = (16, 128, 1024)
SETS = ("cep_pce_30k", "qm9_gap_31k")
LANDMARKS = 2_000
FEW = 4_000
STRINGS = 2_000

REFERENCE = {
    "cep_pce_30k": {"mean": (2.536, 2.071), "boosting": (1.21, 0.708), "Nystrom": (1.385, 0.84)},
    "qm9_gap_31k": {"mean": (1.204, 0.924), "boosting": (0.4, 0.301), "Nystrom": (0.422, 0.315)},
}
"""Test RMSE and MAE that came with the sets: HistGradientBoosting, 2,000 landmarks of Tanimoto."""

NOTES = f"""\
One thread, CPU seconds, float32.

Pairs: 10^9 kernel entries a second of a product with n x {M:,} entries, the least of the rounds,
in turns. `torch` and `native` are the engines, `native` where there are compiled tiles of the
kernel; `sparse` the torch engine on the same rows in CSR form, 95 % of them zeros; `others`
scikit-learn's `cosine_similarity`, `chi2_kernel`, `haversine_distances`, SciPy's distances of
Jaccard for bits, and their product with a vector. Features are counts from 0 to 3 (`chi_squared`:
shares; `haversine`: degrees; `periodic`: hours). Gaussian and l1 tiles are there to compare.

Molecules: fingerprints of 1,024 counts, as the sets come; `KernelRidge(kernel, landmarks=...)`,
the penalty chosen before the fit; `given`: that penalty and as many iterations, to compare dense
and sparse rows. Seconds are those of the whole fit, the choice included, and of predicting the test
rows. `reference`: figures that came with the sets, of the mean, of scikit-learn's boosting, and of
2,000 landmarks of a Tanimoto kernel. The minima and maxima of `minmax` cost so much that it has
{FEW:,} rows, with all of them as centers.

Strings: a Python function of two SMILES strings, the cosine of their counts of substrings up to
three letters, on {STRINGS:,} molecules of the training rows, beside Tanimoto on the same rows. What
a fit says first, and what it took."""


@dataclass(frozen=True)
class Contender:
    """A kernel, its features, and another program for the same entries."""

    name: str
    kernel: Kernel
    kind: str = "counts"
    other: Callable[[Any, Any], Any] | None = None

    def rows(self, n: int, d: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        if self.kind == "places":
            return xp.cast(rng.uniform((-90, -180), (90, 180), (n, 2)), np.float32)
        if self.kind == "hours":
            return xp.cast(rng.uniform(0, 24, (n, d)), np.float32)
        counts = (rng.random((n, d)) < 0.05) * rng.integers(1, 4, (n, d))
        if self.kind == "bits":
            counts = counts > 0
        if self.kind == "shares":
            counts = rng.random((n, d))
            counts = counts / counts.sum(axis=1, keepdims=True)
        return np.asarray(counts, dtype=np.float32)


CONTENDERS = (
    Contender("gaussian", kernels.Gaussian(3.0), "counts"),
    Contender("l1_laplacian", kernels.make("l1_laplacian", lengthscale=30.0), "counts"),
    Contender("cosine", kernels.Cosine(1.0), "counts", pairwise.cosine_similarity),
    Contender(
        "tanimoto", kernels.Tanimoto(), "bits",
        lambda x, z: 1 - cdist(x.astype(bool), z.astype(bool), "jaccard"),
    ),
    Contender("tanimoto, minmax", kernels.Tanimoto(counts="minmax"), "counts"),
    Contender("chi_squared", kernels.ChiSquared(1.0), "shares", pairwise.chi2_kernel),
    Contender("periodic", kernels.make("periodic", lengthscale=1.0, period=24.0), "hours"),
    Contender(
        "haversine", kernels.make("haversine", lengthscale=200.0), "places",
        lambda x, z: np.exp(-6371 / 200 * haversine_distances(np.radians(x), np.radians(z))),
    ),
)  # fmt: skip
SLOW = ("l1_laplacian", "tanimoto, minmax", "chi_squared", "periodic")


def product(kernel: Kernel, x: Any, z: np.ndarray, v: np.ndarray, engine: Engine) -> np.ndarray:
    return KernelOperator(kernel, x, z, engine) @ v


def rates(one: Contender, d: int, rounds: int, scale: int) -> dict[str, Any]:
    """Measure one kernel with d features."""
    slow = one.name in SLOW
    n = max(int(PAIRS_TIMES_FEATURES * (1 if slow else 8) / (d + 16) / M) // scale, 50)
    x, z = one.rows(n, d, 0), one.rows(M, d, 1)
    v = RandomStream(0).standard_normal((M, 1), np.float32)
    engines: dict[str, Engine] = {"torch": TiledEngine(threads=1)}
    native = NativeEngine(1) if compiled_tiles() else None
    if native is not None and native.covers(one.kernel, dtype=np.float32, sparse=False):
        engines["native"] = native
    works: dict[str, Callable[[], Any]] = {
        name: lambda engine=engine: product(one.kernel, x, z, v, engine)
        for name, engine in engines.items()
    }
    if one.kernel.sparse_ok and one.kind in ("counts", "bits"):
        csr = scipy.sparse.csr_array(x)
        works["sparse"] = lambda: product(one.kernel, csr, z, v, engines["torch"])
    if one.other is not None:
        few, other = x[: max(n // 8, 50)], one.other
        works["others"] = lambda: other(few, z) @ v
    counts = dict.fromkeys(works, n) | {"others": max(n // 8, 50)}
    found = interleaved(works, rounds=rounds, slow=("others",))
    row: dict[str, Any] = {"kernel": one.name, "features": x.shape[1]}
    row |= {name: counts[name] * M / spent.cpu / 1e9 for name, spent in found.items()}
    if "native" in row:
        row["native / torch"] = row["native"] / row["torch"]
    return row


def measure_pairs(tables: Tables, rounds: int, scale: int) -> None:
    for one in CONTENDERS:
        for d in (2,) if one.kind == "places" else FEATURES:
            if not tables.has("Pairs", kernel=one.name, features=d):
                tables.add("Pairs", rates(one, d, rounds, scale))


@dataclass(frozen=True)
class Molecules:
    """Fingerprints, strings and targets of a set, in training and test rows."""

    X: np.ndarray
    smiles: np.ndarray
    y: np.ndarray
    train: np.ndarray
    test: np.ndarray

    @classmethod
    def read(cls, folder: str, name: str, most: int | None = None) -> Molecules | None:
        path = data_set(folder, name)
        if path is None:
            return None
        frame = pq.read_table(path).to_pandas()
        X = frame.filter(regex="^fp").to_numpy(np.float32)
        train = frame["split"].to_numpy() == 0
        test = np.flatnonzero(~train)
        if most is not None:
            drawn = np.random.default_rng(0).permutation(np.flatnonzero(train))[:most]
            train = np.isin(np.arange(len(train)), drawn)
        return cls(X, frame["smiles"].to_numpy(), frame["target"].to_numpy(float), train, test)


def measure_molecules(tables: Tables, folder: str, quick: bool) -> None:
    for name in SETS:
        data = Molecules.read(folder, name, 1000 if quick else None)
        if data is None:
            continue
        key: dict[str, Any] = {"set": name, "rows": int(data.train.sum())}
        for who, (rmse, mae) in REFERENCE[name].items():
            row = key | {"what": f"reference: {who}"}
            if not tables.has("Molecules", **row):
                tables.add("Molecules", row | {"rmse": rmse, "mae": mae})
        m = 100 if quick else LANDMARKS
        for what in ("tanimoto", "tanimoto, given", "tanimoto, given, sparse rows"):
            run(tables, key, what, data, KernelRidge(kernels.Tanimoto(), landmarks=m))
        gaussian = KernelRidge("gaussian", lengthscale="median", landmarks=m)
        run(tables, key, "gaussian, median", data, gaussian)


def measure_counts(tables: Tables, folder: str, quick: bool) -> None:
    """Compare the two definitions of Tanimoto's similarity of counts."""
    for name in SETS:
        few = Molecules.read(folder, name, 500 if quick else FEW)
        if few is None:
            continue
        key = {"set": name, "rows": int(few.train.sum())}
        for what, counts in (("tanimoto", "product"), ("tanimoto, minmax", "minmax")):
            est = KernelRidge(kernels.Tanimoto(counts=counts), landmarks=None)
            run(tables, key, what, few, est)


def run(tables: Tables, key: dict[str, Any], what: str, data: Molecules, est: KernelRidge) -> None:
    """Measure one fit; a "given" one with the penalty that another has chosen."""
    centers = "all" if est.landmarks is None else est.landmarks
    key = key | {"what": what, "landmarks": centers}
    if tables.has("Molecules", **key):
        return
    est.set_params(random_state=0)
    if "given" in what:
        chosen = key | {"what": "tanimoto"}
        (same,) = (row for row in tables["Molecules"] if chosen.items() <= row.items())
        est.set_params(penalty=same["penalty"], max_iter=same["iterations"], tol=0.0)
    X = scipy.sparse.csr_array(data.X) if "sparse" in what else data.X
    tables.add("Molecules", key | fitted(est, X, data, data.test))


def fitted(est: KernelRidge, X: Any, data: Molecules, test: np.ndarray) -> dict[str, Any]:
    """Return errors and seconds of a fit to the training rows of X."""
    with clock() as fit:
        est.fit(X[data.train], data.y[data.train])
    with clock() as predict:
        predicted = est.predict(X[test])
    rmse, mae = errors(predicted, data.y[test])
    return {
        "rmse": rmse, "mae": mae, "penalty": float(est.penalty_), "iterations": est.n_iter_,
        "fit s": fit.cpu, "predict s": predict.cpu,
    }  # fmt: skip


@cache
def substrings(text: str) -> Counter[str]:
    found = Counter(text[i : i + k] for k in (1, 2, 3) for i in range(len(text) - k + 1))
    norm = sum(value**2 for value in found.values()) ** 0.5
    return Counter({key: value / norm for key, value in found.items()})


def spectrum(a: str, b: str) -> float:
    """Return the cosine of the counts of substrings up to three letters."""
    x, y = substrings(a), substrings(b)
    return sum(value * y[key] for key, value in x.items() if key in y)


def measure_strings(tables: Tables, folder: str, quick: bool) -> None:
    for name in SETS:
        data = Molecules.read(folder, name, 200 if quick else STRINGS)
        if data is None:
            continue
        test = np.random.default_rng(1).permutation(data.test)[:500]
        for what, kernel, X, landmarks in (
            ("mean", None, data.X, None),
            ("spectrum of strings", spectrum, data.smiles, None),
            ("spectrum of strings", spectrum, data.smiles, 50 if quick else 300),
            ("tanimoto of fingerprints", kernels.Tanimoto(), data.X, None),
        ):
            row: dict[str, Any] = {"set": name, "what": what, "landmarks": landmarks or "all"}
            if tables.has("Strings", **row):
                continue
            if kernel is None:
                predicted = np.full(len(test), data.y[data.train].mean())
                rmse, mae = errors(predicted, data.y[test])
                tables.add("Strings", row | {"rmse": rmse, "mae": mae})
                continue
            if kernel is spectrum:
                cost = cost_of(Calls(spectrum, list(X[data.train])), landmarks)
                row |= {"calls": cost.calls, "calls / s": cost.per_second, "said s": cost.seconds}
            est = KernelRidge(kernel, landmarks=landmarks, random_state=0)
            tables.add("Strings", row | fitted(est, X, data, test))


def main(options: argparse.Namespace) -> None:
    rounds, scale = (2, 8) if options.quick else (5, 1)
    set_blas_threads(1)
    tables = Tables("similarities", ("Pairs", "Molecules", "Strings"), NOTES, options)
    measure_pairs(tables, rounds, scale)
    measure_strings(tables, options.data, options.quick)
    measure_molecules(tables, options.data, options.quick)
    measure_counts(tables, options.data, options.quick)
