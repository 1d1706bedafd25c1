"""The service of docs/serving.md: its files run as printed, and its server answers."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gramian

pytestmark = pytest.mark.slow  # a fit, and processes

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```\n(?:\n?```text\n(.*?)^```$)?", PAGE, re.M | re.S)
"""Each block of Python, and what it prints where that is below it."""
FILES = {"scorer": "# scorer.py\n", "service": "# service.py\n"}
REQUIREMENTS = re.compile(r"^```text\n# requirements.txt\n(.*?)^```$", re.M | re.S)
MODULES = {"scikit-learn": "sklearn"}
"""Modules whose name is not the name of their package."""

PREDICT_WITHOUT = """
import importlib.abc, sys
from pathlib import Path

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import scorer
print(scorer.predict({rows!r})[0])
print(*(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()), sep="\\n")
print(*(getattr(module, "__file__", None) for module in sys.modules.values()), sep="\\n")
"""
"""Predict where some modules are absent, and print the prediction and all files that are loaded."""


def file_of(name: str) -> str:
    (code,) = (code for code, _ in BLOCKS if code.startswith(FILES[name]))
    return code


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the files of the page, and with the model of its first block."""
    folder: Path = tmp_path_factory.mktemp("service")
    for name in FILES:
        (folder / f"{name}.py").write_text(file_of(name), "utf-8")
    first, _ = BLOCKS[0]
    subprocess.run([sys.executable, "-c", first], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    return folder


@pytest.fixture
def scorer(folder, monkeypatch) -> Iterator[ModuleType]:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module("scorer")
    for name in FILES:
        sys.modules.pop(name, None)


def rows() -> list[dict[str, float]]:
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(gramian.data.sample_path("california_housing"))
    columns = [name for name in table.column_names if name not in ("target", "split")]
    found: list[dict[str, float]] = table.select(columns).slice(0, 3).to_pylist()
    return found


def test_blocks_run_and_print_what_the_page_says(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    compared = 0
    for code, expected in BLOCKS:
        if code.startswith(FILES["service"]):  # below
            continue
        capsys.readouterr()
        exec(compile(code, "serving.md", "exec"), names)
        said = capsys.readouterr().out
        assert bool(said) == bool(expected)
        numbers = ([float(n) for n in re.findall(r"\d+\.?\d*", text)] for text in (said, expected))
        np.testing.assert_allclose(*numbers, rtol=0.05)
        compared += bool(expected)
    assert compared == 2


def test_the_function_that_predicts(scorer):
    expected = gramian.load("houses.model").predict(rows())
    assert np.array_equal(scorer.predict(rows()), expected)
    assert scorer.predict([dict(reversed(rows()[0].items()))]) == expected[:1].tolist()


def test_loading_imports_no_scikit_learn(folder):
    code = "import scorer, sys; print('sklearn' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(folder)},
    )  # fmt: skip
    assert done.stdout.strip() == "False"


@pytest.mark.filterwarnings("ignore:Using `httpx` with")  # the test client, about itself
def test_the_server_answers(scorer):
    pytest.importorskip("fastapi")
    pytest.importorskip("httpx")
    client = importlib.import_module("fastapi.testclient").TestClient(
        importlib.import_module("service").app
    )
    answer = client.post("/predict", json=rows())
    assert answer.status_code == 200
    assert answer.json() == scorer.predict(rows())
    (body,) = re.findall(r"^curl .* --data '(.*?)'$", PAGE, re.M | re.S)
    (printed,) = re.findall(r"The answer is `\[([\d.]+)\]`", PAGE)
    answer = client.post("/predict", content=body, headers={"Content-Type": "application/json"})
    np.testing.assert_allclose(answer.json(), [float(printed)], rtol=1e-3)
    answer = client.post("/predict", json=[{**rows()[0], "rooms": 3}])
    assert answer.status_code == 422
    assert "column rooms" in answer.json()["detail"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_children_predict_with_the_model_of_their_parent(folder):
    code = f"""
import os, scorer
rows = {rows()!r}
expected = scorer.predict(rows[:1])
for _ in range(2):
    child = os.fork()
    if child == 0:
        os._exit(0 if scorer.predict(rows[:1]) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
many = scorer.predict(rows * 1000)
child = os.fork()
if child == 0:
    os._exit(0 if scorer.predict(rows * 1000) == many else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=folder, check=True, timeout=300,
        stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(folder)},
    )  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="no list of loaded files")
def test_the_container_has_all_that_the_service_loads(folder, scorer):
    (requirements,) = REQUIREMENTS.findall(PAGE)
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    needed = {re.split("[>=]", text)[0] for text in project["project"]["dependencies"]}
    left_out = needed - set(requirements.split())
    assert left_out == {"joblib", "scikit-learn", "tqdm", "typer"}
    absent = [MODULES.get(name, name) for name in left_out] + ["pandas"]
    done = subprocess.run(
        [sys.executable, "-c", PREDICT_WITHOUT.format(absent=absent, rows=rows())],
        cwd=folder, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )  # fmt: skip
    prediction, *files = done.stdout.splitlines()
    assert float(prediction) == scorer.predict(rows())[0]
    removed = re.findall(r"pyarrow/[a-z_]+", PAGE[PAGE.index("FROM python") :])
    assert len(removed) == 3
    assert any("pyarrow/libarrow.so" in file for file in files)
    pattern = "|".join([*removed, r"scipy/.*/tests/"])
    assert [file for file in files if re.search(pattern, file)] == []
