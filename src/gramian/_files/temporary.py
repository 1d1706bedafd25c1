"""Temporary files with the lifetime of the data that are read from them."""

from __future__ import annotations

import os
import shutil
import weakref
from pathlib import Path


def remove_with(owner: object, path: Path) -> None:
    """Remove a file or folder when its owner is deleted in the process that created it.

    A forked child has a copy of the owner, and must not remove the file.
    """
    # Also runs at the end of the interpreter, unlike `__del__`, which may be skipped.
    weakref.finalize(owner, _remove, path, os.getpid())


def _remove(path: Path, process: int) -> None:
    if os.getpid() != process:
        return
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
