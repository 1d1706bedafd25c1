"""Entry of the command line, which turns any error into one line and an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import typer

from .._messages.display import display_lines
from .app import app
from .options.help import hide_rare_options, misspelt
from .outputs.messages import message, messages_on_stderr
from .outputs.signals import stoppable

BAD_INPUT, INTERRUPTED, BUG = 2, 130, 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the name of the program; by default, the arguments of the process.

    Returns
    -------
    int
        The exit code: see `gramian.cli`.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = typer.main.get_command(app)
    # Typer has no such option: it is --help without hidden options.
    if "--help-all" in arguments:
        arguments = ["--help" if word == "--help-all" else word for word in arguments]
    elif "--help" in arguments:
        hide_rare_options(command)
    with messages_on_stderr("--json" not in arguments), stoppable() as came:
        try:
            code = command.main(arguments or ["--help"], prog_name="gramian", standalone_mode=False)
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except Exception as error:
            if "--debug" in arguments:
                typer.echo(display_lines(traceback.format_exc()), err=True)
            code, text = explain_error(error)
            message("error", text)
    if came:
        # As shells report a signal. Checked last: libraries may have turned `Stopped` into another
        # exception, whose exit code would be wrong.
        return 128 + came[0]
    return code if isinstance(code, int) else 0


def explain_error(error: Exception) -> tuple[int, object]:
    """Return the exit code and the message of an error."""
    if (text := _usage(error)) is not None:
        return BAD_INPUT, text
    # torch raises RuntimeError, not MemoryError, when a device has no memory left.
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return BAD_INPUT, "out of memory; set --memory-limit, or reduce --landmarks"
    # The text of an OSError begins with an error number: write only file and reason.
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: " if error.filename else ""
        return BAD_INPUT, f"{named}{error.strerror}"
    # Errors that inputs cause: FloatingPointError is of a solver that diverged.
    if isinstance(error, OSError | ValueError | TypeError | FloatingPointError):
        return BAD_INPUT, error
    if isinstance(error, OverflowError):
        return BAD_INPUT, f"a number is too large: {error}"
    kind = type(error).__name__
    return BUG, f"{kind}: {error}. This is a bug in gramian; `gramian --debug ...` shows where"


def _usage(error: Exception) -> str | None:
    """Return the message of a usage error of typer; None for other errors."""
    if not hasattr(error, "format_message"):
        return None
    context = getattr(error, "ctx", None)
    reason_text = str(error.format_message()).rstrip(".")
    if context is None:
        return reason_text
    return f"{misspelt(error, context) or reason_text}. Try `{context.command_path} --help`"
