"""Levels of a category, and its encoding with a feature of 0 and 1 for each level."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from .... import _arrays as xp
from ...._arrays import Array
from ...tables.new_values import NewValues
from ..kinds import Kind
from ..saved import Saved
from ..values import encode_levels
from .base import ColumnEncoding, Part


@dataclass(frozen=True)
class Levels:
    """Texts of a category.

    - `missing`: whether a missing value is a level, too: the last one.
    """

    texts: tuple[str, ...]
    missing: bool = False

    def __len__(self) -> int:
        """Return the number of levels."""
        return len(self.texts) + self.missing

    @cached_property
    def _places(self) -> dict[str | None, int]:
        places: dict[str | None, int] = {text: place for place, text in enumerate(self.texts)}
        return {**places, None: len(self.texts)} if self.missing else places

    def codes(
        self, column: pa.Array, name: str = "", new_values: NewValues | None = None
    ) -> np.ndarray:
        """Return the level of each value; -1 for unknown values.

        - `column`, pyarrow.Array of length b.
        - `name`: of the column, for `new_values`.
        - `new_values`: counts unknown values, and missing ones unless these are a level.
        """
        texts, index = encode_levels(column)
        places = [self._places.get(text, -1) for text in (*texts, None)]
        # The place -1 of missing values is the last entry of `places`, which is for None.
        codes: np.ndarray = np.array(places, np.int64)[index]
        if new_values is not None:
            is_unknown, is_text = codes < 0, index >= 0
            new_values.add_gaps(name, is_unknown & ~is_text)
            unknown = index[is_unknown & is_text]
            new_values.add_levels(name, texts, unknown, int(np.count_nonzero(is_text)))
        return codes

    def tensors(self) -> dict[str, Array]:
        """Return the concatenated texts as bytes, and the end of each text."""
        parts = [text.encode() for text in self.texts]
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        return {"texts": np.frombuffer(b"".join(parts), np.uint8), "ends": ends}

    @classmethod
    def from_tensors(cls, saved: Saved, missing: bool) -> Levels:
        """Rebuild from the result of `tensors`; raise ValueError if it is damaged."""
        data = saved.tensor("texts", xp.uint8, (None,)).tobytes()
        ends = saved.tensor("ends", xp.int64, (None,))
        starts = np.concatenate([[0], ends[:-1]])
        if len(ends) == 0 or ends[-1] != len(data) or (ends < starts).any():
            raise ValueError("the levels of an encoding are damaged")
        places = zip(starts.tolist(), ends.tolist(), strict=True)
        texts = tuple(data[start:end].decode() for start, end in places)
        # Means and counts are stored in the order of the levels, which must be the one they were
        # saved in.
        if any(a >= b for a, b in pairwise(texts)):
            raise ValueError("the levels of an encoding must be sorted and distinct")
        return cls(texts, missing)


FEW_LEVELS = 20
"""Number of levels up to which rare levels have columns of their own."""

COLUMN_ROWS = 3
"""Training rows of a level from which it has a column; a column of one row is that row's target."""


@dataclass(frozen=True, eq=False)
class OneHot(ColumnEncoding):
    """One feature of 0 and 1 for each level, not scaled; an unknown level has only zeros.

    - `rare`: positions of the levels that share the last feature.
    """

    code: ClassVar[str] = "one hot"
    kind: ClassVar[Kind] = "category"
    name: str
    levels: Levels
    rare: frozenset[int] = frozenset()

    @classmethod
    def of(cls, name: str, levels: Levels, counts: np.ndarray) -> OneHot:
        """Return the encoding of levels with these numbers of rows.

        Of more than `FEW_LEVELS` levels, the ones of fewer than `COLUMN_ROWS` rows are rare.
        """
        rare: list[int] = np.flatnonzero(counts < COLUMN_ROWS).tolist()
        return cls(name, levels, frozenset(rare if len(levels) > FEW_LEVELS else ()))

    @property
    def features(self) -> tuple[str, ...]:
        gap = (f"{self.name} missing",) if self.levels.missing else ()
        names = (*(f"{self.name}={text}" for text in self.levels.texts), *gap)
        frequent = [name for k, name in enumerate(names) if k not in self.rare]
        return (*frequent, *((f"{self.name} (rare)",) if self.rare else ()))

    @property
    def level_features(self) -> int:
        return len(self._places) - len(self.rare) + bool(self.rare)

    @cached_property
    def _places(self) -> np.ndarray:
        """Feature of each level."""
        is_rare = np.isin(np.arange(len(self.levels)), list(self.rare))
        return np.where(is_rare, np.count_nonzero(~is_rare), np.cumsum(~is_rare) - 1)

    def encode(self, column: pa.Array, part: Part) -> np.ndarray:
        k = self.level_features
        # The last row is for unknown levels, whose code is -1.
        places = np.append(self._places, k)
        features: np.ndarray = np.eye(k + 1, k)[
            places[self.levels.codes(column, self.name, part.new_values)]
        ]
        return features

    def describe(self) -> str:
        gap = ", one of them for missing values" if self.levels.missing else ""
        rare = f", one for {len(self.rare)} rare levels" if self.rare else ""
        return f"category of {len(self.levels)} levels, one column each{rare}{gap}"

    def to_dict(self) -> dict[str, Any]:
        missing = self.levels.missing
        rare = {"rare": sorted(self.rare)} if self.rare else {}
        return {"name": self.name, "levels": list(self.levels.texts), "missing": missing, **rare}

    @classmethod
    def from_saved(cls, saved: Saved) -> OneHot:
        levels = Levels(saved.texts("levels"), saved.flag("missing"))
        if len(levels) == 0:
            raise ValueError("levels of an encoding must have at least one level, got none")
        rare = [int(k) for k in saved.numbers("rare")] if saved.has("rare") else []
        if rare != sorted(set(rare)) or not set(rare) <= set(range(len(levels))):
            raise ValueError("rare levels of an encoding must be positions of levels")
        return cls(saved.text("name"), levels, frozenset(rare))
