"""Encoding of the columns of a table, and the rows of features that it makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._messages.checks import join_words
from ..maps.standardizer import Standardizer
from ..rows import arrow_compute as pc
from ..rows.arrow import check_columns
from ..rows.base import RowSource, check_index, check_size
from ..rows.prefetch import fill_blocks, prefetch
from ..tables.base import Table
from ..tables.column_reading import TEXT_COLUMN, ColumnReading
from ..tables.new_values import NewValues
from .columns.base import ColumnEncoding, Part, columns_from_parts, readings_from_parts
from .columns.left_out import LeftOut
from .columns.numeric import Number
from .columns.one_hot import OneHot
from .columns.target_means import TargetMeans
from .kinds import COLUMN_KINDS, fits, kind_of

ENCODED_NUMBERS = 1 << 18
"""Values that are encoded at a time, all columns together: 2 MB of float64."""


@dataclass(frozen=True, eq=False)
class Encoding:
    """Encodings of the columns of a table.

    Attributes
    ----------
    columns : tuple of ColumnEncoding
        Encodings in the order of their features.
    dtype : dtype
        Type of the features: float64 if training numbers needed it, else float32.
    readings : mapping of str to ColumnReading
        How the columns of a training file of text were read: marks of numbers, orders of dates,
        texts that stood for gaps. New files are read in the same way.
    """

    columns: tuple[ColumnEncoding, ...]
    dtype: xp.DType
    readings: Mapping[str, ColumnReading] = field(default_factory=dict)

    @cached_property
    def used_columns(self) -> tuple[ColumnEncoding, ...]:
        """Columns that give features."""
        return tuple(column for column in self.columns if not isinstance(column, LeftOut))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that a table must have to be encoded."""
        return tuple(column.name for column in self.used_columns)

    @property
    def column_readings(self) -> dict[str, ColumnReading]:
        """Readings of the columns of a new file of text; categories are read as text."""
        levels = [c.name for c in self.used_columns if c.kind in ("category", "ordered")]
        return {**dict.fromkeys(levels, TEXT_COLUMN), **self.readings}

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, which differ from each other."""
        # A column named `city=Rome` may meet the level Rome of a column `city`.
        return _distinct([feature for column in self.used_columns for feature in column.features])

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def categories(self) -> tuple[tuple[int, int, int], ...]:
        """Positions of the features of each category with columns of levels.

        The first feature, the first column of a level, and one past the last.
        """
        positions, stop = [], 0
        for column in self.used_columns:
            first, stop = stop, stop + len(column.features)
            # A single column is a number like any other.
            if column.level_features > 1:
                positions.append((first, stop - column.level_features, stop))
        return tuple(positions)

    @property
    def plain(self) -> bool:
        """Whether all columns are numbers without gaps, so that a `Standardizer` is equivalent.

        An encoding leaves out numbers that do not vary; a standardizer maps them to zero.
        """
        return not self.readings and all(
            column.plain if isinstance(column, LeftOut) else _is_plain(column)
            for column in self.columns
        )

    def medians(self, row: Float[Array, " d"]) -> Float[Array, " d"]:
        """Return the medians of the columns of a plain encoding, in float64.

        Parameters
        ----------
        row : ndarray of shape (d,)
            A training row, for the columns that do not vary.
        """
        pairs = zip(self.columns, row.tolist(), strict=True)
        values = [c.gaps.fill if isinstance(c, Number) else number for c, number in pairs]
        return np.array(values, np.float64)

    @property
    def takes_numbers(self) -> bool:
        """Whether rows of an array of numbers may be given: only text files need more."""
        return all(_is_plain(column) for column in self.columns)

    def standardizer(self) -> Standardizer | None:
        """Return the map of a plain encoding; None if its numbers stay as they are.

        Raises
        ------
        ValueError
            If the encoding is not plain, or a number does not vary.
        """
        if not self.takes_numbers:
            raise ValueError("only an encoding of numbers without gaps can be a standardizer")
        numbers = [column for column in self.columns if isinstance(column, Number)]
        # The setting is one for all columns, so that one raw column means that all are.
        if any(column.numbers == "raw" for column in numbers):
            return None
        mean, scale = (
            np.array([getattr(column, key) for column in numbers], np.float64)
            for key in ("mean", "scale")
        )
        return Standardizer(mean, scale)

    def rows(self, table: Table) -> EncodedRows:
        """Return the rows of a table as numbers.

        Parameters
        ----------
        table : Table
            Columns are matched by name, in any order; other columns are ignored.

        Raises
        ------
        ValueError
            If the table lacks a column.
        TypeError
            If a column is of another kind than in training.
        """
        return EncodedRows(table, self)

    def check(self, table: Table) -> None:
        """Raise an error if a table lacks a column, or has a column of another kind."""
        check_columns(table.where, table.names, self.names)
        types = dict(zip(table.schema.names, table.schema.types, strict=True))
        for column in self.used_columns:
            type_ = types[column.name]
            # Values of another kind may be gaps alone, or levels that are numbers.
            is_level = isinstance(column, OneHot | TargetMeans) and pa.types.is_integer(type_)
            may_fit = is_level or pa.types.is_floating(type_)
            if not may_fit and not fits(column.kind, kind_of(type_)):
                raise _kind_error(column, type_, table.where)

    def describe(self) -> dict[str, str]:
        """Return the treatment of each column, in words."""
        written = {name: reading.describe() for name, reading in self.readings.items()}
        return {
            column.name: "; ".join(filter(None, (column.describe(), written.get(column.name))))
            for column in self.columns
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are not tensors, for JSON."""
        dtype = xp.dtype_name(self.dtype)
        columns = [{"code": column.code, **column.to_dict()} for column in self.columns]
        readings = {name: reading.to_dict() for name, reading in self.readings.items()}
        return {"dtype": dtype, "columns": columns, **({"readings": readings} if readings else {})}

    def tensors(self) -> dict[str, Array]:
        """Return the fields that are too large for JSON: means and texts of levels, quantiles."""
        return {
            f"{j}.{key}": value
            for j, column in enumerate(self.columns)
            for key, value in column.tensors().items()
        }

    @classmethod
    def from_parts(cls, fields: Any, tensors: Mapping[str, Array]) -> Encoding:
        """Rebuild from the results of `to_dict` and `tensors`.

        Raises
        ------
        ValueError
            If they are damaged or do not fit together.
        """
        encoding = cls(*columns_from_parts(fields, tensors), readings_from_parts(fields))
        names = [column.name for column in encoding.columns]
        if unknown := set(encoding.readings) - set(names):
            raise ValueError(
                f"an encoding has readings of other columns: {join_words(sorted(unknown))}"
            )
        if len(set(names)) < len(names) or encoding.width == 0:
            raise ValueError("an encoding has a column twice, or no feature")
        return encoding


