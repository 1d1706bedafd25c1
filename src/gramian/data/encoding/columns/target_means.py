"""Categories of many levels: counts and sums in each level, means of the targets, and frequency."""

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
from .one_hot import Levels

MEAN_FOLDS = 5
MOST_LEVELS = 1_000_000
MOST_BYTES = 1 << 26


class TooMany(ValueError):
    """Error for levels that are too many, or too long, to be kept in memory."""


class Tally:
    """Counts and sums of the levels of a column so far.

    - `codes`: rows of the arrays, in the order of appearance; row 0 is for missing values.
    - `counts`, ndarray of int64 of shape (capacity, 5).
    - `sums`, ndarray of float64 of shape (capacity, 5, t).
    """

    def __init__(self) -> None:
        self.codes: dict[str | None, int] = {None: 0}
        self.counts = np.zeros((0, MEAN_FOLDS), np.int64)
        self.sums = np.zeros((0, MEAN_FOLDS, 0))
        self._bytes = 0

    def add(
        self, texts: list[str | None], index: np.ndarray, targets: np.ndarray, folds: np.ndarray
    ) -> None:
        """Count the levels of some rows, and add their targets.

        - `texts`: levels; some may have no row.
        - `index`, ndarray of int64 of shape (b,): positions in `texts`, -1 for missing values.
        - `targets`, ndarray of float64 of shape (b, t); `folds`, ndarray of int8 of shape (b,).

        Raise TooMany if they are too many, or too long.
        """
        present_codes = np.unique(index)
        # The last place, -1, is for missing values, which are row 0.
        places = np.zeros(len(texts) + 1, np.int64)
        # Only texts that rows have get a code: a dictionary may list a million others.
        for place in present_codes[present_codes >= 0].tolist():
            places[place] = self._code(texts[place])
        self._grow(targets.shape[1])
        # Level and fold as one number, so that one `bincount` adds up both.
        cells = places[index] * MEAN_FOLDS + folds
        size = self.counts.size
        self.counts += np.bincount(cells, minlength=size).reshape(-1, MEAN_FOLDS)
        for j in range(targets.shape[1]):
            part = np.bincount(cells, targets[:, j], minlength=size)
            self.sums[:, :, j] += part.reshape(-1, MEAN_FOLDS)

    def _code(self, text: str | None) -> int:
        code = self.codes.setdefault(text, len(self.codes))
        if code == len(self.codes) - 1 and text is not None:
            self._bytes += len(text)
        if len(self.codes) > MOST_LEVELS or self._bytes > MOST_BYTES:
            raise TooMany
        return code

    def _grow(self, targets: int) -> None:
        have, need = len(self.counts), len(self.codes)
        if have < need:
            # Doubled, so that the copies of all growth together cost as much as the last one.
            more = max(need, 2 * have) - have
            self.counts = np.concatenate([self.counts, np.zeros((more, MEAN_FOLDS), np.int64)])
            old = (
                self.sums.reshape(have, MEAN_FOLDS, -1)
                if have
                else np.zeros((0, MEAN_FOLDS, targets))
            )
            self.sums = np.concatenate([old, np.zeros((more, MEAN_FOLDS, targets))])


