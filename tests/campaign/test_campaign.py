"""A fixed part of the random campaign: sixty small fits of all kinds against dense answers.

`make campaign` goes on from here, with larger ones, for as long as one likes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

LARGEST = 40
"""Rows at most: the campaign is where they are more."""


@pytest.fixture(scope="module")
def campaign() -> Iterator[tuple[ModuleType, ModuleType]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        import configuration
        import fits

        yield configuration, fits


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_a_random_fit(campaign, seed):
    configuration, fits = campaign
    found = fits.judge(configuration.draw(seed, LARGEST))
    assert found.status != fits.WRONG, found


def test_a_configuration_follows_from_its_number(campaign):
    configuration, _ = campaign
    first, again = (configuration.draw(7, LARGEST) for _ in range(2))
    assert repr(first) == repr(again)
    assert np.array_equal(first.data().X, again.data().X)
    assert np.array_equal(first.data().y, again.data().y)
