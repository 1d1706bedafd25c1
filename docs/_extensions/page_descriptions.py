"""Give each page a title that no other page has, and its first paragraph as description."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

MAXIMUM_LENGTH = 160  # search engines cut longer descriptions
PAGE_TITLES = {"index": "Kernel ridge regression at any size", "api/estimators": "Estimators"}
"""Titles of pages whose heading is the name of the package, as the name of the site is."""
GENERATED_PAGES = {
    "genindex": "All classes, functions, parameters and terms of gramian in alphabetical order.",
    "py-modindex": "All modules of gramian in alphabetical order.",
    "search": "Search in the pages of gramian.",
}


def describe_page(doctree: nodes.Node | None, pagename: str, title: str) -> str:
    """Return the first paragraph of running text, shortened at a word, or else the title."""
    if doctree is None:
        return GENERATED_PAGES.get(pagename, title)
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if text and not is_aside(paragraph):
            return shorten(text)
    return f"{title}: reference of gramian."


def is_aside(paragraph: nodes.Node) -> bool:
    """Return whether a paragraph belongs to an admonition, a table or a list."""
    asides = nodes.Admonition | nodes.table | nodes.list_item
    while paragraph := paragraph.parent:
        # Sphinx derives the entries of the reference from admonitions.
        if isinstance(paragraph, asides) and not isinstance(paragraph, addnodes.desc):
            return True
    return False


def shorten(text: str) -> str:
    """Return at most `MAXIMUM_LENGTH` characters: whole words, and an ellipsis for the others."""
    if len(text) <= MAXIMUM_LENGTH:
        return text
    return text[:MAXIMUM_LENGTH].rpartition(" ")[0].rstrip(",;:") + " …"


def title_page(pagename: str, title: str) -> str:
    """Return the full name of an entry of the reference: several modules have a `make`."""
    folder, _, name = pagename.rpartition("/")
    return name if folder == "api/generated" else PAGE_TITLES.get(pagename, title)


def describe(
    app: Sphinx,
    pagename: str,
    template: str,
    context: dict[str, Any],
    doctree: nodes.Node | None,
) -> None:
    """Set the title of a page, and add its description to its metadata."""
    context["title"] = title_page(pagename, context.get("title", ""))
    description = describe_page(doctree, pagename, context["title"])
    tag = f'<meta name="description" content="{escape(description)}" />'
    context["metatags"] = f"{context.get('metatags') or ''}{tag}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register it."""
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
