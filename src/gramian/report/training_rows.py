"""Rows of the training among the rows of a report."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from .. import _arrays as xp
from .._arrays import Array
from .._sparse import dense
from ..data import as_rows, default_block_size
from ..model import KernelPart, Model
from ..scoring.training_digest import training_remark
from ..scoring.truth import Truth
from .sample import Sample

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
        shared = _count_shared(keys, train)
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


def _count_shared(keys: list[bytes], train: Truth) -> int:
    row_keys = set(keys)
    training = {
        key
        for _, block in train.rows.blocks(default_block_size(train.rows))
        for key in row_keys.intersection(_keys(dense(block)))
    }
    return sum(key in training for key in keys)


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
