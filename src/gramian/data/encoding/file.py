"""Encodings as JSON and tensors, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .boolean import Boolean
from .column import ColumnEncoding
from .date import Date
from .encoding import Encoding
from .left_out import LeftOut
from .number import Number
from .one_hot import OneHot
from .ordered import Ordered
from .saved import Saved
from .target_means import TargetMeans

CLASSES: tuple[type[ColumnEncoding], ...] = (
    Number, Boolean, OneHot, TargetMeans, Ordered, Date, LeftOut
)  # fmt: skip
BY_CODE = {one.code: one for one in CLASSES}
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def to_dict(encoding: Encoding) -> dict[str, Any]:
    """Return all but the tensors, for JSON."""
    dtype = str(encoding.dtype).removeprefix("torch.")
    columns = [{"code": one.code, **one.to_dict()} for one in encoding.columns]
    return {"dtype": dtype, "columns": columns}


def tensors(encoding: Encoding) -> dict[str, Tensor]:
    """Return the tensors of all columns, named by the number of the column."""
    return {
        f"{j}.{key}": value
        for j, one in enumerate(encoding.columns)
        for key, value in one.tensors().items()
    }


def from_parts(fields: Any, given: Mapping[str, Tensor]) -> Encoding:
    """Return the encoding; ValueError if its parts are damaged or do not fit together."""
    if not isinstance(fields, dict) or set(fields) != {"dtype", "columns"}:
        raise ValueError("an encoding must be an object of dtype and columns")
    saved = fields["columns"]
    if fields["dtype"] not in DTYPES or not isinstance(saved, list):
        raise ValueError("an encoding must have a dtype, float32 or float64, and a list of columns")
    parts: dict[str, dict[str, Tensor]] = {str(j): {} for j in range(len(saved))}
    for name, tensor in given.items():
        number, _, key = name.partition(".")
        if number not in parts:
            raise ValueError(f"an encoding of {len(saved)} columns has the tensor {name}")
        parts[number][key] = tensor
    columns = [_column(one, parts[str(j)]) for j, one in enumerate(saved)]
    names = [one.name for one in columns]
    encoding = Encoding(tuple(columns), DTYPES[fields["dtype"]])
    if len(set(names)) < len(names) or encoding.width == 0:
        raise ValueError("an encoding has a column twice, or no feature")
    return encoding


def _column(fields: Any, given: Mapping[str, Tensor]) -> ColumnEncoding:
    saved = Saved(fields, given)
    found = BY_CODE[saved.one_of("code", tuple(BY_CODE))].from_saved(saved)
    saved.finish()
    return found
