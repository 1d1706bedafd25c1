"""Parquet files as they lie in folders: which there are, their columns, and batches of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

import pyarrow as pa
import pyarrow.parquet as pq

from .file_stamp import FileStamp, RemoteFile, changed
from .partitions import Key, with_keys

SUFFIXES = (".parquet", ".pq")
"""Ends of the names of Parquet files, in lower case; the usual one first."""

_BUFFER_BYTES = 1 << 21  # compressed bytes buffered, all columns together


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file and the rows of its row groups.

    Attributes
    ----------
    path : Path or RemoteFile
    stamp : FileStamp
        Of the file as its row groups were read.
    groups : tuple of int
        Rows in each of its row groups.
    keys : tuple of Key
        Columns whose value the names of its folders say.
    """

    path: Path | RemoteFile
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
        """Decode the file a little at a time.

        Parameters
        ----------
        columns : sequence of str
        size : int
            Upper bound of the rows in one batch.
        groups : sequence of int, optional
            Row groups to read; all of them by default.

        Yields
        ------
        pyarrow.RecordBatch

        Raises
        ------
        ValueError
            If the file changed since it was opened, or changes while it is read.

        Notes
        -----
        Without ``buffer_size`` Arrow would load each column chunk of a row group as a whole,
        with ``pre_buffer`` all of them at once, and mapped pages would count as our memory. One
        thread decodes, so that the others are free to compute: about 10^8 numbers per second.
        """
        buffer_size = max(1 << 14, _BUFFER_BYTES // max(1, len(columns)))
        with self.stamp.unchanged(self.path), opened(self.path, buffer_size) as file:
            if row_groups(file) != self.groups:  # within one tick of the clock of the file system
                rows = file.metadata.num_rows
                raise changed(self.path, f"it had {self.rows:,} rows, and has {rows:,}")
            own = [name for name in columns if name not in {key.name for key in self.keys}]
            read = own or file.schema_arrow.names[:1]  # which says how many rows there are
            for batch in file.iter_batches(
                size, row_groups=groups, columns=read, use_threads=False
            ):
                batch.validate(full=True)  # Arrow believes the indices and texts of a file
                yield with_keys(batch, self.keys, columns) if self.keys else batch


@contextmanager
def readable(path: Path | RemoteFile) -> Iterator[None]:
    """Explain what Arrow reports about a damaged file."""
    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except (pa.ArrowException, OSError) as error:
        raise ValueError(
            f"{path} cannot be read as Parquet: it is cut off, damaged or of another format; "
            f"copy or write it again (Arrow says: {str(error).splitlines()[0]})"
        ) from error


@contextmanager
def opened(path: Path | RemoteFile, buffer_size: int = 0) -> Iterator[pq.ParquetFile]:
    """Open a file for reading, and explain what Arrow reports about damage.

    Pages that carry a checksum are compared with it, as those are that this package writes.

    Parameters
    ----------
    path : Path or RemoteFile
    buffer_size : int, optional
        Bytes of a column that are read at once; all of a row group if 0.
    """
    with (
        readable(path),
        pq.ParquetFile(
            path if isinstance(path, Path) else path.open(),
            buffer_size=buffer_size,
            pre_buffer=False,
            memory_map=False,
            page_checksum_verification=True,
        ) as file,
    ):
        yield file


def row_groups(file: pq.ParquetFile) -> tuple[int, ...]:
    """Give the number of rows in each row group of an open file."""
    meta = file.metadata
    return tuple(meta.row_group(i).num_rows for i in range(meta.num_row_groups))


def parquet_paths(path: str | Path) -> list[Path]:
    """List the file itself, or the Parquet files below a directory, sorted by their names."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or directory {path}")
    if not path.is_dir():
        return [path]
    found = (file for file in path.rglob("*") if belongs(file.relative_to(path)))
    paths = sorted((file for file in found if file.is_file()), key=lambda file: file.parts)
    if not paths:
        raise ValueError(
            f"the directory {path} holds no {' or '.join(f'*{end}' for end in SUFFIXES)} files, "
            "and neither do its subfolders"
        )
    return paths


def belongs(path: PurePath) -> bool:
    """Return whether a file of a folder that is one table, named from there, belongs to it."""
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    return path.suffix.lower() in SUFFIXES and not hidden
