"""Training data and held-out rows, from a table and options."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from ... import _arrays as xp
from ... import fitting
from ..._arrays import Array, RandomStream
from ...data import (
    FilledRows,
    ReadOptions,
    RowNumbers,
    RowSource,
    Table,
    TrainingTable,
    as_columns,
    as_table,
    check_finite,
    check_magnitude,
    refuse_remote,
    subset,
)
from ...data.tables.read_options import DEFAULT_OPTIONS
from ...data.tables.target import number_column, role_column
from ...fitting import DividedRows, FitSettings, Generators, TrainingData, Whole, whole_of
from ...fitting.held_out.validation import hold_sequential
from ...fitting.inputs.training_data import class_codes, classes_of, target_tensor
from ...model import Label
from ...scoring.predictions import best_constant
from ...scoring.truth import digest_rows
from ..options import parsing
from ..options.options import FitOptions
from ..options.reading import column_names
from . import task


@dataclass(frozen=True)
class Training:
    """A training table whose target is read and whose held-out rows are chosen.

    - `keep`, ndarray of bool of shape (n,): rows that are not held out; None if no row is.
    - `validation_table`: separate table for validation.
    - `calibration`, ndarray of bool of shape (n,): rows of `keep` that are held out for the
      calibration of intervals.
    - `weights`, ndarray of shape (n,).
    """

    source: TrainingTable
    classification: bool
    keep: np.ndarray | None = None
    validation_table: TrainingTable | None = None
    calibration: np.ndarray | None = None
    weights: Array | None = None

    @functools.cached_property
    def y(self) -> RowNumbers:
        """The target of the training rows; remote rows keep their target remote."""
        if self.keep is None and self.calibration is None:
            target: RowNumbers = self.source.y
            return target
        targets: np.ndarray = np.asarray(self.source.y)[self.training_index]
        return targets

    @property
    def training_index(self) -> np.ndarray:
        """Indices of the training rows."""
        stays = np.ones(len(self.source.y), dtype=bool) if self.keep is None else self.keep
        return np.flatnonzero(stays if self.calibration is None else stays & ~self.calibration)

    @property
    def digest(self) -> str | None:
        """Digest of all rows of the table, held-out rows included."""
        return digest_rows(self.source.table, self.source.columns, self.source.y)

    @functools.cached_property
    def classes(self) -> np.ndarray | None:
        """Sorted labels of a classification; ValueError if there is only one."""
        if not self.classification:
            return None
        as_columns(self.y).check_with(check_classification_targets)
        return classes_of(self.y)

    @functools.cached_property
    def constant(self) -> Label | None:
        """The best constant prediction of one target: the mean, or the largest class."""
        return None if self.y.ndim > 1 else best_constant(self.y, self.classification)

    @property
    def targets(self) -> int:
        """Number of columns of the right-hand side; more than one for more than two classes."""
        if self.classes is None:
            return 1 if self.y.ndim == 1 else self.y.shape[1]
        return 1 if len(self.classes) == 2 else len(self.classes)

    @functools.cached_property
    def held_out_y(self) -> np.ndarray | None:
        """The target of the held-out rows."""
        if self.validation_table is not None:
            return np.asarray(self.validation_table.y)
        return None if self.keep is None else np.asarray(self.source.y)[~self.keep]

    def without(self, index: np.ndarray) -> Training:
        """Hold out more rows, by their positions in `training_index`."""
        training_index = self.training_index
        keep = np.ones(len(self.source.y), dtype=bool) if self.keep is None else self.keep.copy()
        keep[training_index[index]] = False
        return replace(self, keep=keep)

    def prepare(
        self,
        settings: FitSettings,
        rng: Generators,
        divide: Callable[[Whole], DividedRows] = lambda dataset: dataset.without(None),
    ) -> Prepared:
        """Encode the table without the rows that `divide` holds out for intervals.

        Costs one pass over the table, which checks its values.
        """
        dataset = whole_of(
            self.source,
            settings,
            rng,
            labels=self.classes,
            weights=self.weights,
            keep=None if self.keep is None else self.keep,
            hold_out=fitting.holds_out(settings) and self.held_out_y is None,
        )
        divided_rows = divide(dataset)
        training = self
        if divided_rows.learn is not None:
            # `learn` numbers the training rows: the others among them are calibration rows.
            is_calibration = np.zeros(len(self.source.y), dtype=bool)
            is_calibration[np.delete(self.training_index, divided_rows.learn)] = True
            training = replace(self, calibration=is_calibration)
        held_out = self._held_out(divided_rows.train)
        return Prepared(
            training,
            divided_rows.train,
            divided_rows.settings,
            held_out,
            divided_rows.held_out_data,
        )

    def _held_out(self, data: TrainingData) -> RowSource | None:
        origin = self.source if self.validation_table is None else self.validation_table
        if self.held_out_y is None:
            return None
        columns = self.source.columns
        if data.encoding is not None:
            rows: RowSource = data.encoding.rows(origin.table)
        elif data.medians is not None:
            where = f"the held-out rows of {origin.table.where}"
            rows = FilledRows(origin.table.rows(columns), data.medians, columns, where)
        else:
            rows = origin.table.rows(columns)
        if self.validation_table is None and self.keep is not None:
            rows = subset(rows, np.flatnonzero(~self.keep))
        check_finite(rows, f"the held-out rows of {origin.table.where}")
        # Each validation reads all held-out rows: few rows of a sequential file are kept in memory.
        return hold_sequential(rows, None)


@dataclass(frozen=True)
class Prepared:
    """Encoded training data and held-out rows of a fit.

    - `settings`: settings of the fit after encoding and splitting.
    - `calibration`: held-out rows for the calibration of intervals.
    """

    training: Training
    data: TrainingData
    settings: FitSettings
    held_out: RowSource | None
    calibration: TrainingData | None = None

    def encode(self, y: np.ndarray) -> Array:
        """Return targets as numbers, or as codes of the training classes."""
        dtype, classes = self.data.rows.dtype, self.training.classes
        return target_tensor(y, dtype) if classes is None else class_codes(y, classes, dtype)

    @property
    def columns(self) -> dict[str, str] | None:
        """Descriptions of the encoded columns; None without an encoding."""
        return None if self.data.encoding is None else self.data.encoding.describe()

    def without(self, index: Array) -> Prepared:
        """Exclude the rows that the fit has held out, by their indices."""
        training = self.training.without(index)
        held_rows = self.data.held_out
        return replace(
            self, training=training, held_out=None if held_rows is None else held_rows.data.rows
        )


def open_training(data: Path, options: FitOptions) -> Training:
    """Open a table, read its target and choose the held-out rows."""
    read = ReadOptions.of(options.read)
    opened = as_table(data, options=replace(read, labels=options.target))
    features = column_names(options.features, opened.names)
    dropped = column_names(options.drop, opened.names) or ()
    roles = (options.weight, options.groups, options.fold_column)
    dropped = (*dropped, *(name for name in roles if name is not None))
    read = replace(read, strict=options.strict)
    table = _open(opened, options, features, dropped, read)
    classification = task.is_classification(table, options)
    weights = None if options.weight is None else _read_weights(table, options.weight)
    training = Training(table, classification, weights=weights)
    if options.validation is None:
        return training
    share = parsing.validation(options.validation)
    if isinstance(share, Path):
        read = replace(read, columns=table.table.column_readings)
        return replace(
            training, validation_table=_open(share, options, table.columns, options_of_text=read)
        )
    return replace(training, keep=_keep_mask(len(table.y), share, options.seed))


def read_folds(source: TrainingTable, options: FitOptions) -> object:
    """Return the folds of a search by its options: a number, pairs of row numbers, or None."""
    count = None if options.fold_column is not None else options.fold_count
    names = {"groups": options.groups, "order": options.order, "folds": options.fold_column}
    if all(name is None for name in names.values()):
        return count
    refuse_remote(
        source.table,
        "--groups, --order and --folds COLUMN cannot be combined with --dask: leave them out",
    )
    values = [
        None if name is None else role_column(source.table, name, role)
        for role, name in names.items()
    ]
    from ...estimators.search.groups import folds_by_column

    return folds_by_column(count, np.asarray(source.y), *values)


def _read_weights(table: TrainingTable, name: str) -> Array:
    """Read the weights of the rows; ValueError if they are negative or all zero."""
    refuse_remote(table.table, "--weight cannot be combined with --dask: leave one of them out")
    weights = number_column(table.table, name, "weight")
    if not (weights >= 0).all() or not weights.any():
        raise ValueError(
            f"{table.table.where}: the weights '{name}' must be at least 0, and one above 0, but "
            f"they are between {weights.min():g} and {weights.max():g}"
        )
    return weights


def _open(
    data: Path | Table,
    options: FitOptions,
    columns: Sequence[str] | None,
    dropped: Sequence[str] = (),
    options_of_text: ReadOptions = DEFAULT_OPTIONS,
) -> TrainingTable:
    opened_table = TrainingTable.open(
        data, options.target, columns, dropped, options_of_text, options.drop_missing_target
    )
    if as_columns(opened_table.y).kind.kind not in "Ub":
        check_magnitude(opened_table.y, xp.float64, f"the target {options.target!r}")
    return opened_table


def _keep_mask(n: int, share: float, seed: int) -> np.ndarray:
    """Draw the rows that are not held out, as a mask."""
    count = round(share * n)
    if not 0 < count < n:
        raise ValueError(
            f"--validation {share:g} of {n} rows leaves {n - count} rows to learn from and {count} "
            "to measure the error; give a fraction that leaves some for both"
        )
    keep = np.ones(n, dtype=bool)
    keep[spread_rows(n, count, rng=RandomStream(seed))] = False
    return keep


def spread_rows(n: int, count: int, *, rng: RandomStream) -> Array:
    """Draw row indices that are spread over the table, each with probability count / n.

    Each of `count` ranges of about equal length gives one row. The ranges start at a random row
    and wrap around. The indices, of shape (count,), increase strictly. Unlike a permutation of all
    rows, the draw needs memory for only `count` numbers.
    """
    # Whole bounds: the ranges differ by at most one row, and cover each row once.
    bounds = xp.arange(count + 1) * n // count
    within = rng.random(count, xp.float64) * xp.diff(bounds)
    first = rng.integers(n, size=())
    return xp.sort((bounds[:-1] + xp.cast(within, xp.int64) + first) % n)
