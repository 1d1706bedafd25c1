"""The recipes of CONTRIBUTING.md: what they add to a copy of the tree passes its contract tests."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NATIVE = "gramian.engines._native"
BLOCK = re.compile(r"^```(python|diff)\n# (\S+)\n(.*?)^```$", re.M | re.S)

ADDED = {"cauchy": 140, "systematic": 20, "heavy_ball": 40, "dataset": 12, "mape": 20}
"""What the recipes add, and how many tests at least are about it."""

ALL_NAMES = (
    "these_kernels or every_class or info_about_this or random_fit or plan_of_what_was_added"
)
"""Tests that look at all names at once."""

LOOKS = re.compile(rf"names\(\)|SOURCES|FORMULAS|METRIC_TABLE|{ALL_NAMES.replace(' or ', '|')}")
"""In the files whose cases follow from names; to collect the others takes as long as the tests."""

PLAN = """
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import gramian
from gramian import KernelRidge


def test_plan_of_what_was_added():
    assert Path(gramian.__file__).is_relative_to(Path(__file__).parents[2])
    X = np.random.default_rng(0).standard_normal((500, 3))
    est = KernelRidge("cauchy", solver="heavy_ball", penalty=1e-2, max_iter=3, tol=0.0)
    planned = est.plan(X)
    with pytest.warns(ConvergenceWarning):
        est.fit(X, X[:, 0])
    assert planned.solver == "heavy_ball"
    assert planned.kernel_evaluations == est.history_[-1]["kernel_evaluations"]
    by_name = KernelRidge(landmarks="systematic", random_state=0)
    assert by_name.plan(X).landmarks == len(by_name.fit(X, X[:, 0]).dual_coef_)


def test_limit_in_the_plan_of_what_was_added():
    X = np.zeros((200_000, 1))
    est = KernelRidge(solver="heavy_ball", lengthscale=1.0)
    assert 14 * 8 * len(X) < est.set_params(memory_limit="80MB").plan(X).memory_bytes <= 80e6
    with pytest.raises(ValueError, match=r"200,000 rows need .*solver='pcg', or at most .* rows"):
        est.set_params(memory_limit="60MB").plan(X)
"""

SCRIPT = """
import sys
# an editable installation would find the sources that nothing was added to
sys.meta_path[:] = [f for f in sys.meta_path if "Redirecting" not in type(f).__name__]
sys.path.insert(0, "src")
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def follow(recipes: str, tree: Path) -> None:
    """Write the files and add the lines that the blocks of a text name."""
    for kind, name, text in BLOCK.findall(recipes):
        path = tree / name
        if kind == "python":
            assert not path.exists(), f"{name} is there already"
            path.write_text(text, "utf-8")
            continue
        for context, new in hunks(text):
            before = path.read_text("utf-8")
            assert before.count(f"\n{context}") == 1, f"{name} has not once:\n{context}"
            path.write_text(before.replace(f"\n{context}", f"\n{context}{new}"), "utf-8")


def hunks(diff: str) -> Iterator[tuple[str, str]]:
    """Yield lines that are there, and those to add after them."""
    for there, new in re.findall(r"((?:^ .*\n)+)((?:^\+.*\n)+)", diff, re.M):
        yield re.sub("^ ", "", there, flags=re.M), re.sub(r"^\+", "", new, flags=re.M)


def copy_to(tree: Path) -> None:
    """Copy what is tested, with the compiled tiles if they are installed."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    spec = find_spec(NATIVE)
    if spec is not None and spec.origin is not None:
        folder = tree.joinpath("src", *NATIVE.split(".")[:-1])
        shutil.copy(spec.origin, folder / Path(spec.origin).name)


@pytest.mark.slow
def test_what_the_recipes_add_passes_all_tests_that_are_about_it(tmp_path):
    tree = tmp_path.resolve()
    copy_to(tree)
    follow((ROOT / "CONTRIBUTING.md").read_text("utf-8"), tree)
    (tree / "tests" / "test_added.py").write_text(PLAN, "utf-8")
    chosen = " or ".join([*ADDED, ALL_NAMES])
    files = [
        str(path.relative_to(tree))
        for path in sorted((tree / "tests").rglob("test_*.py"))
        if LOOKS.search(text := path.read_text("utf-8"))
        and (find_spec("torch") or "\nimport torch\n" not in text)
    ]
    assert len(files) > 20
    options = ["-q", "-k", chosen, "--junitxml=report.xml", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *options, *files],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    about: Counter[str] = Counter()
    for case in ElementTree.parse(tree / "report.xml").iter("testcase"):
        about.update(name for name in ADDED if name in case.get("name", ""))
    assert all(about[name] >= least for name, least in ADDED.items()), about
