"""Progress of a command: a bar on a terminal, else a line every half minute."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...callbacks import ProgressBar, ProgressLines, SearchBar, SearchLines, announce, stages
from ...callbacks.ticking import EVERY_SECONDS
from .messages import message


@contextmanager
def progress(
    iterations: int, every_seconds: float = EVERY_SECONDS
) -> Iterator[list[Callable[..., Any]]]:
    """Show the progress of a fit on stderr while the context lasts.

    Parameters
    ----------
    iterations : int
        Upper limit of the iterations.
    every_seconds : float
        Seconds between two lines, where stderr is no terminal.

    Yields
    ------
    list of callables
        Callbacks of the fit; `announce` reports earlier stages to them.
    """
    # A bar overwrites its line, which a log file would collect as thousands of lines.
    if sys.stderr.isatty():
        shown: ProgressBar | ProgressLines = ProgressBar(iterations)
    else:
        shown = ProgressLines(_say, every_seconds)
    with shown:
        announce([shown], stages.READING_STAGE)
        yield [shown]


@contextmanager
def search_progress(
    seconds: float, every_seconds: float = EVERY_SECONDS
) -> Iterator[list[Callable[..., Any]]]:
    """Show the trials and gains of a search on stderr while the context lasts.

    Parameters
    ----------
    seconds : float
        Time limit of the search.
    every_seconds : float
        Seconds between two lines, where stderr is no terminal.

    Yields
    ------
    list of callables
        Callbacks of the search.
    """
    if sys.stderr.isatty():
        shown: SearchBar | SearchLines = SearchBar(seconds)
    else:
        shown = SearchLines(_say, every_seconds)
    with shown:
        announce([shown], stages.READING_STAGE)
        yield [shown]


def _say(line: str) -> None:
    message("", line)
