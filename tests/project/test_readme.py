"""The examples of the README and of pages in docs run as printed, in an empty directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
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


def program(bare: Path, name: str) -> str:
    return str(bare / "bin" / name)


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    """Install gramian as the README says into an empty environment, at the tested versions."""
    folder = tmp_path_factory.mktemp("bare") / "env"
    venv.create(folder, with_pip=True)
    install(folder, str(ROOT))
    return folder


def install(bare: Path, *packages: str) -> None:
    options = ["--quiet", "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt")]
    # NumPy's tiles: other tests look at the compiler.
    done = subprocess.run(
        [program(bare, "python"), "-m", "pip", "install", *options, *packages],
        env={**os.environ, "GRAMIAN_NATIVE": "0"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "NewConnectionError" in done.stderr or "NameResolutionError" in done.stderr:
        pytest.skip("pip has no network")
    assert done.returncode == 0, done.stdout + done.stderr


def run_bare(bare: Path, command: list[str], folder: Path) -> str:
    """Run a command with the programs and packages of the empty environment alone."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    environment["PATH"] = os.pathsep.join([str(bare / "bin"), "/usr/bin", "/bin"])
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_readme_and_index_run_as_installed(bare, tmp_path):
    # Nothing but the dependencies: no pandas, no matplotlib.
    installed = run_bare(bare, [program(bare, "python"), "-m", "pip", "list"], tmp_path)
    assert "pandas" not in installed
    for page in ("README.md", "docs/index.md"):
        said = run_bare(
            bare, [program(bare, "python"), "-c", "".join(blocks(page, "python"))], tmp_path
        )
        assert "R2 on" in said
    run_bare(bare, ["bash", "-euo", "pipefail", "-c", block("sh")], tmp_path)
    assert (tmp_path / "predictions.parquet").stat().st_size > 0


def test_first_model_runs_as_installed(bare, tmp_path):
    (command,) = re.findall(r"^pip install (.*)$", (ROOT / "docs/first_model.md").read_text(), re.M)
    install(bare, *command.split())
    code = "".join(blocks("docs/first_model.md", "python"))
    said = run_bare(bare, [program(bare, "python"), "-c", code], tmp_path)
    assert re.search(r"R2 0\.[78]\d, typical error", said)
    for commands in blocks("docs/first_model.md", "sh"):
        run_bare(bare, ["bash", "-euo", "pipefail", "-c", commands], tmp_path)
    assert (tmp_path / "houses.model").exists()


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
