"""Rows of the training: whether a report is of them, and the residual of the model on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from .. import _arrays as xp
from .._arrays import Array
from .._sparse import dense
from ..data import as_rows, default_block_size
from ..explain.nearest import reason_equations_unknown
from ..fitting.inputs.training_data import class_codes, target_tensor
from ..model import KernelPart, Model
from ..scoring.truth import Truth, training_remark
from .studies import Sample, residual

SAMPLED_CENTERS = 50
"""Centers of the model that are looked up in the table."""

EQUAL_ROWS_DISTANCE = 1e-5
"""Largest relative distance of a center from its row: rounding of float32 numbers."""

MOST_REPEATS = 0.1
"""Largest share of repeated rows in a table whose rows identify the training."""

LEAST_SHARE_FOUND = 0.2
"""Least share of centers in a table with rows of the training: more than repeated rows explain."""

TRAINING_ROWS_ADVICE = "errors on rows of the training are too small; evaluate other rows"


def training_warning(
    model: Model, part: KernelPart, truth: Truth, train: Truth | None, test: Sample
) -> str | None:
    """Return a warning if rows of a table were rows of the training; None otherwise.

    The digest of the training recognises its table. Otherwise rows of the table are looked up in
    the training table, or, without it, centers of the model are looked up in the table, because
    most selectors choose centers among the rows of the training.

    - `part`: kernel model of the largest weight.
    - `truth`, `train`: the table, and the training table, which may be None.
    - `test`: rows of the table.
    """
    remark = training_remark(model, truth.table, truth.y)
    if remark is not None:
        return remark
    # Rows are compared by their bytes: features of one encoding are equal to the last bit.
    keys = _keys(test.features)
    if len(set(keys)) < (1 - MOST_REPEATS) * len(keys):
        return None  # equal rows, as of a few categories, are no evidence
    if train is not None:
        row_keys = set(keys)
        training = {
            key
            for _, block in train.rows.blocks(default_block_size(train.rows))
            for key in row_keys.intersection(_keys(dense(block)))
        }
        shared = sum(key in training for key in keys)
        text = f"{shared:,} of {len(keys):,} rows are also rows of the training table"
        return f"{text}: {TRAINING_ROWS_ADVICE}" if shared else None
    found_count, sampled_count = _count_centers(part, truth)
    if found_count < LEAST_SHARE_FOUND * sampled_count:
        return None
    return (
        f"{found_count} of {sampled_count} centers of the model, which are rows of the training, "
        f"are rows of this table: {TRAINING_ROWS_ADVICE}"
    )


def _keys(features: Array) -> list[bytes]:
    """Return the bytes of each row; minus zero is zero."""
    return [row.tobytes() for row in np.ascontiguousarray(features + 0.0)]


def _count_centers(part: KernelPart, truth: Truth) -> tuple[int, int]:
    """Return how many of some centers are rows of the table, and the number of these centers."""
    # Centers are mapped and rounded: they are compared by their distance, relative to their size.
    centers = as_rows(part.centers)
    count = min(len(centers), SAMPLED_CENTERS)
    index = xp.cast(xp.linspace(0, len(centers) - 1, count), xp.int64)
    sampled = dense(centers.take(index))
    rows = part.prepare_rows(truth.rows)
    nearest = np.full(count, np.inf)
    for _, block in rows.blocks(default_block_size(rows)):
        nearest = np.minimum(nearest, cdist(sampled, dense(block)).min(axis=1))
    limit = EQUAL_ROWS_DISTANCE * np.linalg.norm(sampled, axis=1)
    return int((nearest <= limit).sum()), count


MOST_ENTRIES = 2_000_000_000
"""Most kernel entries of a residual: about ten seconds."""


@dataclass(frozen=True)
class Certificate:
    """Relative residual, or the reason why the residual was not computed."""

    residual: float | None
    reason: str | None = None


def certificate(
    model: Model, train: Truth | None, penalty: float | None, memory: int
) -> Certificate:
    """Return the relative residual of a model on its training rows, if `train` holds them.

    - `train`: training table, if the user gave it.
    - `penalty`: penalty of the fit, if it is known.
    - `memory`: bytes for blocks.
    """
    part = model.parts[0]
    if train is None:
        return Certificate(
            None, "give the training table (`--train`, in Python `train=`) to measure it"
        )
    reason = reason_equations_unknown(
        model, part, len(train.y), model.info.get("rows"), penalty, MOST_ENTRIES
    )
    if reason is not None:
        return Certificate(None, f"not measured: {reason}")
    assert penalty is not None  # checked above
    rows = part.prepare_rows(train.rows)
    if model.classes is None:
        targets = target_tensor(train.y, rows.dtype)
    else:
        targets = class_codes(train.y, np.asarray(model.classes), rows.dtype)
    return Certificate(residual(part, rows, targets, penalty, memory))
