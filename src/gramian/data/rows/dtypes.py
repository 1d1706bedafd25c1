"""Choice of float32 or float64 for numbers of other types, and integers that float64 rounds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np

from ... import _arrays as xp

EXACT_INTEGER = 2**53
"""Up to which float64 holds each whole number."""

WIDE_INTEGERS = frozenset({"int64", "uint64"})

_TO_FLOAT32 = frozenset(
    {"bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16", "float32"}
)
_TO_FLOAT64 = frozenset({"int32", "uint32", "int64", "uint64", "float64"})


def float_for(name: str, what: str = "the data") -> xp.DType:
    """Return the floating-point type in which numbers of another type are delivered.

    float32 and float64 stay; 8- and 16-bit types and booleans become float32, which holds them
    exactly; wider integers become float64.

    - `name`: name of a type of NumPy without byte order, such as ``"int16"``.
    - `what`: subject of the error message.
    """
    if name in _TO_FLOAT32:
        return xp.float32
    # int32 has more digits than float32, which would round numbers beyond 2**24.
    if name in _TO_FLOAT64:
        return xp.float64
    if name.startswith("complex"):
        raise ValueError(
            f"complex data not supported: {what} has type {name}; "
            "pass real and imaginary parts as separate columns"
        )
    raise TypeError(
        f"{what} has type {name}, but features must be numbers; "
        "convert it first, for example with x.astype('float32'), or leave the column out"
    )


def rounded_numbers(values: np.ndarray) -> np.ndarray:
    """Return a mask of the whole numbers that float64 rounds.

    - `values`, ndarray of shape (k,): numbers of a type of 64 bits, or float64 converted from
      longer numbers.
    """
    # Two reductions settle nearly every column without a temporary array.
    if not len(values) or (values.max() <= EXACT_INTEGER and values.min() >= -EXACT_INTEGER):
        return np.zeros(len(values), bool)
    if values.dtype.kind == "f":
        # Numbers that are float64 already have lost their digits: any beyond the limit may be
        # rounded.
        return np.asarray(np.abs(values) > EXACT_INTEGER)
    # `past` is the first number beyond the type. The largest int64 becomes 2.0**63, which does not
    # fit back: the cast of it is undefined, and the first comparison finds it instead.
    floats, past = values.astype(np.float64), 2.0 ** (64 - (values.dtype.kind == "i"))
    with np.errstate(invalid="ignore"):
        return np.asarray((floats >= past) | (floats.astype(values.dtype) != values))


def warn_of_rounding(values: np.ndarray, column: object) -> None:
    """Warn if float64 rounds whole numbers of a column.

    The column has a name or a number. All its blocks give the same text, which Python shows once.
    """
    if rounded_numbers(values).any():
        warn_of_rounded_column(column)


def warn_of_rounded_column(column: object) -> None:
    """Warn that float64 rounds whole numbers of a column."""
    warnings.warn(
        f"column {column!r} holds whole numbers beyond 2**53, which float64 rounds: numbers "
        "that differ only in their last digits become equal; subtract an offset first, or "
        "leave the column out if it is an identifier",
        UserWarning,
        stacklevel=3,
    )


def common_float(dtypes: Iterable[xp.DType]) -> xp.DType:
    """Return float64 if any of the types is float64, else float32."""
    return xp.float64 if any(d == xp.float64 for d in dtypes) else xp.float32
