"""Whether there is a cluster, asked without importing what it is made with."""

from __future__ import annotations

import sys
from pathlib import Path


def has_client() -> bool:
    """Return whether this process is connected to a Dask cluster."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        distributed.default_client()
    except ValueError:
        return False
    return True


def lies_there(path: Path) -> bool:
    """Return whether the rows of a path are read by workers: of a folder, with a client."""
    return path.is_dir() and has_client()
