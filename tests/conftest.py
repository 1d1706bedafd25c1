"""Fixtures that every test may use: a dtype, a seeded generator, and tolerances from the dtype."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import time
from collections.abc import Callable, Iterator

import first_calls
import jaxtyping
import numpy as np
import pytest
import tiles
from clock import ManualClock

from gramian import _arrays as xp
from gramian._arrays import RandomStream

# Read when triton is imported: without a GPU, its programs are interpreted.
os.environ.setdefault("TRITON_INTERPRET", "0" if os.path.exists("/dev/nvidiactl") else "1")

BRIEF = 0.005
"""Seconds in which a test measures the speed of the machine."""

# gramian is imported after this file, and its functions are decorated then
jaxtyping.jaxtyped = first_calls.sparing(jaxtyping.jaxtyped)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check the first calls again in each case of each contract, in whichever process it runs."""
    first_calls.checking = item.path.parent.name == "contracts"
    first_calls.seen.clear()


def pytest_configure() -> None:
    """Take the tiles that GRAMIAN_TEST_TILES names for the best; see `make test-paths`."""
    tiles.take_named()
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage from here on, but for the cases, which stay: 800,000 objects.

    Of the 26 CPU seconds in which a worker collects all cases 8 were the garbage collector's.
    """
    gc.freeze()
    gc.enable()
    measure_briefly()


def measure_briefly() -> None:
    """Let plans measure the speed of this machine for milliseconds: no test compares them with it.

    A plan measures four times, and each time a fifth of a second.
    """
    from gramian.fitting.plans import calibration  # imported late: see above

    longer = calibration.measure_seconds

    def briefly(work: Callable[[], object], budget: float = BRIEF) -> float:
        return longer(work, budget=min(budget, BRIEF))

    calibration.measure_seconds = briefly


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> np.dtype:
    """Run the test in both precisions."""
    return request.param


@pytest.fixture
def rng() -> RandomStream:
    """Return a generator with a fixed seed: `rng.standard_normal((n, d))`."""
    return RandomStream(0)


@pytest.fixture(scope="session")
def tol() -> Callable[[np.dtype, float], float]:
    """Return `tol(dtype, factor) = factor * eps`, e.g. `atol=tol(dtype, 10 * n)`.

    The factor says where the error comes from (the length of a sum, a condition number), so that
    one line serves both precisions.
    """

    def eps_times(dtype: np.dtype, factor: float = 10.0) -> float:
        return factor * xp.finfo(dtype).eps

    return eps_times


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Leave out the checks of shapes at each call, a tenth of a millisecond each.

    For tests that make calls very often which others make with the checks.
    """
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(scope="session")
def full_disk() -> Callable[[int], contextlib.AbstractContextManager[None]]:
    """Return a context in which no file grows beyond so many bytes, by the system.

    A context around one call, not a fixture around a test: pytest writes to files, too, and its
    own log may be longer than that.
    """

    @contextlib.contextmanager
    def limited(size: int) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """Replace `time.monotonic`, of which deadlines are times, by a clock that tests advance."""
    manual = ManualClock()
    monkeypatch.setattr(time, "monotonic", manual)
    return manual
