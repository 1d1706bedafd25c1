"""`gramian sample`: write a data set that ships with the package as a table."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from ...data import sample_path, write_table
from ...data.formats import format_to_write
from ..outputs.report import Report

SPLIT_CODES = {"train": 0, "test": 1}


def sample(name: str, out: Path, part: str) -> Report:
    """Write features and target of a data set, without the column that splits it."""
    if part != "all" and part not in SPLIT_CODES:
        raise ValueError(f"--part must be all, {' or '.join(SPLIT_CODES)}, not {part}")
    format_to_write(out)  # refuses an unknown format before any work
    row_filter = [("split", "=", SPLIT_CODES[part])] if part in SPLIT_CODES else None
    table = pq.read_table(sample_path(name), filters=row_filter).drop_columns("split")
    write_table(out, {column: table[column] for column in table.column_names})
    columns = ", ".join(table.column_names)
    return {"table": out, "rows": table.num_rows, "columns": columns, "target": "target"}
