"""`gramian predict`: predictions for the rows of a table."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._messages.checks import as_bytes
from ...data import RowSource, Table, check_kept, write_table, write_with_columns
from ...data.formats import WritableFormat, format_to_write
from ...data.formats.base import is_table_name
from ...data.sources.typed_table import TypedTable
from ...model import Model, load_model
from ...model.mapped_predictions import open_for_model
from ...model.uncertainty.probabilities import likeliest
from ...scoring.coverage import conformal_of, warn_of_shortfalls
from ..options.reading import column_names
from ..outputs.files import check_outputs
from ..outputs.report import Report
from ..outputs.uncertainty import (
    check_level,
    interval_columns,
    names_of_columns,
    std_columns,
)


def predict(
    model: Path,
    data: Path,
    out: Path,
    keep: Sequence[str] | None,
    memory_limit: str,
    engine: str,
    proba: bool = False,
    std: bool = False,
    interval: float | None = None,
    *,
    escape_formulas: bool = False,
    in_folder: bool = False,
    read: Mapping[str, Any] | None = None,
) -> Report:
    """Write a column, ``prediction``, of numbers or labels, and the columns of the table to keep.

    `proba` adds a column ``probability_LABEL`` for each class; a format without column names gets
    only these. `std` adds a standard deviation, ``_std``, to each prediction. `interval` adds the
    ends of an interval, ``_lower`` and ``_upper``, or a prediction set of classes, ``set``.
    `escape_formulas` escapes texts that a spreadsheet would compute. With `in_folder`, on a
    cluster, workers write a folder of files if `out` is not the name of a table.
    """
    start = time.perf_counter()
    output_format = _output_format(out, [model, data], keep, in_folder)
    _check_escapes(out, output_format, escape_formulas)
    loaded = load_model(model)
    _check(loaded, model, proba, std, interval)
    table = loaded.table(data, read)
    names = column_names(keep, table.names) or ()
    # Names that collide are found before the predictions, not after.
    if names:
        check_kept(out, table, names, _names(loaded, proba, std, interval))
    rows = _open_rows(loaded, table, interval)
    predicted = Predicted(loaded, engine, as_bytes(memory_limit), proba, std, interval)
    if output_format is None:
        rows.write(out, predicted)  # type: ignore[attr-defined]
    else:
        columns = predicted(rows)
        if proba and not output_format.named:
            del columns["prediction"]  # labels may be text, which the format cannot hold
        # Kept texts are written as they are in the file.
        kept_table = table.source if isinstance(table, TypedTable) else table
        write_kept = partial(write_with_columns, out, kept_table, names)
        write = write_kept if names else partial(write_table, out)
        write(columns, escape_formulas=escape_formulas)
    return {"predictions": out, "rows": len(rows), "seconds": time.perf_counter() - start}


def _open_rows(model: Model, table: Table, interval: float | None) -> RowSource:
    """Open the rows of a table; warn if too few rows were held out for the requested intervals."""
    rows = open_for_model(model, table)
    if interval is not None:
        warn_of_shortfalls(conformal_of(model), interval, rows)
    return rows


def _output_format(
    out: Path, inputs: list[Path], keep: Sequence[str] | None, in_folder: bool
) -> WritableFormat | None:
    """Return the format of the predictions; None for a folder, which workers write."""
    if in_folder and not is_table_name(out.name):
        _check_folder(out, keep)
        return None
    check_outputs({"out": out}, inputs)
    return format_to_write(out)


@dataclass(frozen=True, eq=False)
class Predicted:
    """Function from rows to the columns to write, which can be pickled for the workers."""

    model: Model
    engine: str
    memory: int
    proba: bool
    std: bool
    interval: float | None

    def __call__(self, rows: RowSource) -> dict[str, np.ndarray]:
        """Predict a block of rows, and return the columns to write."""
        model = self.model
        settings: dict[str, Any] = {"engine": self.engine, "memory_bytes": self.memory}
        columns = columns_of(model, model.predict(rows, **settings), self.proba)
        names = list(columns)
        if self.std:
            columns |= std_columns(names, model.deviations(rows, **settings))
        if self.interval is not None:
            columns |= interval_columns(model, rows, self.interval, names, settings)
        return columns


def _check_escapes(out: Path, output_format: WritableFormat | None, escape_formulas: bool) -> None:
    if escape_formulas and (output_format is None or not output_format.text):
        raise ValueError(
            f"--escape-formulas requires --out to be a text file, not {out}; leave it out"
        )


def _check_folder(out: Path, keep: Sequence[str] | None) -> None:
    """Raise ValueError if workers cannot write the folder, or if it has files already."""
    if keep is not None:
        raise ValueError(
            f"--keep requires --out to be a file, but {out} is a folder; leave --keep out"
        )
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ValueError(f"--out {out} already exists; give a new or an empty folder")
    check_outputs({"out": out}, folder=True)


def _check(model: Model, path: Path, proba: bool, std: bool, interval: float | None) -> None:
    """Raise ValueError for requested columns that the model cannot compute."""
    if proba and model.classes is None:
        raise ValueError(f"--proba requires a classifier, but {path} is a regression; leave it out")
    if std and model.classes is not None:
        raise ValueError(f"--std requires a regression, but {path} predicts classes; leave it out")
    if interval is not None:
        check_level(interval, model, path)


def _names(model: Model, proba: bool, std: bool, interval: float | None) -> list[str]:
    """Return the names of all columns of the predictions."""
    # Names depend only on the model: predictions of one made-up row are enough.
    nothing = np.zeros((1, model.outputs))
    names = list(columns_of(model, nothing, proba))
    more = list(std_columns(names, nothing)) if std else []
    return [*names, *more, *([] if interval is None else names_of_columns(model, names))]


def columns_of(model: Model, values: np.ndarray, proba: bool) -> dict[str, np.ndarray]:
    """Return the columns to write from the output of a model."""
    if model.classes is None:
        return name_columns(values, model.target)
    decision_values = values
    columns = name_columns(
        np.asarray([model.classes[i] for i in likeliest(decision_values).tolist()])
    )
    if proba:
        chances = model.class_map(decision_values).T
        columns |= {f"probability_{k}": p for k, p in zip(model.classes, chances, strict=True)}
    return columns


def name_columns(values: np.ndarray, targets: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Name the columns of predictions, (n,) or (n, t); several columns get names of targets."""
    columns = values.reshape(len(values), -1).T
    if len(columns) == 1:
        return {"prediction": columns[0]}
    names = range(len(columns)) if targets is None else targets
    return {f"prediction_{name}": column for name, column in zip(names, columns, strict=True)}
