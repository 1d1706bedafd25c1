"""The cluster that reads folders, set without importing Dask."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Any

FOLDER_CLIENT: ContextVar[Any] = ContextVar("FOLDER_CLIENT", default=None)
"""The client of the `gramian.data.dask.connect.connection` that surrounds a call; none outside."""


def client_of(path: str | Path) -> Any:
    """Return the client whose workers read a path: a folder within a connection; else None.

    A client that the process opened for something else has no effect. An address on an object store
    is no folder.
    """
    return FOLDER_CLIENT.get() if Path(path).is_dir() else None
