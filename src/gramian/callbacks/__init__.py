"""Callbacks: what happens after each iteration, beside solving.

Any callable ``callback(problem, state)`` will do. What it adds to ``state.metrics`` becomes a
column of the history, which the stopping rules see; returning True asks to stop. Its time is not
counted as the solver's.

`Validate` adds the error on held-out rows, `Checkpoint` saves the state to a file and resumes from
it, `ProgressBar` and `LogProgress` tell a person how far it is.
"""

from __future__ import annotations

from .checkpoint import Checkpoint, load_state, save_state
from .progress import LogProgress, ProgressBar
from .validate import Validate

__all__ = ["Checkpoint", "LogProgress", "ProgressBar", "Validate", "load_state", "save_state"]
