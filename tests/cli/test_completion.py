"""Completion in shells: typer's scripts, and the answers to what they ask."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gramian.cli import main

PROGRAM = "import sys; from gramian.cli import main; sys.exit(main(sys.argv[1:]))"


def run(instruction: str, **more: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"_GRAMIAN_COMPLETE": instruction, **more},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def answers(line: str) -> list[str]:
    words = line.split(" ")
    return run("complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1)).split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell", "pwsh"])
def test_each_shell_has_a_script(shell):
    assert "_GRAMIAN_COMPLETE" in run(f"source_{shell}")


def test_the_script_of_this_shell_is_shown(capsys, monkeypatch):
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: "bash")
    with pytest.raises(SystemExit) as done:
        main(["--show-completion"])
    assert done.value.code == 0
    assert "_gramian_completion" in capsys.readouterr().out


def test_commands_options_and_choices_are_completed():
    assert answers("gramian pr") == ["predict"]
    assert answers("gramian fit --penal") == ["--penalty"]
    assert answers("gramian fit --task reg") == ["regression"]


def test_bash_takes_the_script(tmp_path):
    (tmp_path / "gramian").write_text(f"#!/bin/sh\nexec {sys.executable} -c '{PROGRAM}' \"$@\"\n")
    (tmp_path / "gramian").chmod(0o755)
    (tmp_path / "script").write_text(run("source_bash"))
    asking = (
        f"source {tmp_path / 'script'}; COMP_WORDS=(gramian eval); COMP_CWORD=1;"
        "_gramian_completion gramian; echo ${COMPREPLY[@]}"
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", asking], env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.stdout == "evaluate\n"
