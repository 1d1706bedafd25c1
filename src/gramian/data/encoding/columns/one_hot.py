"""Encoding of categories with a feature of 0 and 1 for each level, and one for rare levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..kinds import Kind
from ..saved import Saved
from .base import ColumnEncoding, Part
from .levels import Levels

FEW_LEVELS = 20
"""Number of levels up to which rare levels have columns of their own."""

COLUMN_ROWS = 3
"""Training rows of a level from which it has a column; a column of one row is that row's target."""


@dataclass(frozen=True, eq=False)
class OneHot(ColumnEncoding):
    """One feature of 0 and 1 for each level, not scaled; an unknown level has only zeros.

    Attributes
    ----------
    name : str
    levels : Levels
    rare : frozenset of int, default=frozenset()
        Positions of the levels that share the last feature.
    """

    code: ClassVar[str] = "one hot"
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
    def kind(self) -> Kind:
        return "category"

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