def _convert_kind(column: ColumnEncoding, values: pa.Array, where: str) -> pa.Array:
    """Return values as the kind of training: pandas has numbers for gaps, and for some levels."""
    if fits(column.kind, kind_of(values.type)):
        return values
    gaps = pc.is_null(values, nan_is_null=True)
    if pc.all(gaps).as_py() is not False:
        return pa.nulls(len(values))
    values = pc.if_else(gaps, pa.scalar(None, values.type), values)
    if isinstance(column, OneHot | TargetMeans):
        is_whole = pc.all(pc.equal(values, pc.floor(values)), skip_nulls=True).as_py()
        numbers = values.cast(pa.int64(), safe=False) if is_whole else values
        texts = numbers.cast(pa.string())
        level_texts = pa.array(column.levels.texts)
        # A number that is the end of a code, such as 7 of 007, may be either of them.
        codes = pc.replace_substring_regex(level_texts, pattern="^0+", replacement="")
        rivals = codes.filter(pc.not_equal(codes, level_texts))
        is_known = pc.and_not(pc.is_in(texts, level_texts), pc.is_in(texts, rivals))
        if pc.all(pc.or_(is_known, texts.is_null())).as_py():
            return texts
    raise _kind_error(column, values.type, where)


def _kind_error(column: ColumnEncoding, type_: pa.DataType, where: str) -> TypeError:
    remedy = ", or read codes such as 007 as text (pandas: dtype=str): as numbers they lose zeros"
    return TypeError(
        f"{where}: column '{column.name}' holds {type_}, but held "
        f"{COLUMN_KINDS[column.kind].words} in training; convert it first"
        + (remedy if column.kind == "category" and pa.types.is_integer(type_) else "")
    )


