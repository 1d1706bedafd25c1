"""A user's program is checked by mypy, and by pyright where it is installed, through py.typed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # processes of their own

PROGRAM = Path(__file__).parents[1] / "typed" / "user_program.py"


def test_mypy_strict(tmp_path):
    pytest.importorskip("mypy")
    settings = tmp_path / "mypy.ini"
    untyped = "".join(
        f"[mypy-{name}.*]\nignore_missing_imports = True\n"
        for name in ("sklearn", "scipy", "pyarrow", "threadpoolctl")
    )
    settings.write_text(f"[mypy]\nwarn_unused_ignores = True\n{untyped}")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(settings)]
    command += ["--follow-imports", "silent", "--cache-dir", str(tmp_path), str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright(tmp_path):
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    command = [pyright, "--pythonpath", sys.executable, str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
