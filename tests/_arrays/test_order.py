"""Medians of many numbers, which a sample narrows down."""

from __future__ import annotations

import numpy as np
import pytest

from gramian import _arrays as xp
from gramian._arrays.order import MANY_NUMBERS

N = 3 * MANY_NUMBERS + 1


@pytest.mark.parametrize("count", [N, N - 1])
@pytest.mark.parametrize("kind", ["normal", "sorted", "equal", "two values", "odd sample"])
def test_the_median_is_the_lower_one_of_sorted_numbers(kind, count, rng):
    x = rng.standard_normal(count)
    numbers = {
        "normal": x,
        "sorted": np.sort(x),
        "equal": np.ones(count),
        "two values": np.where(x < 0.3, 0.0, 1.0),
        # All numbers at the steps of the sample are far from the median.
        "odd sample": np.where(np.arange(count) % (count // 2000) == 0, 100.0, x),
    }[kind]
    assert xp.median(numbers) == np.sort(numbers)[(count - 1) // 2]


def test_a_missing_number_has_no_median(rng):
    x = rng.standard_normal(N)
    x[7] = np.nan
    assert np.isnan(xp.median(x))
