"""Completion in shells: scripts that are printed, and the answers to what they ask."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gramian.cli.commands.completion import SHELL_NAMES

PROGRAM = "import sys; from gramian.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize("shell", SHELL_NAMES)
def test_each_shell_has_a_script(gramian, shell):
    done = gramian("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert "_GRAMIAN_COMPLETE" in done.out
    assert f"gramian completion {shell}" in done.out


def test_other_shells_have_none(error):
    assert "unknown shell 'bsh'; known: bash, zsh, fish" in error("completion", "bsh")
    assert "did you mean bash?" in error("completion", "bsh")


def test_nothing_is_written(gramian, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    gramian("completion", "bash")
    assert list(tmp_path.iterdir()) == []


def answers(line: str) -> list[str]:
    words = line.split(" ")
    asked = {
        "_GRAMIAN_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_commands_options_and_choices_are_completed():
    assert answers("gramian pr") == ["predict"]
    assert answers("gramian fit --penal") == ["--penalty"]
    assert answers("gramian fit --task reg") == ["regression"]


def test_bash_takes_the_script(gramian, tmp_path):
    (tmp_path / "gramian").write_text(f"#!/bin/sh\nexec {sys.executable} -c '{PROGRAM}' \"$@\"\n")
    (tmp_path / "gramian").chmod(0o755)
    (tmp_path / "script").write_text(gramian("completion", "bash").out)
    asking = (
        f"source {tmp_path / 'script'}; COMP_WORDS=(gramian eval); COMP_CWORD=1;"
        "_gramian_completion gramian; echo ${COMPREPLY[@]}"
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", asking], env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.stdout == "evaluate\n"
