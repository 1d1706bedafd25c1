"""The abstract encoding of a column, the abstract observer that learns it, and their files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from .... import _arrays as xp
from ...._arrays import Array
from ...._messages.errors import Text
from ...tables.column_reading import ColumnReading
from ...tables.new_values import NewValues
from ..kinds import Kind
from ..moments import Summary
from ..saved import Saved
from ..settings import Settings


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a table.

    - `where`: the table, for error messages.
    - `rows`, ndarray of int64 of shape (b,): indices of the rows in the table.
    - `folds`, ndarray of int8 of shape (b,), or None: folds of training rows; -1 for others. None:
      there are no training rows.
    - `fold_means`: for columns encoded by means: the means without each fold.
    - `new_values`: counts of gaps and levels that training did not have; None where nobody reports
      them.
    - `first_row`: number of the first row of the table in messages: 2 below a header line.
    """

    where: str
    rows: np.ndarray
    folds: np.ndarray | None = None
    fold_means: Mapping[str, np.ndarray] = field(default_factory=dict)
    new_values: NewValues | None = None
    first_row: int = 0


ENCODING_OF_CODE: dict[str, type[ColumnEncoding]] = {}
"""Classes of encodings by their codes in files; each class adds itself."""


class ColumnEncoding(ABC):
    """Encoding of one column; immutable.

    - `code`: name of the class in a file.
    - `kind`: kind of column that it was learned from.
    """

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        ENCODING_OF_CODE[cls.code] = cls

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # every subclass is a dataclass

    code: ClassVar[str]
    kind: ClassVar[Kind]
    name: str

    @property
    @abstractmethod
    def features(self) -> tuple[str, ...]:
        """Names of the features of the column."""

    @property
    def level_features(self) -> int:
        """Number of features, the last ones, that are 1 in the rows of a level and else 0."""
        return 0

    @abstractmethod
    def encode(self, column: pa.Array, part: Part) -> np.ndarray:
        """Return the features of some rows, of shape (b, k), in float64.

        Raise ValueError if a value cannot be used; the message names column and row.
        """

    @abstractmethod
    def describe(self) -> str:
        """Return the treatment of the column, in words."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are not tensors, for JSON."""

    def tensors(self) -> dict[str, Array]:
        """Return the fields that are too large for JSON, as arrays."""
        return {}

    @classmethod
    @abstractmethod
    def from_saved(cls, saved: Saved) -> ColumnEncoding:
        """Rebuild from `to_dict` and `tensors`; raise ValueError if they are damaged."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Rows from which an encoding is learned.

    - `targets`, ndarray of float64 of shape (b, t); `folds`, ndarray of int8 of shape (b,).
    """

    part: Part
    targets: np.ndarray
    folds: np.ndarray


class Observer(ABC):
    """Observer of a column, batch after batch, that chooses its encoding.

    - `where`: the table, for error messages.
    - `measured`: number of numeric columns whose moments the encoding needs.
    - `without`: means of the targets without each fold, after `finish`.
    - `offered`, `offered_levels`: parts of the calendar that dates offer after `finish`; see
      `columns.datetime.offers`.
    """

    measured: int = 0
    without: np.ndarray | None = None
    offered: tuple[str, ...] = ()
    offered_levels: tuple[str, ...] = ()

    def __init__(self, field: pa.Field, kind: Kind, where: str, settings: Settings) -> None:
        self.name: str = field.name
        self.field, self.kind, self.where, self.settings = field, kind, where, settings

    @abstractmethod
    def see(self, column: pa.Array, seen: Seen) -> Sequence[np.ndarray]:
        """Observe some rows; return `measured` arrays of finite numbers, with NaN for gaps."""

    @abstractmethod
    def finish(self, summaries: Sequence[Summary]) -> ColumnEncoding:
        """Return the encoding; ValueError if the column cannot be used."""


def refuse(part: Part, name: str, bad: np.ndarray, what: str, remedy: str | Text) -> None:
    """Raise a ValueError that names column and row, if any value is bad.

    - `bad`, ndarray of bool of shape (b,).
    - `what`, `remedy`: the observation, and the remedy.
    """
    if bad.any():
        # The number in the whole table, whatever the batch.
        row = part.first_row + int(part.rows[int(bad.argmax())])
        text = Text(
            "{}: column '{}' {} in row {}{}; {}",
            part.where, name, what, row, " (the header line is row 1)" * bool(part.first_row),
            remedy,
        )  # fmt: skip
        raise ValueError(text)


DTYPE_OF_NAME = {"float32": xp.float32, "float64": xp.float64}


def columns_from_parts(
    fields: Any, tensors: Mapping[str, Array]
) -> tuple[tuple[ColumnEncoding, ...], xp.DType]:
    """Rebuild the columns and the dtype of an encoding; ValueError if its parts are damaged."""
    if not isinstance(fields, dict) or set(fields) - {"readings"} != {"dtype", "columns"}:
        raise ValueError("an encoding must be an object of dtype, columns and readings")
    saved = fields["columns"]
    if fields["dtype"] not in DTYPE_OF_NAME or not isinstance(saved, list):
        raise ValueError("an encoding must have a dtype, float32 or float64, and a list of columns")
    parts: dict[str, dict[str, Array]] = {str(j): {} for j in range(len(saved))}
    for name, tensor in tensors.items():
        # Tensors are named by the number of their column: names of columns may have any characters.
        number, _, key = name.partition(".")
        if number not in parts:
            raise ValueError(f"an encoding of {len(saved)} columns has the tensor {name}")
        parts[number][key] = tensor
    columns = [_column(saved_column, parts[str(j)]) for j, saved_column in enumerate(saved)]
    return tuple(columns), DTYPE_OF_NAME[fields["dtype"]]


def readings_from_parts(fields: Mapping[str, Any]) -> dict[str, ColumnReading]:
    """Rebuild how columns of text are read; ValueError if they are damaged."""
    saved = fields.get("readings", {})
    if not isinstance(saved, dict):
        raise ValueError("the readings of an encoding must be an object")
    return {name: ColumnReading.from_dict(reading) for name, reading in saved.items()}


def _column(fields: Any, tensors: Mapping[str, Array]) -> ColumnEncoding:
    saved = Saved(fields, tensors)
    encoding = ENCODING_OF_CODE[saved.one_of("code", tuple(ENCODING_OF_CODE))].from_saved(saved)
    # A field that no class asked for is damage, or of a newer version: using the rest would be
    # wrong.
    saved.finish()
    return encoding
