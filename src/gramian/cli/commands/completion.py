"""`gramian completion`: print the completion script of a shell; no file changes."""

from __future__ import annotations

import os

import typer

SHELL_NAMES = ("bash", "zsh", "fish", "powershell", "pwsh")
COMPLETION_VARIABLE = "_GRAMIAN_COMPLETE"
"""The environment variable by which the script of a shell requests completions."""

PROFILE_LINES = {
    "bash": 'eval "$(gramian completion bash)"',
    "zsh": 'eval "$(gramian completion zsh)"',
    "fish": "gramian completion fish | source",
    "powershell": "gramian completion powershell | Out-String | Invoke-Expression",
    "pwsh": "gramian completion pwsh | Out-String | Invoke-Expression",
}
"""Line that enables completion in the startup file of each shell."""


def script(shell: str) -> str:
    """Return the completion script of a shell, with a comment that names its startup file."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    if shell not in SHELL_NAMES:
        from ..._messages.checks import did_you_mean

        raise ValueError(
            f"unknown shell {shell!r}; known: {', '.join(SHELL_NAMES)}"
            f"{did_you_mean(shell, SHELL_NAMES)}"
        )
    script_text = get_completion_script(
        prog_name="gramian", complete_var=COMPLETION_VARIABLE, shell=shell
    )
    first, _, remainder = script_text.partition("\n")
    # zsh requires `#compdef` on the first line, so the comment follows it.
    head, tail = (f"{first}\n", remainder) if first.startswith("#compdef") else ("", script_text)
    return f"{head}# in the file that {shell} reads at its start: {PROFILE_LINES[shell]}\n{tail}"


def answer_shell() -> None:
    """Register the shells with typer if a shell requests completions."""
    if COMPLETION_VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()


def show(shell: str) -> None:
    """Print the script."""
    typer.echo(script(shell))
