"""Groups of rows by a column, for intervals that are calibrated in each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from .. import _arrays as xp
from .. import data
from .._arrays import Array, Float, Int
from .._messages.checks import did_you_mean, join_words
from .._messages.errors import SETTING_FORM, ParameterError
from ..data import RowSource, default_block_size
from ..data.rows.views import column_numbers

LEAST_GROUP_ROWS = 2
"""Calibration rows of a group, in the mean: a column of more values is no group."""


@dataclass(frozen=True, eq=False)
class GroupColumn:
    """The features that name the group of a row.

    - `name`: name of the column, as given by the user.
    - `features`: indices of the features; several for a category with a feature for each level.
    """

    name: str
    features: tuple[int, ...]
    feature_names: tuple[str, ...]

    @classmethod
    def find(
        cls,
        given: str | int,
        rows: RowSource,
        names: tuple[str, ...] | None,
        encoding: data.Encoding | None,
        is_held_out: bool,
    ) -> GroupColumn:
        """Find the column with a name, or the feature with an index.

        - `names`: names of the features.
        - `encoding`: encoding that made these features from the columns of a table.
        - `is_held_out`: whether calibration rows are encoded as new rows are.

        Raise ValueError if there is no such column, rows are sparse, or the encoding of the column
        differs between rows of the fit and new ones.
        """
        if isinstance(given, bool) or not isinstance(given, str | int):
            raise _refusal(given, "is neither the name of a column nor the number of a feature")
        if rows.sparse:
            raise _refusal(given, "needs dense rows, and these are sparse")
        if encoding is None:
            try:
                (number,) = column_numbers([given], names, rows.shape[1])
            except ValueError as error:
                raise _refusal(given, f"is no feature: {error}") from error
            return cls(str(given), (number,), (str(given) if names is None else names[number],))
        return cls._find_encoded(given, encoding, is_held_out)

    @classmethod
    def _find_encoded(
        cls, given: str | int, encoding: data.Encoding, is_held_out: bool
    ) -> GroupColumn:
        is_number = isinstance(given, int) and 0 <= given < len(encoding.names)
        name = encoding.names[int(given)] if is_number else str(given)
        if name not in encoding.names:
            problem = f"is no column that the model uses: it uses {join_words(encoding.names)}"
            raise _refusal(given, problem + did_you_mean(name, encoding.names))
        start = 0
        # A column may have several features, which follow each other: the group of a row is the
        # combination of all of them.
        for column in encoding.used_columns:
            stop = start + len(column.features)
            if column.name == name:
                break
            start = stop
        from ..data.encoding.columns.target_means import TargetMeans  # only tables have an encoding

        # Training rows leave their own fold out of the means: calibration rows and new rows of one
        # level would be in different groups.
        if isinstance(column, TargetMeans) and not is_held_out:
            problem = (
                "is encoded by means of the target in each level, and these means differ between "
                "training rows and new rows"
            )
            raise _refusal(given, problem, "hold rows out with conformal='split'")
        return cls(name, tuple(range(start, stop)), encoding.feature_names[start:stop])

    def values(self, rows: RowSource) -> Float[Array, "n k"]:
        """Return the features of all rows."""
        pick = partial(_pick_features, features=self.features)
        return rows.map(pick, size=default_block_size(rows))

    def learn(self, sources: Sequence[RowSource]) -> RowGroups:
        """Return the groups of calibration rows; ValueError if nearly each row is its own."""
        values = xp.concat([self.values(rows) for rows in sources])
        known_values = xp.unique(values, axis=0)
        # Groups this small could not calibrate any usual level, so that the column is a mistake.
        if len(known_values) * LEAST_GROUP_ROWS > len(values):
            problem = f"has {len(known_values)} values in {len(values)} calibration rows"
            raise _refusal(self.name, problem, "name a column of few values, such as a category")
        return RowGroups(
            self, known_values, tuple(self._label(value) for value in known_values.tolist())
        )

    def _label(self, value: list[float]) -> str:
        if len(value) > 1 and sorted(value) == [0.0] * (len(value) - 1) + [1.0]:
            return self.feature_names[value.index(1.0)]
        return f"{self.name}={', '.join(f'{v:g}' for v in value)}"


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Groups of rows with the same value of a column.

    Attributes
    ----------
    by : GroupColumn
    known_values : Array of shape (g, k)
        The values of each group.
    labels : tuple of g str
    """

    by: GroupColumn
    known_values: Float[Array, "g k"]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.known_values.shape != (len(self.labels), len(self.by.features)):
            raise ValueError(f"values of groups have the shape {tuple(self.known_values.shape)}")

    @property
    def column(self) -> str:
        """The name of the column."""
        return self.by.name

    def codes(self, rows: RowSource) -> Int[Array, " n"]:
        """Return the index of the group of each row; -1 for a value that is in no group."""
        pick = partial(_group_codes, features=self.by.features, known_values=self.known_values)
        return xp.cast(rows.map(pick, size=default_block_size(rows)), xp.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields but the values, for JSON."""
        by = self.by
        features = {"features": list(by.features), "feature_names": list(by.feature_names)}
        return {"column": by.name, **features, "labels": list(self.labels)}

    @classmethod
    def from_dict(cls, entry: dict[str, Any], known_values: Array) -> RowGroups:
        """Rebuild from the result of `to_dict`, and the values."""
        by = GroupColumn(entry["column"], tuple(entry["features"]), tuple(entry["feature_names"]))
        return cls(by, known_values, tuple(entry["labels"]))


def _pick_features(block: Array, features: Sequence[int]) -> Array:
    dense = block if not xp.is_sparse(block) else xp.to_dense(block)
    return dense[:, list(features)]


def _group_codes(block: Array, features: Sequence[int], known_values: Array) -> Array:
    values = _pick_features(block, features)
    if xp.float32 in (values.dtype, known_values.dtype):  # a float64 0.1 is another number
        values, known_values = xp.cast(values, xp.float32), xp.cast(known_values, xp.float32)
    codes = xp.full((len(values),), -1, dtype=xp.int64)
    for code, value in enumerate(known_values):
        codes[(values == value).all(axis=1)] = code
    return codes


def _refusal(given: object, problem: str, remedy: str = "") -> ParameterError:
    return ParameterError("conformal_groups", given, problem, remedy, SETTING_FORM)
