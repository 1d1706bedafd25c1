"""The command line: `gramian fit`, `tune`, `predict`, `evaluate`, `plan`, `info` and others.

`fit` searches for a model, in `search`, unless an option describes one, in `fit`; `tune` reports
a search in detail. `app` lists the commands and `options` their options. The work of a command is
in the module of its name, which is imported when it runs, so that ``gramian --help`` imports
neither torch nor scikit-learn. A command reads files with `gramian.data`, leaves computing to the
estimators and to `KernelModel`, and returns a report, one dictionary, which `report` prints for
people or, with ``--json``, for programs. `metrics` is the table of metrics of `evaluate`. Other
output goes to stderr through `messages`, which writes parameters as options; ``--json`` omits
remarks.

Exit codes: 0 done; 2 the input or an option cannot be used, or a file cannot be read or written, as
one line on stderr says; 130 interrupted with Ctrl-C, 143
by SIGTERM, 129 by SIGHUP; 1 anything else, which is a bug.
"""

from .main import main

__all__ = ["main"]
