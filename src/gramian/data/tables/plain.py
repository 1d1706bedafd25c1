"""The types of tables: texts of one kind, whichever of Arrow's three a library gives them."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from ..._checks import listed
from ..arrow import check_buffers

_MOST_TEXT = 1 << 30  # bytes of a chunk of texts, whose offsets have 31 bits


def plain_schema(schema: pa.Schema, where: str, rows: int) -> pa.Schema:
    """Return the columns of a table, without the index that pandas may have stored along.

    Parameters
    ----------
    schema : pyarrow.Schema
    where : str
        Subject of error messages.
    rows : int

    Returns
    -------
    pyarrow.Schema
        Without metadata; long and view texts are texts, also in categories.

    Raises
    ------
    ValueError
        If there is no row or no column, or two columns of one name.
    """
    fields = [field for field in schema if not field.name.startswith("__index_level_")]
    twice = [name for name, count in Counter(f.name for f in fields).items() if count > 1]
    if twice:
        raise ValueError(f"{where} has several columns named {listed(sorted(twice))}: rename them")
    if rows == 0 or not fields:
        raise ValueError(
            f"{where} has {rows} rows of {len(fields)} columns, but at least one of each is needed"
        )
    return pa.schema([(field.name, plain_type(field.type)) for field in fields])


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that stands for all of its kind."""
    if pa.types.is_dictionary(kind):
        return pa.dictionary(pa.int32(), plain_type(kind.value_type), kind.ordered)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return kind


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of a schema, in its types."""
    pairs = ((batch.column(field.name), field.type) for field in schema)
    columns = [one if one.type.equals(kind) else one.cast(kind) for one, kind in pairs]
    return pa.record_batch(columns, schema=schema)


def plain_table(table: pa.Table, where: str) -> pa.Table:
    """Return the columns of a table, in the types of `plain_schema`.

    Raises
    ------
    ValueError
        Those of `plain_schema`, and of `check_buffers`.
    """
    check_buffers(table, where)
    schema = plain_schema(table.schema, where, table.num_rows)
    columns = [_plain_column(table.column(name), schema.field(name).type) for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


def _plain_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type.equals(kind):
        return column
    pieces = 1 + column.nbytes // _MOST_TEXT
    rows = -(-len(column) // pieces)
    chunks = [
        chunk.slice(start, rows).cast(kind)
        for chunk in column.chunks
        for start in range(0, len(chunk), rows)
    ]
    return pa.chunked_array(chunks, kind)
