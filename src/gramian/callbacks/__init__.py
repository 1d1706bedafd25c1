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

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
