"""Docstring processing: keep the columns of chapters, and skip inherited machinery."""

from __future__ import annotations

import inspect
import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature


def keep_columns(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Make each indented paragraph below a line of text a literal block."""
    if what != "module":
        return
    original_lines = list(lines)
    lines.clear()
    for previous, line in zip(["", *original_lines], original_lines, strict=False):
        starts = line.startswith("    ") and not previous.strip() and lines
        above = next((text for text in reversed(lines) if text.strip()), "")
        plain = not above.startswith(" ") and not above.rstrip().endswith("::")
        if starts and plain and not above.startswith("=="):
            lines += [".. code-block:: text", ""]
        lines.append(line)


def link_pages(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Replace the file name of a page, such as docs/kernels.md, by a link."""
    lines[:] = [re.sub(r"\bdocs/(\w+)\.md\b", r":doc:`/\1`", line) for line in lines]


def leave_out_plumbing(
    app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object
) -> bool | None:
    """Skip members that estimators inherit for scikit-learn's own machinery."""
    home = getattr(obj, "__module__", None) or ""
    asks = name.startswith("set_") and name.endswith("_request")
    return True if asks or home.startswith("sklearn.utils") else None


def parameters_of_classes(
    app: Sphinx, what: str, name: str, obj: Any, options: object, given: str, returned: str | None
) -> tuple[str, str | None] | None:
    """Show the parameters of a class by name and default: the text below describes their types."""
    if what != "class" or not given or not hasattr(obj, "__dataclass_fields__"):
        return None
    shown = inspect.signature(obj)
    parameters = [p.replace(annotation=p.empty) for p in shown.parameters.values()]
    signature = shown.replace(parameters=parameters, return_annotation=shown.empty)
    return stringify_signature(signature), None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register it."""
    app.connect("autodoc-process-docstring", keep_columns)
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("autodoc-process-signature", parameters_of_classes)
    app.connect("autodoc-skip-member", leave_out_plumbing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
