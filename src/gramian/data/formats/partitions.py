"""Folders named ``key=value``, whose files belong to that value of a column (Hive's partitions)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Key:
    """A column that is constant in a file.

    - `value`: the value; None if it is missing.
    """

    name: str
    value: Any
    type: pa.DataType


def keys_of(paths: Sequence[PurePath], where: str) -> list[tuple[Key, ...]]:
    """Return the keys in the names of the folders of each file.

    - `paths`: paths of files, relative to the folder of the table.
    - `where`: subject of error messages.

    Keys are integers if all values of a key are integers, else text.
    Raise ValueError if the files are not in folders with the same keys.
    """
    pairs = [
        # Writers quote characters that names of folders cannot have, such as a slash.
        {name: unquote(value) for name, mark, value in parts if mark and name}
        for parts in ([part.partition("=") for part in path.parts[:-1]] for path in paths)
    ]
    # The order of keys counts: a=1/b=2 and b=2/a=1 are two layouts.
    names = list(pairs[0])
    for path, pairs_of_path in zip(paths, pairs, strict=True):
        if list(pairs_of_path) != names:
            raise ValueError(
                f"{where}: all files must be in folders with the same keys, but {path} has "
                f"{', '.join(pairs_of_path) or 'none'} and {paths[0]} has "
                f"{', '.join(names) or 'none'}"
            )
    columns = {name: _values([pairs_of_path[name] for pairs_of_path in pairs]) for name in names}
    return [
        tuple(Key(name, columns[name][i].as_py(), columns[name].type) for name in names)
        for i in range(len(paths))
    ]


def _values(texts: Sequence[str]) -> pa.Array:
    # Hive and Spark write a missing key as a folder of this name.
    column = pa.array([None if text == _NULL_FOLDER else text for text in texts], pa.string())
    try:
        # All values or none: a key that is a number in one folder and text in another would have
        # two types.
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column


def with_keys(batch: pa.RecordBatch, keys: Sequence[Key], columns: Sequence[str]) -> pa.RecordBatch:
    """Return columns of a batch and of the keys, in the requested order."""
    key_by_name = {key.name: key for key in keys}
    arrays = [
        pa.repeat(pa.scalar(key_by_name[name].value, key_by_name[name].type), batch.num_rows)
        if name in key_by_name
        else batch.column(name)
        for name in columns
    ]
    return pa.record_batch(arrays, names=list(columns))
