"""The glossary lists the words of public names."""

import importlib
import pkgutil
import re
from pathlib import Path

import gramian

PAGE = Path(__file__).parents[2] / "docs" / "glossary.md"


def public_names() -> set[str]:
    """Return the names that the public packages export."""
    names = {*gramian.__all__, "TritonEngine"}  # exported where torch is installed
    for module in pkgutil.walk_packages(gramian.__path__, "gramian."):
        if module.ispkg and not any(part.startswith("_") for part in module.name.split(".")):
            names.update(getattr(importlib.import_module(module.name), "__all__", ()))
    return {name for name in names if not name.startswith("__")}


def words_of(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)}


def listed_words() -> list[str]:
    section = PAGE.read_text().split("## Words of public names")[1].split("\n\n")[2]
    return section.replace("\n", " ").strip().split(", ")


def test_words_of_public_names_are_in_the_glossary():
    words = {name: words_of(name) - set(listed_words()) for name in public_names()}
    assert {name: missing for name, missing in words.items() if missing} == {}


def test_each_word_of_the_glossary_is_in_a_public_name():
    assert set(listed_words()) == set().union(*map(words_of, public_names()))
    assert listed_words() == sorted(listed_words())


def test_words_of_a_name():
    assert words_of("KernelRidgeCV") == {"kernel", "ridge", "cv"}
    assert words_of("RPCholesky") == {"rp", "cholesky"}
    assert words_of("SKETCHY_SAGA_2") == {"sketchy", "saga", "2"}
