"""Functions of Arrow, imported at their first use, because Arrow generates each at import."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Return a function of `pyarrow.compute`."""
    import pyarrow.compute

    return getattr(pyarrow.compute, name)
