"""Extensions of the site: notebooks with outputs, sources, titles and pictures of pages, words."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gramian

pytest.importorskip("sphinx")

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = """
.. GENERATED FROM PYTHON SOURCE LINES 1-3

Some text.

.. GENERATED FROM PYTHON SOURCE LINES 3-5

.. code-block:: Python

    print("two", "lines", sep="\\n")

.. rst-class:: sphx-glr-script-out

 .. code-block:: none

    two
    lines

.. GENERATED FROM PYTHON SOURCE LINES 6-9

.. code-block:: Python

    plt.show()

.. image-sg:: /worked/images/picture.png
   :alt: a picture
"""


@pytest.fixture
def extension(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_extensions"))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


def test_notebooks_have_the_outputs_of_their_page(extension, tmp_path):
    (tmp_path / "worked" / "images").mkdir(parents=True)
    (tmp_path / "worked" / "images" / "picture.png").write_bytes(b"png")
    code: list[dict[str, Any]] = [{"cell_type": "code", "outputs": []} for _ in range(2)]
    notebook = {"cells": [{"cell_type": "markdown"}, *code]}
    extension("executed_notebooks").fill_notebook(notebook, PAGE, tmp_path)
    text, picture = (cell["outputs"] for cell in code)
    assert text == [{"output_type": "stream", "name": "stdout", "text": "two\nlines\n"}]
    assert [output["data"] for output in picture] == [{"image/png": "cG5n"}]
    assert [cell["execution_count"] for cell in code] == [1, 2]


def test_sources_of_pages_are_files_of_the_repository(extension):
    source_of = extension("page_sources").source_of_page
    examples = [f"{p.parent.name}/{p.stem}" for p in (ROOT / "examples").glob("*/plot_*.py")]
    pages = [p.relative_to(DOCS).with_suffix("").as_posix() for p in DOCS.rglob("*.md")]
    assert len(pages) > 40
    for page in [*pages, *examples, "worked/index", "changelog", "contributing", "api/kernels"]:
        assert (ROOT / source_of(page)).is_file(), page
    assert source_of("api/generated/gramian.KernelRidge") is None


def test_search_terms_name_pages_and_are_sorted(extension):
    terms = extension("search_terms").SEARCH_TERMS
    for page, words in terms.items():
        places = [DOCS / f"{page}.md", ROOT / "examples" / f"{page}.py"]
        assert any(place.is_file() for place in places), page
        assert words.split(", ") == sorted(words.split(", ")), page


def test_terms_are_below_the_title(extension):
    source = ["# Serving\n\nA fitted model\n"]
    extension("search_terms").add_terms(None, "serving", source)
    assert source[0].startswith("# Serving\n\n```{index} container\n```\n")
    assert source[0].endswith("A fitted model\n")


def test_the_switcher_has_this_version():
    versions = json.loads((DOCS / "_static" / "versions.json").read_text("utf-8"))
    assert gramian.__version__ in [entry["version"] for entry in versions]
    assert all(re.fullmatch(r"\./|\.\./.*|https://.*", entry["url"]) for entry in versions)


def test_pages_are_described_by_their_first_paragraph(extension):
    extensions = extension("page_descriptions")
    core = pytest.importorskip("docutils.core")
    asides = ".. note:: An aside.\n\n- an item\n"
    page = f"Title\n=====\n\n{asides}\nThe first *paragraph*\nof text.\n\nMore."
    doctree = core.publish_doctree(page)
    assert extensions.describe_page(doctree, "page", "Title") == "The first paragraph of text."
    assert extensions.describe_page(None, "search", "Search").startswith("Search in the pages")
    addnodes = pytest.importorskip("sphinx.addnodes")
    entry = addnodes.desc("", *core.publish_doctree("A summary.").children)
    assert extensions.describe_page(entry, "page", "Title") == "A summary."
    empty = core.publish_doctree("Title\n=====\n")
    assert extensions.describe_page(empty, "page", "Title") == "Title: reference of gramian."
    long = extensions.shorten("word " * 100)
    assert 150 < len(long) <= extensions.MAXIMUM_LENGTH + 2
    assert long.endswith("word …")


def test_entries_of_the_reference_have_full_names_as_titles(extension):
    title_page = extension("page_descriptions").title_page
    entries = ["api/generated/gramian.data.Sum", "api/generated/gramian.kernels.Sum"]
    assert [title_page(page, "Sum") for page in entries] == [
        "gramian.data.Sum",
        "gramian.kernels.Sum",
    ]
    assert title_page("tables", "Tables") == "Tables"


def test_pictures_of_the_gallery_are_described_and_scroll(extension):
    pictures = pytest.importorskip("sphinx_gallery.directives")
    nodes = pytest.importorskip("docutils.nodes")
    document = pytest.importorskip("docutils.utils").new_document("gallery")
    thumbnail = nodes.image(uri="gallery/images/thumb/sphx_glr_plot_spectrum_thumb.png", alt="")
    picture = pictures.imgsgnode()
    document += [thumbnail, picture]
    module = extension("gallery_pictures")
    module.describe_thumbnails(document, {"gallery/plot_spectrum": nodes.title("", "Spectrum")})
    module.wrap_pictures(document)
    assert thumbnail["alt"] == "Spectrum"
    assert picture.parent["classes"] == ["gallery-picture"]
