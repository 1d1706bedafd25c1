"""The rows and true targets of a table to evaluate a model on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._messages.errors import TextError
from ..data import RowNumbers, RowSource, Table, as_columns, target_column
from ..data.rows.arrow import check_columns
from ..model import Model
from ..model.labels import match_labels
from ..model.mapped_predictions import open_for_model
from .coverage import LEVELS_KEY


@dataclass(frozen=True, eq=False)
class Truth:
    """Rows of a table in the columns of a model, and their target.

    - `name`: name of the target.
    - `y`: of shape (n,); numbers or labels; remote if the rows are.
    """

    name: str
    y: Any
    rows: RowSource
    table: Table


def truth_of(
    loaded: Model,
    model: object,
    data: Any,
    target: str | None,
    read: Mapping[str, Any] | None = None,
    complete_targets: Sequence[str] | None = None,
) -> Truth:
    """Read the rows and the target of a table; raise ValueError if it has no such target.

    - `model`: name of the model in errors.
    - `target`: the target of the training, if the model names it, by default.
    - `read`: options for reading that differ from the options of training.
    - `complete_targets`: targets whose gaps leave out their row, with a warning; empty for this
      target. Gaps are refused by default.
    """
    name = target or _target(loaded)
    if name is None:
        raise TextError("{} does not record the name of its target; give {target}", model)
    table = loaded.table(data, read)
    check_columns(table.where, table.names, [name])
    if complete_targets is not None:
        # `gramian info` needs a name of this module, and no readers of tables, which load slowly.
        from ..data.sources.training_table import drop_missing_target_rows

        table, _ = drop_missing_target_rows(table, tuple(complete_targets) or (name,))
    # A remote target stays with its rows, which workers compare with the predictions.
    y = target_column(table, [name])
    if loaded.classes is not None:
        y = as_columns(y).check_with(partial(match_labels, classes=loaded.classes))
    text = kind_of(y) == "U"
    trained_on_text = loaded.classes is not None and isinstance(loaded.classes[0], str)
    # Text and numbers never compare as equal: every row would count as wrong.
    if text != trained_on_text:
        held_kind, expected = ("text", "numbers") if text else ("numbers", "text")
        raise ValueError(
            f"the target {name!r} holds {held_kind}, but the model predicts {expected}"
        )
    return Truth(name, y, open_for_model(loaded, table, name), table)


def kind_of(y: RowNumbers) -> str:
    """Return the letter of the NumPy type of the target: U for text, b for booleans."""
    return as_columns(y).kind.kind


def _target(loaded: Model) -> str | None:
    """Return the name of the target column in the training table, if it is known."""
    if loaded.target is None or loaded.info.get(LEVELS_KEY):
        return loaded.info.get("target")
    return loaded.target[0]


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
        # In types that all formats have.
        texts = [float(v) if isinstance(v, int | float) else str(v) for v in column.to_pylist()]
        hasher.update(f"{name}: {texts}".encode())
    return hasher.hexdigest()


def training_remark(model: Model, table: Table, y: Any) -> str | None:
    """Return a remark if these rows are the rows of the training."""
    digest = model.info.get(DIGEST_KEY)
    is_same = digest is not None and digest == digest_rows(table, model.info.get("columns", ()), y)
    return TRAINING_REMARK if is_same else None
