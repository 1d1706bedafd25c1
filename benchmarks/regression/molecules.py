"""Learning curves of molecules by Tanimoto kernels, with random and with scaffold splits.

Data sets with SMILES strings: cep_pce_30k, qm9_gap_31k. RDKit is needed for scaffolds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.optimize import minimize
from scipy.stats import norm, spearmanr

from benchmarks.lib.timing import set_blas_threads
from gramian import GaussianProcess, KernelRidge
from gramian.kernels import Tanimoto

from ..lib.results import Row
from ..lib.sets import data_set
from ..lib.tables import Tables
from ..lib.timing import clock

SETS = ("cep_pce_30k", "qm9_gap_31k")
SIZES = (500, 1_000, 2_000)
MOLECULES, TEST_ROWS = 8_000, 2_000
SPLITS = ("random", "scaffold")
CURVES = "Learning curves"
LEAST_NOISE = 1e-4
"""Least noise of the plain process, as GPyTorch's of standardised targets."""

NOTES = f"""\
Fingerprints of 1,024 counts, as the sets come, of {MOLECULES:,} random molecules (seed 0), of which
{TEST_ROWS:,} are tested; one thread, CPU seconds of the fit and of all predictions with deviations.

- random: the others are the training rows, in random order. scaffold: molecules with the rarest
  Murcko scaffolds of RDKit are tested, whose scaffolds no training row has.
- process: `GaussianProcess(Tanimoto())`; ridge: `KernelRidge("tanimoto")`, with deviations by the
  kernel, and with deviations by errors, `return_std="errors"`. plain process: amplitude and noise
  of a Tanimoto process by the likelihood, all in NumPy and SciPy, as GAUCHE has it.
- rank correlation: Spearman's, of deviations with absolute errors. log density: mean logarithm of
  the predictive density; 90 %: share of test rows within 1.645 deviations."""


class PlainProcess:
    """A process with the Tanimoto kernel by its eigenvalues: amplitude and noise by likelihood."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> PlainProcess:
        """Fit amplitude and noise; n³ operations."""
        self.X, self.shift = X, y.mean()
        values, self.vectors = np.linalg.eigh(tanimoto(X, X))
        target = self.vectors.T @ (y - self.shift)

        def loss(logarithms: np.ndarray) -> float:
            variance = np.exp(logarithms[0]) * values.clip(0) + np.exp(logarithms[1])
            return float((target**2 / variance + np.log(variance)).sum())

        start, least = np.log([y.var(), 0.1 * y.var()]), np.log(LEAST_NOISE * y.var())
        bounds = [(None, None), (least, None)]
        found = minimize(loss, start, method="Nelder-Mead", bounds=bounds)
        self.amplitude, self.noise = np.exp(found.x)
        self.inverse = 1 / (self.amplitude * values.clip(0) + self.noise)
        self.coef = self.vectors @ (self.inverse * target)
        return self

    def predict(self, X: np.ndarray, *, return_std: bool) -> Any:
        """Return mean and deviations of new observations."""
        k = self.amplitude * tanimoto(X, self.X)
        explained = ((k @ self.vectors) ** 2 * self.inverse).sum(axis=1)
        latent = (self.amplitude - explained).clip(min=0)
        return self.shift + k @ self.coef, np.sqrt(latent + self.noise)


def tanimoto(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    products = a @ b.T
    sums = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)
    return products / (sums - products)


METHODS: dict[str, tuple[Callable[[], Any], Any]] = {
    "process": (lambda: GaussianProcess(Tanimoto(), random_state=0), True),
    "ridge": (lambda: KernelRidge("tanimoto", landmarks=None, random_state=0), True),
    "ridge, by errors": (
        lambda: KernelRidge("tanimoto", landmarks=None, random_state=0), "errors",
    ),
    "plain process": (PlainProcess, True),
}  # fmt: skip


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    tables = Tables("molecules", (CURVES,), NOTES, options)
    for name in SETS:
        if (path := data_set(options.data, name)) is None:
            continue
        table = sample(path)
        for split in SPLITS:
            if split == "scaffold" and find_spec("rdkit") is None:
                print("skipped: scaffolds need RDKit")
                continue
            X, y, order = features(table, split)
            test = order[-TEST_ROWS:]
            for n in (200,) if options.quick else SIZES:
                train = order[:n]
                for method, (make, kind) in METHODS.items():
                    key = {"set": name, "split": split, "n": n, "method": method}
                    if not tables.has(CURVES, **key):
                        row = measure(make(), kind, X[train], y[train], X[test], y[test])
                        tables.add(CURVES, {**key, **row})


def sample(path: Path) -> pa.Table:
    """Return random molecules of a set."""
    table = pq.read_table(path)
    return table.take(np.random.default_rng(0).permutation(len(table))[:MOLECULES])


def features(table: pa.Table, split: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return fingerprints, targets, and the rows in order: training rows first, then tested."""
    columns = [name for name in table.column_names if name.startswith("fp")]
    X = np.column_stack([table[name] for name in columns]).astype(np.float64)
    y = np.asarray(table["target"], dtype=np.float64)
    order = np.arange(len(y))
    if split == "scaffold":
        scaffold = np.array(scaffolds(table["smiles"].to_pylist()))
        names, of_row, counts = np.unique(scaffold, return_inverse=True, return_counts=True)
        # Rare scaffolds last, and whole ones: ties by name.
        rank = np.lexsort((names, -counts)).argsort()[of_row]
        ordered = np.argsort(rank, kind="stable")
        first = rank[ordered[-TEST_ROWS]]
        train = ordered[rank[ordered] < first]
        train = np.random.default_rng(0).permutation(train)
        order = np.concatenate([train, ordered[-TEST_ROWS:]])
    return X, y, order


def scaffolds(smiles: list[str]) -> list[str]:
    from rdkit import RDLogger
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    RDLogger.DisableLog("rdApp.*")
    return [MurckoScaffoldSmiles(text) for text in smiles]


def measure(
    method: Any, kind: Any, X: np.ndarray, y: np.ndarray, new: np.ndarray, truth: np.ndarray
) -> Row:
    """Return errors, density, coverage and seconds of a fit."""
    with clock() as fit:
        method.fit(X, y)
    with clock() as predict:
        mean, std = method.predict(new, return_std=kind)
    off = np.abs(mean - truth)
    return {
        "RMSE": float(np.sqrt(np.mean(off**2))),
        "MAE": float(off.mean()),
        "log density": float(norm.logpdf(truth, mean, std).mean()),
        "90 %": float(np.mean(off <= 1.645 * std)),
        "rank correlation": float(spearmanr(std, off)[0]),
        "fit seconds": fit.cpu,
        "predict seconds": predict.cpu,
    }
