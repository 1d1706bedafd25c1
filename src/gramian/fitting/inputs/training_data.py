"""Training data of a fit: checked rows, weights and targets, as numbers or codes of classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ... import _arrays as xp
from ... import data
from ..._arrays import Array, Float, Int
from ..._messages.errors import TextError
from ..._parallel.machine import machine_memory
from ...data import (
    AnyWeights,
    Columns,
    ReadOptions,
    RowNumbers,
    RowSource,
    RowWeights,
    Targets,
    all_finite,
    as_columns,
    as_rows,
    check_magnitude,
    subset,
)
from ...kernels import Kernel
from ...model import KernelModel, Label


@dataclass(frozen=True)
class HeldOut:
    """Rows that a fit holds out for early stopping.

    - `index`: increasing indices of the held-out rows among the rows of positive weight.
    """

    index: Int[Array, " r"]
    data: TrainingData


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Training data with checked lengths, targets and weights.

    - `targets`: of shape (n, t); numbers, or the codes of classes; see `class_codes`. Targets and
      weights of remote rows may be `Columns` of the same cluster.
    - `weights`: of shape (n,); weights of the rows; None if all are one. `fit` leaves out rows of
      weight zero.
    - `classes`: labels of the classes that the targets encode; None if targets are numbers.
    - `encoding`: encoding that made and scaled the rows from a table; None for other rows.
    - `medians`: values that fill the gaps of new rows, if rows are numbers without an encoding.
    - `target`: names of the columns that are predicted.
    - `held_out`: held-out rows, which `rows` does not contain.
    - `numbers`: increasing indices of `rows` among the user's rows; None for all rows.
    - `total_rows`: number of the user's rows, before some were left out; None if none were.
    - `reading`: how the table was read.

    Raise ValueError if a row lacks a finite target, or a finite nonnegative weight.
    """

    rows: RowSource
    targets: Targets
    weights: AnyWeights | None = None
    classes: tuple[Label, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    encoding: data.Encoding | None = None
    target: tuple[str, ...] | None = None
    held_out: HeldOut | None = None
    numbers: Int[Array, " _"] | None = None
    total_rows: int | None = None
    medians: Float[Array, " d"] | None = None
    reading: ReadOptions | None = None

    def __post_init__(self) -> None:
        n = len(self.rows)
        if len(self.targets) != n:
            raise ValueError(f"there are {n} rows, but {len(self.targets)} targets")
        if not all_finite(self.targets):
            raise ValueError("targets must be finite; leave out rows without one")
        if self.weights is None:
            return
        if len(self.weights) != n:
            raise ValueError(f"there are {n} rows, but {len(self.weights)} weights")
        if not (all_finite(self.weights) and as_columns(self.weights).range[0] >= 0):
            raise ValueError("weights must be finite and not negative")

    @property
    def coded(self) -> bool:
        """Whether targets are codes of classes, so that errors are shares of wrong classes."""
        return self.classes is not None

    @property
    def total(self) -> float:
        """The sum of the weights."""
        n = float(len(self.rows))
        # In float64, because the sum of millions of float32 weights loses digits.
        return n if self.weights is None else float(xp.sum_float64(self.weights))

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Name of the column of each feature, for kernels of columns; None without names."""
        if self.encoding is None:
            return self.feature_names
        return tuple(c.name for c in self.encoding.used_columns for _ in c.features)

    def without_zero_weights(self) -> TrainingData:
        """Leave out rows of weight zero, which must not affect a fit, not even as landmarks."""
        if self.weights is None or as_columns(self.weights).range[0] > 0:
            return self
        return self.part(as_columns(self.weights).positive())

    def with_local_numbers(self) -> TrainingData:
        """Return the data with targets and weights in local memory, as streaming solvers need."""
        targets = as_columns(self.targets).gather()
        weights = None if self.weights is None else as_columns(self.weights).gather()
        if targets is self.targets and weights is self.weights:
            return self
        return replace(self, targets=targets, weights=weights)

    def local_part(self, index: Int[Array, " k"] | None) -> TrainingData:
        """Return the rows at increasing indices, or all rows; remote rows are copied to memory."""
        part = self if index is None else self.part(index)
        if part.rows.fits():
            return part
        rows = as_rows(part.rows.take(xp.arange(len(part.rows))))
        return replace(part, rows=rows).with_local_numbers()

    def model(
        self, kernel: Kernel, centers: RowSource | Array, coef: Float[Array, "m t"], **parts: Any
    ) -> KernelModel:
        """Return a model with the names and the encoding of the data, and the fields `parts`."""
        names = {"feature_names": self.feature_names, "target": self.target}
        table_parts = {"encoding": self.encoding, "medians": self.medians, "reading": self.reading}
        described = {**names, "classes": self.classes, **table_parts, **parts}
        return KernelModel(kernel, centers, coef, **described)

    def part(self, index: Int[Array, " k"], rows: RowSource | None = None) -> TrainingData:
        """Return the part of the data at increasing indices; rows are a `Subset` unless given."""
        return replace(
            self,
            rows=subset(self.rows, index) if rows is None else rows,
            targets=as_columns(self.targets).part(index),
            weights=None if self.weights is None else as_columns(self.weights).part(index),
            # Through repeated parts, the numbers remain relative to the rows that the user gave.
            numbers=index if self.numbers is None else self.numbers[index],
            total_rows=len(self.rows) if self.total_rows is None else self.total_rows,
        )


MEMORY_SHARE = 8
"""Rows are held in memory if they take at most this part of it: one in eight bytes."""

BLOCK_ENTRIES = 1 << 20
"""Entries of a block that is read at once."""


def shared_bytes(limit: int | None) -> int:
    """Return the bytes allowed for rows in memory, a share of the limit or of all memory."""
    return (machine_memory() if limit is None else limit) // MEMORY_SHARE


def in_memory(rows: RowSource, most_bytes: int) -> tuple[RowSource, int]:
    """Copy dense rows to memory if they fit; return the rows, and the bytes that the copy takes.

    - `most_bytes`: limit; larger rows are returned unchanged, with 0 bytes.
    """
    row_bytes = rows.shape[1] * rows.dtype.itemsize
    if not rows.fits(most_bytes // row_bytes):
        return rows, 0
    # Blocks are copied into one tensor: joining them at the end would take the memory twice.
    out = xp.empty(rows.shape, rows.dtype)
    for part, block in rows.blocks(max(1, BLOCK_ENTRIES // rows.shape[1])):
        out[part] = block
    rows_in_memory = as_rows(out)
    # A tensor has no names of columns.
    rows_in_memory.feature_names = rows.feature_names
    return rows_in_memory, len(rows) * row_bytes


def training_targets(
    y: ArrayLike | Columns, dtype: xp.DType, products: xp.DType | None = None
) -> Targets:
    """Return `target_tensor`; raise ValueError if products with a target round to 0 or overflow.

    Products have the type of the rows, unless another type is given.
    """
    targets = target_tensor(y, dtype)
    check_magnitude(targets, products or dtype)
    return targets


def target_tensor(y: ArrayLike | Columns, dtype: xp.DType) -> Targets:
    """Return numeric targets of shape (n, t), in float32 if the rows are float32."""
    return as_columns(y).as_targets(dtype)


def classes_of(y: RowNumbers, weights: RowWeights | None = None) -> np.ndarray:
    """Return the labels of the rows of positive weight, sorted.

    Raise ValueError if there is only one label.
    """
    classes, _ = as_columns(y).counts(weights)
    if len(classes) < 2:
        raise TextError(
            "{y} holds one class only, {}, in rows of positive weight; a classifier needs at "
            "least two classes",
            classes.tolist(),
        )
    return classes


def coded_data(
    rows: RowSource,
    y: RowNumbers,
    classes: np.ndarray,
    weights: RowWeights | None = None,
    feature_names: tuple[str, ...] | None = None,
) -> TrainingData:
    """Return training data whose targets are the codes of labels; see `class_codes`."""
    codes = class_codes(y, classes, rows.dtype, weights)
    # The file of a model holds JSON, which has no scalars of NumPy: Python's labels.
    return TrainingData(rows, codes, weights, tuple(classes.tolist()), feature_names)


def class_codes(
    y: RowNumbers,
    classes: np.ndarray,
    dtype: xp.DType,
    weights: RowWeights | None = None,
) -> Targets:
    """Return the codes of labels: (n, 1) with -1 and 1 for two classes, else (n, k).

    Rows of weight zero may have labels that are not classes: the fit leaves these rows out.
    Raise ValueError if a label is not a class.
    """
    k = len(classes)
    # The codes of a row sum to zero, whatever its class.
    table = xp.full((k, k), -1 / (k - 1), dtype=dtype)
    table[xp.arange(k), xp.arange(k)] = 1.0
    # Two classes share one column. The workers of a cluster get this table, and send no label.
    return as_columns(y).look_up(classes, table[:, 1:] if k == 2 else table, weights=weights)
