"""A metric that is learned at once, for tests of what becomes of a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian import _arrays as xp
from gramian.data import LinearMap, RowSource
from gramian.metric import LearnedMetric, Metric, Round


@dataclass(frozen=True)
class Correlated(Metric):
    """Factors by the correlation of each feature with the targets, plus a little of chance."""

    chance: float = 1e-3

    def learn(
        self, kernel: Any, rows: RowSource, targets: Any, weights: Any = None, **given: Any
    ) -> LearnedMetric:
        x = rows.take(np.arange(len(rows)))
        w = np.ones(len(rows), np.float32) if weights is None else weights
        y = xp.to_float64(targets * w[:, None])
        drawn = self.chance * xp.to_float64(given["rng"].random(rows.shape[1], np.float32))
        found = np.abs(xp.to_float64(x).T @ y).sum(axis=1) / w.sum() + drawn
        shares = found / found.sum()
        return LearnedMetric(LinearMap(scales=found), shares, found**2, (Round(0, 1.0, 0.1),))
