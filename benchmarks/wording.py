"""Check the wording of docstrings, messages, pages and names against ceilings that only fall.

`python -m benchmarks.wording` reads `wording.toml`; `--list KIND` prints every place of a kind.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gramian"


class Place(NamedTuple):
    """Line of a file with wording to avoid."""

    file: str
    line: int
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wording", description=__doc__)
    parser.add_argument("--list", metavar="KIND", help="print the places, as src.idioms")
    options = parser.parse_args()
    rules = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    places = find_places(rules)
    if options.list:
        print(*(f"{p.file}:{p.line}: {p.text}" for p in places[options.list]), sep="\n")
        return
    errors = compare_with_ceilings(places, rules["ceilings"])
    print(*errors, sep="\n", end="\n" if errors else "")
    sys.exit(bool(errors))


def find_places(rules: dict[str, Any]) -> dict[str, list[Place]]:
    """Return the places of each kind that are not allowed, as ``"src.idioms"``."""
    places = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        text, file = path.read_text(), str(path.relative_to(SOURCE))
        tree = ast.parse(text)
        places["src.idioms"] += find_idioms(file, python_prose(tree, text), rules["idioms"])
        places["src.messages"] += find_idioms(file, python_texts(tree), rules["idioms"])
        for kind, line, name in unclear_names(tree, rules["names"]):
            places[f"src.{kind}"].append(Place(file, line, name))
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        prose = markdown_prose(path.read_text())
        places["pages.idioms"] += find_idioms(str(path.relative_to(ROOT)), prose, rules["idioms"])
    allowed = {(entry["file"], entry["text"]) for entry in rules["allowed"]}
    return {
        kind: [p for p in found_places if (p.file, p.text) not in allowed]
        for kind, found_places in places.items()
    }


def compare_with_ceilings(
    places: dict[str, list[Place]], ceilings: dict[str, dict[str, int]]
) -> list[str]:
    """Return an error for each kind with more places than its ceiling, or fewer."""
    errors = []
    for group, kinds in ceilings.items():
        for kind, ceiling in kinds.items():
            count = len(places.get(f"{group}.{kind}", []))
            if count > ceiling:
                errors.append(
                    f"{group}.{kind}: {count} places, allowed {ceiling}; list them by "
                    f"`python -m benchmarks.wording --list {group}.{kind}`"
                )
            elif count < ceiling:
                errors.append(f"{group}.{kind}: {count} places; lower the ceiling of {ceiling}")
    return errors


def find_idioms(
    file: str, prose: Iterator[tuple[int, str]], patterns: dict[str, str]
) -> Iterator[Place]:
    """Yield the places of a text that match a pattern."""
    for line, text in prose:
        for pattern in patterns.values():
            for _ in re.finditer(pattern, text):
                yield Place(file, line, text.strip())


def python_prose(tree: ast.Module, text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of docstrings and comments, with their numbers."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Constant(str() as docstring)):
                yield from enumerate(docstring.splitlines(), node.lineno)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def python_texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the strings of two words and more that are no docstrings: messages and help texts."""
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(str() as text) if " " in text and id(node) not in docstrings:
                yield node.lineno, text


def markdown_prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page outside code blocks, with their numbers."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, line


def unclear_names(tree: ast.Module, rules: dict[str, str]) -> Iterator[tuple[str, int, str]]:
    """Yield kind, line and name of variables, functions and constants with unclear names."""
    empty, words = set(rules["empty"].split()), set(rules["words"].split())
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Store()) if name.strip("_") in empty:
                yield "names", node.lineno, name
            case ast.FunctionDef(name) if name.strip("_") in empty - words:
                yield "functions", node.lineno, name
            case ast.FunctionDef(name) if re.match(rules["participle"], name.strip("_")):
                if name.strip("_") not in words:
                    yield "functions", node.lineno, name
    for line, name in one_word_constants(tree):
        yield "constants", line, name


def one_word_constants(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of module constants of one word."""
    for statement in tree.body:
        match statement:
            case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
                if name.isupper() and "_" not in name.strip("_"):
                    yield statement.lineno, name


if __name__ == "__main__":
    main()
