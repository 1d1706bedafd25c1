"""Clocks: wall and CPU seconds of a block, and of contenders that take turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from threadpoolctl import ThreadpoolController


def set_blas_threads(count: int) -> None:
    """Set the threads of the BLAS, and so of workers, for the rest of the process."""
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        library.set_num_threads(count)


@dataclass
class Seconds:
    """Wall time, and CPU time of all threads of this process."""

    wall: float = float("inf")
    cpu: float = float("inf")

    def least(self, other: Seconds) -> Seconds:
        return Seconds(min(self.wall, other.wall), min(self.cpu, other.cpu))


@contextmanager
def clock() -> Iterator[Seconds]:
    """Time the block; the seconds are set when it is left."""
    seconds = Seconds()
    wall, cpu = time.perf_counter(), time.process_time()
    yield seconds
    seconds.wall, seconds.cpu = time.perf_counter() - wall, time.process_time() - cpu


def interleaved(
    works: dict[str, Callable[[], Any]], *, rounds: int, slow: tuple[str, ...] = ()
) -> dict[str, Seconds]:
    """Return the least seconds of each contender.

    They take turns, so that other load on the machine slows all of them alike. Those named in
    `slow` take part in two rounds only, without a warm-up.
    """
    least = {name: Seconds() for name in works}
    for name, work in works.items():
        if name not in slow:
            work()
    for i in range(rounds):
        for name, work in works.items():
            if name in slow and i >= 2:
                continue
            with clock() as seconds:
                work()
            least[name] = least[name].least(seconds)
    return least