def _is_plain(one: ColumnEncoding) -> bool:
    return isinstance(one, Number) and one.quantiles is None and not one.gaps.count


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return names, with numbers appended to equal names."""
    distinct_names: dict[str, None] = {}
    for name in names:
        # The numbered name may exist, too, and then gets the next number.
        candidate, k = name, 2
        while candidate in distinct_names:
            candidate, k = f"{name} ({k})", k + 1
        distinct_names[candidate] = None
    return tuple(distinct_names)


class EncodedRows(RowSource):
    """Rows of a table, encoded as they are read.

    Parameters
    ----------
    table : Table of n rows
    encoding : Encoding
    folds : ndarray of int8 of shape (n,), optional
        Folds of training rows; -1 for others.
    without : mapping of str to ndarray, optional
        Means without each fold; see `FittedEncoding`.
    """

    def __init__(
        self,
        table: Table,
        encoding: Encoding,
        folds: np.ndarray | None = None,
        without: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        encoding.check(table)
        self.shape = (table.num_rows, encoding.width)
        self.dtype = encoding.dtype
        self.feature_names: tuple[str, ...] | None = encoding.feature_names
        self.random_access = table.random_access
        self._table, self._encoding = table, encoding
        self._folds, self._without = folds, without or {}
        self._is_reported = folds is not None

    def blocks(self, size: int) -> Iterator[tuple[slice, Float[Array, "b d"]]]:
        check_size(size)
        blocks = self._blocks(size)
        return blocks if self.random_access or size >= len(self) else prefetch(blocks)

    def _blocks(self, size: int) -> Iterator[tuple[slice, Array]]:
        """Encode small batches, so that intermediate arrays stay in the cache."""
        new_values = None if self._is_reported else NewValues(self._table.where)
        batch_rows = max(1, min(size, ENCODED_NUMBERS // max(1, len(self._encoding.names))))
        batches = self._table.batches(self._encoding.names, batch_rows)

        def write(out: Array, batch: pa.RecordBatch, row: int) -> None:
            self._encode(batch, np.arange(row, row + batch.num_rows), out, new_values)

        yield from fill_blocks(batches, write, self.shape, self.dtype, size)
        if new_values is not None and not self._is_reported:
            self._is_reported = True
            new_values.report()

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        check_index(index, self.shape[0])
        rows = xp.to_host(index)
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        self._encode(self._table.take(self._encoding.names, rows), rows, out)
        return out

    def _encode(
        self,
        batch: pa.RecordBatch,
        rows: np.ndarray,
        out: Array,
        new_values: NewValues | None = None,
    ) -> None:
        """Write the features of some rows."""
        # Training rows are known by their numbers, so that `take` and `blocks` agree.
        folds = None if self._folds is None else self._folds[rows]
        table = self._table
        part = Part(table.where, rows, folds, self._without, new_values, table.first_row)
        start = 0
        for column_encoding, column in zip(self._encoding.used_columns, batch.columns, strict=True):
            values = _convert_kind(column_encoding, column, self._table.where)
            features = column_encoding.encode(values, part)
            out[:, start : start + features.shape[1]] = features
            start += features.shape[1]
