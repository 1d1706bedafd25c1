"""Command line of gramian: `gramian fit`, `tune`, `predict`, `evaluate`, `plan` and others.

`fit` searches for a model, in `search`, unless an option describes one, in `fit`; `tune` reports
a search in detail. `app` lists the commands and `options` their options. The work of a command is
in the module of its name, which is imported when it runs, so that ``gramian --help`` imports
neither NumPy nor scikit-learn. A command reads files with `gramian.data`, computes with the
estimators and `KernelModel`, and returns a report, a dictionary, which `report` prints as text or,
with ``--json``, as JSON. `metrics` is the table of metrics of `evaluate`. Other output goes to
stderr through `messages`, which writes parameters as options; ``--json`` omits remarks.

Exit codes: 0, success; 2, an unusable input or option, or a file that cannot be read or written,
with one line on stderr; 130, Ctrl-C; 143, SIGTERM; 129, SIGHUP; 1, any other error, which is a bug.
"""

from .main import main

__all__ = ["main"]
