"""All row groups of some Parquet files with the same columns, as one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import pyarrow as pa

from ..rows.file_stamp import FileStamp, RemotePath
from ..tables.stored import Pieces
from .parquet_file import ParquetFile, open_files, parquet_paths, row_groups
from .partitions import Key, keys_of


@dataclass(frozen=True)
class ParquetPieces(Pieces):
    """Row groups of several files, in order.

    - `schemas`: schema of each file, with the columns of its folders' names.
    """

    files: tuple[ParquetFile, ...]
    schemas: tuple[pa.Schema, ...]

    @property
    def schema(self) -> pa.Schema:
        """Columns of the first file."""
        return self.schemas[0]

    @property
    def counts(self) -> tuple[int, ...]:  # type: ignore[override]
        """Number of rows of each row group, file after file."""
        return tuple(rows for file in self.files for rows in file.groups)

    @classmethod
    def at(cls, path: str | Path) -> ParquetPieces:
        """Read the footers of a file, or of all files below a folder."""
        path = Path(path)
        paths = parquet_paths(path)
        names = [
            file_path.relative_to(path) if path.is_dir() else PurePath(file_path.name)
            for file_path in paths
        ]
        return cls.of(paths, keys_of(names, str(path)))

    @classmethod
    def of(
        cls, paths: Sequence[Path | RemotePath], keys: Sequence[tuple[Key, ...]]
    ) -> ParquetPieces:
        """Read the footers of files."""
        files, schemas = [], []
        for path, own in zip(paths, keys, strict=True):
            # Before the footer is read, so that a version that replaces it counts as a change.
            stamp = FileStamp.of(path)
            with open_files(path) as file:
                files.append(ParquetFile(path, stamp, row_groups(file), own))
                schemas.append(_with_keys(file.schema_arrow, own, path))
        return cls(tuple(files), tuple(schemas))

    def check_alike(self, columns: Sequence[str] | None = None) -> None:
        """Raise ValueError if files differ in columns or types; check only `columns` if given."""
        first = _describe_schema(self.schemas[0], columns)
        for file, schema in zip(self.files, self.schemas, strict=True):
            description = _describe_schema(schema, columns)
            if description != first:
                raise ValueError(
                    f"{file.path} and {self.files[0].path} differ in columns or types: "
                    f"{_difference(description, first)}"
                )

    def read(
        self, columns: Sequence[str], size: int, pieces: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Decode the files one after the other; see `Pieces.read`."""
        start = 0
        for file in self.files:
            # Pieces are numbered through all files, row groups within one.
            own_groups = range(start, start + len(file.groups))
            groups = None if pieces is None else [i - start for i in pieces if i in own_groups]
            # A file without wanted rows is not even opened.
            if groups is None or groups:
                yield from file.batches(columns, size, groups)
            start = own_groups.stop


def _with_keys(schema: pa.Schema, keys: Sequence[Key], path: Path | RemotePath) -> pa.Schema:
    for key in keys:
        if key.name in schema.names:
            raise ValueError(
                f"{path} has a column {key.name}, which is also a key in the name of its folder: "
                "rename one of the two"
            )
        schema = schema.append(pa.field(key.name, key.type))
    return schema


def _describe_schema(schema: pa.Schema, columns: Sequence[str] | None) -> list[str]:
    chosen = schema if columns is None else [schema.field(name) for name in columns]
    return [f"{field.name} ({field.type})" for field in chosen]


def _difference(found: Sequence[str], first: Sequence[str]) -> str:
    """Return a description of the first columns that differ."""
    # Padded, because one file may have more columns: a missing one is shown as none.
    pairs = zip([*found, *["none"] * len(first)], [*first, *["none"] * len(found)], strict=False)
    return next(
        f"{own_value} against {other_value}"
        for own_value, other_value in pairs
        if own_value != other_value
    )
