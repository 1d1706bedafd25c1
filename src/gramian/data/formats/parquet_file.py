"""Parquet files of a folder: their paths, columns, and batches of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

import pyarrow as pa
import pyarrow.parquet as pq

from ..rows.file_stamp import FileStamp, RemotePath, change_error
from .partitions import Key, with_keys

PARQUET_SUFFIXES = (".parquet", ".pq")
"""Ends of the names of Parquet files, in lower case; the usual one first."""

# Compressed bytes that are buffered, all columns together.
_BUFFER_BYTES = 1 << 21

TEXT_BATCH_BYTES = 1 << 26
"""Bytes of texts that are decoded at a time, by the length of the first ones."""

TEXT_BATCH_ROWS = 1 << 12
"""Rows of texts that are decoded at a time: later texts may be longer than the first ones."""

MEAN_TEXT_BYTES = 1 << 16
"""Mean length of the texts of a column, beyond which they are refused as no categories. A file of
some kilobytes can hold any number of long ones, if they are equal."""

PROBED_ROWS = 32
"""Rows whose texts are decoded first, to choose the rows of a batch."""


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file and the rows of its row groups.

    - `stamp`: stamp of the file when its row groups were read.
    - `groups`: rows in each of its row groups.
    - `keys`: columns whose values are in the names of its folders.
    """

    path: Path | RemotePath
    stamp: FileStamp
    groups: tuple[int, ...]
    keys: tuple[Key, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows in the file."""
        return sum(self.groups)

    def batches(
        self, columns: Sequence[str], size: int, groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Decode the file in batches.

        - `size`: upper bound of the rows in one batch.
        - `groups`: row groups to read; all of them by default.

        Raise ValueError if the file changed since it was opened, or changes while it is read.

        Without ``buffer_size`` Arrow would load each column chunk of a row group as a whole,
        with ``pre_buffer`` all of them at once, and mapped pages would count as our memory. One
        thread decodes, so that the others are free to compute: about 10^8 numbers per second.
        """
        # Shared among the columns, so that memory does not grow with their number; below 16 kB
        # reads would be many and small.
        buffer_size = max(1 << 14, _BUFFER_BYTES // max(1, len(columns)))
        with self.stamp.require_unchanged(self.path), open_files(self.path, buffer_size) as file:
            # A file that was written again within one tick of the clock of the file system may have
            # the same stamp, but hardly the same row groups.
            if row_groups(file) != self.groups:
                rows = file.metadata.num_rows
                raise change_error(self.path, f"it had {self.rows:,} rows and now has {rows:,}")
            own = [name for name in columns if name not in {key.name for key in self.keys}]
            # Without a column of its own, any column tells how many rows there are.
            read = own or file.schema_arrow.names[:1]
            size = min(size, self._text_rows(file, read, groups))
            texts = _TextLengths(self.path, self.rows)
            chosen = range(len(self.groups)) if groups is None else groups
            missing_rows = sum(self.groups[group] for group in chosen)
            for batch in file.iter_batches(
                size, row_groups=groups, columns=read, use_threads=False
            ):
                texts.add(batch)
                missing_rows -= batch.num_rows
                # Arrow decodes indices and texts without checking them, and follows them wherever
                # they point.
                batch.validate(full=True)
                yield with_keys(batch, self.keys, columns) if self.keys else batch
            # Arrow ends without an error where the header of a damaged page names fewer values.
            if missing_rows:
                raise ValueError(
                    f"{self.path} cannot be read as Parquet: {missing_rows:,} of its rows are not "
                    "there: it is damaged; copy or write it again"
                )

    def _text_rows(
        self, file: pq.ParquetFile, columns: Sequence[str], groups: Sequence[int] | None
    ) -> int:
        """Return the number of rows to decode at a time, so that texts need bounded memory."""
        schema = file.schema_arrow
        kinds = {name: schema.field(name).type for name in columns}
        tests = (pa.types.is_primitive, pa.types.is_null)
        # Values of all other types vary in length.
        texts = [name for name, kind in kinds.items() if not any(test(kind) for test in tests)]
        if not texts:
            return max(1, int(file.metadata.num_rows))
        probe = file.iter_batches(PROBED_ROWS, row_groups=groups, columns=texts, use_threads=False)
        batch = next(probe, None)
        # No row at all: any number of rows per batch will do.
        if batch is None:
            return 1
        # Before a larger batch is decoded: the texts of these rows may already be too long.
        _TextLengths(self.path, self.rows).add(batch)
        rows = TEXT_BATCH_BYTES * int(batch.num_rows) // max(1, int(batch.nbytes))
        if any(_is_text(column.type) for column in batch.columns):
            rows = min(rows, TEXT_BATCH_ROWS)
        return max(1, rows)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


class _TextLengths:
    """Bytes of the texts of each column that a pass has decoded.

    - `file_rows`: rows of the file, for the mean length: a single long text does not make a column
      long, whichever row it is in.
    """

    def __init__(self, path: Path | RemotePath, file_rows: int) -> None:
        self._path, self._file_rows, self._rows = path, max(1, file_rows), 0
        self._bytes: Counter[str] = Counter()

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch; raise ValueError if the texts so far make the mean of the file too long.

        From `TEXT_BATCH_BYTES` on, the mean over the rows so far suffices.
        """
        self._rows += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not _is_text(column.type):
                continue
            self._bytes[name] += column.nbytes
            # Few long texts among many rows are no long column, so that the mean is over the whole
            # file at first; but texts of gigabytes are refused before all of them are decoded.
            rows = self._rows if self._bytes[name] > TEXT_BATCH_BYTES else self._file_rows
            if self._bytes[name] > MEAN_TEXT_BYTES * rows:
                raise ValueError(
                    f"{self._path}: the texts of column '{name}' have "
                    f"{self._bytes[name] // self._rows:,} bytes on average over {self._rows:,} of "
                    f"{self._file_rows:,} rows, more than the limit of {MEAN_TEXT_BYTES:,}; leave "
                    "the column out (on the command line --drop), or shorten the texts"
                )


@contextmanager
def open_files(path: Path | RemotePath, buffer_size: int = 0) -> Iterator[pq.ParquetFile]:
    """Open a file for reading, and explain what Arrow reports about damage.

    Pages with a checksum, such as the pages that this package writes, are compared with it.

    - `buffer_size`: bytes of a column that are read at once; a whole row group if 0.
    """
    try:
        with pq.ParquetFile(
            # Absolute, because Arrow takes a relative path such as "run:/x" for an address.
            path.absolute() if isinstance(path, Path) else path.open(),
            buffer_size=buffer_size,
            pre_buffer=False,
            memory_map=False,
            page_checksum_verification=True,
        ) as file:
            yield file
    # These are errors of the system, not of the contents: they pass as they are.
    except (FileNotFoundError, PermissionError):
        raise
    except (pa.ArrowException, OSError) as error:
        raise ValueError(
            f"{path} cannot be read as Parquet: it is cut off, damaged or of another format; "
            f"copy or write it again (Arrow reports: {str(error).splitlines()[0]})"
        ) from error


def row_groups(file: pq.ParquetFile) -> tuple[int, ...]:
    """Return the number of rows in each row group of an open file."""
    meta = file.metadata
    return tuple(meta.row_group(i).num_rows for i in range(meta.num_row_groups))


def parquet_paths(path: str | Path) -> list[Path]:
    """Return the file itself, or the Parquet files below a directory, sorted by their names."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or directory {path}")
    if not path.is_dir():
        return [path]
    files = (file for file in path.rglob("*") if belongs(file.relative_to(path)))
    # By parts, so that the files of a folder stay together; any order of the system would change
    # the order of rows.
    paths = sorted((file for file in files if file.is_file()), key=lambda file: file.parts)
    if not paths:
        raise ValueError(
            f"the directory {path} contains no "
            f"{' or '.join(f'*{end}' for end in PARQUET_SUFFIXES)} files, "
            "and neither do its subfolders"
        )
    return paths


def belongs(path: PurePath) -> bool:
    """Return whether a file, named relative to the folder of a table, belongs to the table."""
    # Names that Spark and Hive give to files of their own, such as _SUCCESS and _temporary.
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    return path.suffix.lower() in PARQUET_SUFFIXES and not hidden
