"""Structure of the source: no import circles, and no long functions."""

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def structure(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.structure")


def test_no_modules_import_each_other(structure):
    assert structure.import_circles(structure.parse_package()) == []


def test_a_circle_of_type_imports_is_found(structure):
    trees = {
        structure.PACKAGE / "a.py": ast.parse("from .b import f"),
        structure.PACKAGE / "b.py": ast.parse("if TYPE_CHECKING:\n    from . import a"),
        structure.PACKAGE / "c.py": ast.parse("from . import a"),
    }
    assert structure.import_circles(trees) == [["gramian.a", "gramian.b"]]


def test_functions_are_short(structure):
    assert structure.long_functions(structure.parse_package()) == []


def test_docstrings_and_comments_do_not_make_a_function_long(structure, tmp_path, monkeypatch):
    monkeypatch.setattr(structure, "PACKAGE", tmp_path)
    body = "\n".join(f"    x = {k}" for k in range(structure.LONG_FUNCTION_LINES - 1))
    documented = f'def f():\n    """Do.\n\n    More.\n    """\n    # Why.\n{body}\n'
    path = tmp_path / "a.py"
    for code, long in ((documented, []), (documented + "    return x\n", ["a.py:f 41"])):
        path.write_text(code)
        assert structure.long_functions({path: ast.parse(code)}) == long
