"""Energies and forces of two molecules, learned with and without forces."""

from __future__ import annotations

import argparse

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.lib.timing import set_blas_threads
from gramian import GradientEnhancedRidge, KernelRidge

from ..lib.results import Row
from ..lib.sets import data_set
from ..lib.tables import Tables
from ..lib.timing import clock

SETS = {"md_ethanol": (100, 200, 400, 1000), "md_acac": (100, 200)}
TITLE = "energies and forces"
NOTES = """\
Geometries of one molecule, the first ones of the training part; all of the test part. Features are
inverse distances of all pairs of atoms, and the Jacobian has their derivatives by the places of the
atoms. One thread.

- forces: `GradientEnhancedRidge()` of energies and forces; values: `KernelRidge("matern52")` of
  energies alone, whose gradients are its forces. Both with their defaults.
- energy, force: mean absolute errors, in meV and meV per angstrom; trivial: of the mean energy, and
  of no force. seconds: CPU, of the fit."""


class Geometries:
    """Features, their derivatives by the places of the atoms, energies and forces."""

    def __init__(self, table: pa.Table) -> None:
        places, forces = (
            np.column_stack([table[name] for name in table.column_names if name[0] == kind])
            for kind in "RF"
        )
        atoms = places.shape[1] // 3
        places = places.reshape(-1, atoms, 3).astype(np.float64)
        i, j = np.triu_indices(atoms, 1)
        apart = places[:, i] - places[:, j]
        distance = np.linalg.norm(apart, axis=2)
        slopes = -apart / distance[:, :, None] ** 3
        pairs = np.arange(len(i))
        jacobian = np.zeros((len(places), len(i), atoms, 3))
        jacobian[:, pairs, i], jacobian[:, pairs, j] = slopes, -slopes
        self.X, self.jacobian = 1 / distance, jacobian.reshape(len(places), len(i), -1)
        self.energies = np.asarray(table["target"], dtype=np.float64)
        self.forces = forces.astype(np.float64)

    def errors(self, energies: np.ndarray, forces: np.ndarray) -> Row:
        """Return mean absolute errors of energies and forces."""
        return {
            "energy": 1e3 * float(np.abs(energies - self.energies).mean()),
            "force": 1e3 * float(np.abs(forces - self.forces).mean()),
        }


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    tables = Tables("forces", (TITLE,), NOTES, options)
    for name, sizes in SETS.items():
        if (path := data_set(options.data, name)) is None:
            continue
        table = pq.read_table(path)
        split = table["split"].to_numpy()
        train, new = (table.filter(split == k) for k in (0, 1))
        test = Geometries(new)
        for n in sizes[:1] if options.quick else sizes:
            known = Geometries(train.slice(0, n))
            for method in ("forces", "values", "trivial"):
                if not tables.has(TITLE, set=name, n=n, method=method):
                    row = measure(method, known, test)
                    tables.add(TITLE, {"set": name, "n": n, "method": method, **row})


def measure(method: str, known: Geometries, test: Geometries) -> Row:
    """Return the errors and the seconds of a method."""
    if method == "trivial":
        mean = np.full(len(test.X), known.energies.mean())
        return {**test.errors(mean, np.zeros_like(test.forces)), "seconds": 0.0}
    if method == "forces":
        model = GradientEnhancedRidge()
        with clock() as fit:
            model.fit(known.X, known.energies, -known.forces, known.jacobian)
        gradients = model.gradient(test.X, test.jacobian)
    else:
        model = KernelRidge("matern52", random_state=0)
        with clock() as fit:
            model.fit(known.X, known.energies)
        gradients = np.einsum("ndp,nd->np", test.jacobian, model.gradient(test.X))
    return {**test.errors(model.predict(test.X), -gradients), "seconds": fit.cpu}
