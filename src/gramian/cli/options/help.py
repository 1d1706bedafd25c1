"""Help: common options, an example of each command, and suggestions for misspelt words."""

from __future__ import annotations

import re
from typing import Any

from typer import Context

from ..._messages.checks import did_you_mean
from ..._registries.synonyms import ours
from ..outputs.messages import OPTION_OF_PARAMETER
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


FOREIGN_COMMANDS = {
    "train": "fit",
    "learn": "fit",
    "test": "evaluate",
    "score": "evaluate",
    "apply": "predict",
    "describe": "info",
    "show": "info",
    "version": "--version",
}
"""Commands by their names in other programs."""

FOREIGN_OPTIONS = {
    "output": "--out",
    "model": "--out",
    "label": "--target",
    "y": "--target",
    "columns": "--features",
    "exclude": "--drop",
    "holdout": "--validation",
    "resume": "--checkpoint",
    "scale": "--standardize",
    "normalize": "--standardize",
    "metrics": "--metric",
    "scoring": "--metric",
}
"""Options by their names in other programs, in addition to the parameters of Python."""


def misspelt(error: Exception, context: Context) -> str | None:
    """Return a message on an unknown option or command; None for other errors.

    - `error`: error of typer.
    - `context`: context of the command, or of the program for an unknown command.
    """
    option = getattr(error, "option_name", None)
    if option is not None:
        known_options = [name for parameter in context.command.params for name in parameter.opts]
        return f"No such option: {option}{_option(option, known_options)}"
    format_message = getattr(error, "format_message", None)
    command = (
        re.match(r"No such command '([^']*)'", format_message())
        if callable(format_message)
        else None
    )
    if command is None:
        return None
    known_options = list(getattr(context.command, "commands", ()))
    near = FOREIGN_COMMANDS.get(command[1])
    hint = did_you_mean(command[1], known_options) if near is None else f"; did you mean {near}?"
    return f"{command[0]}{hint}"


def _option(written: str, names: list[str]) -> str:
    name = written.lstrip("-").replace("-", "_")
    # Names of other libraries first, then of other programs, then the name of the parameter in
    # Python.
    parameter, formula = ours(name)
    option = (
        OPTION_OF_PARAMETER.get(parameter)
        or FOREIGN_OPTIONS.get(name.lower())
        or OPTION_OF_PARAMETER.get(name)
    )
    # An option of other commands does not help: suggest one of this command by its spelling.
    if option not in names:
        return did_you_mean(written, names)
    return f"; use {option}" + (f": {formula}" if formula else "")
