"""Table in a folder of Parquet files, whose rows workers read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import distributed

from ..._messages.checks import join_words
from ..._messages.errors import TextError
from ..formats.parquet_folder import ParquetPieces
from ..remote.columns import RemoteColumns
from ..rows.arrow import choose_columns
from ..tables import PiecesTable
from .rows import DaskRows


class DaskTable(PiecesTable):
    """A folder of Parquet files: the client reads footers and targets, workers read the rows.

    Parameters
    ----------
    path : str or Path
        Path that is the same on all workers and on the client.
    where : str, optional
        Subject of error messages; the path by default.
    client : distributed.Client, optional
        By default the newest client at the time when rows are requested.

    Notes
    -----
    ``KernelRidge().fit(DaskTable("/lake/taxi"), "fare")`` fits to a folder by the workers of the
    default client.
    """

    remote = True
    takes_encoding = False

    def __init__(
        self,
        path: str | Path,
        where: str | None = None,
        *,
        client: distributed.Client | None = None,
    ) -> None:
        path = Path(path)
        pieces = ParquetPieces.at(path)
        pieces.check_alike()
        super().__init__(pieces, str(path) if where is None else where)
        self.path, self._client = path, client
        # Workers refuse a file that is newer than the footers that this process has read.
        self._stamps = {
            file.path: file.stamp for file in pieces.files if isinstance(file.path, Path)
        }
        self._keys = {key.name for file in pieces.files for key in file.keys}

    def rows(self, columns: Sequence[str]) -> DaskRows:
        """Return columns of numbers, which workers read in each pass.

        Raises
        ------
        TypeError
            If a column holds no numbers.
        ValueError
            If a column is a name of folders; if there is no client; if a worker cannot see the
            folder.
        """
        chosen = choose_columns(self.schema, columns, self.where).names
        self._check_in_files(chosen)
        return self._open(chosen)

    def remote_columns(self, columns: Sequence[str]) -> RemoteColumns:
        """Return columns of numbers or labels, which workers read.

        Raises
        ------
        TypeError
            If there are several columns, and one of them is text.
        ValueError
            If a column is a name of folders, or has gaps; if there is no client.
        """
        names = list(columns)
        self._check_in_files(names)
        if len(names) == 1:
            # Any column opens the parts, of which the target is then read as a column of its own:
            # it may be text, which rows cannot be.
            own_names = [name for name in self.names if name not in self._keys]
            return self._open(own_names[:1]).column(names[0])
        return RemoteColumns(self.rows(names))

    def name_row(self, index: int) -> str:
        """Return an empty text: workers read the rows, whose numbers are not known."""
        return ""

    def _open(self, columns: Sequence[str]) -> DaskRows:
        return DaskRows.open(self.path, columns, client=self._client, stamps=self._stamps)

    def _check_in_files(self, columns: Sequence[str]) -> None:
        keys = [name for name in columns if name in self._keys]
        if keys:
            raise TextError(
                "{}: {} is in the names of folders, which workers do not read: leave it out "
                "with {columns=[...]}",
                self.where,
                join_words(keys),
            )
