"""Rows that are no values: header lines between them, and a total below them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from ...rows import arrow_compute as pc
from ...rows.arrow import to_numpy
from ...tables.in_memory import MemoryTable
from .dialect import Dialect
from .layout import is_number

TOTAL_WORDS = frozenset(
    (
        *("total", "totals", "grand total", "sum", "all", "average", "mean", "avg"),
        *("summe", "gesamt", "gesamtsumme", "insgesamt", "mittelwert", "durchschnitt"),
        *("somme", "total général", "moyenne", "total general", "promedio", "totale", "totaal"),
    )
)
"""First text of a last row that may have the sums or means of the rows above it."""

TOTAL_ACCURACY = 1e-3
"""Relative difference up to which a number is a sum: totals are rounded."""


def checked_rows(
    batches: Iterable[pa.RecordBatch], path: Path, dialect: Dialect
) -> Iterator[pa.RecordBatch]:
    """Yield batches; raise `ValueError` if a row repeats the header line, or has several lines.

    Files that were joined without a look repeat it. A name that is a number may be a value as well.
    Between tabs, a text with a line end and a tab is several rows: databases write quotes as they
    are, and a text that begins with one then ends at the next quote.
    """
    named = [(str(j), name) for j, name in enumerate(dialect.names) if name]
    is_checked = len(named) > 1 and dialect.header_rows and not any(is_number(n) for _, n in named)
    row = dialect.first_row
    for batch in batches:
        if is_checked:
            # One comparison of a column per batch; only rows that repeat its name are read cell by
            # cell.
            column, name = named[0]
            is_name = pc.equal(batch.column(column), name).fill_null(False)
            for place in np.flatnonzero(is_name.to_numpy(zero_copy_only=False)).tolist():
                texts = [batch.column(j)[place].as_py() or "" for j, _ in named]
                if [text.strip() for text in texts] == [name for _, name in named]:
                    raise ValueError(
                        f"{path}: row {row + place:,} (the header line is row 1) repeats the "
                        f"header line: {', '.join(texts)!r:.60}; delete it, or give the files that "
                        "were joined: a folder, or a pattern such as 'days/*.csv'"
                    )
        if dialect.separator == "\t":
            _refuse_joined_rows(batch, path, dialect, row)
        row += batch.num_rows
        yield batch


def _refuse_joined_rows(batch: pa.RecordBatch, path: Path, dialect: Dialect, row: int) -> None:
    for column, name in zip(batch.columns, dialect.names, strict=True):
        has_both = pc.and_(pc.match_substring(column, "\n"), pc.match_substring(column, "\t"))
        if pc.any(has_both).as_py():
            place = has_both.index(True).as_py()
            raise ValueError(
                f"{path}: row {row + place:,} (the header line is row 1) has several lines in "
                f"column {name!r}: {column[place].as_py()!r:.60}; double or remove quotes at the "
                "beginning of texts"
            )


def refuse_total(table: MemoryTable, last_texts: Sequence[str | None], first_row: int) -> None:
    """Raise ValueError if the last row has the sums, or the means, of the rows above it.

    Parameters
    ----------
    table : MemoryTable
    last_texts : sequence of (str or None)
        Texts of the last row of the file.
    first_row : int
        Number of the first row of the file.
    """
    word = next((text.strip() for text in last_texts if text and text.strip()), "")
    if word.lower().rstrip(":") not in TOTAL_WORDS or len(table) < 3:
        return
    for field in table.schema:
        if not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
            continue
        numbers = to_numpy(table.column(field.name).combine_chunks(), field.name)
        # Values of both signs may cancel: a rounded sum could then miss the total.
        *above, last = numbers.astype(np.float64).tolist()
        values = [value for value in above if not math.isnan(value)]
        sums = (math.fsum(values), math.fsum(values) / max(len(values), 1))
        if any(total and math.isclose(last, total, rel_tol=TOTAL_ACCURACY) for total in sums):
            raise ValueError(
                f"{table.where}: row {first_row + len(table) - 1:,} (the header line is row 1), "
                f"{word!r:.40}, has the total or mean of column '{field.name}' above it; delete it"
            )
