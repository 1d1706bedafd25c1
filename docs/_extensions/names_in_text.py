"""Link names of classes and functions in running text to their pages.

Pages say `KernelRidge` or `gramian.load(path)` in plain Markdown, which reads well everywhere.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext.autosummary import autosummary_table
from sphinx.util.nodes import make_refnode

CALL_PATTERN = re.compile(r"([A-Za-z_][\w.]*)(\(.*\))?", re.DOTALL)


def link_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link each literal that is a public name, or a call of one, to its page."""
    homes = pages_of_names(app)
    for literal in list(doctree.findall(nodes.literal)):
        match = CALL_PATTERN.fullmatch(literal.astext())
        home = homes.get(match[1]) if match else None
        if home is None or inside_a_link(literal) or home[0] == docname:
            continue
        link = make_refnode(app.builder, docname, *home, literal.deepcopy())
        literal.replace_self(link)


def leave_out_citations(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Remove citation numbers from the tables of names: their lists are on other pages."""
    for table in doctree.findall(autosummary_table):
        for link in list(table.findall(nodes.reference)):
            if re.fullmatch(r"\[R\w+-\d+\]", link.astext()):
                before = link.parent[link.parent.index(link) - 1]
                if isinstance(before, nodes.Text):
                    link.parent.replace(before, nodes.Text(before.rstrip()))
                link.parent.remove(link)


def pages_of_names(app: Sphinx) -> dict[str, tuple[str, str]]:
    """Return page and anchor of each name, with and without `gramian.` and its module.

    Only classes with a unique name have a short name: `make` and `Sum` mean other things in
    running text.
    """
    homes: dict[str, tuple[str, str]] = {}
    classes: dict[str, list[tuple[str, str]]] = {}
    for full, _, kind, docname, anchor, _ in app.env.get_domain("py").get_objects():
        if kind in {"class", "function", "exception"} and full.startswith("gramian."):
            homes[full] = homes[full.removeprefix("gramian.")] = docname, anchor
            if kind != "function":
                classes.setdefault(full.rsplit(".", 1)[1], []).append((docname, anchor))
    return homes | {name: where[0] for name, where in classes.items() if len(where) == 1}


def inside_a_link(node: nodes.Node) -> bool:
    """Whether a link, a heading or a line of code is around it."""
    around: Any = node.parent
    while around is not None:
        if isinstance(around, nodes.reference | nodes.title | nodes.literal_block):
            return True
        around = around.parent
    return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Register it."""
    app.connect("doctree-resolved", link_names)
    app.connect("doctree-resolved", leave_out_citations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
