"""Rows as users have them: arrays of any layout, tables, sparse matrices, files."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse

SEQUENTIAL = ("parquet", "parts")


def contained(X: np.ndarray, container: str, folder: Path) -> Any:
    """Return rows in a container; files go to a folder."""
    if container == "npy":
        np.save(folder / "rows.npy", X)
        return folder / "rows.npy"
    return _in_parquet(X, container, folder) if container in SEQUENTIAL else IN_MEMORY[container](X)


def _frame(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])


def _arrow(X: np.ndarray) -> pa.Table:
    return pa.table({f"f{j}": column.copy() for j, column in enumerate(X.T)})


def _tensor(X: np.ndarray) -> Any:
    """Return a tensor in the memory of the array, or the array where torch is not installed."""
    if find_spec("torch") is None:
        return X
    import torch

    return torch.from_numpy(X)


def _in_parquet(X: np.ndarray, container: str, folder: Path) -> Path:
    """Write one file in several row groups, or a folder of two files."""
    table = _arrow(X)
    if container == "parquet":
        path = folder / "rows.parquet"
        pq.write_table(table, path, row_group_size=37)
        return path
    path = folder / "rows"
    path.mkdir(exist_ok=True)
    half = (len(table) + 1) // 2
    for number, part in enumerate((table[:half], table[half:])):
        if len(part):
            pq.write_table(part, path / f"{number}.parquet")
    return path


IN_MEMORY = {
    "array": lambda X: X,
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "list": lambda X: X.tolist(),
    "whole": lambda X: X.astype(np.int32),
    "frame": _frame,
    "arrow": _arrow,
    "tensor": _tensor,
    "csr": scipy.sparse.csr_array,
}
CONTAINERS = (*IN_MEMORY, "npy", *SEQUENTIAL)
