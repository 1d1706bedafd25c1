"""Progress of a command: a bar on a terminal, else a line every half minute."""

from __future__ import annotations

import sys

from ...callbacks import Progress
from ...callbacks.progress import LINE_INTERVAL_SECONDS
from .messages import message


def command_progress(total: float, every_seconds: float = LINE_INTERVAL_SECONDS) -> Progress:
    """Return the progress of a fit, or of a search, on stderr.

    - `total`: upper limit of the iterations, or the time limit of a search in seconds.
    - `every_seconds`: seconds between two lines, where stderr is no terminal.
    """
    # A bar overwrites its line, which a log file would collect as thousands of lines.
    write = None if sys.stderr.isatty() else _write_line
    return Progress(write, total=total, every_seconds=every_seconds)


def _write_line(line: str) -> None:
    message("", line)
