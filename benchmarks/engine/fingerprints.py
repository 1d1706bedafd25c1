"""Tanimoto beside RDKit, and all molecules as centers; strings of all of them with landmarks.

Data sets with SMILES strings: cep_pce_30k, qm9_gap_31k. RDKit is needed for the first table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.lib.timing import set_blas_threads
from gramian import KernelRidge, kernels
from gramian.fitting.inputs.objects import Calls, cost_of
from gramian.operators import KernelOperator

from ..lib.results import Row
from ..lib.tables import Tables
from ..lib.timing import Seconds, clock
from .similarities import REFERENCE, SETS, Molecules, fitted, spectrum

RDKIT, FITS, STRINGS = "RDKit", "All rows", "Strings"
BITS, RADIUS = 1024, 2
LEFT, RIGHT = 2_000, 2_000
"""Molecules on the two sides of the compared matrices."""

LANDMARKS = 300

NOTES = f"""\
One thread, CPU seconds.

RDKit: Morgan fingerprints of radius {RADIUS} and {BITS:,} bits or counts, as RDKit makes them of
the SMILES of {LEFT:,} and {RIGHT:,} other training molecules; the matrix of similarities by
RDKit's `BulkTanimotoSimilarity`, and by `kernels.Tanimoto` with the engine of this machine in
float32: bits, and counts with `counts="minmax"`, which is RDKit's definition. `difference`: the
largest of all entries; RDKit's numbers are float64. `as the set`: whether the counts that came with
the set are these.

All rows: `KernelRidge(kernels.Tanimoto(), landmarks=None, random_state=0)`, its penalty chosen by
held-out rows; the figures that came with the sets beside it. Seconds are those of the whole fit and
of predicting the test rows.

Strings: a Python function of two SMILES strings, the cosine of their counts of substrings up to
three letters, with all training molecules as rows and {LANDMARKS:,} of them as landmarks. What a
fit says first, and what it took."""


def compared(data: Molecules, kind: str, few: int) -> Row:
    """Return how far the similarities of two programs are apart, and what each of them took."""
    from rdkit import Chem, DataStructs, RDLogger
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    RDLogger.DisableLog("rdApp.*")
    generator = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    make = generator.GetFingerprint if kind == "bits" else generator.GetCountFingerprint
    drawn = np.random.default_rng(0).permutation(np.flatnonzero(data.train))
    index = drawn[: min(LEFT, few)], drawn[-min(RIGHT, few) :]
    left, right = ([make(Chem.MolFromSmiles(s)) for s in data.smiles[part]] for part in index)
    x, z = (_array(prints, kind) for prints in (left, right))
    with clock() as theirs:
        S = np.array([DataStructs.BulkTanimotoSimilarity(one, right) for one in left])
    kernel = kernels.Tanimoto(counts="product" if kind == "bits" else "minmax")
    K, ours = _timed(lambda: KernelOperator(kernel, x, z).dense())
    row: Row = {"features": kind, "pairs": S.size}
    row |= {"difference": float(np.abs(K.double() - S).max())}
    row |= {"RDKit pairs / s": S.size / theirs.cpu, "gramian pairs / s": S.size / ours.cpu}
    same = kind == "counts" and bool((x == data.X[index[0]]).all())
    return row | {"as the set": "yes" if same else "no" if kind == "counts" else None}


def _array(prints: list[Any], kind: str) -> np.ndarray:
    from rdkit import DataStructs

    out = np.zeros((len(prints), BITS), np.uint8 if kind == "bits" else np.int32)
    for row, one in zip(out, prints, strict=True):
        DataStructs.ConvertToNumpyArray(one, row)
    return out.astype(np.float32)


def _timed(work: Callable[[], np.ndarray]) -> tuple[np.ndarray, Seconds]:
    work()
    with clock() as spent:
        found = work()
    return found, spent


def compare(tables: Tables, folder: str, quick: bool) -> None:
    if find_spec("rdkit") is None:
        print("RDKit is not here: pip install rdkit")
        return
    for name in SETS:
        data = Molecules.read(folder, name)
        for kind in ("bits", "counts") if data is not None else ():
            key: Row = {"set": name, "features": kind}
            if data is not None and not tables.has(RDKIT, **key):
                tables.add(RDKIT, key | compared(data, kind, 50 if quick else LEFT))


def all_rows(tables: Tables, folder: str, quick: bool) -> None:
    for name in SETS:
        data = Molecules.read(folder, name, 500 if quick else None)
        if data is None:
            continue
        key: Row = {"set": name, "rows": int(data.train.sum())}
        for who, (rmse, mae) in REFERENCE[name].items():
            if not tables.has(FITS, **(row := key | {"what": f"reference: {who}"})):
                tables.add(FITS, row | {"rmse": rmse, "mae": mae})
        if not tables.has(FITS, **(row := key | {"what": "tanimoto"})):
            est = KernelRidge(kernels.Tanimoto(), landmarks=None, random_state=0)
            tables.add(FITS, row | fitted(est, data.X, data, data.test))


def strings(tables: Tables, folder: str, quick: bool) -> None:
    for name in SETS:
        data = Molecules.read(folder, name, 300 if quick else None)
        if data is None or tables.has(STRINGS, set=name):
            continue
        m = 30 if quick else LANDMARKS
        cost = cost_of(Calls(spectrum, list(data.smiles[data.train])), m)
        row: Row = {"set": name, "rows": int(data.train.sum()), "landmarks": m}
        row |= {"calls": cost.calls, "said s": cost.seconds}
        est = KernelRidge(spectrum, landmarks=m, random_state=0)
        test = data.test[:50] if quick else data.test
        tables.add(STRINGS, row | fitted(est, data.smiles, data, test))


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    tables = Tables("fingerprints", (RDKIT, FITS, STRINGS), NOTES, options)
    compare(tables, options.data, options.quick)
    all_rows(tables, options.data, options.quick)
    strings(tables, options.data, options.quick)
