"""Reading of the calibration of intervals in the file of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._arrays import Array
from ...conformal import CalibratedPart, ConformalPredictor, RowGroups, make
from ..base import KernelPart
from .format import take_prefixed
from .members import read_function, refuse_unknown
from .write import GROUP_VALUES


def read_calibration(
    header: Any,
    tensors: dict[str, Array],
    shared: Mapping[str, Any],
    models: Sequence[KernelPart],
    *,
    verify: bool,
) -> ConformalPredictor:
    """Return the calibration of a header, and remove its tensors.

    - `shared`: arguments that all functions of the calibration share with the model, such as its
      encoding.
    - `models`: members of the model, for functions without centers of their own.
    - `verify`: whether to check centers for NaN.
    """
    if isinstance(header, list):
        header, tensors = _from_format_7(header, tensors)
    parts = []
    for number, entries in enumerate(header["parts"]):
        own = take_prefixed(f"{number}.", tensors)
        functions = {}
        for name, entry in entries.items():
            # A spread predicts logarithms of errors, and has no classes even if the model has.
            regression = {} if entry["classes"] else {"classes": None, "probabilities": None}
            # A single member has the weight 1, but is no average.
            entry = entry if len(entry["members"]) > 1 else {**entry, "weights": None}
            functions[name] = read_function(
                entry,
                take_prefixed(f"{name}.", own),
                {**shared, **regression},
                verify=verify,
                known=models,
            )
        parts.append(CalibratedPart(own.pop("scores"), functions, own.pop("groups", None)))
        refuse_unknown(own)
    groups, values = header["groups"], tensors.pop(GROUP_VALUES, None)
    refuse_unknown(tensors)
    has_groups = groups is not None and values is not None
    known_groups = RowGroups.from_dict(groups, values) if has_groups else None
    return ConformalPredictor(make(**header["method"]), tuple(parts), known_groups)


def _from_format_7(
    headers: list[dict[str, Any]], tensors: Mapping[str, Array]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Convert header and tensors of format 7, in which the number of parts named the method."""
    parts = []
    for entry in headers:
        functions = {}
        if entry["values"] is not None:
            functions["values"] = {
                **entry["values"],
                "centers_of": list(range(len(entry["values"]["members"]))),
                "classes": True,
            }
        if entry["spread"] is not None:
            functions["spread"] = {
                "weights": [1.0],
                "members": [entry["spread"]],
                "centers_of": [entry["like"]],
                "classes": False,
            }
        parts.append(functions)
    renamed = {
        name.replace(".spread.", ".spread.0.", 1): tensor for name, tensor in tensors.items()
    }
    method = {"name": "split" if len(parts) == 1 else "cv+"}
    return {"method": method, "groups": None, "parts": parts}, renamed
