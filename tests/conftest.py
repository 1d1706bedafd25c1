"""Fixtures that every test may use: a dtype, a seeded generator, and tolerances from the dtype."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    """Run the test in both precisions."""
    return request.param


@pytest.fixture
def rng() -> torch.Generator:
    """Return a generator with a fixed seed: `torch.randn(n, d, generator=rng)`."""
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="session")
def tol() -> Callable[[torch.dtype, float], float]:
    """Return `tol(dtype, factor) = factor * eps`, e.g. `atol=tol(dtype, 10 * n)`.

    The factor says where the error comes from (the length of a sum, a condition number), so that
    one line serves both precisions.
    """

    def eps_times(dtype: torch.dtype, factor: float = 10.0) -> float:
        return factor * torch.finfo(dtype).eps

    return eps_times
