"""Learned metrics: a linear map of the features before kernel evaluation.

A kernel of distances treats all directions of the features alike. A `Metric` analyses the variation
of a first predictor and returns a `LearnedMetric`: a map that stretches the directions that matter,
and shrinks the others. Any kernel, solver and engine then works with mapped rows, and the model
stores the map.

To add a metric: one file with a registered subclass of `Metric`, one import line here.
"""

from __future__ import annotations

from typing import Any

from .base import LearnedMetric, Metric, Round, metrics
from .descent import LengthscaleDescent
from .rfm import RecursiveFeatureMachine


def make(name: str, **parameters: Any) -> Metric:
    """Return the metric called `name`, one of `names`."""
    return metrics.make(name, **parameters)


def names() -> tuple[str, ...]:
    """Return the names of all metrics."""
    return tuple(metrics)


__all__ = [
    "LearnedMetric",
    "LengthscaleDescent",
    "Metric",
    "RecursiveFeatureMachine",
    "Round",
    "make",
    "metrics",
    "names",
]
