"""Parallel processes, for work in which threads would wait for the interpreter lock."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from .workers import become_worker, one_blas_thread

Item = TypeVar("Item")
Result = TypeVar("Result")

SHORT_ITEM_SECONDS = 0.15
"""Seconds of an item per worker below which threads mostly wait for each other.

Measured on two cores with cells of 1,250, 2,500 and 5,000 rows of nycflights, which take 0.05, 0.1
and 0.4 s each: two threads are 0.96, 1.24 and 1.75 times as fast as one, two processes 1.8, 1.6 and
1.7 times (`benchmarks/results/cells_cores.md`).
"""

WORTHWHILE_SECONDS = 5.0
"""Least wall-clock seconds for processes: each of them first imports gramian, in 3 s."""

PROCESS_BYTES = 400_000_000
"""Memory of a process that has imported gramian, without shared libraries."""


def processes_pay(seconds: float, items: int, workers: int) -> bool:
    """Return whether processes end before threads do, with items of `seconds` each."""
    # Never in a child process: its end would wait for its own processes, for minutes.
    if workers < 2 or multiprocessing.parent_process() is not None:
        return False
    # Threads wait for each other on short items; processes must
    # first earn the seconds of their start.
    return seconds < SHORT_ITEM_SECONDS * workers and seconds * items > WORTHWHILE_SECONDS * workers


def run_apart(
    workers: int,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    logger: logging.Logger,
) -> Iterator[Result]:
    """Yield ``function(item)`` for each item, in order, computed by `workers` processes.

    - `function`: picklable, as are items and results. Views of a larger tensor would send the
      whole tensor.
    - `items`: read on demand, in any thread.
    - `logger`: logger whose records in the processes are logged in this process.

    Processes compute with one thread each, to the same bits as a thread. They stay for the next
    call, and end after five idle minutes. If the caller stops iterating, current items are lost.
    """
    from joblib import Parallel, delayed

    # New processes do not inherit the configuration of logging, so
    # the level travels with each call.
    level = logger.getEffectiveLevel()
    calls = (delayed(_call_recorded)(function, item, logger.name, level) for item in items)
    # Memory maps of large arrays would only help for shared arrays.
    parallel = Parallel(
        workers, backend="loky", return_as="generator", batch_size=1, max_nbytes=None
    )
    for result, records in parallel(calls):
        for record in records:
            logger.handle(record)
        yield result


def _call_recorded(
    function: Callable[[Item], Result], item: Item, name: str, level: int
) -> tuple[Result, list[logging.LogRecord]]:
    """Call the function, and return its result and log records."""
    become_worker()
    with one_blas_thread, _record_logs(logging.getLogger(name), level) as records:
        return function(item), records


@contextmanager
def _record_logs(logger: logging.Logger, level: int) -> Iterator[list[logging.LogRecord]]:
    """Collect log records without showing them."""
    # The parent shows the records by its own handlers: nothing must appear in the child.
    handler = _Kept()
    before = logger.handlers, logger.propagate, logger.level
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(level)
    try:
        yield handler.records
    finally:
        logger.handlers, logger.propagate = before[:2]
        logger.setLevel(before[2])


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.args:
            # Arguments may be large or impossible to pickle, so the finished text is sent instead.
            record.msg, record.args = record.getMessage(), None
        # Tracebacks cannot be pickled.
        record.exc_info = None
        self.records.append(record)
