"""Records of Python: rows and columns by name, as JSON has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..._messages.checks import join_words


def is_records(x: Any) -> bool:
    """Return whether an object is a mapping of names, or a list of such mappings."""
    if isinstance(x, list | tuple):
        return len(x) > 0 and isinstance(x[0], Mapping)
    # A sparse matrix of SciPy may be a dict of its entries.
    return isinstance(x, Mapping) and not hasattr(x, "shape")


def from_records(x: Mapping[Any, Any] | Sequence[Mapping[Any, Any]], where: str) -> pa.Table:
    """Return the columns of records.

    - `x`: a mapping whose values are all lists, arrays or series has the columns of a table; with
      other values it is a row. A list has a mapping for each row. Names that are not text are
      converted to text; None and NaN are missing values.
    - `where`: subject of error messages.

    Raise ValueError or TypeError if columns differ in length, rows in their names, or a column has
    values of different types.
    """
    columns: Mapping[Any, Any]
    if not isinstance(x, Mapping):
        columns = _columns_of_rows(x, where)
    elif any(map(_is_column, x.values())):
        columns = _columns_of_one_length(x, where)
    else:
        columns = {name: [value] for name, value in x.items()}
    arrays = [_array(values, str(name), where) for name, values in columns.items()]
    return pa.table(arrays, names=[str(name) for name in columns])


def _is_column(value: Any) -> bool:
    """Return whether a value has an element for each row."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def _columns_of_one_length(x: Mapping[Any, Any], where: str) -> Mapping[Any, Any]:
    scalars = [str(name) for name, value in x.items() if not _is_column(value)]
    if scalars:
        raise ValueError(
            f"{where} has lists in some columns and single values in others, such as "
            f"{join_words(scalars)}; give lists for a table of columns, or [row] for a row that "
            "contains lists"
        )
    lengths = {str(name): len(value) for name, value in x.items()}
    first, count = next(iter(lengths.items()))
    different = [name for name, length in lengths.items() if length != count]
    if different:
        raise ValueError(
            f"{where} has {count:,} values in column '{first}' and {lengths[different[0]]:,} in "
            f"column '{different[0]}'; give one value for each row"
        )
    return x


def _columns_of_rows(rows: Sequence[Mapping[Any, Any]], where: str) -> dict[Any, list[Any]]:
    names = rows[0].keys()
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(
                f"{where}: row {number:,} is of type {type(row).__name__}, but row 0 is a mapping "
                "of names; give all rows alike"
            )
        # Views of keys compare as sets: the order of names does not matter.
        if row.keys() != names:
            lacking = [str(name) for name in names if name not in row]
            have, lack = (0, number) if lacking else (number, 0)
            lacking = lacking or [str(name) for name in row if name not in names]
            raise ValueError(
                f"{where}: row {lack:,} lacks {join_words(lacking)}, which row {have:,} has; give "
                "None for a missing value"
            )
    return {name: [row[name] for row in rows] for name in names}


def _array(values: Any, name: str, where: str) -> pa.Array:
    # Not all to NumPy, which would make texts of numbers next to texts.
    values = list(values) if isinstance(values, list | tuple) else np.asarray(values)
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        kinds = sorted({type(value).__name__ for value in values if value is not None})
        raise TypeError(
            f"{where}: column '{name}' holds values of different types, or of a type without a "
            f"counterpart in Arrow ({' and '.join(kinds[:3])}); convert them to one type"
        ) from error
