"""Training data of a fit: checked rows, targets and weights; rows copied to memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ... import _arrays as xp
from ... import data
from ..._arrays import Array, Float, Int
from ..._parallel.machine import machine_memory
from ...data import (
    AnyWeights,
    ReadOptions,
    RowSource,
    Targets,
    all_finite,
    as_columns,
    as_rows,
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

    Attributes
    ----------
    rows : RowSource of shape (n, d)
    targets : Array of shape (n, t)
        Numbers, or the codes of classes; see `class_codes`. Targets and weights of remote rows
        may be `Columns` of the same cluster.
    weights : Array of shape (n,), or None
        Weights of the rows; None if all are one. `fit` leaves out rows of weight zero.
    classes : tuple of k labels, or None
        Labels of the classes that the targets encode; None if targets are numbers.
    encoding : Encoding or None
        Encoding that made and scaled the rows from a table; None for other rows.
    medians : Array of shape (d,), or None
        Values that fill the gaps of new rows, if rows are numbers without an encoding.
    target : tuple of str, or None
        Names of the columns that are predicted.
    held_out : HeldOut or None
        Held-out rows, which `rows` does not contain.
    numbers : Array of shape (n,), or None
        Increasing indices of `rows` among the user's rows; None for all rows.
    total_rows : int or None
        Number of the user's rows, before some were left out; None if none were.
    reading : ReadOptions or None
        How the table was read.

    Raises
    ------
    ValueError
        If a row lacks a finite target, or a finite nonnegative weight.
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
