"""Pages of the site: their code runs and prints what they say, the reference is complete."""

from __future__ import annotations

import ast
import importlib
import math
import re
import shlex
import shutil
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.main import get_command

import gramian
from gramian._parameters.fit_parameters import option_parameters
from gramian.callbacks.checkpoint_file import STATE_FORMAT
from gramian.callbacks.journal import JOURNAL_FORMAT
from gramian.cli import main
from gramian.cli.app import app
from gramian.data.encoding.file import ENCODING_FORMAT
from gramian.model.file.format import MODEL_FORMAT

ROOT = Path(__file__).parents[2]
SOURCES = sorted(Path(gramian.__file__).parent.rglob("*.py"))
PAGES = {path.stem: path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
REFERENCE = sorted((ROOT / "docs" / "api").glob("*.rst"))
GALLERY = sorted((ROOT / "examples").glob("*/plot_*.py"))
BLOCK = re.compile(r"^```(\S*)\n(.*?)^```$", re.M | re.S)
CODE = re.compile(r"^```python\n(.*?)^```\n(?:\n?```text\n(.*?)^```$)?", re.M | re.S)
"""A block of Python, and what it prints where that stands below it."""
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")
WITH_CODE = [name for name, text in PAGES.items() if "\n```python\n" in text]
ELSEWHERE = {"stacking", "serving"}  # in test_readme.py and test_serving.py
CLUSTER = {"clusters"}  # below, with a cluster
WITH_COMMANDS = [name for name, text in PAGES.items() if "\n```sh\n" in text]
BUDGET = re.compile(r'--budget "\d+ s"')
"""Seconds of a search, which are evaluations in tests."""
INSTALLING = {"pip", "env/bin/pip", "python3"}
"""Commands of pages that no test runs: they would change the environment, or ask the network."""


def printed_alike(said: str, expected: str) -> bool:
    """Whether words are the same, and numbers nearly: those of a search depend on the machine."""
    if NUMBER.sub("#", said).split() != NUMBER.sub("#", expected).split():
        return False
    pairs = zip(NUMBER.findall(said), NUMBER.findall(expected), strict=True)
    return all(
        math.isclose(*(float(n.replace(",", "")) for n in pair), rel_tol=0.2, abs_tol=0.02)
        for pair in pairs
    )


def run(page: str, text: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run the blocks of a page, compare what each prints, and return its names."""
    names: dict[str, Any] = {"__name__": page}
    for code, expected in CODE.findall(text):
        capsys.readouterr()
        exec(compile(code, f"{page}.md", "exec"), names)
        said = capsys.readouterr().out
        assert not expected or printed_alike(said, expected), f"{page}.md says otherwise:\n{said}"
    return names


@pytest.mark.slow  # searches with a budget of seconds
@pytest.mark.parametrize("name", sorted({*WITH_CODE} - ELSEWHERE - CLUSTER))
def test_code_of_a_page_runs_and_prints_what_it_says(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    registry = gramian.kernels.kernels  # one page adds to it
    monkeypatch.setattr(registry, "_classes", dict(registry._classes))
    write_sales(tmp_path / "sales.txt")
    run(name, PAGES[name], capsys)


def lines_of(text: str) -> list[list[str]]:
    """Return the commands of gramian in the shell blocks of a page, split as a shell does."""
    shown = "".join(block for kind, block in BLOCK.findall(text) if kind == "sh")
    split = [shlex.split(line, comments=True) for line in shown.splitlines()]
    assert {line[0] for line in split if line} <= {"gramian", *INSTALLING}
    return [line[1:] for line in split if line and line[0] == "gramian"]


def write_sales(path: Path) -> None:
    """Write a text file whose fields are divided by `|` and whose numbers have a decimal comma."""
    rows = range(60)
    lines = (f"0{i % 4}115|{i},5|{20 * i},25|{'low' if i < 30 else 'high'}" for i in rows)
    path.write_text("\n".join(("zip|size|price|target", *lines)), "utf-8")


def tables_in(folder: Path) -> None:
    """Write the tables and the models that commands of pages take for given."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 90))
    labels = np.where(x + 0.3 * rng.normal(size=90) > 0, "high", "low")
    for name, y in (("table", x * z), ("test", labels), ("new", labels)):
        pyarrow.csv.write_csv(pa.table({"x": x, "z": z, "y": y}), folder / f"{name}.csv")
    write_sales(folder / "sales.txt")
    fit = ["fit", "test.csv", "--target", "y", "--kernel", "gaussian", "--out", "m.model"]
    assert main(fit) == main(["sample", "energy", "train.parquet"]) == 0
    fit = ["fit", "train.parquet", "--target", "target", "--landmarks", "20"]
    assert main([*fit, "--kernel", "gaussian", "--out", "houses.model"]) == 0


@pytest.mark.slow  # some fits each
@pytest.mark.parametrize("name", sorted({*WITH_COMMANDS} - CLUSTER))
def test_commands_of_a_page_run(name, tmp_path, monkeypatch, capsys):
    """As they stand, on smaller data and with smaller budgets; README.md's: see test_readme.py."""
    monkeypatch.chdir(tmp_path)
    tables_in(tmp_path)
    text = PAGES[name].replace("california_housing", "energy")
    text = text.replace("--engine triton", "--budget 300000")
    text = BUDGET.sub("--budget 300000", text).replace(
        "gramian tune", "gramian tune --budget 300000"
    )
    text = text.replace("--target price", "--target target")
    for command in lines_of(text):
        if command[0] == "export":
            pytest.importorskip("onnx")
        assert main(command) == 0, (command, capsys.readouterr().err)
        made = [word for option, word in pairwise(command) if option in ("--out", "--reliability")]
        assert all(Path(one).stat().st_size > 0 for one in made)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")  # Dask's, about itself
def test_code_for_a_cluster_runs_on_one_of_this_process(tmp_path, monkeypatch, capsys):
    distributed = pytest.importorskip("distributed")
    lake = tmp_path / "taxi"
    lake.mkdir()
    rng = np.random.default_rng(0)
    for part in range(2):
        names = ("distance", "hour", "fare", "passengers")
        columns = dict(zip(names, rng.uniform(size=(4, 100)), strict=True))
        pq.write_table(pa.table(columns), lake / f"{part}.parquet")
    monkeypatch.chdir(tmp_path)
    settings = dict(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    with distributed.LocalCluster(**settings) as cluster:
        text = PAGES["clusters"].replace("tls://scheduler:8786", cluster.scheduler_address)
        text = text.replace("/lake/taxi/", str(lake)).replace("20_000", "20")
        text = text.replace("/lake/", f"{tmp_path}/").replace("20000", "20").replace("2000", "20")
        run("clusters", text, capsys)["client"].close()
        assert (tmp_path / "fares.model").exists()
        shutil.copytree(lake, tmp_path / "new")
        for command in lines_of(text)[
            :2
        ]:  # `local:4` starts processes: tests/data/dask/test_commands.py
            assert main(command) == 0, capsys.readouterr().err
        assert pq.read_table(tmp_path / "predicted").num_rows == 200


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_pictures_of_the_gallery_are_begun_and_shown_in_one_block(path):
    blocks = re.split(r"^# %%$", path.read_text("utf-8"), flags=re.M)
    drawn = [block for block in blocks if "plt.subplots(" in block]
    assert drawn, "no picture"
    assert all("plt.show()" in block for block in drawn), "it would be shown before it is drawn"


@pytest.mark.parametrize("name", WITH_CODE)
def test_code_of_a_page_fits_beside_the_margins(name):
    lines = [line for code, _ in CODE.findall(PAGES[name]) for line in code.splitlines()]
    assert lines
    assert [line for line in lines if len(line) > 92] == []


def test_there_is_no_code_that_is_not_tried():
    kinds = {kind for text in PAGES.values() for kind, _ in BLOCK.findall(text)}
    assert kinds <= {"python", "sh", "text", "toml", "{toctree}"}
    assert {*WITH_CODE} > {"index", "first_model", "tables", *ELSEWHERE, *CLUSTER}


def commands() -> list[str]:
    """Return the commands of gramian on all pages, those in running text, too."""
    found = []
    for text in PAGES.values():
        for kind, block in BLOCK.findall(text):
            found += re.findall(r"^gramian .*", block, re.M) if kind == "sh" else []
        found += re.findall(r"`(gramian [^`]*)`", BLOCK.sub("", text))
    return found


def test_commands_of_pages_have_the_options_that_they_are_given():
    known = get_command(app).commands
    assert len(commands()) > 40
    for line in commands():
        command, *given = shlex.split(line.replace("\n", " "), comments=True)[1:] or ["--help"]
        if command.startswith("-") or command.isupper():
            continue
        options = {name for p in known[command].params for name in (*p.opts, *p.secondary_opts)}
        used = {word for word in given if word.startswith("--")}
        assert used <= {*options, "--help"}, line


def public_names(module: ModuleType) -> set[str]:
    """Return what a module offers: all that it lists, or defines if it lists nothing."""
    own = [n for n, thing in vars(module).items() if is_from(thing, module) and n[0] != "_"]
    names = getattr(module, "__all__", own)
    return {n for n in installed(names) if not isinstance(getattr(module, n), ModuleType)}


def installed(names: Iterable[str]) -> set[str]:
    """Return names without classes of the extra gpu, where it is not installed."""
    return set(names) - (set() if find_spec("torch") else {"TritonEngine"})


def is_from(thing: object, module: ModuleType) -> bool:
    return getattr(thing, "__module__", None) == module.__name__


@pytest.mark.parametrize("page", REFERENCE, ids=lambda page: page.stem)
def test_reference_has_every_public_name(page):
    text = page.read_text("utf-8")
    (name,) = re.findall(r"^\.\. currentmodule:: (\S+)$", text, re.M)
    listed = set(re.findall(r"^   (\w+(?:\.\w+)*)$", text, re.M))
    listed |= set(re.findall(r"^\.\. data:: (\w+)$", text, re.M))
    module = importlib.import_module(name)
    missing = public_names(module) - listed
    if module is gramian:  # the classes of a layer stand on its page
        missing -= set(gramian.__all__) - {*gramian.estimators.__all__}
    assert not missing
    assert all(found(module, entry) for entry in installed(listed))


def found(module: ModuleType, entry: str) -> bool:
    """Whether a dotted name can be followed from the module."""
    thing: object = module
    for part in entry.split("."):
        thing = getattr(thing, part, None)
    return thing is not None


def test_reference_has_every_public_module():
    modules = {n for n in gramian.__all__ if isinstance(getattr(gramian, n), ModuleType)}
    extra = {"cells", "conformal", "losses", "model", "search", "estimators"}
    assert {page.stem for page in REFERENCE} == modules | extra
    index = (ROOT / "docs" / "api" / "index.md").read_text("utf-8")
    assert all(f"\n{page.stem}\n" in index for page in REFERENCE)


SHOWN = [  # whose classes have one each; helpers and states are shown by those
    *("kernels", "landmarks", "solvers", "losses", "callbacks", "metric", "cells"),
    *("estimators", "plots"),
]
NOT_SHOWN = {  # abstract, states, results, or what a model holds of its cells
    *(
        "Radial",
        "Kernel",
        "Selector",
        "PathSelector",
        "Landmarks",
        "Level",
        "Solver",
        "Loss",
        "Link",
    ),
    *("Result", "Interrupted", "ProblemSize", "Metric", "LearnedMetric", "Round", "Partition"),
    *("Cells", "TreeCells", "CenterCells", "MeanCells", "Share", "estimators.Plan"),
}


def classes_on(page: Path) -> list[str]:
    """Return the classes that a page of the reference lists, but for those not shown."""
    text = page.read_text("utf-8")
    (name,) = re.findall(r"^\.\. currentmodule:: (\S+)$", text, re.M)
    module = importlib.import_module(name)
    listed = set(re.findall(r"^   (\w+)$", text, re.M)) - NOT_SHOWN
    things = {entry: getattr(module, entry) for entry in listed}
    return [n for n, thing in things.items() if isinstance(thing, type) and n[-5:] != "State"]


@pytest.mark.parametrize("page", SHOWN)
def test_classes_of_the_reference_have_an_example(page):
    path = ROOT / "docs" / "api" / f"{page}.rst"
    (name,) = re.findall(r"^\.\. currentmodule:: (\S+)$", path.read_text("utf-8"), re.M)
    module, classes = importlib.import_module(name), classes_on(path)
    assert len(classes) >= 2
    docs = {one: vars(getattr(module, one))["__doc__"] or "" for one in classes}
    assert [one for one, doc in docs.items() if ">>> " not in doc] == []
    when = {one for one, doc in docs.items() if re.search(r"\b(?:Take|Use) (?:it\b|`)", doc)}
    assert page in ("estimators", "plots") or {*classes} - when <= {"Matern12"}


def strings_of(path: Path) -> list[str]:
    """Return the texts of a source file, each as it reads with its values left out."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    joined = [n for n in nodes if isinstance(n, ast.JoinedStr | ast.Constant)]
    return [
        "".join(str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values)
        if isinstance(node, ast.JoinedStr)
        else str(node.value)
        for node in joined
    ]


def test_messages_of_the_error_index_are_ours():
    said = "\n".join(text for path in SOURCES for text in strings_of(path))
    said = re.sub(r"\{([^{}]+)\}", r"\1", said)  # marks of parameters
    said += "\n".join(f"unknown {parameter.name}" for parameter in option_parameters())
    page = (ROOT / "docs" / "errors.md").read_text("utf-8")
    quoted = re.findall(r'^\| "(.*?)" \|', page, re.M)
    assert len(quoted) > 25
    assert [q for q in quoted if q not in said] == []


def test_table_of_file_formats_has_the_versions_of_the_code():
    rows = re.findall(r"^  \| .+ \| (\d+)[^|]*\| (?:\d+ to )?(\d+) \|$", PAGES["serving"], re.M)
    formats = [MODEL_FORMAT, STATE_FORMAT, JOURNAL_FORMAT, ENCODING_FORMAT]
    assert [(int(written), int(newest)) for written, newest in rows] == [
        (one, one) for one in formats
    ]


def test_pages_are_in_the_contents():
    pages = ("index", "guide", "benchmarks", "development")
    contents = "".join((ROOT / "docs" / f"{p}.md").read_text("utf-8") for p in pages)
    missing = [
        page.stem
        for page in (ROOT / "docs").glob("*.md")
        if page.stem != "index" and not re.search(rf"^{page.stem}$", contents, re.M)
    ]
    assert not missing
