"""Configuration of Sphinx; `docs/build_site.py` runs it on a copy of the sources."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path

# Sphinx reads a copy of the sources; the extensions are next to this file.
sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "gramian"
copyright = "the gramian developers"
version = release = version_of("gramian")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "names_in_text",
    "docstrings",
    "executed_notebooks",
    "page_sources",
    "page_descriptions",
    "gallery_pictures",
    "search_terms",
]
# Links to the pages of other projects need the network, so they are optional.
if os.environ.get("ONLINE"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

# The site includes MathJax, so that it needs no network.
mathjax_path = "mathjax/tex-chtml.js"
mathjax_files = find_spec("sphinx-mathjax-offline").submodule_search_locations[0] + "/static"

root_doc = "index"
exclude_patterns = ["**.ipynb", "**/plot_*.py", "**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
default_role = "py:obj"
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
# The site is built without the extra gpu; engines that need it are imported with stand-ins.
autodoc_mock_imports = [name for name in ("torch", "triton") if find_spec(name) is None]
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"
# The template lists the members of a class on its page, so numpydoc need not.
numpydoc_show_class_members = False

EXAMPLES = Path(__file__).parents[1] / "examples"
sphinx_gallery_conf = {
    "examples_dirs": [str(EXAMPLES / "worked"), str(EXAMPLES / "gallery")],
    "gallery_dirs": ["worked", "gallery"],
    "filename_pattern": "/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 0,
    "write_computation_times": False,
    "within_subsection_order": "gallery_order.ByInterest",
}

html_theme = "pydata_sphinx_theme"
html_title = "gramian"
html_static_path = ["_static", mathjax_files]
html_css_files = ["gramian.css"]
html_js_files = ["versions.js"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}  # light or dark, as the system of the reader
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_toc_level": 2,
    "navbar_align": "left",
    "navbar_start": ["navbar-logo", "version-switcher"],
    "header_links_before_dropdown": 5,
    "switcher": {"json_url": "_static/versions.json", "version_match": version},
    "check_switcher": False,  # it looks next to the copied pages
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc", "page-source"],
}
# Pages without others below them have no list of those.
html_sidebars = {page: [] for page in ("index", "install", "theory")}
