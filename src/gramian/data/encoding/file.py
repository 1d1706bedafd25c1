"""Files of encodings: safetensors with a JSON header, and a digest of all that is in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..._display import display_text
from ..._tensors import DamagedFile, read_tensors, write_tensors
from .columns.base import ColumnEncoding
from .columns.boolean import Boolean
from .columns.datetime import Date
from .columns.left_out import LeftOut
from .columns.numeric import Number
from .columns.one_hot import OneHot
from .columns.ordinal import Ordered
from .columns.target_means import TargetMeans
from .saved import Saved
from .table_encoding import Encoding

FORMAT = 1
KEY = "gramian.encoding"


def save_encoding(path: str | Path, encoding: Encoding, about: dict[str, Any]) -> None:
    """Write an encoding, and what else is to be known about it.

    Parameters
    ----------
    path : str or Path
    encoding : Encoding
    about : dict
        What JSON can hold.
    """
    header = {"format": FORMAT, "encoding": encoding.to_dict(), "about": about}
    write_tensors(path, encoding.tensors(), {KEY: json.dumps(header)})


def load_encoding(path: str | Path) -> tuple[Encoding, dict[str, Any]]:
    """Return the encoding in a file, and what is known about it.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no encoding, is damaged, or was written by a newer version.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {display_text(path)} of an encoding")
    try:
        contents = read_tensors(path)
        header = json.loads(contents.metadata.get(KEY, "null"))
    except (DamagedFile, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is no file of an encoding, or was cut off or changed since it was written "
            f"({error})"
        ) from error
    if not isinstance(header, dict) or set(header) != {"format", "encoding", "about"}:
        raise ValueError(f"{path} is a safetensors file but holds no encoding")
    if header["format"] != FORMAT:
        raise ValueError(
            f"{path} has format {header['format']}; this version reads {FORMAT}: upgrade gramian"
        )
    try:
        if contents.digest is None or not isinstance(header["about"], dict):
            raise ValueError("its digest is missing, or what is said about it")
        return Encoding.from_parts(header["encoding"], contents.tensors), header["about"]
    except ValueError as error:
        raise ValueError(f"{path} is a damaged file of an encoding: {error}") from error


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
