"""Callbacks: what happens after each iteration, beside solving.

Any callable ``callback(problem, state)`` will do. What it adds to ``state.metrics`` becomes a
column of the history, which the stopping rules see; returning True asks to stop. One that has a
method ``finish()`` is told when the run has ended, whatever ended it; one that has a method
``stage(name)``, what a fit does before it iterates. Its time is not counted as the solver's.

`Validate` adds the error on held-out rows, `KeepBest` keeps the state where that was smallest,
`Checkpoint` saves the state to a file and resumes from it, `ProgressBar`, `ProgressLines` and
`LogProgress` tell a person how far it is.

The callbacks of a search, ``callback(trial)``, are called with each `gramian.search.Trial`, and end
it by returning True: `SearchBar` and `SearchLines` say what was tried and what each step gained.
"""

from __future__ import annotations

from .checkpoint import Checkpoint
from .keep_best import KeepBest
from .lines import ProgressLines
from .progress import LogProgress, ProgressBar
from .searching import SearchBar, SearchLines
from .stages import announce
from .state_file import load_state, save_state
from .validate import Validate

__all__ = [
    "Checkpoint",
    "KeepBest",
    "LogProgress",
    "ProgressBar",
    "ProgressLines",
    "SearchBar",
    "SearchLines",
    "Validate",
    "announce",
    "load_state",
    "save_state",
]
