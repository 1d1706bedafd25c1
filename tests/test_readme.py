"""The README's examples run as printed, in an empty directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # processes of their own

README = Path(__file__).parents[1] / "README.md"


def block(language: str) -> str:
    """Return the one fenced block of that language."""
    (code,) = re.findall(rf"^```{language}\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    return code


def run(command: list[str], folder: Path) -> str:
    """Run `command` in `folder` with this environment's programs first, and return its output."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr
    return done.stdout


def test_python_example(tmp_path):
    said = run([sys.executable, "-c", block("python")], tmp_path)
    r2 = float(said.splitlines()[0].rsplit(maxsplit=1)[-1])
    assert 0.7 < r2 < 1.0  # a linear model of these data reaches 0.67


def test_shell_example(tmp_path):
    said = run(["bash", "-euo", "pipefail", "-c", block("sh")], tmp_path)
    assert said.strip()
    assert (tmp_path / "houses.model").exists()
    assert (tmp_path / "predictions.parquet").stat().st_size > 0
