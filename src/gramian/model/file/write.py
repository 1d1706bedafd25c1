"""Writing of the file of a model; see `format` for the contents of the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ... import _arrays as xp
from ..._arrays import Array
from ..._files.tensors import write_tensors
from ...conformal import ConformalPredictor
from ...conformal.parts import Predictor
from ..base import Model
from .format import (
    CENTER_TENSORS,
    CONFORMAL,
    ENCODING,
    HEADER_KEY,
    MODEL_FORMAT,
    blend_header,
    blend_tensors,
    member_header,
    member_tensors,
    parts_of,
    with_prefix,
)

GROUP_VALUES = "group_values"


def write_model(path: str | Path, model: Model, weights: tuple[float, ...] | None = None) -> None:
    """Write a model, or the weighted average of its parts; `read_model` reads the file."""
    header: dict[str, Any] = {
        "feature_names": model.feature_names,
        "classes": model.classes,
        "encoding": model.encoding and model.encoding.to_dict(),
        "target": model.target,
        "probabilities": model.probabilities and model.probabilities.to_dict(),
        "conformal": model.conformal and _calibration_header(model.conformal, model),
        "reading": model.reading and (model.reading.to_dict() or None),
        "blend": blend_header(model),
        "info": dict(model.info),
    }
    tensors = {} if model.encoding is None else with_prefix(ENCODING, model.encoding.tensors())
    # A single model has its parts in the header itself, as in the first formats: older files and
    # new ones are read by the same code.
    if weights is None:
        (member,) = model.parts
        header |= member_header(member)
        tensors |= member_tensors(member)
    else:
        header |= {
            "weights": list(weights),
            "members": [member_header(member) for member in model.parts],
        }
        for number, member in enumerate(model.parts):
            tensors |= with_prefix(f"{number}.", member_tensors(member))
    tensors |= blend_tensors(model)
    if model.conformal is not None:
        tensors |= with_prefix(CONFORMAL, _calibration_tensors(model.conformal, model))
    # Host memory in row order; a tensor that has it already is not copied.
    stored_tensors = {name: xp.contiguous(xp.to_host(tensor)) for name, tensor in tensors.items()}
    # The list of parts shows the reader whether header and tensors belong together.
    about = {"format": MODEL_FORMAT, **header, "parts": parts_of(header, stored_tensors)}
    write_tensors(path, stored_tensors, {HEADER_KEY: json.dumps(about)})


def _calibration_header(conformal: ConformalPredictor, model: Model) -> dict[str, Any]:
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


def _calibration_tensors(conformal: ConformalPredictor, model: Model) -> dict[str, Array]:
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
