"""Encoding: what becomes of each column of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..._checks import listed
from ..maps.standardizer import Standardizer
from ..tables.base import Table, check_columns
from .columns.base import ColumnEncoding
from .columns.folded_means import SMOOTHING
from .columns.left_out import LeftOut
from .columns.numeric import Number, Numbers
from .kinds import WORDS, fits, kind_of
from .learn import Training, learn
from .settings import Settings

if TYPE_CHECKING:
    from .encoded_rows import EncodedRows


from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
    from .encoded_rows import EncodedRows


@dataclass(frozen=True, eq=False)
class Encoding:
    """Encodings of the columns of a table.

    Attributes
    ----------
    columns : tuple of ColumnEncoding
        In the order of their features.
    dtype : torch.dtype
        Of the rows: float64 if numbers of training needed it, else float32.
    """

    columns: tuple[ColumnEncoding, ...]
    dtype: torch.dtype

    @classmethod
    def fit(
        cls,
        table: Table,
        columns: Sequence[str] | None = None,
        targets: np.ndarray | Tensor | None = None,
        *,
        rng: torch.Generator,
        numbers: Numbers = "standard",
        max_levels: int = 20,
        smoothing: float = SMOOTHING,
        keep: np.ndarray | None = None,
        sample_bytes: int | None = None,
    ) -> FittedEncoding:
        """Learn an encoding in one pass over a table.

        Parameters
        ----------
        table : Table of n rows
        columns : sequence of str, optional
            Those that become features; all by default, without the index that pandas may have
            stored along.
        targets : ndarray or Tensor of shape (n,) or (n, t), optional
            Numbers, or codes of classes. Without them a category of many levels gives its log
            count alone.
        rng : torch.Generator
            Draws the folds, and the sample for medians and quantiles.
        numbers : str, default="standard"
            ``"standard"``: mean 0 and scale 1; ``"quantile"``: normal by 1,000 quantiles, ending
            at 3, and standardised again; ``"raw"``: as they are.
        max_levels : int, default=20
            Categories of more levels are encoded by means of the targets.
        smoothing : float, default=20
            Rows of the overall mean that are added to each level.
        keep : ndarray of bool of shape (n,), optional
            Rows that count; held-out rows do not. All by default.
        sample_bytes : int, optional
            What the sample for medians and quantiles may take. It never takes more than 128 MiB,
            nor has more than 100,000 rows.

        Returns
        -------
        FittedEncoding
            The encoding, and what the training rows need so that none sees its own target.

        Raises
        ------
        ValueError, TypeError
            If a column cannot be used; the message names it.

        Notes
        -----
        The result depends on the values, not on how the table is stored: batches have one size,
        levels are in the order of their texts.

        Cost: one pass; a sample of rows; for a category 5 (t + 1) numbers per
        level.
        """
        names = _names(table) if columns is None else list(columns)
        check_columns(table.where, table.names, names)
        settings = Settings(numbers, max_levels, smoothing)
        training = Training.of(table, _targets(targets, table.num_rows), keep, rng)
        learned = learn(training, names, settings, rng, sample_bytes=sample_bytes)
        encoding = cls(learned.columns, learned.dtype)
        if encoding.width == 0 and not encoding.plain:
            said = [f"{name} ({why})" for name, why in encoding.describe().items()]
            raise ValueError(
                f"{table.where} has no column to learn from: {listed(said)}; at least one must vary"
            )
        folds = training.folds if learned.without else None
        return FittedEncoding(encoding, folds, learned.without)

    @cached_property
    def used(self) -> tuple[ColumnEncoding, ...]:
        """Columns that give features."""
        return tuple(one for one in self.columns if not isinstance(one, LeftOut))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that a table must have to be encoded."""
        return tuple(one.name for one in self.used)

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the columns that are levels: a file of text has them as text."""
        return tuple(one.name for one in self.used if one.kind in ("category", "ordered"))

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, which differ from each other."""
        return _distinct([feature for one in self.used for feature in one.features])

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def plain(self) -> bool:
        """Whether all columns are numbers without gaps: a `Standardizer` does the same.

        Numbers that do not vary are left out here, and zero there.
        """
        return all(
            one.plain if isinstance(one, LeftOut) else _is_plain(one) for one in self.columns
        )

    def standardizer(self) -> Standardizer | None:
        """Return the map of a plain encoding; None if its numbers stay as they are.

        Raises
        ------
        ValueError
            If the encoding is not plain, or a number does not vary.
        """
        if not all(_is_plain(one) for one in self.columns):
            raise ValueError("only an encoding of numbers without gaps is a standardizer")
        numbers = [one for one in self.columns if isinstance(one, Number)]
        if any(one.numbers == "raw" for one in numbers):
            return None
        mean, scale = (
            torch.tensor([getattr(one, key) for one in numbers], dtype=torch.float64)
            for key in ("mean", "scale")
        )
        return Standardizer(mean, scale)

    def rows(self, table: Table) -> EncodedRows:
        """Return the rows of a table as numbers.

        Parameters
        ----------
        table : Table
            Columns are taken by name; others may be there, in any order.

        Raises
        ------
        ValueError
            If a column is not there.
        TypeError
            If it is of another kind than in training.
        """
        from .encoded_rows import EncodedRows

        return EncodedRows(table, self)

    def check(self, table: Table) -> None:
        """Refuse a table that lacks a column, or has one of another kind."""
        check_columns(table.where, table.names, self.names)
        for one in self.used:
            type_ = table.schema.field(one.name).type
            if not fits(one.kind, kind_of(type_)):
                raise TypeError(
                    f"{table.where}: column '{one.name}' holds {type_}, but {WORDS[one.kind]} were "
                    "there in training; convert it first"
                )

    def describe(self) -> dict[str, str]:
        """Return the treatment of each column, in words."""
        return {one.name: one.describe() for one in self.columns}

    def to_dict(self) -> dict[str, Any]:
        """Return all but the tensors, for JSON."""
        from .file import to_dict

        return to_dict(self)

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors, which JSON is too long for: means and texts of levels, quantiles."""
        from .file import tensors

        return tensors(self)

    @classmethod
    def from_parts(cls, fields: Any, tensors: Mapping[str, Tensor]) -> Encoding:
        """Rebuild from what `to_dict` and `tensors` gave.

        Raises
        ------
        ValueError
            If they are damaged or do not fit together.
        """
        from .file import from_parts

        return from_parts(fields, tensors)


def _is_plain(one: ColumnEncoding) -> bool:
    return isinstance(one, Number) and one.quantiles is None and not one.gaps.count


def _names(table: Table) -> list[str]:
    return [name for name in table.names if not name.startswith("__index_level_")]


def _targets(targets: np.ndarray | Tensor | None, n: int) -> np.ndarray:
    if targets is None:
        return np.empty((n, 0))
    array = np.asarray(targets, np.float64)
    return array.reshape(len(array), -1)


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return names, numbered where several are alike."""
    found: dict[str, None] = {}
    for name in names:
        other, k = name, 2
        while other in found:
            other, k = f"{name} ({k})", k + 1
        found[other] = None
    return tuple(found)


@dataclass(frozen=True, eq=False)
class FittedEncoding:
    """An encoding, and what its training rows need so that none sees its own target.

    Attributes
    ----------
    encoding : Encoding
        All that predictions need.
    folds : ndarray of int8 of shape (n,), or None
        -1 for rows that did not count. None if no column is encoded by means.
    without : mapping of str to ndarray of shape (L + 1, 5, t)
        Means without each fold, by column.
    """

    encoding: Encoding
    folds: np.ndarray | None
    without: Mapping[str, np.ndarray]

    def training_rows(self, table: Table) -> EncodedRows:
        """Return the rows that were learned from; means do not contain a row's own fold.

        Rows that did not count are encoded as new ones are.
        """
        from .encoded_rows import EncodedRows

        if self.folds is not None and len(self.folds) != table.num_rows:
            raise ValueError(
                f"{table.where} has {table.num_rows:,} rows, but the encoding was learned from "
                f"{len(self.folds):,}"
            )
        return EncodedRows(table, self.encoding, self.folds, self.without)
