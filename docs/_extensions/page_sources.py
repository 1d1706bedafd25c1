"""Name the source of each page, with a link to edit it."""

from __future__ import annotations

from importlib.metadata import metadata
from typing import Any

from sphinx.application import Sphinx

ROOT_PAGES = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}


def source_of_page(pagename: str) -> str | None:
    """Return the file of a page in the repository, or None for generated pages."""
    folder, _, name = pagename.rpartition("/")
    if folder in {"gallery", "worked"}:
        file = "GALLERY_HEADER.rst" if name == "index" else f"{name}.py"
        return f"examples/{folder}/{file}"
    if folder in {"", "papers"} and pagename not in {"genindex", "search", "py-modindex"}:
        return ROOT_PAGES.get(pagename, f"docs/{pagename}.md")
    if folder == "api":
        return f"docs/{pagename}.{'md' if name == 'index' else 'rst'}"
    return None


def repository_address() -> str | None:
    """Return the address of the sources that the package names, which is open before a release."""
    addresses = metadata("gramian").get_all("Project-URL") or []
    return next((text.split(", ")[1] for text in addresses if text.startswith("Source,")), None)


def add_source(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Add the source of a page, and the address where readers edit it, to its context."""
    source, repository = source_of_page(pagename), repository_address()
    context["page_source"] = source
    context["page_source_address"] = (
        f"{repository}/edit/main/{source}" if repository else context["pathto"]("contributing")
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register it."""
    app.connect("html-page-context", add_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
