"""Short help: the common options of each command, and an example."""

from __future__ import annotations

from typing import Any

from .reading import READING_OPTIONS

COMMON_OPTIONS = {
    "fit": ("data", "out", "target", "drop", "validation", "budget", "kernel", "landmarks", "std"),
    "tune": ("data", "out", "target", "drop", "validation", "budget"),
    "plan": ("data", "target", "drop", "landmarks", "solver", "memory_limit"),
}
"""Options that ``--help`` shows, by command; other commands show all."""

COMMAND_EXAMPLES = {
    "fit": "gramian fit houses.csv --target price --out houses.model",
    "tune": "gramian tune houses.csv --target price --budget '30 s'",
    "plan": "gramian plan houses.parquet --target price --landmarks 5000",
    "predict": "gramian predict houses.model new.csv --out predicted.csv",
    "evaluate": "gramian evaluate houses.model test.csv",
    "explain": "gramian explain houses.model row.csv --train houses.csv",
    "report": "gramian report houses.model test.csv --out page.html",
    "export": "gramian export houses.model houses.onnx",
    "info": "gramian info houses.model",
    "convert": "gramian convert houses.csv houses.parquet",
    "sample": "gramian sample energy energy.csv --part train",
}
"""Example of each command, at the end of its help."""


def hide_rare_options(program: Any) -> None:
    """Show only common options in the help of each command.

    - `program`: typer's command of the program, whose commands are changed in place.
    """
    for name, command in program.commands.items():
        common = COMMON_OPTIONS.get(name)
        if common is not None:
            for option in command.params:
                # A hidden option is left out of the help, but still works.
                option.hidden = option.name not in (*common, "as_json", "help")
        else:
            for option in command.params:
                option.hidden = option.hidden or option.name in READING_OPTIONS
        if any(option.hidden for option in command.params):
            command.epilog += f"\n\nAll options: gramian {name} --help-all"
