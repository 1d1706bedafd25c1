"""Parquet files as they lie in a folder: which there are, their columns, and batches of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from .arrow import Columns

SUFFIXES = (".parquet", ".pq")
"""Ends of the names of Parquet files, in lower case; the usual one first."""

_BUFFER_BYTES = 1 << 21  # compressed bytes buffered, all columns together


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file and the rows of its row groups.

    Attributes
    ----------
    path : Path
    groups : tuple of int
        Rows in each of its row groups.
    """

    path: Path
    groups: tuple[int, ...]

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

        Notes
        -----
        Without ``buffer_size`` Arrow would load each column chunk of a row group as a whole,
        with ``pre_buffer`` all of them at once, and mapped pages would count as our memory. One
        thread decodes, so that the others are free to compute: about 10^8 numbers per second.
        """
        with opened(self.path, max(1 << 14, _BUFFER_BYTES // len(columns))) as file:
            if row_groups(file) != self.groups:
                raise ValueError(f"{self.path} has changed since it was opened: open it again")
            yield from file.iter_batches(
                size, row_groups=groups, columns=list(columns), use_threads=False
            )


@contextmanager
def readable(path: Path) -> Iterator[None]:
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
def opened(path: Path, buffer_size: int = 0) -> Iterator[pq.ParquetFile]:
    """Open a file for reading, and explain what Arrow reports about damage.

    Pages that carry a checksum are compared with it, as those are that this package writes.

    Parameters
    ----------
    path : Path
    buffer_size : int, optional
        Bytes of a column that are read at once; all of a row group if 0.
    """
    with (
        readable(path),
        pq.ParquetFile(
            path,
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
    """List the file itself, or the Parquet files of a directory by their names, sorted."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or directory {path}")
    if not path.is_dir():
        return [path]
    paths = sorted(filter(belongs, path.iterdir()))
    if not paths:
        raise ValueError(
            f"the directory {path} holds no {' or '.join(f'*{end}' for end in SUFFIXES)} files "
            "(subfolders not searched)"
        )
    return paths


def belongs(path: Path) -> bool:
    """Return whether a file of a folder that is one table belongs to that table."""
    return path.suffix.lower() in SUFFIXES and not path.name.startswith((".", "_"))


def open_files(
    path: str | Path, columns: Sequence[str] | None
) -> tuple[list[ParquetFile], Columns]:
    """Read the footers of all files and check that they hold the same columns.

    Parameters
    ----------
    path : str or Path
    columns : sequence of str, or None

    Returns
    -------
    files : list of ParquetFile
    columns : Columns
        What is used of each.
    """
    opened = [_open(part, columns) for part in parquet_paths(path)]
    first, chosen = opened[0]
    for file, found in opened[1:]:
        if found != chosen:
            raise ValueError(
                f"{file.path} and {first.path} differ in columns or types: "
                f"{_described(found)} against {_described(chosen)}"
            )
    return [file for file, _ in opened], chosen


def _open(path: Path, columns: Sequence[str] | None) -> tuple[ParquetFile, Columns]:
    with opened(path) as file:
        found = Columns.choose(file.schema_arrow, columns, str(path))
        return ParquetFile(path, row_groups(file)), found


def _described(columns: Columns) -> str:
    return ", ".join(f"{n} ({t})" for n, t in zip(columns.names, columns.types, strict=True))
