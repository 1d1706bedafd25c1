"""Files of a folder that workers read: their paths, and a check of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..._messages.checks import join_words
from ..._messages.display import without_secrets
from ..formats.parquet_file import parquet_paths
from ..formats.partitions import keys_of
from ..rows.base import RowSource

Head = tuple[Path, RowSource]
"""A file, and the shape, type and names of its rows."""


def files_of(path: str | Path) -> list[Path]:
    """Return the Parquet files of a path that all workers see."""
    if "://" in str(path):
        raise ValueError(
            f"{without_secrets(path)} is in an object store, which workers cannot open by "
            "themselves: pass a collection, "
            "DaskRows.of(dask.dataframe.read_parquet(path)[names])"
        )
    return parquet_paths(Path(path))


def check_alike(heads: Sequence[Head]) -> None:
    """Raise ValueError if a file has other columns than the first, or numbers of another type."""
    first, like = heads[0]
    for path, head in heads:
        own, other_names = head.feature_names or (), like.feature_names or ()
        # Columns are read by name, so that their order may differ from file to file.
        if sorted(own) != sorted(other_names):
            raise ValueError(
                f"{path} and {first} differ in columns: {join_words(own)}, and "
                f"{join_words(other_names)}; choose columns that all files have"
            )
        if head.dtype != like.dtype:
            raise ValueError(
                f"{path} and {first} differ in types: {head.dtype} and {like.dtype}; write all "
                "files with one type"
            )


def names_in(folder: str | Path, heads: Sequence[Head]) -> tuple[str, ...] | None:
    """Return the names of the columns of the first file, which others may have in another order.

    Raise ValueError if names of subfolders define further columns, which workers do not read.
    """
    below = [path.relative_to(folder) for path, _ in heads if path != Path(folder)]
    keys = keys_of(below, str(folder))[0] if below else ()
    if keys:
        raise ValueError(
            f"{folder}: {join_words([key.name for key in keys])} is in the names of folders, which "
            "workers do not read: choose other columns"
        )
    names = heads[0][1].feature_names
    return None if names is None else tuple(names)
