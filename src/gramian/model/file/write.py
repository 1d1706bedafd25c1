"""Writing of the file of a model; see `format` for the contents of the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ... import _arrays as xp
from ..._files.tensors import write_tensors
from ..base import Model
from .conformal import calibration_header, calibration_tensors
from .format import (
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


def write_model(path: str | Path, model: Model, weights: tuple[float, ...] | None = None) -> None:
    """Write a model, or the weighted average of its parts; `read_model` reads the file."""
    header: dict[str, Any] = {
        "feature_names": model.feature_names,
        "classes": model.classes,
        "encoding": model.encoding and model.encoding.to_dict(),
        "target": model.target,
        "probabilities": model.probabilities and model.probabilities.to_dict(),
        "conformal": model.conformal and calibration_header(model.conformal, model),
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
        tensors |= with_prefix(CONFORMAL, calibration_tensors(model.conformal, model))
    # Host memory in row order; a tensor that has it already is not copied.
    stored_tensors = {name: xp.contiguous(xp.to_host(tensor)) for name, tensor in tensors.items()}
    # The list of parts shows the reader whether header and tensors belong together.
    about = {"format": MODEL_FORMAT, **header, "parts": parts_of(header, stored_tensors)}
    write_tensors(path, stored_tensors, {HEADER_KEY: json.dumps(about)})
