"""Encoding of ordered categories by the rank of a level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..kinds import Kind, are_categories, column_kind
from ..moments import Summary
from ..saved import Saved
from ..values import encode_levels
from .base import ColumnEncoding, Observer, Part, Seen, refuse
from .left_out import CONSTANT_COLUMN, EMPTY_COLUMN, Gaps, LeftOut
from .one_hot import Levels


@dataclass(frozen=True, eq=False)
class Ordered(ColumnEncoding):
    """Encoding by standardised ranks, with a feature of 0 and 1 that marks gaps.

    - `levels`: levels in their order, including levels without training rows.
    - `mean`, `scale`: mean and scale of the ranks 0, 1, ... in the training rows.
    """

    code: ClassVar[str] = "ordered"
    kind: ClassVar[Kind] = "ordered"
    name: str
    levels: Levels
    mean: float
    scale: float
    gaps: Gaps

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, *self.gaps.mark(self.name))

    def encode(self, column: pa.Array, part: Part) -> np.ndarray:
        texts, index = encode_levels(column)
        gaps = index < 0
        ranks = self.levels.codes(column)
        unknown = (ranks < 0) & ~gaps
        if unknown.any():
            text = texts[index[unknown.argmax()]]
            refuse(
                part, self.name, unknown, f"is {text!r}",
                "a level that training did not have has no rank; leave it empty, or drop the row",
            )  # fmt: skip
        self.gaps.note(gaps, self.name, part)
        filled = np.where(gaps, self.gaps.fill, ranks)
        return self.gaps.append_mark(((filled - self.mean) / self.scale)[:, None], gaps)

    def describe(self) -> str:
        gap = self.gaps.describe(f"rank {self.gaps.fill:g}")
        return f"ordered category of {len(self.levels)} levels: rank, standardised{gap}"

    def to_dict(self) -> dict[str, Any]:
        numbers = {"mean": self.mean, "scale": self.scale, **self.gaps.to_dict()}
        return {"name": self.name, "levels": list(self.levels.texts), **numbers}

    @classmethod
    def from_saved(cls, saved: Saved) -> Ordered:
        levels = Levels(saved.texts("levels"))
        mean, scale = saved.number("mean"), saved.number("scale", positive=True)
        return cls(saved.text("name"), levels, mean, scale, Gaps.from_saved(saved))


@column_kind("ordered", "ordered categories", lambda type_: are_categories(type_) and type_.ordered)
class OrderedObserver(Observer):
    """Observer of ordered categories, whose order the column declares."""

    measured = 1
    _levels = Levels(())

    def see(self, column: pa.Array, seen: Seen) -> Sequence[np.ndarray]:
        # Each category once, so that `encode_levels` returns all of them, not only the ones that
        # rows have.
        every_value = pa.DictionaryArray.from_arrays(
            pa.array(range(len(column.dictionary)), pa.int32()), column.dictionary
        )
        declared = tuple(text for text in encode_levels(every_value)[0] if text is not None)
        # Each batch declares its categories: later ones may add levels at the end, but not change
        # the order. One list must be the beginning of the other.
        short, long = sorted((self._levels.texts, declared), key=len)
        if long[: len(short)] != short:
            raise ValueError(
                f"{self.where}: the order of the categories of column '{self.name}' differs "
                "between parts of the table; declare one order, or convert the column to text"
            )
        if len(declared) > len(self._levels):
            self._levels = Levels(declared)
        ranks = self._levels.codes(column)
        return (np.where(ranks < 0, np.nan, ranks),)

    def finish(self, summaries: Sequence[Summary]) -> ColumnEncoding:
        (summary,) = summaries
        if summary.value_count == 0:
            return LeftOut(self.name, EMPTY_COLUMN)
        if summary.constant and not summary.gaps:
            return LeftOut(self.name, CONSTANT_COLUMN)
        gaps = Gaps.of(summary)
        return Ordered(self.name, self._levels, summary.mean, summary.scale, gaps)
