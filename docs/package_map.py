"""Draw the imports between the parts of the package: `docs/package_map.svg`, by `make docs`.

Rows import columns. Parts are in the order of the layers in pyproject.toml, which the linter keeps,
so that all squares are below the diagonal.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PROJECT_ROOT = Path(__file__).parents[1]
PACKAGE_FOLDER = PROJECT_ROOT / "src" / "gramian"
CELL_PIXELS = 22
LABEL_PIXELS = 120
DARKEST_IMPORTS = 40
"""Number of imports between two parts from which a square has the darkest color."""


def layers() -> list[str]:
    """Return the parts of the package, the highest layer first."""
    settings = tomllib.loads((PROJECT_ROOT / "pyproject.toml").read_text("utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    return [part for layer in contract["layers"] for part in re.findall(r"\w+", layer)]


def imported_names(path: Path) -> Iterator[str]:
    """Yield the modules of the package that a file imports, for types or to run."""
    module = ("gramian", *path.relative_to(PACKAGE_FOLDER).with_suffix("").parts)
    package = module[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            parts = (*base, *(node.module or "").split(".")) if node.module else base
            if len(parts) > 1:
                yield ".".join(parts)
            else:
                yield from (".".join((*parts, alias.name)) for alias in node.names)


def count_imports() -> Counter[tuple[str, str]]:
    """Return how many imports of a part the files of another one have."""
    counts: Counter[tuple[str, str]] = Counter()
    for path in sorted(PACKAGE_FOLDER.rglob("*.py")):
        part = path.relative_to(PACKAGE_FOLDER).parts[0].removesuffix(".py")
        for name in imported_names(path):
            if name.startswith("gramian."):
                counts[part, name.split(".")[1]] += 1
    return counts


def picture(parts: list[str], counts: Counter[tuple[str, str]]) -> str:
    """Return the text of an SVG file: a square for each pair of parts with imports."""
    side = LABEL_PIXELS + CELL_PIXELS * len(parts)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}" '
        f'width="{side}" font-family="sans-serif" font-size="12">',
        f'<rect width="{side}" height="{side}" fill="white"/>',
    ]
    for i, part in enumerate(parts):
        y = LABEL_PIXELS + CELL_PIXELS * i
        middle = y + CELL_PIXELS * 0.7
        lines.append(f'<text x="{LABEL_PIXELS - 6}" y="{middle}" text-anchor="end">{part}</text>')
        lines.append(
            f'<text transform="translate({middle},{LABEL_PIXELS - 6}) rotate(-90)">{part}</text>'
        )
        lines.append(
            f'<rect x="{y}" y="{y}" width="{CELL_PIXELS}" height="{CELL_PIXELS}" fill="#ddd"/>'
        )
        for j, imported in enumerate(parts):
            if counts[part, imported] and i != j:
                x, shade = LABEL_PIXELS + CELL_PIXELS * j, counts[part, imported] / DARKEST_IMPORTS
                lines.append(
                    f'<rect x="{x + 1}" y="{y + 1}" width="{CELL_PIXELS - 2}" '
                    f'height="{CELL_PIXELS - 2}" fill="#1f5fa8" '
                    f'fill-opacity="{0.15 + 0.85 * min(shade, 1):.2f}">'
                    f"<title>{part} imports {imported}: {counts[part, imported]}</title></rect>"
                )
    return "\n".join([*lines, "</svg>", ""])


def draw() -> None:
    """Write the picture next to the pages."""
    path = PROJECT_ROOT / "docs" / "package_map.svg"
    path.write_text(picture(layers(), count_imports()), "utf-8")


if __name__ == "__main__":
    draw()
