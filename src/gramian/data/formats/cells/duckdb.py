"""Tables of DuckDB databases, by its package."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from ..base import TableFormat, formats
from .base import choose_part, split_part


@formats.register("duckdb")
class DuckDB(TableFormat):
    """A table or view of a database, ``houses.duckdb`` or ``houses.duckdb::sales``."""

    suffixes: ClassVar[tuple[str, ...]] = (".duckdb",)

    def opens(self, path: Path) -> bool:
        return super().opens(split_part(path)[0])

    def load(self, path: Path) -> pa.Table:
        file, part = split_part(path)
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {file}")
        database = _connect(file)
        try:
            table_names = [row[0] for row in database.execute("show tables").fetchall()]
            name = choose_part(file, part, table_names, "table").replace('"', '""')
            return pa.table(database.sql(f'select * from "{name}"'))
        finally:
            database.close()


def _connect(path: Path) -> Any:
    try:
        import duckdb
    except ImportError:
        raise ImportError(f"{path} needs DuckDB: pip install 'gramian[duckdb]'") from None
    try:
        return duckdb.connect(str(path), read_only=True)
    except duckdb.Error as error:
        raise ValueError(
            f"{path} cannot be read as a database of DuckDB ({str(error).splitlines()[0]}); check "
            "the file"
        ) from error
