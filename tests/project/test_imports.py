"""Imports: each face loads the modules that it uses, and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gramian import KernelRidge

SEARCH = ("gramian.search.search", "gramian.fitting.search.fit")
PICTURES = ("matplotlib", "jinja2", "gramian.plots.convergence", "gramian.report.pictures")
EVERYWHERE = ("torch", "jaxtyping", "lightgbm", "dask", *PICTURES)
SCIKIT_LEARN = ("sklearn", "gramian.estimators.ridge.regressor")

UNUSED = {
    "from gramian import KernelRidge": (
        *("sklearn.cluster", "sklearn.metrics", "sklearn.model_selection", "rich", "tqdm.auto"),
        *("gramian.fitting.fit", "gramian.data.formats.csv.table", *SEARCH, *EVERYWHERE),
    ),
    "from gramian import KernelRidge; KernelRidge().fit([[0.0], [1.0]], [0.0, 1.0])": (
        *("sklearn.cluster", "sklearn.metrics", "rich", *SEARCH, *EVERYWHERE),
    ),
    "from gramian import load; load('{model}')": ("gramian.fitting.fit", *SEARCH, *EVERYWHERE),
    "from gramian import KernelModel; KernelModel.load('{model}').predict([[0.0, 1.0]])": (
        *("pandas", "gramian.data.formats.csv.table", "gramian.fitting.fit"),
        *(*SCIKIT_LEARN, *SEARCH, *EVERYWHERE),
    ),
    "gramian info {model}": (
        *("pandas", "gramian.data.formats.csv.table", "gramian.fitting.fit"),
        *(*SCIKIT_LEARN, *SEARCH, *EVERYWHERE),
    ),
    "gramian predict {model} {table} --out {out}": (
        *("gramian.fitting.fit", "gramian.solvers", "gramian.landmarks"),
        *(*SCIKIT_LEARN, *SEARCH, *EVERYWHERE),
    ),
    "gramian evaluate {model} {table}": (
        *("gramian.estimators.ridge.regressor", "gramian.fitting.fit", *SEARCH, *EVERYWHERE),
    ),
    "gramian fit {table} --target y --out {out}": ("lightgbm", "torch", "jaxtyping", *PICTURES),
}
"""Modules that a process of a statement or a command may not load."""

COMMAND = """
import sys
from gramian.cli import main
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
"""


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the paths of a table of 60 rows, a model of it, and an output."""
    folder = tmp_path_factory.mktemp("imports")
    rows = np.random.default_rng(0).standard_normal((60, 3))
    rows[:, 2] = rows[:, 0] + rows[:, 1]
    np.savetxt(folder / "table.csv", rows, delimiter=",", header="a,b,y", comments="", fmt="%.6f")
    KernelRidge(random_state=0).fit(rows[:, :2], rows[:, 2]).save(folder / "array.gramian")
    KernelRidge(random_state=0).fit(folder / "table.csv", "y").save(folder / "model.gramian")
    return {name: folder / f"{name}.csv" for name in ("table", "out")} | {
        "model": folder / "model.gramian",
        "array": folder / "array.gramian",
    }


@pytest.mark.slow
@pytest.mark.parametrize("line", UNUSED)
def test_only_what_is_used_is_loaded(line: str, paths: dict[str, Path]) -> None:
    given = paths | ({"model": paths["array"]} if "KernelModel" in line else {})
    command = line.format(**given)
    is_command = command.startswith("gramian ")
    code, arguments = (COMMAND, command.split()[1:]) if is_command else (command, [])
    code += f"""
import gc, sys
assert gc.isenabled()
loaded = set({UNUSED[line]!r}) & set(sys.modules)
assert not loaded, sorted(loaded)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


FIRST_USE = """
import threading
import gramian

names = ["KernelRidge", "KernelPCA", "TableEncoder", "KernelRidgeCV"] * 2
barrier, errors = threading.Barrier(len(names)), []

def use(name):
    barrier.wait()
    try:
        getattr(gramian, name)
    except Exception as error:
        errors.append(repr(error))

threads = [threading.Thread(target=use, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not errors, errors
"""


@pytest.mark.slow
@pytest.mark.parametrize("repetition", range(3))
def test_threads_may_use_estimators_first_at_the_same_time(repetition: int) -> None:
    subprocess.run([sys.executable, "-c", FIRST_USE], check=True)


@pytest.mark.slow
def test_packages_export_only_what_is_installed() -> None:
    names = ("gramian", "gramian.operators", "gramian.engines", "gramian.data", "gramian.fitting")
    code = "\n".join(f"from {name} import *" for name in names)
    code += "\nimport gramian\ngramian.data.formats, gramian.data.encoding, gramian.data.tables"
    subprocess.run([sys.executable, "-c", code], check=True)
