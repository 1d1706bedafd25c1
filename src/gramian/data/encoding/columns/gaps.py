"""Replacement of missing numbers, and marks of the gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..moments import Summary
from ..saved import Saved
from .base import Part


@dataclass(frozen=True)
class Gaps:
    """Value that fills the gaps of a column, which are marked by a feature of 0 and 1.

    Attributes
    ----------
    count : int
        Gaps in the training rows. If there were none, no feature marks them later.
    fill : float
        The median of the training rows.
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
