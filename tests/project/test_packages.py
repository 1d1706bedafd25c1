"""The command `make packages`, and the versions of Python that the project states."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
VERSION = re.compile(r"Programming Language :: Python :: (\d\.\d+)")


@pytest.fixture
def packages() -> ModuleType:
    path = ROOT / "tests" / "packages" / "__main__.py"
    spec = importlib.util.spec_from_file_location("packages_command", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Commands:
    """Record commands in place of running them; those that build leave an empty package."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str], *_: object, **__: object) -> str:
        self.commands.append(command)
        if "--sdist" in command:
            out = Path(command[command.index("--outdir") + 1])
            out.mkdir(parents=True, exist_ok=True)
            (out / "gramian-0.tar.gz").touch()
        if "wheel" in command:
            out = Path(command[command.index("-w") + 1])
            out.mkdir(parents=True, exist_ok=True)
            number = sum("wheel" in earlier for earlier in self.commands)
            (out / f"gramian-0-{number}.whl").touch()
        return "3.99.0\n"


def test_each_interpreter_has_a_wheel_and_three_environments(
    packages, tmp_path, monkeypatch, capsys
):
    recorded = Commands()
    monkeypatch.setattr(packages, "run", recorded)
    monkeypatch.setattr(packages, "check_package", lambda python, folder, tiles: None)
    out = tmp_path / "dist"
    arguments = ["--python", "/one/python", "--python", "/two/python", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["packages", *arguments])
    packages.main()
    created = [command[0] for command in recorded.commands if command[1:3] == ["-m", "venv"]]
    assert created == ["/one/python"] * 5 + ["/two/python"] * 4
    assert sum("--sdist" in command for command in recorded.commands) == 1
    assert sorted(path.name for path in out.iterdir()) == [
        "gramian-0-1.whl", "gramian-0-2.whl", "gramian-0.tar.gz",
    ]  # fmt: skip
    installed = [Path(c[-1]).name for c in recorded.commands if "-c" in c and "install" in c]
    assert installed == [
        "gramian-0-1.whl", "gramian-0.tar.gz", "gramian-0.tar.gz",
        "gramian-0-2.whl", "gramian-0.tar.gz", "gramian-0.tar.gz",
    ]  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" (")[0] for line in lines] == [
        "3.99.0, wheel", "3.99.0, sdist", "3.99.0, sdist, no compiler",
    ] * 2  # fmt: skip


def test_environments_are_of_the_current_interpreter_by_default(packages, tmp_path, monkeypatch):
    recorded = Commands()
    monkeypatch.setattr(packages, "run", recorded)
    monkeypatch.setattr(packages, "check_package", lambda python, folder, tiles: None)
    monkeypatch.setattr(sys, "argv", ["packages", "--out", str(tmp_path / "dist")])
    packages.main()
    created = [command[0] for command in recorded.commands if command[1:3] == ["-m", "venv"]]
    assert created == [sys.executable] * 5


def test_a_command_that_fails_is_an_error(packages):
    with pytest.raises(subprocess.CalledProcessError):
        packages.run([sys.executable, "-c", "import sys; sys.exit(3)"])


def test_stated_versions_are_tested_ones():
    stated = VERSION.findall("\n".join(PROJECT["project"]["classifiers"]))
    wheels = [
        f"3.{minor}"
        for minor in re.findall(r"cp3(\d+)-\*", PROJECT["tool"]["cibuildwheel"]["build"])
    ]
    page = (ROOT / "docs" / "releasing.md").read_text("utf-8")
    tested = re.findall(r"^ *\| (3\.\d+)\.\d+ \|", page, re.M)
    assert stated == wheels == tested
    assert PROJECT["project"]["requires-python"] == f">={stated[0]}"
