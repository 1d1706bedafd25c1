"""What every metric gives back, and how metrics are found."""

from __future__ import annotations

import pytest
import torch

from gramian import metric
from gramian.data import LinearMap
from gramian.metric import LearnedMetric, Metric, Round

THIRDS = torch.full((3,), 1 / 3)


@pytest.mark.parametrize("matrix", [torch.eye(3), torch.ones(3)])
def test_a_metric_that_fits_together(matrix):
    found = LearnedMetric(LinearMap(matrix=torch.ones(3, 2)), THIRDS, matrix, (Round(0, 1.0, 0.1),))
    assert found.rounds[0].lengthscale is None


@pytest.mark.parametrize(
    ("importances", "matrix", "message"),
    [
        (torch.full((2,), 0.5), torch.eye(3), r"3 features must have importances .* not \(2,\)"),
        (THIRDS, torch.eye(2), r"and a matrix .* and \(2, 2\)"),
        (2 * THIRDS, torch.eye(3), "have the sum 1, not 2"),
        (torch.tensor([2.0, -1.0, 0.0]), torch.eye(3), "must be at least 0"),
        (torch.tensor([1.0, torch.nan, 0.0]), torch.eye(3), "must be at least 0"),
    ],
)
def test_parts_that_do_not_fit_together(importances, matrix, message):
    with pytest.raises(ValueError, match=message):
        LearnedMetric(LinearMap(scales=torch.ones(3)), importances, matrix)


def test_names():
    for name in metric.names():
        assert isinstance(metric.make(name), Metric)
    with pytest.raises(ValueError, match=r"unknown metric 'xrfm'.*did you mean learned\?"):
        metric.make("xrfm")
