"""Rows of a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..._messages.checks import it_has, join_words
from ..rows.array import ArrayRows, check_matrix
from ..rows.arrow import TableRows
from ..rows.base import RowSource
from ..rows.dtypes import EXACT_INTEGER, WIDE_INTEGERS, warn_of_rounding
from .frames import is_pandas


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
