"""Deliberate errors, one after the other: which of them does the suite notice?

    make mutants                          # all of them, under an hour of one core
    make mutants ARGS="--only falkon"     # those of a group, or whose file or text has this in it
    make mutants ARGS="--check"           # only whether each entry still fits the sources

Each entry of mutants.toml is a wrong line and the tests that should fail with it. It is written
into a copy of the tree, these tests run there until the first failure, and it is put back. What
survives is a hole in the suite, or is explained in its entry. An entry whose old text is not found
exactly once has to be brought up to date first: nothing runs until then.

Errors in the compiled tiles (C++) are out of scope: each would be a build of its own.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "benchmarks", "pyproject.toml")

CPU_SECONDS = 120
"""Of a run: an error that makes it go on for ever is noticed, too."""

HEAVY = ("torch", "sklearn.cluster", "scipy.sparse", "pandas", "pyarrow.parquet", "pytest")
"""What every run needs, imported once and not for each."""

OPTIONS = ["-q", "-x", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
OPTIONS += ["-o", "addopts=--import-mode=importlib"]
"""Without the checks of shapes at each call: they would take most of the time."""

STATUS = {0: "survived", 1: "killed", 2: "killed"}


@dataclass(frozen=True)
class Mutant:
    """A deliberate error: `old` becomes `new` in a file of src/gramian.

    Attributes
    ----------
    group, file, old, new : str
    tests : str
        Arguments of pytest, from the folder of the tests on.
    survives : str
        Why no test notices, if that is known.
    """

    group: str
    file: str
    old: str
    new: str
    tests: str
    survives: str = ""

    def found(self) -> int:
        """Return how often the old text occurs."""
        path = ROOT / "src" / "gramian" / self.file
        return path.read_text().count(self.old) if path.exists() else 0

    def __str__(self) -> str:
        return f"{self.group}: {self.file}: {_short(self.old)} -> {_short(self.new)}"


def entries() -> list[Mutant]:
    """Return the list beside this file."""
    with (Path(__file__).parent / "mutants.toml").open("rb") as file:
        groups = tomllib.load(file)
    return [Mutant(group, **entry) for group, found in groups.items() for entry in found]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of the group, the file or the texts")
    parser.add_argument("--trust", action="store_true", help="that tests pass without an error")
    parser.add_argument("--check", action="store_true", help="run nothing")
    given = parser.parse_args()
    chosen = [m for m in entries() if given.only in f"{m} {m.old} {m.new}"]
    stale = [m for m in chosen if m.found() != 1 or m.old == m.new]
    for m in stale:
        print(f"out of date (found {m.found()} times): {m}")
    if stale or given.check:
        print(f"{len(chosen)} entries, {len(stale)} out of date")
        return int(bool(stale))
    with tempfile.TemporaryDirectory() as folder:
        tree = _copy(Path(folder))
        for name in HEAVY:
            # torch is optional
            if importlib.util.find_spec(name):
                importlib.import_module(name)
        first = [] if given.trust else _distinct(chosen)
        if broken := [tests for tests in first if _run(tree, tests)[0] != "survived"]:
            print("these fail without any error:", *broken, sep="\n")
            return 1
        return _report([(m, *_outcome(tree, m)) for m in chosen])


def _outcome(tree: Path, m: Mutant) -> tuple[str, float]:
    """Return how a mutant ended, and the CPU seconds of its tests."""
    with _mutated(tree / "src" / "gramian" / m.file, m):
        status, seconds = _run(tree, m.tests)
    print(f"{status:9} {seconds:5.1f} s  {m}", flush=True)
    return status, seconds


def _report(outcomes: list[tuple[Mutant, str, float]]) -> int:
    killed = sum(status != "survived" for _, status, _ in outcomes)
    print(f"\n{killed} of {len(outcomes)} killed")
    unexplained = 0
    for m, status, _ in outcomes:
        if status == "survived":
            unexplained += not m.survives
            print(f"survived: {m}\n    {m.survives or 'UNEXPLAINED'}")
        elif m.survives:
            print(f"killed, though it says that it survives: {m}")
    return int(unexplained > 0)


def _copy(folder: Path) -> Path:
    """Return a copy of the tree, with the compiled tiles that are installed."""
    for name in COPIED:
        source, ignored = ROOT / name, shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    script = "import gramian.engines._native as native; print(native.__file__)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if found.returncode == 0:
        path = Path(found.stdout.strip())
        shutil.copy(path, folder / "src" / "gramian" / "engines" / path.name)
    return folder


@contextmanager
def _mutated(path: Path, m: Mutant) -> Iterator[None]:
    before = path.read_text()
    path.write_text(before.replace(m.old, m.new))
    try:
        yield
    finally:
        path.write_text(before)


def _run(tree: Path, tests: str) -> tuple[str, float]:
    """Run tests in a child process, which begins with the heavy imports done."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _child(tree, shlex.split(tests))
    _, status, used = os.wait4(pid, 0)
    seconds = used.ru_utime + used.ru_stime
    if os.WIFSIGNALED(status):
        slow = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return "stopped" if slow else "crashed", seconds
    return STATUS.get(os.WEXITSTATUS(status), "no tests"), seconds


def _child(tree: Path, tests: list[str]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    os.chdir(tree)
    sys.dont_write_bytecode = True
    # an editable installation would find the sources that are not changed
    sys.meta_path[:] = [f for f in sys.meta_path if "Redirecting" not in type(f).__name__]
    sys.path.insert(0, str(tree / "src"))
    os.environ["PYTHONPATH"] = str(tree / "src")
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        import pytest

        import gramian

        if not gramian.__file__.startswith(str(tree)):
            os._exit(9)
        selected = [f"tests/{part}" if ".py" in part else part for part in tests]
        os._exit(int(pytest.main([*OPTIONS, *selected])))


def _distinct(chosen: list[Mutant]) -> list[str]:
    return list(dict.fromkeys(m.tests for m in chosen))


def _short(text: str) -> str:
    return " ".join(text.split())[:60]


if __name__ == "__main__":
    sys.exit(main())
