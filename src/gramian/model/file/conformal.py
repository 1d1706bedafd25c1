"""Calibration of intervals in the file of a model: writing of header and tensors, and reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._arrays import Array
from ...conformal import ConformalPredictor
from ...conformal.parts import Predictor
from ..base import Model
from .format import (
    BLEND,
    CENTER_TENSORS,
    blend_header,
    blend_tensors,
    member_header,
    member_tensors,
    with_prefix,
    without_prefix,
)
from .members import (
    Saved,
    SavedCalibration,
    SavedPart,
    read_blend,
    read_members,
    refuse_unknown,
    with_centers,
    without_numbers,
    without_tensors,
)

GROUP_VALUES = "group_values"

PART_TENSORS = {"scores", "groups"}
"""Tensors of a part, besides these of its functions."""


def calibration_header(conformal: ConformalPredictor, model: Model) -> dict[str, Any]:
    """Return the fields of a calibration that JSON can hold, for the header of a file."""
    return {
        "method": conformal.method.to_dict(),
        "groups": conformal.groups and conformal.groups.to_dict(),
        "parts": [
            {name: _function_header(f, model) for name, f in part.functions.items()}
            for part in conformal.parts
        ],
    }


def _function_header(function: Predictor, model: Model) -> dict[str, Any]:
    return {
        "weights": list(function.shares),
        "members": [member_header(member) for member in function.parts],
        "centers_of": [_same_centers(member, model) for member in function.parts],
        "classes": function.classes is not None,
        "blend": blend_header(function),
    }


def _same_centers(member: Any, model: Model) -> int | None:
    """Return the index of the earlier model with the same centers, which the file holds once."""
    same = [i for i, part in enumerate(model.parts) if part.centers is member.centers]
    return same[0] if same else None


def calibration_tensors(conformal: ConformalPredictor, model: Model) -> dict[str, Array]:
    """Return the tensors of a calibration."""
    tensors = {} if conformal.groups is None else {GROUP_VALUES: conformal.groups.known_values}
    for number, part in enumerate(conformal.parts):
        own = {"scores": part.scores} | ({} if part.groups is None else {"groups": part.groups})
        for name, function in part.functions.items():
            for i, member in enumerate(function.parts):
                of_member = member_tensors(member)
                if _same_centers(member, model) is not None:
                    of_member = {k: t for k, t in of_member.items() if k not in CENTER_TENSORS}
                own |= with_prefix(f"{name}.{i}.", of_member)
            own |= with_prefix(f"{name}.", blend_tensors(function))
        tensors |= with_prefix(f"{number}.", own)
    return tensors


def read_calibration(
    header: Any,
    tensors: dict[str, Array],
    shared: dict[str, Any],
    known: list[dict[str, Array]],
) -> SavedCalibration:
    """Read a calibration from the header and the tensors of a file.

    - `shared`: fields that all functions of the calibration share with the model, such as its
      encoding.
    - `known`: the tensors of each member of the model, for functions without centers of their own.
    """
    if isinstance(header, list):
        header, tensors = _from_format_7(header, tensors)
    parts = []
    for number, functions in enumerate(header["parts"]):
        # `tensors` shrinks by each part: any that remain after the last one are unknown.
        own = without_prefix(f"{number}.", tensors)
        tensors = without_tensors(f"{number}.", tensors)
        saved = {}
        for name, entry in functions.items():
            of_function = without_prefix(f"{name}.", own)
            own = without_tensors(f"{name}.", own)
            saved[name] = _read_function(entry, of_function, shared, known)
        refuse_unknown(set(own) - PART_TENSORS)
        parts.append(SavedPart(own["scores"], own.get("groups"), saved))
    refuse_unknown(set(tensors) - {GROUP_VALUES})
    return SavedCalibration(header["method"], parts, header["groups"], tensors.get(GROUP_VALUES))


def _read_function(
    entry: dict[str, Any],
    tensors: dict[str, Array],
    shared: dict[str, Any],
    known: list[dict[str, Array]],
) -> Saved:
    # A spread predicts logarithms of errors, and has no classes even if the model has.
    if not entry["classes"]:
        shared = shared | {"classes": None, "probabilities": None}
    trees = read_blend(entry.get("blend"), without_prefix(BLEND, tensors))
    members, tensors = entry["members"], without_tensors(BLEND, tensors)
    refuse_unknown(without_numbers(len(members), tensors))
    complete: dict[str, Array] = {}
    for i, number in enumerate(entry["centers_of"]):
        own = without_prefix(f"{i}.", tensors)
        complete |= with_prefix(
            f"{i}.", own if number is None else with_centers(own, known[number])
        )
    # A single member has the weight 1, but is no average.
    weights = entry["weights"] if len(members) > 1 else None
    return Saved(read_members(members, complete, shared), weights, blend=trees)


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
