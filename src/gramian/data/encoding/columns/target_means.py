"""Categories of many levels: means of the targets, frequency, and columns of frequent levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from .... import _arrays as xp
from ...._arrays import Array
from ..kinds import Kind
from ..saved import Saved
from .base import ColumnEncoding, Part
from .folded_means import FoldedMeans
from .levels import Levels

COLUMN_LEVELS = 200
"""Number of levels up to which frequent levels have columns in addition to the means.

Levels with equal means may differ in how other features act. Ratios of test errors with these
columns and without, by the defaults of `KernelRidge` with at most 5,000 rows of the tables of
`benchmarks/tables/mixed_sets.py` for development that have such columns: 0.61 (125 countries),
0.90, 0.92, 0.95, 0.97, 1.00 (3 tables), 1.01, 1.02 and 1.02.
"""

COLUMN_ROWS = 3
"""Training rows of a level from which it has a column; a column of one row is that row's target."""


@dataclass(frozen=True, eq=False)
class TargetMeans(ColumnEncoding):
    """Encoding of levels: smoothed means of each target, log(1 + count), and columns.

    Attributes
    ----------
    name : str
    levels : Levels
        The L levels.
    means : ndarray of float64 of shape (L + 1, t)
        The last one is for unknown levels: the mean of all rows.
    counts : ndarray of int64 of shape (L,)
    mean, scale : tuple of float of length t + 1
        Mean and scale of the features in training, where means leave out the row's own target.
    has_columns : bool, default=False
        Whether each frequent level has a column of 0 and 1, not scaled.
    """

    code: ClassVar[str] = "target means"
    name: str
    levels: Levels
    means: Array
    counts: Array
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    has_columns: bool = False

    @classmethod
    def of(cls, name: str, levels: Levels, counts: np.ndarray, folded: FoldedMeans) -> TargetMeans:
        """Return the encoding whose features have mean 0 and scale 1 on the training rows.

        Parameters
        ----------
        name : str
        levels : Levels
        counts : ndarray of int64 of shape (L, f)
            Rows of each level in each fold.
        folded : FoldedMeans
        """
        # Moments of the features over all training rows, computed by level and fold: rows of one
        # cell have equal features.
        weights = counts / counts.sum()
        level_counts = counts.sum(axis=1)
        logs = np.broadcast_to(np.log1p(level_counts)[:, None, None], (*counts.shape, 1))
        values = np.concatenate([folded.without[:-1], logs], axis=2)
        mean = np.einsum("lf,lft->t", weights, values)
        scale = np.sqrt(np.einsum("lf,lft->t", weights, (values - mean) ** 2))
        # A feature that varies by rounding only must not be divided by it.
        scale[scale <= np.finfo(np.float64).eps * 16 * np.abs(mean)] = 1.0
        return cls(
            name, levels, folded.means, level_counts,
            tuple(mean.tolist()), tuple(scale.tolist()),
            has_columns=len(levels) <= COLUMN_LEVELS,
        )  # fmt: skip

    @property
    def kind(self) -> Kind:
        return "category"

    @property
    def column_levels(self) -> list[int]:
        """Indices of the levels that have a column."""
        is_frequent = self.counts >= COLUMN_ROWS
        frequent: list[int] = np.flatnonzero(is_frequent).tolist() if self.has_columns else []
        return frequent

    @property
    def features(self) -> tuple[str, ...]:
        t = self.means.shape[1]
        numbered = [f"{self.name} (mean {j + 1})" for j in range(t)]
        means = [f"{self.name} (mean)"] if t == 1 else numbered
        texts = [f"{self.name}={text}" for text in self.levels.texts] + [f"{self.name} missing"]
        return (*means, f"{self.name} (log count)", *(texts[k] for k in self.column_levels))

    @property
    def level_features(self) -> int:
        return len(self.column_levels)

    def encode(self, column: pa.Array, part: Part) -> np.ndarray:
        codes = self.levels.codes(column, self.name, part.new_values)
        means = self.means[codes]
        if part.folds is not None:
            # Rows that did not count in training are encoded as new ones, by all training rows.
            training = np.flatnonzero(part.folds >= 0)
            without = part.fold_means[self.name]
            means[training] = without[codes[training], part.folds[training]]
        # The code -1 of unknown levels picks the last entry: the overall mean, and the count 0.
        logs = np.log1p(np.append(self.counts, 0))[codes]
        scaled = (np.column_stack([means, logs]) - self.mean) / self.scale
        columns = codes[:, None] == np.array(self.column_levels, np.int64)
        return np.column_stack([scaled, columns])

    def describe(self) -> str:
        gap = ", one of them for missing values" if self.levels.missing else ""
        what = "target means and log count" if self.means.shape[1] else "log count"
        count = len(self.column_levels)
        own = f", one column for each of {count} frequent levels" if count else ""
        return f"category of {len(self.levels):,} levels{gap}: {what}{own}"

    def to_dict(self) -> dict[str, Any]:
        numbers = {"mean": list(self.mean), "scale": list(self.scale)}
        about = {"missing": self.levels.missing, "has_columns": self.has_columns}
        return {"name": self.name, **about, **numbers}

    def tensors(self) -> dict[str, Array]:
        return {"means": self.means, "counts": self.counts, **self.levels.tensors()}

    @classmethod
    def from_saved(cls, saved: Saved) -> TargetMeans:
        levels = Levels.from_tensors(saved, saved.flag("missing"))
        mean, scale = saved.numbers("mean"), saved.numbers("scale", positive=True)
        means = saved.tensor("means", xp.float64, (len(levels) + 1, len(mean) - 1))
        counts = saved.tensor("counts", xp.int64, (len(levels),))
        if len(scale) != len(mean) or bool((counts < 1).any()):
            raise ValueError(
                "counts of an encoding must be at least 1, and scales as many as means"
            )
        # Files of before columns of levels lack the flag.
        has_columns = saved.has("has_columns") and saved.flag("has_columns")
        return cls(saved.text("name"), levels, means, counts, mean, scale, has_columns)
