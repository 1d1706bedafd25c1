"""Dask clusters whose workers are threads of the test: they start in no time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def in_threads(workers: int) -> Iterator[Any]:
    """Give the client of so many workers of one thread each."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client
