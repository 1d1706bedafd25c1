"""Columns of booleans: 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ...rows.arrow import to_numpy
from ..kinds import Kind, column_kind
from ..moments import Summary
from ..saved import Saved
from .base import ColumnEncoding, Observer, Part, Seen
from .left_out import CONSTANT_COLUMN, EMPTY_COLUMN, Gaps, LeftOut


@dataclass(frozen=True, eq=False)
class Boolean(ColumnEncoding):
    """Encoding of booleans as 0 and 1, with a second feature that marks gaps.

    - `gaps`: treatment of gaps: the more frequent value fills them.
    """

    code: ClassVar[str] = "boolean"
    kind: ClassVar[Kind] = "boolean"
    name: str
    gaps: Gaps

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, *self.gaps.mark(self.name))

    def encode(self, column: pa.Array, part: Part) -> np.ndarray:
        x = _zero_or_one(column)
        # `to_numpy` makes NaN of nulls.
        gaps = np.isnan(x)
        self.gaps.note(gaps, self.name, part)
        return self.gaps.append_mark(np.where(gaps, self.gaps.fill, x)[:, None], gaps)

    def describe(self) -> str:
        return "boolean, 0 or 1" + self.gaps.describe(f"{self.gaps.fill:g}")

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, **self.gaps.to_dict()}

    @classmethod
    def from_saved(cls, saved: Saved) -> Boolean:
        return cls(saved.text("name"), Gaps.from_saved(saved))


def _zero_or_one(column: pa.Array) -> np.ndarray:
    return to_numpy(column).astype(np.float64)


@column_kind("boolean", "booleans", pa.types.is_boolean)
class BooleanObserver(Observer):
    """Observer of booleans, which learns whether they vary and which value fills gaps."""

    measured = 1

    def see(self, column: pa.Array, seen: Seen) -> Sequence[np.ndarray]:
        return (_zero_or_one(column),)

    def finish(self, summaries: Sequence[Summary]) -> ColumnEncoding:
        (summary,) = summaries
        if summary.value_count == 0:
            return LeftOut(self.name, EMPTY_COLUMN)
        if summary.constant and not summary.gaps:
            return LeftOut(self.name, CONSTANT_COLUMN)
        # The median of 0 and 1 may be 0.5; the fill is a value that booleans have.
        return Boolean(self.name, Gaps(summary.gaps, float(summary.fill > 0.5)))
