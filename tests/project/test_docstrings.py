"""Everything public says what it is: the linter cannot see a docstring that is inherited."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import gramian

ROOT = Path(gramian.__file__).parent
WITH_EXAMPLES = [
    ".".join(("gramian", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(ROOT.rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]
MODULES = ["gramian", *(m.name for m in pkgutil.walk_packages(gramian.__path__, "gramian."))]


def public_objects(module: object) -> Iterator[tuple[str, object]]:
    """Yield what `module` itself defines under a public name: classes, their methods, functions."""
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield name, thing
        if inspect.isclass(thing):
            yield from (
                (f"{name}.{attribute}", getattr(thing, attribute))
                for attribute, value in vars(thing).items()
                if not attribute.startswith("_")
                and isinstance(value, property | classmethod | staticmethod | type(public_objects))
            )


def test_public_names_are_documented():
    undocumented = []
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in {"torch", "triton"}:
                raise
            continue  # a module of the extra gpu
        named = [("", module), *public_objects(module)]
        undocumented += [f"{name}.{what}" for what, thing in named if not inspect.getdoc(thing)]
    assert not undocumented


@pytest.mark.slow  # some search
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_print_what_they_say(name, tmp_path, monkeypatch):
    if "plots" in name:
        pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    module, how = importlib.import_module(name), doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(verbose=False, optionflags=how)
    for test in doctest.DocTestFinder().find(module, name):
        # Names that a package loads when they are first used are not among its globals yet.
        used = [key for key in getattr(module, "__all__", ()) if key in (test.docstring or "")]
        test.globs.update((key, getattr(module, key)) for key in used)
        runner.run(test)
    assert runner.tries > 0
    assert runner.failures == 0, "what was printed instead stands above"


def test_there_are_modules_with_examples():
    assert len(WITH_EXAMPLES) > 20
