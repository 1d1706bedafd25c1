"""Plugins: classes of other packages, declared by entry points."""

from __future__ import annotations

import functools
import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint as EntryPoint
else:  # importlib_metadata replaces importlib's class once it is imported
    EntryPoint = Any


@functools.cache
def _of_path(group: str, _path: tuple[str, ...]) -> dict[str, EntryPoint]:
    return {entry_point.name: entry_point for entry_point in entry_points(group=group)}


def plugins(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, without loading them.

    The metadata of all packages are read at the first call, and after a change of `sys.path`.
    """
    # The path is the key of the cache: it changes with the packages that can be found.
    return _of_path(group, tuple(sys.path))


def package_of(entry: EntryPoint) -> str:
    """Return the name of the package that declares an entry point."""
    return entry.value.partition(":")[0] if entry.dist is None else entry.dist.name


def load(entry: EntryPoint, base: type, kind: str) -> type:
    """Return the class of an entry point.

    Raises
    ------
    ValueError
        If it cannot be imported, or is not a subclass of `base`.
    """
    entry_text = (
        f"{kind} {entry.name!r}, entry point {entry.value!r} of the package {package_of(entry)}"
    )
    try:
        cls = entry.load()
    # A module that does not exist, or one without the class that the entry point names.
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{entry_text}, cannot be imported: {error}") from error
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise ValueError(f"{entry_text}, must be a subclass of {base.__qualname__}, not {cls!r}")
    return cls
