"""Pages of the site: their code runs, the reference is complete, quoted messages exist."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import gramian

ROOT = Path(__file__).parents[1]
SOURCES = sorted(Path(gramian.__file__).parent.rglob("*.py"))
PAGES = ["index", "install", "first_model", "choosing", "kernels", "large", "plan", "coming_from"]
PAGES += ["pictures", "spatial", "molecules", "gpus", "everything"]
REFERENCE = sorted((ROOT / "docs" / "api").glob("*.rst"))


@pytest.mark.slow  # searches with a budget of seconds
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", PAGES)
def test_code_of_a_page_runs_as_printed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    code = "".join(re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S))
    assert code
    exec(compile(code, f"{name}.md", "exec"), {"__name__": name})


def test_pages_with_code_are_all_tried():
    elsewhere = {"intervals", "losses", "stacking", "text"}  # in test_readme.py
    excerpts = {"accuracy", "deviations", "probabilities"}
    texts = {p.stem: p.read_text("utf-8") for p in (ROOT / "docs").glob("*.md")}
    with_code = {name for name, text in texts.items() if "\n```python\n" in text}
    assert with_code == {*PAGES, *elsewhere, *excerpts}


def public_names(module: ModuleType) -> set[str]:
    """Return what a module offers: all that it lists, or defines if it lists nothing."""
    own = [n for n, thing in vars(module).items() if is_from(thing, module) and n[0] != "_"]
    names = getattr(module, "__all__", own)
    return {n for n in names if not isinstance(getattr(module, n), ModuleType)}


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
        missing -= {n for n, home in gramian._HOME.items() if home != "estimators"}
    assert not missing
    assert all(found(module, entry) for entry in listed)


def found(module: ModuleType, entry: str) -> bool:
    """Whether a dotted name can be followed from the module."""
    thing: object = module
    for part in entry.split("."):
        thing = getattr(thing, part, None)
    return thing is not None


def test_reference_has_every_public_module():
    modules = {n for n in gramian.__all__ if isinstance(getattr(gramian, n), ModuleType)}
    extra = {"cells", "losses", "model", "search", "estimators"}
    assert {page.stem for page in REFERENCE} == modules | extra
    index = (ROOT / "docs" / "api" / "index.md").read_text("utf-8")
    assert all(f"\n{page.stem}\n" in index for page in REFERENCE)


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
    page = (ROOT / "docs" / "errors.md").read_text("utf-8")
    quoted = re.findall(r'^\| "(.*?)" \|', page, re.M)
    assert len(quoted) > 25
    assert [q for q in quoted if q not in said] == []


def test_pages_are_in_the_contents():
    contents = "".join((ROOT / "docs" / f"{p}.md").read_text("utf-8") for p in ("index", "guide"))
    missing = [
        page.stem
        for page in (ROOT / "docs").glob("*.md")
        if page.stem != "index" and not re.search(rf"^{page.stem}$", contents, re.M)
    ]
    assert not missing
