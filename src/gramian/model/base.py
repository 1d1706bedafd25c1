"""Base class of models, which predict from rows or tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from .. import data
from .._arrays import Array, Bool, Float
from .._messages.checks import as_bytes, did_you_mean, join_words
from ..conformal import ConformalPredictor
from ..data import (
    FilledRows,
    LinearMap,
    QuantileMap,
    ReadOptions,
    RowSource,
    Standardizer,
    Table,
    as_rows,
    check_finite,
    is_table,
)
from ..data.tables.column_reading import TEXT_COLUMN, ColumnReading
from ..data.tables.records import is_records
from ..engines import Engine
from ..kernels import Kernel
from ..losses.base import Link
from .cells import CellCenters
from .uncertainty.factors import Variance
from .uncertainty.probabilities import Probabilities, Shares, likeliest

Label = str | int | float | bool


class Model(ABC):
    """A function of rows that predicts t targets; immutable, and saved in a file without pickle.

    Attributes
    ----------
    feature_names : tuple of d str, or None
        Names of the columns that are selected from tables; rows with names must have these.
    classes : tuple of labels, or None
        Labels of a classifier, which has one target for two classes, else one per class.
    encoding : Encoding or None
        Encoding of the columns of a table as numbers: the model then predicts tables.
    target : tuple of str, or None
        Names of the columns that are predicted.
    info : mapping
        Further facts, as JSON.
    probabilities : Probabilities or None
        Map from decision values to probabilities; None in a classifier means `Shares` with power 1.
    conformal : ConformalPredictor or None
        Calibration of prediction intervals, or of sets of classes.
    reading : ReadOptions or None
        How the table of the training was read, if new files could be read in another way.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # every subclass is a dataclass

    feature_names: tuple[str, ...] | None
    classes: tuple[Label, ...] | None
    encoding: data.Encoding | None
    target: tuple[str, ...] | None
    info: Mapping[str, Any]
    probabilities: Probabilities | None
    conformal: ConformalPredictor | None
    reading: ReadOptions | None

    @property
    @abstractmethod
    def parts(self) -> tuple[KernelPart, ...]:
        """The kernel models of an average; a single kernel model is its only part."""

    @property
    def shares(self) -> tuple[float, ...]:
        """The weight of each of `parts`; the weights sum to 1."""
        return (1.0,)

    @property
    def features(self) -> int:
        """Number d of features that rows must have; with an encoding, of encoded rows."""
        return self.parts[0].features

    @property
    def outputs(self) -> int:
        """Number t of targets."""
        return self.parts[0].outputs

    @abstractmethod
    def predict(
        self, X: Any, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Array, "n t"]:
        """Return the value of each target at each row, in float64.

        Parameters
        ----------
        X : RowSource, or anything `as_rows` takes; or a table, see `rows`
            n rows of d features, not standardised.
        engine : str or Engine, default="auto"
        memory_bytes : int or str, default=2**30
            Memory for blocks, as a number or like "500MB".

        Returns
        -------
        Array of shape (n, t)
            Predictions; for a classifier, decision values.
        """

    def deviations(
        self,
        X: Any,
        *,
        engine: str | Engine = "auto",
        memory_bytes: int | str = 1 << 30,
        by_errors: bool = False,
    ) -> Float[Array, "n t"]:
        """Return the standard deviations of new observations of each target, in float64.

        Parameters
        ----------
        X, engine, memory_bytes : as in `predict`
        by_errors : bool, default=False
            Whether they follow the size of errors nearby, see `ErrorScale`, not only the distance.

        Returns
        -------
        Array of shape (n, t)
            Standard deviations in the units of the targets, see `Variance`. For an average: the
            root of the mean variance of its models.

        Raises
        ------
        ValueError
            If the model has no variance; as in `predict`.
        """
        from .uncertainty.deviations import deviations  # which imports this module

        memory = as_bytes(memory_bytes, "memory_bytes")
        return deviations(self, self.rows(X), engine, memory, by_errors=by_errors)

    def out_of_range(
        self, X: Any, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Bool[Array, " n"]:
        """Return a mask of rows so far from the training rows that errors may have any size.

        Parameters
        ----------
        X, engine, memory_bytes : as in `predict`

        Returns
        -------
        Array of shape (n,)
            Whether the variance exceeds the leave-one-out variance of 99 in 100 training rows.

        Raises
        ------
        ValueError
            If the model has no variance; as in `predict`.
        """
        from .uncertainty.deviations import out_of_range  # which imports this module

        memory = as_bytes(memory_bytes, "memory_bytes")
        return out_of_range(self, self.rows(X), engine, memory)

    @abstractmethod
    def gradient(
        self, X: Any, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Array, "n t d"]:
        """Return the gradients of the predictions, in float64.

        Parameters
        ----------
        X, engine, memory_bytes : as in `predict`

        Returns
        -------
        Array of shape (n, t, d)
            Gradients with respect to the d features of X, in their units; for a table with an
            encoding, with respect to the encoded features, named in ``encoding.feature_names``.

        Raises
        ------
        ValueError
            As in `predict`; if the kernel has no gradients, or the rows are sparse.
        """

    @abstractmethod
    def feature_importances(
        self, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Array, " d"]:
        """Return the share of each feature in the variation of the predictions, with sum 1.

        Parameters
        ----------
        engine, memory_bytes : as in `predict`

        Returns
        -------
        Array of shape (d,)
            Shares in float64; all zero if the predictions do not vary.
        """

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write the model to one safetensors file with a JSON header; nothing is pickled.

        Parameters
        ----------
        path : str or Path
            Replaced only once the new file is complete. The permissions stay; the target of a
            symbolic link is replaced.

        Raises
        ------
        OSError
            If it cannot be written; an earlier file is unchanged.
        ValueError
            If its parts are inconsistent, so that `load_model` would raise an error.
        """

    def predict_labels(self, X: Any, **settings: Any) -> list[Label]:
        """Return the predicted class of each row; see `predict` for the arguments."""
        if self.classes is None:
            raise ValueError("this model is a regression and has no classes; use predict")
        return [self.classes[i] for i in likeliest(self.predict(X, **settings)).tolist()]

    def predict_proba(self, X: Any, **settings: Any) -> Float[Array, "n k"]:
        """Return the probability of each class at each row, in the order of `classes`.

        Parameters
        ----------
        X : as in `predict`
        **settings
            Engine and memory, as in `predict`.

        Returns
        -------
        Array of shape (n, k)
            Probabilities in float64; rows sum to one.

        Raises
        ------
        ValueError
            If this is a regression; as in `predict`.
        """
        return self.class_map(self.predict(X, **settings))

    @property
    def class_map(self) -> Probabilities:
        """The map from decision values to probabilities; a regression raises ValueError."""
        if self.classes is None:
            raise ValueError("this model is a regression and has no probabilities; use predict")
        return Shares() if self.probabilities is None else self.probabilities

    def rows(self, X: Any) -> RowSource:
        """Return rows for predictions. Columns of a table are selected by name.

        Parameters
        ----------
        X : a table as `as_table` takes, a path, or anything `as_rows` takes
            A table may have its columns in any order, and more columns; of a mapping or a list of
            mappings, others than in training are an error. If the model has an encoding, rows that
            are no table must be encoded already.

        Raises
        ------
        TypeError
            If the model has an encoding, and X no columns with names, or the reverse.
        ValueError
            If a column is missing, or one of its values cannot be used.
        """
        if self.encoding is not None:
            # A row source is encoded already, such as the blocks that workers of a cluster predict.
            if isinstance(X, RowSource):
                return X
            if not is_table(X) and self.encoding.takes_numbers:
                standardizer = self.encoding.standardizer()
                return as_rows(X) if standardizer is None else standardizer.apply(as_rows(X))
            if not is_table(X):
                names = join_words(self.encoding.names)
                raise TypeError(
                    f"X must be a path or a table with the columns {names}, as in training, not of "
                    f"type {type(X).__name__}"
                )
            table = self.table(X)
            rows: RowSource = self.encoding.rows(table)
            column_names = [column.name for column in self.encoding.columns]
        elif self.feature_names is None or not is_table(X):
            _refuse_records(X)
            return as_rows(X)
        else:
            table, column_names = self.table(X), list(self.feature_names)
            rows = self.fill_gaps(table.rows(self.feature_names), self.feature_names, table.where)
        if is_records(X):
            _check_known(table, [*column_names, *(self.target or ())])
        return rows

    def fill_gaps(self, rows: RowSource, names: Sequence[str], where: str = "X") -> RowSource:
        """Return rows of numbers whose gaps are filled with the medians of the training rows.

        Parameters
        ----------
        rows : RowSource of shape (n, d)
        names : sequence of d str
        where : str
            Subject of errors, and of the warning about the gaps.

        Raises
        ------
        ValueError
            If a number is infinite, or missing where the model has no medians: the rows are sparse
            or on other machines, or it was fitted to an array.
        """
        medians = self.parts[0].medians
        if medians is None or rows.sparse or not rows.fits():
            check_finite(rows, where)
            return rows
        return FilledRows(rows, medians, names, where)

    def table(self, X: Any, read: Mapping[str, Any] | None = None) -> Table:
        """Return the table for predictions, by `as_table`.

        Parameters
        ----------
        X : as in `as_table`
        read : mapping, optional
            Options of `ReadOptions` in which X differs from the table of the training.

        Notes
        -----
        A file of text is read as the training table was. Columns that were levels, or labels, are
        text, because in a file of a few rows all levels may look like numbers.
        """
        options = self._options
        if read:
            # Options for this file overrule the readings of columns in training.
            readings = {
                name: c for name, c in options.columns.items() if c == TEXT_COLUMN or c.mark
            }
            options = replace(options, **{**read, "strict": False, "columns": readings})
        from ..data.sources.odd_values import report_odd_values  # predictions of arrays need none

        table = data.as_table(X, options=options)
        report_odd_values(table, () if self.encoding is None else self.encoding.names)
        return table

    @cached_property
    def _options(self) -> ReadOptions:
        """The options for reading new tables."""
        reading = ReadOptions(is_stored=True) if self.reading is None else self.reading
        return replace(reading, columns=self._column_readings(reading))

    def _column_readings(self, reading: ReadOptions) -> dict[str, ColumnReading]:
        """Return how columns of a new file of text are read."""
        labels = self.classes is not None and all(isinstance(k, str) for k in self.classes)
        columns = dict.fromkeys(self.target or () if labels else (), TEXT_COLUMN)
        if reading.decimal is not None:
            numbers = self.feature_names or ()
            if self.encoding is not None:
                used = self.encoding.used_columns
                numbers = tuple(column.name for column in used if column.kind == "number")
            written = ColumnReading(f"1{reading.decimal}5")
            columns |= {name: written for name in numbers if name not in reading.types}
        return columns if self.encoding is None else columns | self.encoding.column_readings


def _refuse_records(X: Any) -> None:
    if is_records(X):
        raise TypeError(
            "X has columns by name, but the model was fitted to rows without names; give an array "
            "with a row of numbers for each prediction, in the order of the training"
        )


def _check_known(table: Table, known: Sequence[str]) -> None:
    """Raise ValueError for columns of records that the training did not have."""
    unknown = [name for name in table.names if name not in known]
    if unknown:
        raise ValueError(
            f"{table.where} has a column {join_words(unknown)}, which the training did not have"
            f"{did_you_mean(unknown[0], known)}; leave it out"
        )


@dataclass(frozen=True)
class KernelPart(Model):
    """Kernel, centers, coefficients and maps of a `KernelModel`, without its predictions."""

    kernel: Kernel
    centers: Any  # a RowSource once constructed
    coef: Float[Array, "m t"]
    standardizer: Standardizer | None = None
    target_shift: Float[Array, " t"] | None = None
    target_scale: Float[Array, " t"] | None = None
    feature_names: tuple[str, ...] | None = None
    classes: tuple[Label, ...] | None = None
    encoding: data.Encoding | None = None
    target: tuple[str, ...] | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    quantiles: QuantileMap | None = None
    metric: LinearMap | None = None
    importances: Float[Array, " d"] | None = None
    cells: CellCenters | None = None
    probabilities: Probabilities | None = None
    link: Link | None = None
    variance: Variance | None = None
    conformal: ConformalPredictor | None = None
    medians: Float[Array, " d"] | None = None
    reading: ReadOptions | None = None

    @abstractmethod
    def prepare_rows(self, rows: RowSource) -> RowSource:
        """Check new rows, and map them in the same way as the training rows.

        The maps are the standardizer, the quantile map and the metric, if the model has them.
        """
