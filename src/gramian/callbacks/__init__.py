"""Callbacks: functions that a solver or a search calls after each step.

A callback is a callable ``callback(problem, state)``. Entries that it adds to ``state.metrics``
become columns of the history, which the stopping rules see. If it returns True, the solver stops.
A method ``finish()`` is called after the run, also after an error; a method ``stage(name)`` before
each stage of a fit. The solver's seconds do not include the time of callbacks.

`Validate` adds the error on held-out rows, `KeepBest` keeps the state with the smallest error,
`Checkpoint` saves the state to a file and resumes from it, and `Progress` shows the progress.

The callbacks of a search, ``callback(trial)``, are called with each `gramian.search.Trial`, and end
it by returning True: `Progress` shows the trials and the gain of each step.
"""

from __future__ import annotations

from .checkpoint import Checkpoint
from .checkpoint_file import load_state, save_state
from .early_stopping import KeepBest
from .progress import Progress
from .stages import announce
from .validate import Validate

__all__ = [
    "Checkpoint",
    "KeepBest",
    "Progress",
    "Validate",
    "announce",
    "load_state",
    "save_state",
]
