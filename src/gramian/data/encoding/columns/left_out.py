"""Columns that give no features, and gaps of others: values that replace them, and their marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..kinds import Kind, column_kind
from ..moments import Summary
from ..saved import Saved
from .base import ColumnEncoding, Observer, Part, Seen

EMPTY_COLUMN = "no value in the training rows"
CONSTANT_COLUMN = "one value in all training rows"
CONSTANT_NUMBER = "one number in all training rows"
IDENTIFIER_TEXT = "a different text in nearly every row, as an identifier has"
FREE_TEXT = "free text, long and seldom the same"
TOO_MANY_LEVELS = "too many texts to be a category"
TEXT_REASONS = (IDENTIFIER_TEXT, FREE_TEXT, TOO_MANY_LEVELS)
"""Reasons that are reported, since texts may be meant to be features."""


@dataclass(frozen=True, eq=False)
class LeftOut(ColumnEncoding):
    """Encoding without features; new tables need not have the column."""

    code: ClassVar[str] = "left out"
    kind: ClassVar[Kind] = "nothing"
    name: str
    why: str

    @property
    def plain(self) -> bool:
        """Whether the column is a number that does not vary."""
        return self.why == CONSTANT_NUMBER

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

    def see(self, column: pa.Array, seen: Seen) -> Sequence[np.ndarray]:
        return ()

    def finish(self, summaries: Sequence[Summary]) -> ColumnEncoding:
        return LeftOut(self.name, EMPTY_COLUMN)


@dataclass(frozen=True)
class Gaps:
    """Value that fills the gaps of a column, which are marked by a feature of 0 and 1.

    - `count`: gaps in the training rows. If there were none, no feature marks them later.
    - `fill`: the median of the training rows.
    """

    count: int
    fill: float

    @classmethod
    def of(cls, summary: Summary) -> Gaps:
        """Return the treatment of gaps for the training rows."""
        return cls(summary.gaps, summary.fill)

    def mark(self, name: str) -> tuple[str, ...]:
        """Return the name of the feature that marks the gaps, if there is one."""
        return (f"{name} missing",) if self.count else ()

    def note(self, gaps: np.ndarray, name: str, part: Part) -> None:
        """Count the gaps of new rows, for a warning, if the training rows had no gaps."""
        if not self.count and part.new_values is not None:
            part.new_values.add_gaps(name, gaps)

    def append_mark(self, features: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """Return features of shape (b, k), and a column that marks gaps if training had any."""
        return np.column_stack([features, gaps]) if self.count else features

    def describe(self, filled_with: str) -> str:
        """Return the end of a description; empty without gaps."""
        if not self.count:
            return ""
        return f"; {self.count:,} missing filled with the median {filled_with}, and marked"

    def to_dict(self) -> dict[str, int | float]:
        """Return fields for JSON."""
        return {"gaps": self.count, "fill": self.fill}

    @classmethod
    def from_saved(cls, saved: Saved) -> Gaps:
        """Rebuild from the fields of `to_dict`."""
        return cls(saved.count("gaps"), saved.number("fill"))
