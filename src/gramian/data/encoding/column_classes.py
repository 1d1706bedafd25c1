"""Columns of an encoding rebuilt from files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array
from ..tables.column_reading import ColumnReading
from .columns.base import ENCODING_OF_CODE, ColumnEncoding
from .saved import Saved

DTYPE_OF_NAME = {"float32": xp.float32, "float64": xp.float64}


def columns_from_parts(
    fields: Any, tensors: Mapping[str, Array]
) -> tuple[tuple[ColumnEncoding, ...], xp.DType]:
    """Rebuild the columns and the dtype of an encoding; ValueError if its parts are damaged."""
    if not isinstance(fields, dict) or set(fields) - {"readings"} != {"dtype", "columns"}:
        raise ValueError("an encoding must be an object of dtype, columns and readings")
    saved = fields["columns"]
    if fields["dtype"] not in DTYPE_OF_NAME or not isinstance(saved, list):
        raise ValueError("an encoding must have a dtype, float32 or float64, and a list of columns")
    parts: dict[str, dict[str, Array]] = {str(j): {} for j in range(len(saved))}
    for name, tensor in tensors.items():
        # Tensors are named by the number of their column: names of columns may have any characters.
        number, _, key = name.partition(".")
        if number not in parts:
            raise ValueError(f"an encoding of {len(saved)} columns has the tensor {name}")
        parts[number][key] = tensor
    columns = [_column(saved_column, parts[str(j)]) for j, saved_column in enumerate(saved)]
    return tuple(columns), DTYPE_OF_NAME[fields["dtype"]]


def readings_from_parts(fields: Mapping[str, Any]) -> dict[str, ColumnReading]:
    """Rebuild how columns of text are read; ValueError if they are damaged."""
    saved = fields.get("readings", {})
    if not isinstance(saved, dict):
        raise ValueError("the readings of an encoding must be an object")
    return {name: ColumnReading.from_dict(reading) for name, reading in saved.items()}


def _column(fields: Any, tensors: Mapping[str, Array]) -> ColumnEncoding:
    saved = Saved(fields, tensors)
    encoding = ENCODING_OF_CODE[saved.one_of("code", tuple(ENCODING_OF_CODE))].from_saved(saved)
    # A field that no class asked for is damage, or of a newer version: using the rest would be
    # wrong.
    saved.finish()
    return encoding
