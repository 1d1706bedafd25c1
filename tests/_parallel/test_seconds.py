"""Seconds of deadlines are of the wall clock, or of the CPU."""

from __future__ import annotations

import pytest

from gramian._parallel.machine import cpu_time, read_seconds
from gramian._parallel.workers import run


@pytest.fixture(autouse=True)
def clocks(monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 1.0)
    monkeypatch.setattr("time.process_time", lambda: 2.0)


def test_cpu_time_counts_inside_the_context_only():
    assert read_seconds() == 1
    with cpu_time():
        assert read_seconds() == 2
        with cpu_time(False):
            assert read_seconds() == 1
        assert read_seconds() == 2
    assert read_seconds() == 1


def test_an_error_ends_the_context():
    with pytest.raises(KeyError), cpu_time():
        raise KeyError
    assert read_seconds() == 1


def test_workers_read_the_clock_of_their_caller():
    def seconds() -> list[float]:
        return list(run(2, lambda _: read_seconds(), range(4)))

    assert seconds() == [1, 1, 1, 1]
    with cpu_time():
        assert seconds() == [2, 2, 2, 2]
    assert seconds() == [1, 1, 1, 1]
