"""Part: some of the rows, where they are; and the tasks that workers run on it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..array import ArrayRows
from ..base import Elsewhere, RowSource
from ..folding import Shifted
from ..named import write_table
from ..parquet import ParquetRows
from ..rows import as_rows
from .sending import unpacked

Changes = tuple[tuple[Callable[..., Any], Tensor | None], ...]


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the rows: where they are, and what is done to them there.

    Attributes
    ----------
    source : Future or callable
        Of the rows, or what opens them: pickles by plain pickle.
    rows : int
    changes : tuple of (callable, Tensor or None)
        As `RowSource.each` takes them.
    """

    source: Any
    rows: int
    changes: Changes = ()


def seen(path: str) -> tuple[str, bool]:
    """Return the version of gramian, and whether there is such a path."""
    return version("gramian"), Path(path).exists()


def parquet(path: str, columns: tuple[str, ...] | None) -> RowSource:
    """Open a file."""
    return ParquetRows(path, columns, read_ahead=False)


def kept(opener: Callable[[], RowSource]) -> RowSource:
    """Read rows into the memory of the worker."""
    rows = opener()
    found = ArrayRows(torch.cat([block.clone() for _, block in rows.blocks(1 << 17)]))
    found.feature_names = rows.feature_names
    return found


def head(opener: Callable[[], RowSource]) -> RowSource:
    """Return the shape of a file."""
    return Elsewhere(opener())


def head_of(piece: Any) -> RowSource | None:
    """Return the shape of a partition; None if it has no row."""
    return Elsewhere(as_rows(piece)) if len(piece) else None


def changed(source: Any, changes: Changes) -> RowSource:
    """Return the rows of a part as they are to be seen."""
    rows = as_rows(source() if isinstance(source, partial) else source)
    for change, index in changes:
        rows = change(rows) if index is None else change(rows, index)
    return rows


def folded(
    source: Any, changes: Changes, data: bytes, shared: Any, beside: Any, start: int, size: int
) -> Any:
    """Fold one part."""
    fn = Shifted(unpacked(data, shared), start)
    return RowSource.fold(changed(source, changes), fn, *beside, size=size)


def mapped(
    source: Any, changes: Changes, data: bytes, shared: Any, beside: Any, start: int, size: int
) -> Tensor:
    """Map one part."""
    return RowSource.map(changed(source, changes), unpacked(data, shared), *beside, size=size)


def written(source: Any, changes: Changes, data: bytes, shared: Any, path: str) -> None:
    """Write a file of what becomes of one part."""
    write_table(path, unpacked(data, shared)(changed(source, changes)))


def taken(source: Any, changes: Changes, index: Tensor) -> Tensor:
    """Return some rows of one part."""
    return changed(source, changes).take(index)


def merged(data: bytes, shared: Any, found: list[Any]) -> Any:
    """Merge the results of neighbouring parts."""
    fn = unpacked(data, shared)
    total = copy.deepcopy(found[0])  # another task may need it again
    for other in found[1:]:
        total = fn.merge(total, other)
    return total
