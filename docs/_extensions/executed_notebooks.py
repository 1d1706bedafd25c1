"""Put the outputs of examples into their notebooks, which sphinx-gallery writes without them."""

from __future__ import annotations

import base64
import json
import re
import textwrap
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

CELL_START = re.compile(r"^\.\. GENERATED FROM PYTHON SOURCE LINES .*$", re.M)
PRINTED_TEXT = re.compile(
    r"^\.\. rst-class:: sphx-glr-script-out\n\n \.\. code-block:: none\n\n((?:    .*\n|\s*\n)+)",
    re.M,
)
PICTURE_PATH = re.compile(r"^ *\.\. image-sg:: /(\S+)$", re.M)


def fill_notebooks(app: Sphinx) -> None:
    """Fill the notebook of each example that was run."""
    for folder in app.config.sphinx_gallery_conf["gallery_dirs"]:
        for page in sorted(Path(app.srcdir, folder).glob("plot_*.rst")):
            path = page.with_suffix(".ipynb")
            notebook = json.loads(path.read_text("utf-8"))
            fill_notebook(notebook, page.read_text("utf-8"), Path(app.srcdir))
            path.write_text(json.dumps(notebook, indent=1), "utf-8")


def fill_notebook(notebook: dict[str, Any], page: str, folder: Path) -> None:
    """Set the outputs of a notebook's code cells to the outputs on the page of its example.

    - `folder`: of the paths of the page's pictures.
    """
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    parts = [part for part in CELL_START.split(page) if ".. code-block:: Python\n" in part]
    for count, (cell, part) in enumerate(zip(cells, parts, strict=True), start=1):
        cell["outputs"] = outputs_of(part, folder)
        cell["execution_count"] = count


def outputs_of(part: str, folder: Path) -> list[dict[str, Any]]:
    """Return the printed text and the pictures of one cell, as a notebook stores them."""
    texts = [textwrap.dedent(text).strip("\n") + "\n" for text in PRINTED_TEXT.findall(part)]
    outputs: list[dict[str, Any]] = [
        {"output_type": "stream", "name": "stdout", "text": text} for text in texts
    ]
    for path in PICTURE_PATH.findall(part):
        picture = base64.b64encode((folder / path).read_bytes()).decode()
        data = {"image/png": picture}
        outputs.append({"output_type": "display_data", "metadata": {}, "data": data})
    return outputs


def setup(app: Sphinx) -> dict[str, Any]:
    """Register it, after sphinx-gallery, which runs the examples."""
    app.connect("builder-inited", fill_notebooks, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
