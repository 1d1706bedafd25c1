"""Encoding of categories of few levels, with a feature of 0 and 1 for each level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..kinds import Kind
from ..saved import Saved
from .base import ColumnEncoding, Part
from .levels import Levels


@dataclass(frozen=True, eq=False)
class OneHot(ColumnEncoding):
    """One feature of 0 and 1 for each level, not scaled; an unknown level has only zeros.

    Attributes
    ----------
    name : str
    levels : Levels
    """

    code: ClassVar[str] = "one hot"
    name: str
    levels: Levels

    @property
    def kind(self) -> Kind:
        return "category"

    @property
    def features(self) -> tuple[str, ...]:
        gap = (f"{self.name} missing",) if self.levels.missing else ()
        return (*(f"{self.name}={text}" for text in self.levels.texts), *gap)

    @property
    def level_features(self) -> int:
        return len(self.levels)

    def encode(self, column: pa.Array, part: Part) -> np.ndarray:
        k = len(self.levels)
        # The last row, -1, is for unknown levels.
        features: np.ndarray = np.eye(k + 1, k)[
            self.levels.codes(column, self.name, part.new_values)
        ]
        return features

    def describe(self) -> str:
        gap = ", one of them for missing values" if self.levels.missing else ""
        return f"category of {len(self.levels)} levels, one column each{gap}"

    def to_dict(self) -> dict[str, Any]:
        missing = self.levels.missing
        return {"name": self.name, "levels": list(self.levels.texts), "missing": missing}

    @classmethod
    def from_saved(cls, saved: Saved) -> OneHot:
        levels = Levels(saved.texts("levels"), saved.flag("missing"))
        if len(levels) == 0:
            raise ValueError("levels of an encoding must have at least one level, got none")
        return cls(saved.text("name"), levels)
