"""Build the sdist and the wheel, and test both in empty environments.

    make packages                         # README's commands and snippets in three environments
    make packages ARGS="--suite"          # and the tests that are not slow
    make packages ARGS="--python python3.13 --python python3.14"  # other versions of Python

The environments have the dependencies of the package alone: the wheel as built, the sdist, and the
sdist without a compiler. None of them has torch.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
NO_COMPILER = {"CC": "/no/compiler", "CXX": "/no/compiler"}
TEST_FOLDERS = ("tests", "src", "examples", "benchmarks", "docs", "conda", "Makefile")
"""Sources that the tests read, copied away from the sources that Python would import."""

SAMPLE_FIT = """
import sys
import gramian
from gramian.operators import compiled_tiles
from sklearn.datasets import load_diabetes
X, y = load_diabetes(return_X_y=True)
score = gramian.KernelRidge(random_state=0).fit(X[:300], y[:300]).score(X[300:], y[300:])
assert 0.3 < score < 0.7, score
assert "torch" not in sys.modules
print("compiled" if compiled_tiles() else "NumPy")
"""


def main() -> None:
    """Build and test the packages; raise CalledProcessError at the first failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", action="store_true", help="run the tests that are not slow")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the packages")
    parser.add_argument(
        "--python", action="append", metavar="INTERPRETER",
        help="build and test with this interpreter; repeat for several (default: the current one)",
    )  # fmt: skip
    options = parser.parse_args()
    interpreters: list[str] = options.python or [sys.executable]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sdist = build_sdist(interpreters[0], folder / "build", options.out)
        for number, interpreter in enumerate(interpreters):
            wheel = build_wheel(interpreter, sdist, folder / f"wheel{number}", options.out)
            check_packages(interpreter, sdist, wheel, folder / f"check{number}", options.suite)


def build_sdist(interpreter: str, environment: Path, out: Path) -> Path:
    """Build the sdist, which is the same for all interpreters, and return its path."""
    python = create_environment(interpreter, environment)
    run([python, "-m", "pip", "install", "--quiet", "build"])
    run([python, "-m", "build", "--sdist", "--outdir", str(out), str(ROOT)])
    return max(out.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)


def build_wheel(interpreter: str, sdist: Path, folder: Path, out: Path) -> Path:
    """Build the wheel of the interpreter from the sdist, and return its path."""
    python = create_environment(interpreter, folder / "build")
    run([python, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(sdist)])
    (wheel,) = folder.glob("*.whl")
    return Path(shutil.copy(wheel, out))


def check_packages(interpreter: str, sdist: Path, wheel: Path, folder: Path, suite: bool) -> None:
    """Test wheel and sdist in empty environments of the interpreter."""
    version = run([interpreter, "-c", "import platform; print(platform.python_version())"]).strip()
    cases: list[tuple[str, Path, Mapping[str, str], str]] = [
        ("wheel", wheel, NO_COMPILER, "compiled"),
        ("sdist", sdist, {}, "compiled"),
        ("sdist, no compiler", sdist, NO_COMPILER, "NumPy"),
    ]
    folder.mkdir()
    for number, (title, package, variables, tiles) in enumerate(cases):
        start = time.perf_counter()
        python = create_environment(interpreter, folder / f"env{number}")
        install(python, str(package), variables)
        check_package(python, folder / f"run{number}", tiles)
        if suite:
            install(python, f"{package}[test]", variables)
            run_suite(python, folder / f"suite{number}")
        seconds = time.perf_counter() - start
        sys.stdout.write(f"{version}, {title} ({package.name}): {tiles}, {seconds:.0f} s\n")
        sys.stdout.flush()


def install(python: str, package: str, variables: Mapping[str, str]) -> None:
    """Install a package and its dependencies at the tested versions."""
    pins = ["-c", str(ROOT / "constraints.txt")]
    run([python, "-m", "pip", "install", "--quiet", *pins, package], variables=variables)
    run([python, "-m", "pip", "check"])


def check_package(python: str, folder: Path, tiles: str) -> None:
    """Fit a model, and run the snippets and commands of README.md as printed."""
    folder.mkdir()
    assert run([python, "-c", SAMPLE_FIT], folder).split() == [tiles]
    page = (ROOT / "README.md").read_text("utf-8")
    for language, program in (("python", [python, "-c"]), ("sh", ["bash", "-euc"])):
        for block in re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S):
            run([*program, block], folder, {"PATH": f"{Path(python).parent}:/usr/bin:/bin"})
    assert (folder / "predictions.parquet").stat().st_size > 0


def run_suite(python: str, folder: Path) -> None:
    """Run the tests that are not slow against the installed package."""
    folder.mkdir()
    files = [path for path in ROOT.glob("*") if path.suffix in {".md", ".toml", ".txt", ".cff"}]
    copied = [*files, *(ROOT / name for name in TEST_FOLDERS)]
    run(["cp", "-r", *map(str, copied), str(folder)])
    run([python, "-m", "pytest", "-q", "-n", "2", "-m", "not slow"], folder)


def create_environment(interpreter: str, folder: Path) -> str:
    """Create an empty environment of the interpreter, and return its Python."""
    run([interpreter, "-m", "venv", str(folder)])
    return str(folder / "bin" / "python")


def run(
    command: list[str], folder: Path | None = None, variables: Mapping[str, str] | None = None
) -> str:
    """Run a command without the variables of this process's Python, and return its output."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=folder, env={**inherited, **(variables or {})}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()
    return done.stdout


if __name__ == "__main__":
    main()
