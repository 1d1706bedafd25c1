"""The ceilings of wording: what they find, and that they only fall."""

import ast
import importlib
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
RULES = tomllib.loads((ROOT / "benchmarks" / "wording.toml").read_text())


@pytest.fixture
def wording(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.wording")


def test_the_project_meets_its_ceilings(wording):
    assert wording.compare_with_ceilings(wording.find_places(RULES), RULES["ceilings"]) == []


@pytest.mark.parametrize("ceiling", [0, 1, 2])
def test_a_ceiling_is_the_count(wording, ceiling):
    places = {"src.names": [wording.Place("a.py", 1, "found")]}
    errors = wording.compare_with_ceilings(places, {"src": {"names": ceiling}})
    assert len(errors) == (ceiling != 1)


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ("found = 1", ["names"]),
        ("def scaled(): pass", ["functions"]),
        ("def fixed(): pass", []),
        ("ROWS = 1", ["constants"]),
        ("ROWS: int = 1", ["constants"]),
        ("MAX_ROWS = scaled_rows = 1", []),
    ],
)
def test_unclear_names(wording, code, kinds):
    found = wording.unclear_names(ast.parse(code), RULES["names"])
    assert [kind for kind, _, _ in found] == kinds


def test_idioms_of_docstrings_and_comments(wording):
    code = '"""What is kept."""\nx = "what is kept"  # the rows stand below\n'
    prose = wording.python_prose(ast.parse(code), code)
    assert [p.line for p in wording.find_idioms("a.py", prose, RULES["idioms"])] == [1, 2]


def test_idioms_of_messages(wording):
    code = '"""What is kept."""\nraise ValueError(f"{x} is none of {y}")\n'
    places = wording.find_idioms("a.py", wording.python_texts(ast.parse(code)), RULES["idioms"])
    assert [p.line for p in places] == [2]


def test_code_of_pages_is_not_prose(wording):
    page = "text\n```\nwhat is code\n```\nanew\n"
    places = wording.find_idioms("a.md", wording.markdown_prose(page), RULES["idioms"])
    assert [p.line for p in places] == [5]


def test_allowed_places_exist(wording):
    no_exceptions = wording.find_places(RULES | {"allowed": []})
    found = {(p.file, p.text) for places in no_exceptions.values() for p in places}
    assert [a for a in RULES["allowed"] if (a["file"], a["text"]) not in found] == []
    assert all(entry["reason"] for entry in RULES["allowed"])
