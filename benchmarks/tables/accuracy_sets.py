"""The tables of `accuracy`: which there are, their features, and their training and test rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from ..lib.sets import data_set

REGRESSION = (
    "yacht", "housing", "energy", "concrete", "airfoil", "wine", "gas", "skillcraft", "sml",
    "parkinsons", "pumadyn32nm", "kin40k", "pol", "elevators", "bike", "california_housing",
    "house_16h", "keggdirected", "argo_temp", "bathy_celt", "airs_co2", "modis_lst", "nycflights",
    "beijing_pm25",
)  # fmt: skip
CLASSES = ("usps", "higgs_11k", "magic", "adult_a9a", "skin", "kddcup", "fashion_mnist")
CONTROL = ("tamielectric",)
MOLECULES = ("md_acac", "md_ethanol", "qm7", "qm9_15k", "cep_pce_30k", "qm9_gap_31k")
GROUPS = {
    "tables": REGRESSION + CLASSES,
    "molecules": MOLECULES,
    "nothing to learn": CONTROL,
}
"""Sets by the table they are reported in; in each, small ones first."""

GROUP = {name: group for group, names in GROUPS.items() for name in names}
LARGEST = ("modis_lst", "bathy_celt", "airs_co2", "nycflights", "beijing_pm25")
"""Sets that are also fitted without a cap on their training rows."""

CAP = 20_000
TARGET = {"argo_temp": "target_temp100"}
NO_FEATURE = re.compile(
    r"target.*|split|fold|station_id|smiles|mol_id|dftb_energy|y_.*|n_.*|[RF]\d+[xyz]"
)
"""Columns of targets, names, folds, and of positions and forces of atoms."""


@dataclass(frozen=True)
class Table:
    """Raw float32 features; targets in float64, or classes as integers."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    labels: bool


def path_of(folder: str, name: str) -> Path | None:
    """Return the file of a set, the one in the package where the folder has none."""
    from gramian.data import sample_path  # not above: each fit of trees would wait for torch

    path = Path(folder) / f"{name}.parquet"
    if not path.is_file() and name in ("california_housing", "energy"):
        return sample_path(name)
    return data_set(folder, name)


def load(path: Path, cap: int | None = CAP, seed: int = 0) -> Table:
    """Read a set; of more training rows than the cap, random ones are kept."""
    table, name = pq.read_table(path), path.stem
    columns = [c for c in table.column_names if not NO_FEATURE.fullmatch(c)]
    X = np.stack([table[c].to_numpy().astype(np.float32) for c in columns], axis=1)
    y, labels = table[TARGET.get(name, "target")].to_numpy(), name in CLASSES
    split = table["split"].to_numpy()
    train, test = np.flatnonzero(split == 0), np.flatnonzero(split == 1)
    if cap is not None and len(train) > cap:
        train = train[np.random.default_rng(seed).permutation(len(train))[:cap]]
    y = numbered(y, train) if labels else y.astype(np.float64)
    return Table(X[train], y[train], X[test], y[test], labels)


def numbered(y: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return the numbers of classes, those of training rows first: XGBoost takes no gaps."""
    seen = np.unique(y[train])
    classes = np.concatenate([seen, np.setdiff1d(y, seen)])
    order = np.argsort(classes)
    return order[np.searchsorted(classes, y, sorter=order)]
