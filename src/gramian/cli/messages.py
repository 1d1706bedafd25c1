"""Messages on stderr: one line each for errors, warnings and remarks."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from .._display import display_text
from .words import in_options


def message(kind: str, text: object) -> None:
    """Write one line to stderr, such as ``gramian: warning: ...``; no kind for a remark.

    Parameters become options; addresses lose their secrets, and control characters are escaped.
    """
    words = display_text(in_options(" ".join(str(text).split())))
    typer.echo(f"gramian: {kind}: {words}" if kind else f"gramian: {words}", err=True)


def remark(text: str | None) -> None:
    """Say something that is no warning, to people only: not with ``--json``."""
    if text is not None:
        logging.getLogger("gramian").info("%s", text)


@contextmanager
def messages_on_stderr(remarks: bool = True) -> Iterator[None]:
    """Say warnings and the library's log in one line each, while the context lasts.

    Warnings that are not meant for users, such as those of deprecated functions, are left out.

    Parameters
    ----------
    remarks : bool, default=True
        Whether to say what is no warning, too.
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
        kind = "" if record.levelno < logging.WARNING else record.levelname.lower()
        message(kind, record.getMessage())