@dataclass(frozen=True, eq=False)
class TargetMeans(ColumnEncoding):
    """Encoding of levels: smoothed means of each target, and log(1 + count of other rows).

    - `levels`: the L levels.
    - `means`, ndarray of float64 of shape (L + 1, t): the last one is for unknown levels: the mean
      of all rows.
    - `counts`, ndarray of int64 of shape (L,).
    - `mean`, `scale`, tuple of float of length t + 1: mean and scale of the features in training,
      where means leave out the row's own target, and counts the row itself.
    """

    code: ClassVar[str] = "target means"
    kind: ClassVar[Kind] = "category"
    name: str
    levels: Levels
    means: Array
    counts: Array
    mean: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def of(
        cls, name: str, levels: Levels, counts: np.ndarray, means: np.ndarray, without: np.ndarray
    ) -> TargetMeans:
        """Return the encoding whose features have mean 0 and scale 1 on the training rows.

        - `counts`: rows of each level in each fold, int64 of shape (L, f).
        - `means`, `without`: results of `smooth_means`.
        """
        # Moments of the features over all training rows, computed by level and fold: rows of one
        # cell have equal features.
        weights = counts / counts.sum()
        level_counts = counts.sum(axis=1)
        # The level of a single row looks like an unknown level of a new row: both have no others.
        logs = np.broadcast_to(np.log(level_counts)[:, None, None], (*counts.shape, 1))
        values = np.concatenate([without[:-1], logs], axis=2)
        mean = np.einsum("lf,lft->t", weights, values)
        scale = np.sqrt(np.einsum("lf,lft->t", weights, (values - mean) ** 2))
        # A feature that varies by rounding only must not be divided by it.
        scale[scale <= np.finfo(np.float64).eps * 16 * np.abs(mean)] = 1.0
        return cls(
            name, levels, means, level_counts,
            tuple(mean.tolist()), tuple(scale.tolist()),
        )  # fmt: skip

    @property
    def features(self) -> tuple[str, ...]:
        t = self.means.shape[1]
        numbered = [f"{self.name} (mean {j + 1})" for j in range(t)]
        means = [f"{self.name} (mean)"] if t == 1 else numbered
        return (*means, f"{self.name} (log count)")

    def encode(self, column: pa.Array, part: Part) -> np.ndarray:
        codes = self.levels.codes(column, self.name, part.new_values)
        # The code -1 of unknown levels picks the last entry: the overall mean, and the count 0.
        means, other_rows = self.means[codes], np.append(self.counts, 0)[codes]
        if part.folds is not None:
            # Rows that did not count in training are encoded as new ones, by all training rows.
            training = np.flatnonzero(part.folds >= 0)
            without = part.fold_means[self.name]
            means[training] = without[codes[training], part.folds[training]]
            other_rows[training] -= 1
        return np.asarray((np.column_stack([means, np.log1p(other_rows)]) - self.mean) / self.scale)

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


def smooth_means(
    counts: np.ndarray, sums: np.ndarray, smoothing: float
) -> tuple[np.ndarray, np.ndarray]:
    """Smooth means of targets: each level gets `smoothing` more rows with the mean of all rows.

    - `counts`: rows of each level in each fold, int64 of shape (L, f).
    - `sums`: sums of their targets, float64 of shape (L, f, t).

    Returns
    -------
    means : ndarray of shape (L + 1, t)
        Means of all training rows; the last row is for unknown levels.
    without : ndarray of shape (L + 1, f, t)
        Means of the training rows outside a fold, for the rows in the fold.
    """
    # Of each fold, and in the last row of all.
    totals = np.concatenate([sums.sum(axis=0), sums.sum(axis=(0, 1))[None]])  # (f + 1, t)
    rows = [*counts.sum(axis=0).tolist(), int(counts.sum())]
    level_rows = counts.sum(axis=1)
    level_sums = sums.sum(axis=1)
    overall = totals[-1] / rows[-1]
    without = []
    for fold in range(counts.shape[1]):
        # A row of this fold gets means of the other folds only, so that it does not see its own
        # target. A single row has no others to take a mean of.
        other_rows = rows[-1] - rows[fold]
        other_mean = (totals[-1] - totals[fold]) / other_rows if other_rows else overall
        level_rows_left, level_sums_left = level_rows - counts[:, fold], level_sums - sums[:, fold]
        without.append(_smooth(level_rows_left, level_sums_left, other_mean, smoothing))
    return _smooth(level_rows, level_sums, overall, smoothing), np.stack(without, axis=1)


def _smooth(
    rows: np.ndarray, sums: np.ndarray, overall: np.ndarray, smoothing: float
) -> np.ndarray:
    weight = rows[:, None] + smoothing
    means = (sums + smoothing * overall) / np.where(weight > 0, weight, 1)
    # A level without rows has the overall mean; without smoothing its own would be 0 / 0.
    return np.concatenate([np.where(weight > 0, means, overall), overall[None]])
