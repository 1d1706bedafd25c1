"""Small problems only: one thread solves them before two have met."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threads import blas_threads


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with blas_threads(1):
        yield
