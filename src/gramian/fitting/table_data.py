"""Training data from a table: encoded columns, and targets as numbers or codes of classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .. import _arrays as xp
from .._arrays import Array, Bool, Float
from ..data import (
    Encoding,
    FittedEncoding,
    RowSource,
    TrainingTable,
    check_finite,
    check_magnitude,
    first_row,
    has_numeric_columns,
    is_table,
    subset,
)
from ..data.sources.as_table import encoding_table
from .held_out.folds import other_rows
from .held_out.validation import draw_held_out, hold_sequential
from .inputs.training_data import (
    HeldOut,
    TrainingData,
    class_codes,
    in_memory,
    shared_bytes,
    target_tensor,
)
from .plans.plan import check_memory
from .plans.remote import check_remote
from .settings import landmarks as landmark_settings
from .settings import resolve
from .settings.generators import Generators
from .settings.settings import FitSettings

BOOKKEEPING_BYTES = 2
"""Bytes of a row for its fold, and for whether it counts."""

SAMPLE_SHARE = 4
"""The sample for medians and quantiles takes at most a quarter of the memory limit."""


def table_data(
    given: TrainingTable,
    settings: FitSettings,
    rng: Generators,
    *,
    classes: np.ndarray | None = None,
    weights: Float[Array, " n"] | None = None,
    keep: Bool[Array, " n"] | None = None,
    hold_out: bool = False,
) -> tuple[TrainingData, FitSettings]:
    """Return training data of a table, and the settings of a fit to them.

    - `classes`: sorted labels of a classification; None if the target is numeric.
    - `weights`: rows of weight zero are ignored.
    - `keep`: the training rows, all by default. Other rows do not affect the encoding either.
    - `hold_out`: whether to hold out some training rows for early stopping; see `holds_out`.

    The data are in memory if the rows take at most an eighth of it, else they are read in each
    pass. The file format of a small table therefore does not affect the fit. The settings have
    encoded landmarks, if a table of landmarks is given, and a memory limit reduced by the rows in
    memory and by unscaled and scaled targets.

    A table of numbers without gaps is not encoded, so that its model also predicts arrays. A remote
    table is never encoded: gaps and columns of other types raise an error.

    Cost: a pass over the table, and one more if the rows are kept in memory.
    """
    _check_numbers_fit(given, settings, classes)
    index, held_out = _kept_index(keep, weights), None
    if hold_out:
        # Before the encoding, which must not learn from rows that measure the error.
        index, numbers, held_index = _hold_out_rows(given, settings, rng, classes, index)
    encoding = None
    if given.table.takes_encoding:
        encoding = _encoding(given, settings, rng, classes, index)
    rows, row_bytes = _training_rows(given, encoding, index, settings.limit)
    targets = _targets(given.y if index is None else given.y[index], classes, rows.dtype)
    if classes is None:
        # Means and deviations are computed in float64; unscaled
        # targets meet the rows in their type.
        check_magnitude(targets, xp.float64 if settings.scales_targets else rows.dtype)
    is_plain = encoding is not None and encoding.encoding.plain
    data = TrainingData(
        rows,
        targets,
        _at(weights, index),
        None if classes is None else tuple(classes.tolist()),
        rows.feature_names if given.table.named else None,
        encoding=None if encoding is None or is_plain else encoding.encoding,
        medians=encoding.encoding.medians(first_row(rows)[0]) if encoding and is_plain else None,
        target=given.target,
        numbers=index,
        total_rows=len(given.y),
        reading=given.table.reading,
    )
    if hold_out:
        held_out = HeldOut(numbers, encoded_rows(given, data, weights, held_index, classes))
    settings = _encoded_landmarks(resolve.with_names(settings, data.column_names), data.encoding)
    # Everything that stays in memory counts against the limit of the fit.
    taken_bytes = row_bytes + given.y.nbytes + targets.nbytes + BOOKKEEPING_BYTES * len(given.y)
    return replace(data, held_out=held_out), settings.with_less_memory(taken_bytes)


def _training_rows(
    given: TrainingTable, encoding: FittedEncoding | None, index: Array | None, limit: int | None
) -> tuple[RowSource, int]:
    """Return encoded training rows, in memory if they fit, and their bytes in memory."""
    rows = _rows(given, encoding)
    if index is not None:
        rows = subset(rows, index)
    # An encoding fills gaps and refuses infinite numbers by itself.
    if encoding is None:
        check_finite(rows, given.table.where)
    return in_memory(rows, shared_bytes(limit))


def _hold_out_rows(
    given: TrainingTable,
    settings: FitSettings,
    rng: Generators,
    classes: np.ndarray | None,
    index: Array | None,
) -> tuple[Array, Array, Array]:
    """Split `index` into training rows, positions of held-out rows, and held-out rows.

    The held-out rows are the rows that `divide` would hold out of an array.
    """
    index = xp.arange(len(given.y)) if index is None else index
    # The numbers of classes, not the labels, so that the same rows are drawn as from an array.
    labels = None
    if classes is not None:
        labels = np.searchsorted(classes, given.y[index])
    held_positions = draw_held_out(settings, len(index), labels, rng)
    return index[other_rows(len(index), held_positions)], held_positions, index[held_positions]


def encoded_rows(
    given: TrainingTable,
    like: TrainingData,
    weights: Array | None,
    index: Array,
    classes: np.ndarray | None,
) -> TrainingData:
    """Encode held-out rows like the rows of a new table, without their own targets."""
    encoded = like.encoding
    source = given.table.rows(given.columns) if encoded is None else encoded.rows(given.table)
    rows = hold_sequential(subset(source, index), None)
    check_finite(rows, f"the held-out rows of {given.table.where}")
    targets = _targets(given.y[index], classes, rows.dtype)
    return TrainingData(rows, targets, _at(weights, index), like.classes, like.feature_names)


def _encoded_landmarks(settings: FitSettings, encoding: Encoding | None) -> FitSettings:
    """Return settings in which landmarks that were given as a table are encoded like rows."""
    landmarks: Any = settings.landmarks
    if encoding is None or not landmark_settings.are_points(landmarks):
        return settings
    if not is_table(landmarks):
        raise TypeError(
            "landmarks must be a table with the columns of X, which are encoded, or a number, not "
            f"{type(landmarks).__name__}"
        )
    return replace(settings, landmarks=encoding.rows(encoding_table(landmarks, encoding)))


def _at(weights: Array | None, index: Array | None) -> Array | None:
    return weights if weights is None or index is None else weights[index]


def _check_numbers_fit(
    given: TrainingTable, settings: FitSettings, classes: np.ndarray | None
) -> None:
    """Raise ValueError, before a pass over a table of numbers, if a fit exceeds the memory."""
    if not given.table.takes_encoding:
        check_remote(settings, given.table.rows(given.columns))
    if has_numeric_columns(given.table, given.columns):
        t = given.y.size // len(given.y) if classes is None or len(classes) == 2 else len(classes)
        check_memory(settings, given.table.rows(given.columns), t)


def _kept_index(keep: Bool[Array, " n"] | None, weights: Float[Array, " n"] | None) -> Array | None:
    """Return the increasing indices of the rows to keep; None to keep all rows."""
    counts = keep
    if weights is not None:
        counts = weights > 0 if keep is None else keep & (weights > 0)
    return None if counts is None or bool(counts.all()) else xp.flatnonzero(counts)


def _encoding(
    given: TrainingTable,
    settings: FitSettings,
    rng: Generators,
    classes: np.ndarray | None,
    index: Array | None,
) -> FittedEncoding:
    y = given.y
    keep = np.ones(len(y), dtype=bool)
    if index is not None:
        keep = np.zeros(len(y), dtype=bool)
        keep[index] = True
    # Rows that do not count may have labels that are no class: they get any class.
    if classes is not None:
        y = np.where(keep, y, classes[0])
    # Which features a column becomes is not known yet: if the kernel takes
    # any feature as it is, all numbers stay raw.
    unscaled_features = resolve.kernel(
        settings.kernel, settings.first_lengthscale
    ).unscaled_features(len(given.columns))
    if rng.encoding is None:
        raise ValueError("a table needs a generator for the folds of its encoding")
    return FittedEncoding.fit(
        given.table,
        given.columns,
        _targets(y, classes, xp.float64),
        rng=rng.encoding,
        numbers="standard" if settings.standardize and not unscaled_features else "raw",
        keep=keep,
        text_features=given.named_columns,
        sample_bytes=None if settings.limit is None else settings.limit // SAMPLE_SHARE,
    )


def _targets(y: np.ndarray, classes: np.ndarray | None, dtype: xp.DType) -> Array:
    return target_tensor(y, dtype) if classes is None else class_codes(y, classes, dtype)


def _rows(given: TrainingTable, found: FittedEncoding | None) -> RowSource:
    if found is None or found.encoding.plain:
        return given.table.rows(given.columns)
    return found.training_rows(given.table)
