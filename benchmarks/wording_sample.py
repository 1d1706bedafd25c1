"""Write a random sample of the wording at an earlier commit and now: `results/wording.md`.

`python -m benchmarks.wording_sample 31ede14` draws functions and classes that have the same name in
both trees, errors of such functions, renamed files, and pages.
"""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTPUT = Path(__file__).parent / "results" / "wording.md"
SEED = 41
SHOWN_LINES = 12
COUNTS = {"docstrings": 60, "errors": 30, "file names": 20, "pages": 10}
INTRODUCTION = """# Wording before and after

A random sample (seed {seed}) of functions and classes that have the same name at {base} and now,
and of errors that functions raise; equal texts are shown once. The sample is written by
`python -m benchmarks.wording_sample {base}`.
"""


def main() -> None:
    (base,) = sys.argv[1:]
    before, now = trees(base), trees(None)
    samples = {
        "docstrings": pairs(docstrings(before), docstrings(now)),
        "errors": pairs(errors(before), errors(now)),
        "pages": pairs(pages(base), pages(None)),
    }
    rng = random.Random(SEED)
    parts = [INTRODUCTION.format(seed=SEED, base=base)]
    for title, count in COUNTS.items():
        parts.append(f"## {count} {title}\n")
        if title == "file names":
            names = sorted(rng.sample(renamed_files(base), count))
            parts.append("| before | after |\n|---|---|")
            parts += [f"| `{old}` | `{new}` |" for old, new in names]
            parts.append("")
        else:
            chosen = rng.sample(sorted(samples[title].items()), count)
            parts += [show(name, old, new) for name, (old, new) in chosen]
    OUTPUT.write_text("\n".join(parts), encoding="utf-8")


def git(*arguments: str) -> str:
    """Return the output of git."""
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout


def texts(base: str | None, folder: str, suffix: str) -> Iterator[tuple[str, str]]:
    """Yield the paths and contents of files, at a commit or in the working tree."""
    listing = ["ls-tree", "-r", "--name-only", base, folder] if base else ["ls-files", folder]
    for path in git(*listing).splitlines():
        if path.endswith(suffix):
            yield path, git("show", f"{base}:{path}") if base else (ROOT / path).read_text()


def trees(base: str | None) -> list[ast.Module]:
    """Return the syntax trees of the package."""
    return [ast.parse(text) for _, text in texts(base, "src/gramian", ".py")]


def definitions(modules: list[ast.Module]) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """Return functions and classes whose name, with the name of the class, is unique."""
    named_nodes: list[tuple[str, ast.FunctionDef | ast.ClassDef]] = []

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                named_nodes.append((prefix + child.name, child))
                walk(child, f"{prefix}{child.name}.")

    for module in modules:
        walk(module, "")
    counts = Counter(name for name, _ in named_nodes)
    return {name: node for name, node in named_nodes if counts[name] == 1}


def docstrings(modules: list[ast.Module]) -> dict[str, str]:
    """Return docstrings by the names of their functions and classes."""
    named_texts = ((name, ast.get_docstring(node)) for name, node in definitions(modules).items())
    return {name: text for name, text in named_texts if text}


def errors(modules: list[ast.Module]) -> dict[str, str]:
    """Return the errors of functions that raise a single one."""
    raised = {}
    for name, node in definitions(modules).items():
        own = [
            n for n in ast.walk(node) if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)
        ]
        if isinstance(node, ast.FunctionDef) and len(own) == 1:
            raised[name] = "\n".join(textwrap.wrap(ast.unparse(own[0].exc), 100))
    return raised


def pages(base: str | None) -> dict[str, str]:
    """Return the first paragraph of each page."""
    first = {}
    for path, text in [*texts(base, "docs", ".md"), *texts(base, "README.md", ".md")]:
        paragraphs = [p for p in text.split("\n\n") if re.match(r"[A-Z`*]", p)]
        if paragraphs:
            first[path] = "\n".join(textwrap.wrap(" ".join(paragraphs[0].split()), 100))
    return first


def renamed_files(base: str) -> list[tuple[str, str]]:
    """Return the old and new names of modules that git recognises as renamed."""
    rows = git("diff", "-M40%", "--diff-filter=R", "--name-status", base, "HEAD", "--", "src")
    names = (row.split("\t")[1:] for row in rows.splitlines())
    short = ((a.removeprefix("src/gramian/"), b.removeprefix("src/gramian/")) for a, b in names)
    return [pair for pair in short if pair[0].endswith(".py")]


def pairs(before: dict[str, str], now: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return both texts of the names that both have."""
    return {name: (text, now[name]) for name, text in before.items() if name in now}


def show(name: str, old: str, new: str) -> str:
    """Return a pair in Markdown; long texts are cut."""
    cut = ["\n".join(text.splitlines()[:SHOWN_LINES]).strip() for text in (old, new)]
    labels = ["Unchanged"] if old == new else ["Before", "After"]
    labelled = zip(labels, cut, strict=False)
    fenced = [f"{label}:\n\n```text\n{text}\n```\n" for label, text in labelled]
    return f"**{name}**\n\n" + "\n".join(fenced)


if __name__ == "__main__":
    main()
