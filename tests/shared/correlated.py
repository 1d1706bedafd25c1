"""A metric that is learned at once, for tests of what becomes of a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from gramian.data import LinearMap, RowSource
from gramian.metric import LearnedMetric, Metric, Round


@dataclass(frozen=True)
class Correlated(Metric):
    """Factors by the correlation of each feature with the targets, plus a little of chance."""

    chance: float = 1e-3

    def learn(
        self, kernel: Any, rows: RowSource, targets: Any, weights: Any = None, **given: Any
    ) -> LearnedMetric:
        x = rows.take(torch.arange(len(rows)))
        w = torch.ones(len(rows)) if weights is None else weights
        y = (targets * w[:, None]).double()
        drawn = self.chance * torch.rand(rows.shape[1], generator=given["rng"]).double()
        found = (x.double().T @ y).abs().sum(dim=1) / w.sum() + drawn
        shares = found / found.sum()
        return LearnedMetric(LinearMap(scales=found), shares, found**2, (Round(0, 1.0, 0.1),))
