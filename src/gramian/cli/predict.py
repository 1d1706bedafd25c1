"""`gramian predict`: predictions for the rows of a table."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from .._checks import as_bytes
from ..data import check_kept, split_names, write_beside, write_table
from ..data.formats import format_to_write
from ..model import load_model
from .open_for_model import open_for_model
from .outputs import check_outputs
from .report import Report


def predict(
    model: Path, data: Path, out: Path, keep: str | None, memory_limit: str, engine: str
) -> Report:
    """Write one column, ``prediction``, of numbers or labels, beside those of the table to keep."""
    start = time.perf_counter()
    check_outputs({"out": out}, [model, data])
    format_to_write(out)  # refuses a name that says no such format, before any work
    loaded = load_model(model)
    kept = [] if keep is None else split_names(keep)
    table = loaded.table(data)
    if kept:
        check_kept(out, table, kept, list(named(np.empty((1, loaded.outputs)))))
    rows = open_for_model(loaded, table)
    memory = as_bytes(memory_limit, "--memory-limit")
    if loaded.classes is None:
        values = loaded.predict(rows, engine=engine, memory_bytes=memory).numpy()
    else:
        values = np.asarray(loaded.predict_labels(rows, engine=engine, memory_bytes=memory))
    if not kept:
        write_table(out, named(values))
    else:
        write_beside(out, table, kept, named(values))
    seconds = time.perf_counter() - start
    return {"predictions": str(out), "rows": len(values), "seconds": seconds}


def named(values: np.ndarray) -> dict[str, np.ndarray]:
    """Name the columns of predictions of shape (n,) or (n, t)."""
    columns = values.reshape(len(values), -1).T
    if len(columns) == 1:
        return {"prediction": columns[0]}
    return {f"prediction_{j}": column for j, column in enumerate(columns)}
