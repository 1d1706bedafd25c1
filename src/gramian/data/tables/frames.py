"""Frames of other libraries as Arrow tables, and rows of pandas; none of these is imported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..._messages.checks import it_has, join_words
from ..rows.array import ArrayRows, check_matrix
from ..rows.arrow import LastSchemas, TableRows, check_buffers, check_columns
from ..rows.base import RowSource
from ..rows.dtypes import EXACT_INTEGER, WIDE_INTEGERS, warn_of_rounding
from .base import Table
from .records import is_records

FEW_ROWS = 1000
"""Most rows of a frame of one type that are copied as a matrix, in place of a Series per column."""


def library_of(x: Any) -> str:
    """Return the name of the library of an object's class."""
    return type(x).__module__.split(".")[0]


def is_stream(x: Any) -> bool:
    """Return whether an object exports record batches; a column exports only arrays."""
    # Columns have the same method, but no names.
    if isinstance(x, pa.ChunkedArray | pa.Array) or type(x).__name__ == "Series":
        return False
    return hasattr(type(x), "__arrow_c_stream__")


def is_pandas(x: Any) -> bool:
    """Return whether an object is a DataFrame of pandas."""
    return library_of(x) == "pandas" and type(x).__name__ == "DataFrame"


def is_lazy(x: Any) -> bool:
    """Return whether an object is a LazyFrame of polars."""
    return library_of(x) == "polars" and type(x).__name__ == "LazyFrame"


def is_table(x: Any) -> bool:
    """Return whether `x` is an input of `as_table`: a table, a path, a frame, or records.

    Arrays, sparse matrices, tensors and row sources are no inputs. Nothing is read or computed.
    """
    if isinstance(x, Table | str | Path):
        return True
    return is_pandas(x) or is_lazy(x) or is_stream(x) or is_records(x)


def from_pandas(frame: Any, where: str) -> pa.Table:
    """Return the columns of a DataFrame, whose index is not used.

    - `frame`: a frame; labels that are not text are converted to text.
    - `where`: subject of error messages.

    Raise ValueError or TypeError if two labels are equal as text, or a column holds objects of
    different types.
    """
    names = [str(label) for label in frame.columns.tolist()]
    check_columns(where, names, names)
    kinds = set(frame.dtypes)
    if len(frame) <= FEW_ROWS and len(kinds) == 1 and _is_plain_number(*kinds):
        # Of few rows, one matrix costs less than a Series for each column.
        columns = [pa.array(values, from_pandas=True) for values in frame.to_numpy().T]
    else:
        pairs = zip(frame.items(), names, strict=True)
        columns = [_column(column, name, where) for (_, column), name in pairs]
    return pa.table(columns, names=names)


def _is_plain_number(kind: Any) -> bool:
    """Return whether a type of a column is one of NumPy's numbers or booleans."""
    return isinstance(kind, np.dtype) and kind.kind in "biuf"


