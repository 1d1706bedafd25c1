"""Errors read alike: they begin in lower case, or with a name, and end without a full stop."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import gramian

SOURCES = sorted(Path(gramian.__file__).parent.rglob("*.py"))
CAPITAL = re.compile(r"(?!Validate)([A-Z][a-z]+|A)\b")
"""A word that is written large only because it is the first: no K, NaN, or EigenPro2."""


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of what is raised, values in it as ``{}``."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        call = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "ParameterError":
            continue  # its arguments are parts of a sentence, and values such as True
        for argument in call.args if isinstance(call, ast.Call) else ():
            parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
            constant = [part.value if isinstance(part, ast.Constant) else "{}" for part in parts]
            text = "".join(map(str, constant))
            if text not in ("", "{}"):
                yield node.lineno, text


def test_errors_begin_in_lower_case_and_end_without_a_stop() -> None:
    texts = {f"{path}:{line}": text for path in SOURCES for line, text in messages(path)}
    assert len(texts) > 200
    capitals = {place: text for place, text in texts.items() if CAPITAL.match(text)}
    stops = {place: text for place, text in texts.items() if text.endswith(".")}
    assert not capitals
    assert not stops
