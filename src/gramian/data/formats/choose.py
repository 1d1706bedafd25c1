"""Choice of the format of a path, by its suffix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .base import TableFormat, WritableFormat, formats


def format_of(path: str | Path) -> TableFormat:
    """Return the format of a table; of several that open it, one whose suffix it has.

    Raises
    ------
    ValueError
        If no format opens such a path.
    """
    path = Path(path)
    found = [known for known in _all() if known.opens(path)]
    if not found:
        endings = ", ".join(known.suffixes[0] for known in _all())
        raise ValueError(f"cannot tell what {path} is: expected a name ending in {endings}")
    return max(found, key=lambda known: known.has_suffix(path.name))


def format_to_write(path: str | Path) -> WritableFormat:
    """Return the format of a table that is to be written.

    Raises
    ------
    ValueError
        If no format opens such a path, or the one that does is only read.
    """
    found = format_of(path)
    if not isinstance(found, WritableFormat):
        known = (one.suffixes[0] for one in _all() if isinstance(one, WritableFormat))
        raise ValueError(
            f"{path} cannot be written, as tables of that format are only read; give a name "
            f"ending in {', '.join(known)}"
        )
    return found


def is_table_name(name: str) -> bool:
    """Return whether a name ends like that of a table."""
    return any(known.has_suffix(name) for known in _all())


def endings() -> tuple[str, ...]:
    """Return how the names of tables end, all formats together."""
    return tuple(suffix for known in _all() for suffix in known.suffixes)


def _all() -> Iterator[TableFormat]:
    return (formats.make(name) for name in formats)
