"""Build the site: `make docs`, or `make docs-text` without running the gallery.

Pages are stored in docs, at the root, and among the results of benchmarks, where they can be read
without the site. The build copies them to one folder, with adapted links, and adds generated pages.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import package_map
from sphinx.cmd.build import main as sphinx

PROJECT_ROOT = Path(__file__).parents[1]

# Pages from outside docs, and their names on the site.
COPIED_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    **{
        f"benchmarks/results/{page.name}": f"results/{page.name}"
        for page in sorted((PROJECT_ROOT / "benchmarks" / "results").glob("*.md"))
    },
}
PAGE_LINKS = [  # of pages in docs, and of pages at the root
    (r"\]\((\.\./)?CHANGELOG\.md", "](changelog.md"),
    (r"\]\((\.\./)?CONTRIBUTING\.md", "](contributing.md"),
    (r"\]\(\.\./benchmarks/results\)", "](results/index.md)"),
    (r"\]\(\.\./benchmarks/results/", "](results/"),
    (r"\]\(\.\./examples/(gallery|worked)\)", r"](\1/index.rst)"),
    (r"\]\(\.\./examples/(gallery|worked)/(\w+)\.py\)", r"](\1/\2.rst)"),
    (r"\]\(docs/", "]("),
]
PAPER_LINKS = [  # of pages in docs/papers
    (r"\]\(\.\./\.\./benchmarks/results/", "](../results/"),
    (r"\]\(\.\./\.\./src/", "](../src/"),
]
FIGURES_PAGE = """# Figures of all benchmarks

All figures of the [benchmarks](../benchmarks.md), one page for each benchmark, as
`python -m benchmarks NAME` writes them.

```{toctree}
:maxdepth: 1
:glob:

*
```
"""


def main() -> int:
    """Copy the pages, run Sphinx, and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", action="store_true", help="do not run the gallery")
    text = parser.parse_args().text
    name = "docs-text" if text else "docs"
    pages, site = PROJECT_ROOT / "build" / f"{name}-source", PROJECT_ROOT / "build" / name
    package_map.draw()
    copy_pages(pages)
    settings = ["-D", "plot_gallery=0"] if text else []
    settings += ["-c", str(PROJECT_ROOT / "docs"), "-W", "--keep-going", "-q", "-j", "auto"]
    return sphinx(["-b", "html", *settings, str(pages), str(site)])


def copy_pages(pages: Path) -> None:
    """Write all changed pages below `pages`, and delete removed ones."""
    docs = PROJECT_ROOT / "docs"
    written = {pages / "results" / "index.md"}
    copy(pages / "results" / "index.md", FIGURES_PAGE)
    for source in sorted(docs.rglob("*")):
        if source.suffix in {".md", ".rst", ".png", ".svg"}:
            written.add(target := pages / source.relative_to(docs))
            copy(target, source)
    sources = {link: link for link in linked_sources(docs / "papers")}
    for source, place in (COPIED_PAGES | sources).items():
        written.add(pages / place)
        copy(pages / place, PROJECT_ROOT / source)
    for old in {*pages.glob("*.md"), *pages.glob("results/*.md"), *pages.glob("api/*.rst")}:
        if old not in written:
            old.unlink()
    listed = names_in_reference(docs / "api")
    for old in pages.glob("api/generated/*.rst"):
        if old.stem not in listed:
            old.unlink()


def linked_sources(folder: Path) -> list[str]:
    """Return the source files that pages link to, which are downloads of the site."""
    pages = "".join(page.read_text("utf-8") for page in sorted(folder.glob("*.md")))
    return re.findall(r"\]\(\.\./\.\./(src/[^)]+)\)", pages)


def adapt_links(page: str, links: list[tuple[str, str]] = PAGE_LINKS) -> str:
    """Return the page with links that are right in the place of its copy."""
    for old, new in links:
        page = re.sub(old, new, page)
    return page


def names_in_reference(folder: Path) -> set[str]:
    """Return the full names that the reference lists, each of which gets a page."""
    names = set()
    for page in folder.glob("*.rst"):
        text = page.read_text("utf-8")
        (module,) = re.findall(r"^\.\. currentmodule:: (\S+)$", text, re.M)
        names |= {f"{module}.{name}" for name in re.findall(r"^   (\w+(?:\.\w+)*)$", text, re.M)}
    return names


def copy(target: Path, source: Path | str) -> None:
    """Write a page or a picture if it differs: Sphinx rebuilds files by their time of change."""
    if isinstance(source, str):
        content = source.encode()
    elif source.parent in {PROJECT_ROOT, PROJECT_ROOT / "docs"}:
        content = adapt_links(source.read_text("utf-8")).encode()
    elif source.parent == PROJECT_ROOT / "docs" / "papers":
        content = adapt_links(source.read_text("utf-8"), PAPER_LINKS).encode()
    else:
        content = source.read_bytes()
    if not target.exists() or target.read_bytes() != content:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
