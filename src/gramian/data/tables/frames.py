"""Frames of other libraries as Arrow tables; none of these libraries is imported."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from ..._checks import listed


def library_of(x: Any) -> str:
    """Return the name of the library that an object's class comes from."""
    return type(x).__module__.split(".")[0]


def is_stream(x: Any) -> bool:
    """Return whether an object gives record batches; a column gives arrays only."""
    if isinstance(x, pa.ChunkedArray | pa.Array) or type(x).__name__ == "Series":
        return False
    return hasattr(type(x), "__arrow_c_stream__")


def is_pandas(x: Any) -> bool:
    """Return whether an object is a DataFrame of pandas."""
    return library_of(x) == "pandas" and type(x).__name__ == "DataFrame"


def is_lazy(x: Any) -> bool:
    """Return whether an object is a LazyFrame of polars."""
    return library_of(x) == "polars" and type(x).__name__ == "LazyFrame"


def from_pandas(frame: Any, where: str) -> pa.Table:
    """Return the columns of a DataFrame, whose index is not used.

    Parameters
    ----------
    frame : pandas.DataFrame
        Labels that are no text become text.
    where : str
        Subject of error messages.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    ValueError, TypeError
        If two labels are equal as text, or a column holds objects of different types.
    """
    names = [str(label) for label in frame.columns]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ValueError(f"{where} has several columns named {listed(twice)}: rename them")
    columns = [_column(frame.iloc[:, j], name, where) for j, name in enumerate(names)]
    return pa.table(columns, names=names)


def _column(column: Any, name: str, where: str) -> pa.Array:
    if str(column.dtype).startswith("Sparse"):
        column = column.sparse.to_dense()
    try:
        return pa.Array.from_pandas(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        kinds = sorted({type(value).__name__ for value in column.dropna()})
        what = " and ".join(kinds[:3]) if len(kinds) > 1 else str(column.dtype)
        raise TypeError(
            f"{where}: column '{name}' holds values of different types, or of one that no table "
            f"has ({what}); make them one type, for example with .astype(str), or leave it out"
        ) from error
