"""What every metric gives back, and how metrics are found."""

from __future__ import annotations

import numpy as np
import pytest

from gramian import metric
from gramian.data import LinearMap
from gramian.metric import LearnedMetric, Metric, Round

THIRDS = np.full((3,), 1 / 3)


@pytest.mark.parametrize("matrix", [np.eye(3, dtype=np.float32), np.ones(3, np.float32)])
def test_a_metric_that_fits_together(matrix):
    found = LearnedMetric(
        LinearMap(matrix=np.ones((3, 2), np.float32)), THIRDS, matrix, (Round(0, 1.0, 0.1),)
    )
    assert found.rounds[0].lengthscale is None


@pytest.mark.parametrize(
    ("importances", "matrix", "message"),
    [
        (
            np.full((2,), 0.5, dtype=np.float32),
            np.eye(3, dtype=np.float32),
            r"3 features must have importances .* not \(2,\)",
        ),
        (THIRDS, np.eye(2, dtype=np.float32), r"and a matrix .* and \(2, 2\)"),
        (2 * THIRDS, np.eye(3, dtype=np.float32), "have the sum 1, not 2"),
        (
            np.array([2.0, -1.0, 0.0], dtype=np.float32),
            np.eye(3, dtype=np.float32),
            "must be at least 0",
        ),
        (
            np.array([1.0, np.nan, 0.0], dtype=np.float32),
            np.eye(3, dtype=np.float32),
            "must be at least 0",
        ),
    ],
)
def test_parts_that_do_not_fit_together(importances, matrix, message):
    with pytest.raises(ValueError, match=message):
        LearnedMetric(LinearMap(scales=np.ones(3, np.float32)), importances, matrix)


def test_names():
    for name in metric.names():
        assert isinstance(metric.make(name), Metric)
    with pytest.raises(ValueError, match=r"unknown metric 'xrfm'.*did you mean learned\?"):
        metric.make("xrfm")
