"""Structure of the package: files, lines and functions, and how many of them one fit enters.

`python -m benchmarks.structure` prints the figures; `--files` adds the files that the fits enter.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd

import gramian
from gramian import KernelRidge

PACKAGE = Path(gramian.__file__).parent
LONG_FUNCTION_LINES = 40
LONG_FILE_LINES = 250
SIGNATURE_PACKAGES = ("fitting", "estimators", "cli")
IGNORE_COMMENT = re.compile(r"#\s*(type: ignore|noqa)")

GIVEN = {
    "kernel": "gaussian", "lengthscale": 1.3, "penalty": 1e-4, "landmarks": 60, "solver": "falkon",
    "standardize": False, "standardize_target": False, "max_iter": 20, "tol": 1e-6,
    "engine": "torch", "random_state": 0,
}  # fmt: skip
"""Parameters of a fit that leave nothing to choose."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structure", description=__doc__)
    parser.add_argument("--files", action="store_true", help="list the files that the fits enter")
    options = parser.parse_args()
    trees = parse_package()
    print_sizes(list(trees))
    print_fits(options.files)
    print_shapes(trees)


def parse_package() -> dict[Path, ast.Module]:
    """Return the syntax trees of all modules, by their files."""
    return {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def print_sizes(paths: list[Path]) -> None:
    """Print files and lines by package."""
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path in paths:
        package = path.relative_to(PACKAGE).parts[0]
        package = "(top)" if package.endswith(".py") else package
        for name in (package, "all"):
            files[name] += 1
            lines[name] += count_lines(path)
    for package in sorted(files):
        print(f"{package:16} {files[package]:4} files {lines[package]:6,} lines")


def print_fits(is_listed: bool) -> None:
    """Print what a FALKON fit enters, on arrays and on a frame."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    y = np.sin(X @ np.arange(1, 4))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["town"] = np.array(["Rome", "Oslo", "Bonn"])[rng.integers(0, 3, len(X))]
    for name, rows in {"arrays": X, "a frame": frame}.items():
        entered = entered_functions(lambda rows=rows: KernelRidge(**GIVEN).fit(rows, y))
        files = Counter(file for file, _ in entered)
        print(f"a fit on {name} enters {len(files)} files and {len(entered)} functions")
        packages = Counter(Path(file).parts[0] for file in files)
        print("  files:", ", ".join(f"{k} {v}" for k, v in packages.most_common()))
        packages = Counter(Path(file).parts[0] for file, _ in entered)
        print("  functions:", ", ".join(f"{k} {v}" for k, v in packages.most_common()))
        if is_listed:
            for file in sorted(files):
                names = sorted(code.co_qualname for path, code in entered if path == file)
                print(f"  {file}: {', '.join(names)}")


def entered_functions(fit: Callable[[], object]) -> set[tuple[str, object]]:
    """Return the functions of the package that a fit enters, once imports are done."""
    fit()
    entered = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(f"{PACKAGE}/"):
            file = str(Path(frame.f_code.co_filename).relative_to(PACKAGE))
            if frame.f_code.co_name not in ("<genexpr>", "<lambda>", "<listcomp>", "<dictcomp>"):
                entered.add((file, frame.f_code))

    sys.setprofile(note)
    try:
        fit()
    finally:
        sys.setprofile(None)
    return entered


def print_shapes(trees: dict[Path, ast.Module]) -> None:
    """Print long functions and files, import circles, full folders, `Any` and ignores."""
    title = f"functions over {LONG_FUNCTION_LINES} lines, without docstrings"
    print_list(title, long_functions(trees))
    long_files = [
        f"{path.relative_to(PACKAGE)} {count_lines(path)}"
        for path in trees
        if count_lines(path) > LONG_FILE_LINES
    ]
    print_list(f"files over {LONG_FILE_LINES} lines", long_files)
    circles = import_circles(trees)
    print_list("import circles", [f"{len(circle)}: {' '.join(circle)}" for circle in circles])
    folder, entries = Counter(path.parent for path in trees).most_common(1)[0]
    print(f"entries of the fullest folder: {entries} in {folder.relative_to(PACKAGE.parent)}")
    print("parameters and returns of type Any:", count_any(functions(trees)))
    ignores = sum(len(IGNORE_COMMENT.findall(path.read_text())) for path in trees)
    print("ignores:", ignores)


def functions(
    trees: dict[Path, ast.Module],
) -> list[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Return all functions and methods, with their files."""
    return [
        (path, node)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def long_functions(trees: dict[Path, ast.Module]) -> list[str]:
    """Return functions over 40 lines, docstrings and comments not counted, and their lines."""
    lengths = [
        (
            f"{path.relative_to(PACKAGE)}:{node.name}",
            count_code(node, path.read_text().splitlines()),
        )
        for path, node in functions(trees)
        if (node.end_lineno or node.lineno) - node.lineno >= LONG_FUNCTION_LINES
    ]
    return [f"{name} {length}" for name, length in lengths if length > LONG_FUNCTION_LINES]


def print_list(title: str, items: list[str]) -> None:
    print(f"{title}: {len(items)}")
    for item in items:
        print(f"  {item}")


def count_lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def count_code(node: ast.FunctionDef | ast.AsyncFunctionDef, file_lines: list[str]) -> int:
    """Return the lines of a function without its docstring and own-line comments."""
    own_lines = file_lines[node.lineno - 1 : node.end_lineno]
    count = sum(not line.lstrip().startswith("#") for line in own_lines)
    if ast.get_docstring(node) is None:
        return count
    text = node.body[0]
    return count - ((text.end_lineno or text.lineno) - text.lineno + 1)


def count_any(functions: list[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]) -> int:
    """Return the parameters and results that are `Any` and nothing else."""
    count = 0
    for path, node in functions:
        if path.relative_to(PACKAGE).parts[0] not in SIGNATURE_PACKAGES:
            continue
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        types = [*(argument.annotation for argument in arguments), node.returns]
        count += sum(isinstance(each, ast.Name) and each.id == "Any" for each in types)
    return count


def import_circles(trees: dict[Path, ast.Module]) -> list[list[str]]:
    """Return groups of modules that import each other, if only for their types.

    An import of a name from a package counts as one of the module that has it.
    """
    modules = {module_name(path): path for path in trees}
    compiled = {module_name(path): path for path in PACKAGE.rglob("*.pyi")}
    graph = {
        name: set(
            imported_modules(name, trees[path], modules | compiled, path.name == "__init__.py")
        )
        for name, path in modules.items()
    } | {name: set() for name in compiled}
    return [sorted(group) for group in strong_components(graph) if len(group) > 1]


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(
    name: str, tree: ast.Module, modules: dict[str, Path], is_package: bool
) -> Iterator[str]:
    """Yield the modules of the package that a module imports at its top level."""
    for node in top_level(tree.body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        if not isinstance(node, ast.ImportFrom):
            continue
        base = name.split(".") if is_package else name.split(".")[:-1]
        base = base[: len(base) - node.level + 1] if node.level else []
        source = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            inner = f"{source}.{alias.name}"
            target = inner if inner in modules else source
            if target in modules and target != name:
                yield target


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements outside functions and classes, those under `if` and `try` included."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from top_level([*node.body, *node.orelse])


def strong_components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of a graph, by reachability in both directions."""
    reach = {name: reachable(graph, name) for name in graph}
    done: set[str] = set()
    components = []
    for name in graph:
        if name not in done:
            group = {name} | {other for other in reach[name] if name in reach[other]}
            done |= group
            components.append(group)
    return components


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return the modules that one leads to."""
    seen: set[str] = set()
    queue = [start]
    while queue:
        for other in graph[queue.pop()]:
            if other not in seen:
                seen.add(other)
                queue.append(other)
    return seen


if __name__ == "__main__":
    main()
