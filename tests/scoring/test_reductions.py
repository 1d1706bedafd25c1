"""Reductions of the rows of many classes."""

import numpy as np
import pytest

from gramian.model import LogOdds
from gramian.scoring.forms import MeanOfRows
from gramian.scoring.reductions import ClassMeans, RowMeans
from gramian.scoring.table import METRIC_TABLE

RNG = np.random.default_rng(3)


def test_of_the_parts_of_many_classes_the_bins_are_few() -> None:
    means = RowMeans((MeanOfRows(METRIC_TABLE["log_loss"]),))
    folding = ClassMeans(means, np.arange(50), LogOdds(), 50, max_bins=64)
    values = np.array(RNG.standard_normal((4000, 50)))
    true = np.array(RNG.integers(0, 50, 4000))
    found = folding.merge(
        folding(0, values[:900], true[:900]), folding(900, values[900:], true[900:])
    )
    assert max(len(one.bins) for one in found.ranks) <= 64
    whole = folding(0, values, true)
    assert np.array_equal(found.counts, whole.counts)
    assert means.values(found.means) == pytest.approx(means.values(whole.means))
    assert all(
        np.array_equal(a.counts, b.counts) for a, b in zip(found.ranks, whole.ranks, strict=True)
    )
