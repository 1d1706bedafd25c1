"""The examples of the README and of pages in docs run as printed, in an empty directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # processes of their own

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of that language."""
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def block(language: str) -> str:
    """Return the README's one fenced block of that language."""
    (code,) = blocks("README.md", language)
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


def test_ways_to_combine_kernels_and_trees(tmp_path):
    said = run([sys.executable, "-c", "".join(blocks("docs/stacking.md", "python"))], tmp_path)
    scores = [float(score) for score in re.findall(r"R2: ([\d.]+)", said)]
    assert len(scores) == 3
    assert min(scores) > 0.765  # trees alone reach 0.772, a linear model 0.67
