"""Digest of the training rows, by which `evaluate` and `report` recognise the training data."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data import Table
from ..model import Model

DIGEST_KEY = "training_digest"
"""Entry of `Model.info`."""

DIGEST_ROWS = 100
"""First rows whose features are digested, too: targets may be sorted labels."""

TRAINING_REMARK = (
    "these are rows of the training, on which errors are too small; evaluate other rows"
)


def digest_rows(table: Table, columns: Sequence[str], y: Any) -> str | None:
    """Return a digest of the targets and of the first rows; None for remote rows.

    The digest is the same for all formats of a table.

    - `columns`: features; those that the table lacks are ignored.
    - `y`: of shape (n,).
    """
    if not table.takes_encoding:
        return None
    hasher = hashlib.sha256(f"{np.shape(y)}".encode())
    values = y.astype(np.float64) if y.dtype.kind not in "US" else y.astype(str)
    hasher.update(np.ascontiguousarray(values).tobytes())
    names = sorted(set(columns) & set(table.names))
    batch = next(iter(table.batches(names, DIGEST_ROWS)))
    for name, column in zip(names, batch.columns, strict=True):
        hasher.update(f"{name}: {[_comparable(value) for value in column.to_pylist()]}".encode())
    return hasher.hexdigest()


def _comparable(value: Any) -> Any:
    """Return a value in a type that all formats have."""
    return float(value) if isinstance(value, int | float) else str(value)


def training_remark(model: Model, table: Table, y: Any) -> str | None:
    """Return a remark if these rows are the rows of the training."""
    digest = model.info.get(DIGEST_KEY)
    is_same = digest is not None and digest == digest_rows(table, model.info.get("columns", ()), y)
    return TRAINING_REMARK if is_same else None
