"""Real classification sets, standardized, with the number of the class as label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from .sets import Split


@dataclass(frozen=True)
class Setting:
    """Gaussian lengthscale and penalty, chosen on at most 20,000 training rows with M = 2,000."""

    lengthscale: float
    penalty: float


SETTINGS = {
    "adult_a9a": Setting(3.2, 1e-5),
    "skin": Setting(0.383, 1e-7),
    "kddcup": Setting(5.0, 1e-5),
    "magic": Setting(1.45, 1e-9),
}


def load(path: Path, dtype: str = "float32", *, standardize: bool = True) -> Split:
    """Read a set. Features get mean 0 and deviation 1 on training rows; labels are 0, 1, ..."""
    table = pq.read_table(path)
    columns = [name for name in table.column_names if name not in ("target", "split")]
    X = np.stack([table[name].to_numpy().astype(dtype) for name in columns], axis=1)
    y = np.unique(table["target"].to_numpy(), return_inverse=True)[1]
    train = table["split"].to_numpy() == 0
    if standardize:
        X = standardized(X, train)
    return Split(X[train], y[train], X[~train], y[~train])


def standardized(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return the features with mean 0 and deviation 1 on training rows."""
    scale = X[train].std(axis=0, dtype=np.float64)
    scaled: np.ndarray = (X - X[train].mean(axis=0, dtype=np.float64)) / np.where(
        scale > 0, scale, 1
    )
    return scaled.astype(X.dtype)


def subsampled(split: Split, rows: int) -> Split:
    """Return at most `rows` random training rows, always the same ones."""
    take = np.random.default_rng(0).permutation(len(split.X))[:rows]
    return replace(split, X=split.X[take], y=split.y[take])
