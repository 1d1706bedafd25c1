"""Columns that give no features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..kinds import Kind, column_kind
from ..moments import Summary
from ..saved import Saved
from ..settings import Settings
from .base import ColumnEncoding, Observer, Part, Seen

EMPTY_COLUMN = "no value in the training rows"
CONSTANT_COLUMN = "one value in all training rows"
CONSTANT_NUMBER = "one number in all training rows"
IDENTIFIER_TEXT = "a different text in every row, as an identifier has"
FREE_TEXT = "free text, long and seldom the same"
TOO_MANY_LEVELS = "too many texts to be a category"
TEXT_REASONS = (IDENTIFIER_TEXT, FREE_TEXT, TOO_MANY_LEVELS)
"""Reasons that are reported, since texts may be meant to be features."""


@dataclass(frozen=True, eq=False)
class LeftOut(ColumnEncoding):
    """Encoding without features; new tables need not have the column.

    Attributes
    ----------
    name, why : str
    """

    code: ClassVar[str] = "left out"
    name: str
    why: str

    @property
    def plain(self) -> bool:
        """Whether the column is a number that does not vary."""
        return self.why == CONSTANT_NUMBER

    @property
    def kind(self) -> Kind:
        return "nothing"

    @property
    def features(self) -> tuple[str, ...]:
        return ()

    def encode(self, column: pa.Array, part: Part) -> np.ndarray:
        return np.empty((len(column), 0))

    def describe(self) -> str:
        return f"left out: {self.why}"

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "why": self.why}

    @classmethod
    def from_saved(cls, saved: Saved) -> LeftOut:
        return cls(saved.text("name"), saved.text("why"))


@column_kind("nothing", "nothing", pa.types.is_null)
class NothingObserver(Observer):
    """Observer of a column whose type is null: it has no values."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def of(cls, field: pa.Field, kind: Kind, where: str, settings: Settings) -> NothingObserver:
        return cls(field.name)

    def see(self, column: pa.Array, seen: Seen) -> Sequence[np.ndarray]:
        return ()

    def finish(self, summaries: Sequence[Summary]) -> ColumnEncoding:
        return LeftOut(self.name, EMPTY_COLUMN)
