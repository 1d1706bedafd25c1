"""Whatever the library says, the command line says it of its options."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gramian
from gramian.cli.words import OPTIONS, in_options

HOME = Path(gramian.__file__).parent
ELSEWHERE = ("cli", "estimators")  # speaks of options; is not used by the command line
SOURCES = [
    path for path in sorted(HOME.rglob("*.py")) if path.relative_to(HOME).parts[0] not in ELSEWHERE
]
FLAGS = ["early_stopping", "validation_fraction", "warm_start"]
OTHERS = ["columns", "callbacks", "centers_file", "resume", "state"]
BARE = [
    "tol",
    "max_iter",
    "memory_limit",
    "random_state",
    "every_seconds",
    "centers_file",
    "time_limit",
]
PYTHON = re.compile(
    rf"(?<![\w-])({'|'.join([*OPTIONS, *FLAGS, *OTHERS])})="
    rf"|(?<![\w-])({'|'.join([*BARE, *FLAGS])})\b(?! \()"
    r"|\best\.|\bState\(|\bsolve\(|\bBlessR\("
)

UNREACHABLE = (
    # parameters that no option sets
    "centers_file={} keeps landmarks",
    "centers_file",
    "penalty='auto' chooses new landmarks, and warm_start=True",
    "chooses new landmarks, and warm_start=True",
    "give penalty=est.penalty_",
    "callbacks must be a list",
    "cv={} has no splits",
    "validation_fraction must be between 0 and 1",
    "early_stopping=False",  # of partial_fit
    "early_stopping must be",
    # a kernel has its lengthscale from --lengthscale
    "has no effect on a kernel object",
    # sparse rows, points as landmarks, selectors with a penalty: from no file
    "the kernel {} needs dense rows",
    "is none of: None, a whole number, 'auto', the name of a selector",
    "needs m, a number of landmarks, or penalty",
    # displays are of estimators
    "has no path of penalties: fit it with",
)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of all that may be said: strings of words that are no docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    quiet = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = node.values
            quiet |= {id(part) for part in parts}
        else:
            parts = [node]
        if id(node) in quiet or not all(
            isinstance(part, ast.Constant | ast.FormattedValue) for part in parts
        ):
            continue
        whole = [part.value if isinstance(part, ast.Constant) else "{}" for part in parts]
        text = "".join(map(str, whole))
        if text.count(" ") > 1:
            yield node.lineno, text


def test_there_are_texts_to_look_at():
    assert sum(bool(PYTHON.search(text)) for path in SOURCES for _, text in texts(path)) > 15


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(HOME)))
def test_no_text_of_the_library_speaks_python_on_the_command_line(path):
    for line, text in texts(path):
        if not any(part in text for part in UNREACHABLE):
            assert not PYTHON.search(in_options(text)), f"{path}:{line}: {in_options(text)}"


SAID = {
    "and landmarks=RPCholesky(m=9, tol=(1, 2)) has none": "and --landmarks rpcholesky:9 has none",
    "landmarks=None has": "--landmarks none has",
    "stopped after max_iter=3 iterations, above tol=1.0e-06:": (
        "stopped after --max-iter 3 iterations, above --tol 1.0e-06:"
    ),
    "it has max_iter, tol": "it has max_iter, tol",  # columns of a table
    "such as Falkon(penalty=1)": "such as Falkon(penalty=1)",
    "max_iter must be a whole number": "--max-iter must be a whole number",
    "--memory-limit='lots' is not a size": "--memory-limit='lots' is not a size",
}


@pytest.mark.parametrize("text", SAID)
def test_parameters_become_options(text):
    assert in_options(text) == SAID[text]
