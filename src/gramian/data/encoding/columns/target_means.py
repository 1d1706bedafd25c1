"""Categories of many levels: means of the targets, and frequency."""

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


@dataclass(frozen=True, eq=False)
class TargetMeans(ColumnEncoding):
    """Encoding of levels: smoothed means of each target, and log(1 + count).

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
    """

    code: ClassVar[str] = "target means"
    name: str
    levels: Levels
    means: Array
    counts: Array
    mean: tuple[float, ...]
    scale: tuple[float, ...]

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
        )  # fmt: skip

    @property
    def kind(self) -> Kind:
        return "category"

    @property
    def features(self) -> tuple[str, ...]:
        t = self.means.shape[1]
        numbered = [f"{self.name} (mean {j + 1})" for j in range(t)]
        means = [f"{self.name} (mean)"] if t == 1 else numbered
        return (*means, f"{self.name} (log count)")

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
        scaled: np.ndarray = (np.column_stack([means, logs]) - self.mean) / self.scale
        return scaled

    def describe(self) -> str:
        gap = ", one of them for missing values" if self.levels.missing else ""
        what = "target means and log count" if self.means.shape[1] else "log count"
        return f"category of {len(self.levels):,} levels{gap}: {what}"

    def to_dict(self) -> dict[str, Any]:
        numbers = {"mean": list(self.mean), "scale": list(self.scale)}
        return {"name": self.name, "missing": self.levels.missing, **numbers}

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
        return cls(saved.text("name"), levels, means, counts, mean, scale)
