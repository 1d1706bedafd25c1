"""Messages on stderr: one line each for errors, warnings and remarks."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from ..._messages.display import display_text
from ..._messages.errors import short_repr, write_argument, write_message
from ..._parameters.fit_parameters import option_parameters

NAMED_ALIKE = (
    "separator", "decimal", "encoding", "header", "skip", "comment", "missing", "date_format",
    "types", "output", "target", "groups", "order", "folds", "out", "budget", "scoring", "blend",
    "conformal", "conformal_groups", "interval", *(option.name for option in option_parameters()),
)  # fmt: skip
"""Parameters whose options have their names."""

OPTION_OF_PARAMETER = {
    **{name: f"--{name.replace('_', '-')}" for name in NAMED_ALIKE},
    "random_state": "--seed",
    "background": "--train",
    "every_seconds": "--checkpoint-every",
    "columns": "--features",
}
"""Options by the parameters that they set."""

FLAG_PARAMETERS = frozenset(option.name for option in option_parameters() if option.kind is bool)
"""Parameters whose options take no value."""

OPTION_TEXTS = {
    "X": "the table",
    "y": "the target",
    "KernelRidge": "one fit, as by --kernel gaussian",
    "callbacks=[Validate(X, y)]": "--validation FILE",
    "columns=[...]": "--drop",
    "strict=True": "--strict",
    "drop_missing_target=True": "--drop-missing-target",
    "header=False": "--no-header",
    "columns=[...] of gramian.data.as_rows": "--drop",
    "engine_='auto'": "--engine auto",
    "precision='auto'": "--engine native",
    "precision='fast'": "--engine native:fast",
    "Checkpoint": "--checkpoint",
    "Checkpoint(..., resume=False)": "another --checkpoint",
    "state=State(0, state.coef)": "another --checkpoint",
    "state=State(0, load_state(path).coef)": "another --checkpoint",
    "landmarks=BlessR(m=1000)": "--landmarks bless_r:1000",
    "solver=Falkon(refine='auto')": "--solver falkon",
}
"""Replacements for marks in messages that are not a plain parameter."""


def message(kind: str, text: object) -> None:
    """Write one line to stderr, such as ``gramian: warning: ...``; no kind for a remark.

    Parameters become options; addresses lose their secrets, and control characters are escaped.
    """
    # One line, whatever line breaks the text has: programs read stderr line by line.
    line = display_text(" ".join(write_message(text, write_option).split()))
    typer.echo(f"gramian: {kind}: {line}" if kind else f"gramian: {line}", err=True)


def write_option(mark: str, value: object) -> str:
    """Return the option of the command line for a parameter that a `Text` names in braces."""
    name, has_setting, setting = mark.partition("=")
    if mark in OPTION_TEXTS or name not in OPTION_OF_PARAMETER:
        return OPTION_TEXTS.get(mark) or write_argument(mark, value)
    if not has_setting:
        return OPTION_OF_PARAMETER[name]
    # A flag takes no value: False is the absence of the option.
    if name in FLAG_PARAMETERS:
        return (
            f"no {OPTION_OF_PARAMETER[name]}"
            if "False" in (setting, str(value))
            else OPTION_OF_PARAMETER[name]
        )
    literal = {"None": "none", "True": "true", "False": "false"}.get(setting, setting.strip("'"))
    return f"{OPTION_OF_PARAMETER[name]} {literal or write_value(value)}"


def write_value(value: object) -> str:
    """Write a value as the text of an option."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Sequence):
        return ",".join(map(write_value, value))
    from ...landmarks.base import selectors  # imported already if the value is a selector
    from ...losses.base import losses

    names: dict[type[Any], str] = {
        registry[name]: name for registry in (selectors, losses) for name in registry
    }
    count = getattr(value, "m", None)
    name = names.get(type(value), short_repr(value))
    return name if count is None else f"{name}:{count}"


def remark(text: str | None) -> None:
    """Write a remark, which ``--json`` omits."""
    if text is not None:
        logging.getLogger("gramian").info(text)


@contextmanager
def messages_on_stderr(remarks: bool = True) -> Iterator[None]:
    """Write each warning and log record as one line while the context lasts.

    Warnings for developers, such as deprecation warnings, are left out.

    - `remarks`: whether to write remarks, too.
    """
    logger, log = logging.getLogger("gramian"), _Log(0 if remarks else logging.WARNING)
    level = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)  # each text once
        warnings.showwarning = lambda warning, *_args, **_more: message("warning", warning)
        logger.addHandler(log)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(log)
            logger.setLevel(level)


class _Log(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        # Without arguments the record may hold a `Text`, whose parameters become options only if it
        # is not converted to a string first.
        kind = "" if record.levelno < logging.WARNING else record.levelname.lower()
        message(kind, record.getMessage() if record.args else record.msg)
