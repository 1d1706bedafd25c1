"""Stages of a fit: announced to callbacks that have a method ``stage(name)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

READING_STAGE: str = "reading"
LEARNING_STAGE: str = "learning a metric"
COMPARING_STAGE: str = "choosing the kernel"
CHOOSING_STAGE: str = "choosing landmarks"
PREPARING_STAGE: str = "preparing"
ITERATING_STAGE: str = "iterating"
CELLS_STAGE: str = "fitting cells"


def announce(callbacks: Iterable[Callable[..., Any]], stage: str) -> None:
    """Call the method ``stage(name)`` of the callbacks that have it.

    Parameters
    ----------
    callbacks : iterable of callables
    stage : str
        In the order of a fit: "reading", "learning a metric" (if it is learned), "choosing the
        kernel" (or lengthscale or penalty, if it is chosen), "choosing landmarks", "preparing"
        (factors, and all other work before the first iteration), "iterating"; by cells "preparing"
        (dividing the rows) and "fitting cells".
    """
    for callback in callbacks:
        stage_method = getattr(callback, "stage", None)
        if callable(stage_method):
            stage_method(stage)


def announce_part(callbacks: Iterable[Callable[..., Any]], done: int, total: int) -> None:
    """Call the method ``part(done, total)`` of the callbacks that have it.

    - `done`, `total`: numbers of finished and of all parts of the fit, such as cells.
    """
    for callback in callbacks:
        part_method = getattr(callback, "part", None)
        if callable(part_method):
            part_method(done, total)
