"""Floating-point types that hold the numbers of other types exactly enough."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

NUMPY_OF: dict[torch.dtype, np.dtype[Any]] = {
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
}

_TO_FLOAT32 = frozenset(
    {"bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16", "float32"}
)
_TO_FLOAT64 = frozenset({"int32", "uint32", "int64", "uint64", "float64"})


def float_for(name: str, what: str = "the data") -> torch.dtype:
    """Give the type in which numbers of another type are delivered.

    float32 and float64 stay; 8- and 16-bit types and booleans become float32, which holds them
    exactly; wider integers become float64.

    Parameters
    ----------
    name : str
        Name of a NumPy or torch type without byte order, such as ``"int16"``.
    what : str
        Subject of the error message.

    Returns
    -------
    torch.dtype
        ``torch.float32`` or ``torch.float64``.
    """
    if name in _TO_FLOAT32:
        return torch.float32
    if name in _TO_FLOAT64:
        return torch.float64
    if name.startswith("complex"):
        raise ValueError(
            f"complex data not supported: {what} has type {name}; "
            "pass real and imaginary parts as separate columns"
        )
    raise TypeError(
        f"{what} has type {name}, but features must be numbers; "
        "convert it first, for example with x.astype('float32'), or leave the column out"
    )


def common_float(dtypes: Iterable[torch.dtype]) -> torch.dtype:
    """Give float64 if any of the types is float64, else float32."""
    return torch.float64 if any(d == torch.float64 for d in dtypes) else torch.float32
