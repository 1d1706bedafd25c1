"""Tables of SQLite databases, by the standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

from ..base import formats
from .base import CellsFormat, choose_part


@formats.register("sqlite")
class SQLite(CellsFormat):
    """A table or view of a database, ``houses.sqlite`` or ``houses.sqlite::sales``."""

    suffixes: ClassVar[tuple[str, ...]] = (".sqlite", ".sqlite3", ".db")

    def cells(self, path: Path, part: str | None) -> Iterator[Sequence[Any]]:
        address = f"{path.resolve().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(address, uri=True)) as database:
                query = (
                    "select name from sqlite_master where type in ('table', 'view') "
                    "and name not like 'sqlite_%' order by name"
                )
                table_names = [name for (name,) in database.execute(query)]
                name = choose_part(path, part, table_names, "table").replace('"', '""')
                rows = database.execute(f'select * from "{name}"')
                yield [column[0] for column in rows.description]
                yield from rows
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"{path} cannot be read as a database of SQLite ({error}); check the file"
            ) from error
