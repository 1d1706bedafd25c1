"""Kernels, solvers and selectors of other packages, found by their entry points."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from gramian import KernelModel, KernelRidge, kernels, landmarks, solvers
from gramian._registries.registry import plugins
from gramian.cli import main
from gramian.kernels.base import kernels as registry
from gramian.landmarks.base import selectors
from gramian.solvers.base import solvers as all_solvers

SOURCE = """
from dataclasses import dataclass

import numpy as np

from gramian.kernels import Matern32, Radial
from gramian.landmarks import Uniform
from gramian.solvers import Falkon


@dataclass(frozen=True)
class Bump(Radial):
    @property
    def scale(self) -> float:
        return 0.5

    def profile(self, s, *, underflow=True):
        return np.exp(-s.clip(min=0.0))


@dataclass(frozen=True)
class Slow(Falkon):
    pass


@dataclass(frozen=True)
class First(Uniform):
    pass


answer = 42
"""

ENTRY_POINTS = """
[gramian.kernels]
bump = bumpy.parts:Bump
gaussian = bumpy.parts:Bump
gone = bumpy.nowhere:Bump
number = bumpy.parts:answer

[gramian.solvers]
slow = bumpy.parts:Slow

[gramian.landmarks]
first = bumpy.parts:First
"""

X = np.random.default_rng(0).uniform(-2, 2, (60, 2))
Y = np.sin(X[:, 0]) + X[:, 1]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a package in a folder of its own; forget its classes afterwards."""
    info = tmp_path / "site" / "bumpy_kernels-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bumpy-kernels\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "site" / "bumpy").mkdir()
    (tmp_path / "site" / "bumpy" / "__init__.py").touch()
    (tmp_path / "site" / "bumpy" / "parts.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    for each in (registry, selectors, all_solvers):
        monkeypatch.setattr(each, "_classes", dict(each._classes))
    yield tmp_path / "site"
    for name in [name for name in sys.modules if name.split(".")[0] == "bumpy"]:
        del sys.modules[name]


@pytest.mark.usefixtures("package")
def test_a_kernel_is_imported_when_it_is_asked_for():
    assert "bump" in kernels.names()
    assert "bumpy.parts" not in sys.modules
    kernel = kernels.make("bump", lengthscale=2.0)
    x = np.random.default_rng(1).standard_normal((5, 3))
    expected = np.exp(-((x[:, None] - x) ** 2).sum(axis=2) / 8)
    np.testing.assert_allclose(kernel(x, x), expected)


@pytest.mark.usefixtures("package")
def test_a_backport_of_the_library_may_find_them():
    backport = pytest.importorskip("importlib_metadata")  # Dask imports it before Python 3.12
    found = plugins("gramian.kernels")["bump"]
    assert isinstance(found, backport.EntryPoint | EntryPoint)
    assert kernels.make("bump").scale == 0.5


@pytest.mark.usefixtures("package")
def test_what_is_here_goes_first():
    assert type(kernels.make("gaussian")) is kernels.Gaussian
    assert list(kernels.names()).count("gaussian") == 1


@pytest.mark.usefixtures("package")
def test_estimators_take_their_names():
    est = KernelRidge(
        "bump", landmarks="first", solver="slow", penalty=1e-4, lengthscale="median", random_state=0
    )
    error = Y - est.fit(X, Y).predict(X)
    assert (error**2).mean() < 0.01
    assert type(est.kernel_).__name__ == "Bump"
    assert type(est.solver_).__name__ == "Slow"
    assert type(landmarks.make("first", m=3)).__name__ == "First"
    assert "slow" in solvers.names()


@pytest.mark.usefixtures("package")
def test_an_object_of_theirs_has_their_name():
    import bumpy.parts as parts  # without a look into the list of kernels

    assert parts.Bump(2.0).to_dict() == {"name": "bump", "needs": "bumpy-kernels", "lengthscale": 2}
    described = json.loads(json.dumps((2.0 * parts.Bump(2.0)).to_dict()))
    assert kernels.from_dict(described) == 2.0 * parts.Bump(2.0)


def test_a_model_says_which_package_it_needs(package, tmp_path, monkeypatch):
    est = KernelRidge("bump", penalty=1e-4, lengthscale="median", random_state=0).fit(X, Y)
    path = tmp_path / "a.model"
    est.model_.save(path)
    np.testing.assert_array_equal(KernelModel.load(path).predict(X)[:, 0], est.predict(X))
    monkeypatch.setattr(registry, "_classes", {k: registry[k] for k in registry if k != "bump"})
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(package)])
    with pytest.raises(
        ValueError, match=r"kernel 'bump' belongs to the package 'bumpy-kernels', which has not reg"
    ):
        KernelModel.load(path)


@pytest.mark.usefixtures("package")
def test_the_command_line_takes_their_names(tmp_path, capsys):
    table = tmp_path / "table.csv"
    np.savetxt(table, np.column_stack([X, Y]), delimiter=",", header="a,b,y", comments="")
    options = ["--kernel", "bump", "--landmarks", "first:20", "--solver", "slow"]
    out = ["--out", str(tmp_path / "y.model")]
    assert main(["fit", str(table), "--target", "y", *options, *out]) == 0
    capsys.readouterr()
    assert KernelModel.load(tmp_path / "y.model").kernel.to_dict()["name"] == "bump"


@pytest.mark.usefixtures("package")
def test_what_cannot_be_imported_says_whose_it_is():
    with pytest.raises(
        ValueError,
        match=r"kernel 'gone', entry point 'bumpy\.nowhere:Bump' of the package bumpy-kernels,",
    ):
        kernels.make("gone")
    with pytest.raises(ValueError, match=r"must be a subclass of Kernel, not 42"):
        KernelRidge("number", penalty=0.1).fit(X, Y)
    with pytest.raises(ValueError, match=r"unknown kernel 'bumb'; .*did you mean bump\?"):
        kernels.make("bumb")


@pytest.mark.slow
def test_another_process_finds_them(package):
    """Without anything that this one has read before."""
    code = "from gramian import kernels; print(type(kernels.make('bump')).__name__)"
    path = [str(package), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "Bump\n"
