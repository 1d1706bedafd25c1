"""Describe the pictures of gallery indices, and let wide pictures of examples scroll on phones."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx_gallery.directives import imgsgnode

THUMBNAIL = re.compile(r"(\w+)/images/thumb/sphx_glr_(\w+)_thumb\.")
"""Folder and example of a thumbnail."""


def describe_thumbnails(doctree: nodes.document, titles: dict[str, nodes.Element]) -> None:
    """Describe each thumbnail by the title of its example.

    - `titles`: of all pages of the site.
    """
    for picture in doctree.findall(nodes.image):
        if match := THUMBNAIL.search(picture["uri"]):
            picture["alt"] = titles["/".join(match.groups())].astext()


def wrap_pictures(doctree: nodes.document) -> None:
    """Put each picture of an example into a container, which the style sheet lets scroll."""
    for picture in list(doctree.findall(imgsgnode)):
        container = nodes.container(classes=["gallery-picture"])
        picture.replace_self(container)
        container += picture


def prepare_pictures(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Describe and wrap the pictures of a page, after all titles are read."""
    describe_thumbnails(doctree, app.env.titles)
    wrap_pictures(doctree)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register it."""
    app.connect("doctree-resolved", prepare_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