def _column(column: Any, name: str, where: str) -> pa.Array:
    # Arrow itself takes ten times as long to find out.
    if _is_plain_number(column.dtype):
        return pa.array(column.to_numpy(), from_pandas=True)
    # Arrow does not read sparse columns of pandas.
    if str(column.dtype).startswith("Sparse"):
        column = column.sparse.to_dense()
    try:
        return pa.Array.from_pandas(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        # Only now, for the message: testing each value takes long.
        kinds = sorted({type(value).__name__ for value in column.dropna()})
        what = " and ".join(kinds[:3]) if len(kinds) > 1 else str(column.dtype)
        raise TypeError(
            f"{where}: column '{name}' holds values of different types, or of a type without a "
            f"counterpart in Arrow ({what}); convert it to one type, for example with "
            ".astype(str), or leave it out"
        ) from error


# Bytes of a chunk of texts: the offsets of Arrow's usual type of texts have 31 bits.
_MOST_TEXT = 1 << 30


def plain_schema(schema: pa.Schema, where: str, rows: int) -> pa.Schema:
    """Return the schema of a table, without an index that pandas has stored.

    - `where`: subject of error messages.

    It has no metadata; large strings and string views become strings, also in categories.
    Raise ValueError if there is no row or no column, or two columns of one name.
    """
    plain = _plain_schema(schema, where)
    if rows == 0 or not len(plain):
        raise ValueError(
            f"{where} has {rows} rows of {len(plain)} columns, but at least one of each is needed"
        )
    return plain


@LastSchemas
def _plain_schema(schema: pa.Schema, where: str) -> pa.Schema:
    fields = [field for field in schema if not field.name.startswith("__index_level_")]
    names = [field.name for field in fields]
    check_columns(where, names, names)
    return pa.schema([(field.name, plain_type(field.type)) for field in fields])


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the common type of a kind, such as string for large strings."""
    if pa.types.is_dictionary(kind):
        # Files and batches may have codes of different widths: one width makes their schemas equal.
        return pa.dictionary(pa.int32(), plain_type(kind.value_type), kind.ordered)
    # pandas, polars and files differ in the type of texts; consumers meet only one.
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return kind


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of a schema, in its types."""
    pairs = ((batch.column(field.name), field.type) for field in schema)
    columns = [array if array.type.equals(kind) else array.cast(kind) for array, kind in pairs]
    return pa.record_batch(columns, schema=schema)


def plain_table(table: pa.Table, where: str) -> pa.Table:
    """Return the columns of a table, in the types of `plain_schema`; errors as there."""
    check_buffers(table, where)
    schema = plain_schema(table.schema, where, table.num_rows)
    if schema.equals(table.schema):
        return table.replace_schema_metadata()
    columns = [_plain_column(table.column(name), schema.field(name).type) for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


def _plain_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type.equals(kind):
        return column
    # A cast of long texts to short offsets fails beyond 2 GB in one chunk: it goes piece by piece.
    pieces = 1 + column.nbytes // _MOST_TEXT
    rows = -(-len(column) // pieces)
    chunks = [
        chunk.slice(start, rows).cast(kind)
        for chunk in column.chunks
        for start in range(0, len(chunk), rows)
    ]
    return pa.chunked_array(chunks, kind)


def frame_rows(frame: Any, columns: Sequence[str | int] | None = None) -> RowSource:
    """Return a row source of a DataFrame, without a copy if its memory layout allows.

    - `frame`: a frame, whose index is not used. Missing values, also of nullable types, become NaN.

    Rows have feature names if all labels are strings, as in scikit-learn.
    """
    if columns is not None:
        missing = [str(c) for c in columns if c not in frame.columns]
        if missing:
            name_hint = it_has([str(c) for c in frame.columns], missing[0])
            raise ValueError(f"the DataFrame has no column {join_words(missing)}; {name_hint}")
        frame = frame[list(columns)]
    # Before the types: a frame without columns has none, and would pass that check.
    check_matrix(frame.shape)
    _check_types(frame)
    labels = list(frame.columns)
    names = tuple(labels) if all(isinstance(label, str) for label in labels) else None
    if _one_array(frame):
        return ArrayRows(frame.to_numpy(), feature_names=names)
    # Labels may be of any type and equal each other, which Arrow's names cannot: numbers replace
    # them during the conversion.
    table = pa.Table.from_pandas(frame.set_axis(range(len(labels)), axis=1), preserve_index=False)
    rows = TableRows(table)
    # The names of the table are numbers; warnings and messages show the labels of the frame.
    rows.feature_names = names
    return rows


def warn_of_rounded_columns(x: Any) -> None:
    """Warn if float64 rounds whole numbers of a frame or an array of objects.

    `ArrayRows` warns about arrays and frames of a single type.
    """
    if is_pandas(x):
        for name, kind in x.dtypes.items() if len(set(x.dtypes)) > 1 else ():
            if str(kind).lower() in WIDE_INTEGERS:
                # Nullable types are called Int64, and NumPy's type of the same size int64.
                warn_of_rounding(x[name].dropna().to_numpy(str(kind).lower()), name)
    elif isinstance(x, np.ndarray) and x.dtype == object and x.ndim == 2:
        for j, column in enumerate(x.T):
            is_rounded = [isinstance(value, int) and abs(value) > EXACT_INTEGER for value in column]
            warn_of_rounding(column[is_rounded].astype(np.float64), j)


def _check_types(frame: Any) -> None:
    bad = [
        f"{name} ({kind})"
        for name, kind in frame.dtypes.items()
        # Sparse columns have numbers, but their conversion would fill the zeros unnoticed.
        if kind.kind not in "biuf" or str(kind).startswith("Sparse")
    ]
    if bad:
        raise TypeError(
            f"the DataFrame has columns that are not plain numbers: {join_words(bad)}; "
            "leave them out, or encode them as numbers first (for example with pd.get_dummies; "
            "sparse columns with frame.sparse.to_coo())"
        )


def _one_array(frame: Any) -> bool:
    """Return whether a frame is a view of one C-ordered array, such as ``DataFrame(array)``."""
    kinds = set(frame.dtypes)
    # A frame of one row has contiguous columns in either order.
    if len(kinds) > 1 or not isinstance(next(iter(kinds)), np.dtype) or len(frame) == 1:
        return False
    # A frame stores columns as rows of a block: a column with gaps between its numbers is a column
    # of a C-ordered array, which `to_numpy` returns without a copy.
    return not frame.iloc[:, 0].to_numpy().flags.c_contiguous
