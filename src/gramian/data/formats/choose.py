"""Choice of the format of a path, by its suffix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from .base import TableFormat, WritableFormat, formats


def format_of(path: str | Path, *, text: bool = True) -> TableFormat:
    """Return the format of a table; of several that open it, one whose suffix it has.

    Parameters
    ----------
    path : str or Path
    text : bool, default=True
        Whether formats of text are among those that an error says are expected.

    Raises
    ------
    ValueError
        If no format opens such a path.
    """
    known = [one for one in _all() if text or not one.text]
    folders = [f", or a folder of {one.suffixes[0]} files" for one in known if one.folder]
    return _opening(Path(path), _usual(known) + "".join(folders))


def format_to_write(path: str | Path) -> WritableFormat:
    """Return the format of a table that is to be written.

    Raises
    ------
    ValueError
        If no format opens such a path, or the one that does is only read.
    """
    usual = _usual(one for one in _all() if isinstance(one, WritableFormat))
    found = _opening(Path(path), usual)
    if not isinstance(found, WritableFormat):
        raise ValueError(
            f"{path} cannot be written, as tables of that format are only read; give a name "
            f"ending in {usual}"
        )
    return found


def _opening(path: Path, expected: str) -> TableFormat:
    found = [known for known in _all() if known.opens(path)]
    if not found:
        raise ValueError(f"cannot tell what {path} is: expected a name ending in {expected}")
    return max(found, key=lambda known: known.has_suffix(path.name))


def _usual(known: Iterable[TableFormat]) -> str:
    """Return the usual suffixes of formats, as a list in words."""
    return ", ".join(one.suffixes[0] for one in known)


def is_table_name(name: str) -> bool:
    """Return whether a name ends like that of a table."""
    return any(known.has_suffix(name) for known in _all())


def endings() -> tuple[str, ...]:
    """Return how the names of tables end, all formats together."""
    return tuple(suffix for known in _all() for suffix in known.suffixes)


def _all() -> Iterator[TableFormat]:
    return (formats.make(name) for name in formats)
