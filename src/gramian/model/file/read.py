"""Reading and checking of the file of a model; see `format` for the contents of the file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ... import data
from ..._arrays import Array
from ..._files.tensors import DamagedFile, read_tensors
from ..._messages.display import display_text
from ...data import ReadOptions
from ..average import AverageModel
from ..base import Model
from ..blend.blend_model import BlendModel
from ..kernel_model import KernelModel
from ..uncertainty.probabilities import probabilities_from
from .format import (
    CONFORMAL,
    ENCODING,
    HEADER_KEY,
    MODEL_FORMAT,
    OPTIONAL_ENTRIES,
    SHARED_ENTRIES,
    parts_of,
    take_prefixed,
)
from .members import read_calibration, read_function

Kind = TypeVar("Kind", KernelModel, AverageModel)

NEW_ENTRIES = {
    3: ("encoding", "target"), 4: ("quantiles",), 5: ("cells",), 6: ("probabilities", "link"),
    7: ("variance", "conformal"), 9: ("reading",), 10: ("blend",),
}  # fmt: skip
"""Optional parts that a format was the first to have."""

DAMAGE_ERRORS = (
    ValueError, TypeError, AttributeError, OverflowError, RuntimeError, IndexError,
)  # fmt: skip
"""Errors of Python and NumPy where the parts of a file have unexpected types or shapes."""

OF_MODEL = {"kernel", "centers", *OPTIONAL_ENTRIES}
OF_AVERAGE = {"weights", "members"}
OF_FILE = {"format", "info", *SHARED_ENTRIES}


def load_model(path: str | Path, *, verify: bool = True) -> Model:
    """Read a model, an average of models, or a blend, written by `save`.

    Parameters, errors and notes are the same as for `KernelModel.load`.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {display_text(path)}")
    try:
        contents = read_tensors(path, verify=verify)
        # A safetensors file of another program has no header: null, which is refused below.
        header = json.loads(contents.metadata.pop(HEADER_KEY, "null"))
    # JSON that is nested too deeply exhausts the stack of Python: damage, not a bug.
    except (DamagedFile, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a gramian model, or was cut off while it was copied, or was changed "
            f"since it was written ({error})"
        ) from error
    if not (isinstance(header, dict) and isinstance(header.get("format"), int)):
        raise ValueError(f"{path} is a safetensors file but not a gramian model")
    if header["format"] > MODEL_FORMAT:
        info = header.get("info")
        version = info.get("version", "(newer)") if isinstance(info, dict) else "(newer)"
        raise ValueError(
            f"{path} has format {header['format']}, written by gramian {version}; this version "
            f"reads up to {MODEL_FORMAT}: upgrade gramian"
        )
    try:
        # Header and digest are the only metadata of a model; format 1 had no digest.
        if contents.metadata or (header["format"] > 1 and contents.digest is None):
            raise ValueError("its digest is missing")
        _check_header(header, contents.tensors)
        return _read_parts(header, dict(contents.tensors), verify=verify)
    # Apart from the others, because the text of a KeyError is only the missing key.
    except KeyError as error:
        raise ValueError(f"{path} is a damaged gramian model: missing {error}") from error
    except DAMAGE_ERRORS as error:
        raise ValueError(f"{path} is a damaged gramian model: {error}") from error


def load_as(kind: type[Kind], path: str | Path, verify: bool) -> Kind:
    """Read a model of one class; raise ValueError if the file holds another one."""
    model = load_model(path, verify=verify)
    if isinstance(model, kind):
        return model
    if isinstance(model, BlendModel):
        raise ValueError(
            f"{path} holds a blend of a kernel model and trees: read it with gramian.load"
        )
    if isinstance(model, AverageModel):
        raise ValueError(
            f"{path} holds an average of {len(model.models)} models: read it with "
            "AverageModel.load or gramian.load"
        )
    raise ValueError(
        f"{path} holds a single model, not an average; read it with KernelModel.load or "
        "gramian.load"
    )


def _check_header(header: dict[str, Any], tensors: dict[str, Array]) -> None:
    # First, so that the checks below see the same entries in files of all formats.
    _add_new(header)
    part_names = set(parts_of(header, tensors))
    # Format 1 had no list of parts.
    named = set(header.pop("parts")) if header["format"] > 1 else part_names
    if part_names != named:
        raise ValueError(f"header and contents differ in {', '.join(map(str, part_names ^ named))}")
    fields = OF_FILE | (OF_AVERAGE if "members" in header else OF_MODEL)
    _check_fields(header, fields)
    for member in header.get("members", []):
        _check_fields(member, OF_MODEL)
    if not isinstance(header["info"], dict):
        raise ValueError("info must be a JSON object")


def _add_new(header: dict[str, Any]) -> None:
    """Set header entries that are newer than the file's format to None."""
    names = [
        name for since in NEW_ENTRIES if header["format"] < since for name in NEW_ENTRIES[since]
    ]
    header |= {name: None for name in names if name in SHARED_ENTRIES or "members" not in header}
    for member in header.get("members", []):
        member |= {name: None for name in names if name not in SHARED_ENTRIES}


def _check_fields(header: dict[str, Any], known: set[str]) -> None:
    if unknown := set(header) - known:
        raise ValueError(f"its header has the unknown fields {', '.join(sorted(unknown))}")


def _read_parts(header: dict[str, Any], tensors: dict[str, Array], *, verify: bool) -> Model:
    """Return the model of a header; raise ValueError for unused tensors."""
    # 1. Entries that all models of the file share.
    names, classes, encoding, target, chances, conformal, reading, _ = (
        header[key] for key in SHARED_ENTRIES
    )
    shared = {
        "feature_names": None if names is None else tuple(names),
        "classes": None if classes is None else tuple(classes),
        "encoding": None,
        "target": None if target is None else tuple(target),
        "probabilities": None if chances is None else probabilities_from(chances),
        "reading": None if reading is None else ReadOptions.from_dict(reading),
        "info": header["info"],
    }
    if encoding is not None:
        of_encoding = take_prefixed(ENCODING, tensors)
        shared["encoding"] = data.Encoding.from_parts(encoding, of_encoding)
    of_calibration = {} if conformal is None else take_prefixed(CONFORMAL, tensors)
    # 2. All other tensors are these of the model, whose centers the calibration may share.
    model = read_function(header, tensors, shared, verify=verify)
    if conformal is None:
        return model
    shared["info"] = {}
    calibration = read_calibration(conformal, of_calibration, shared, model.parts, verify=verify)
    return replace(model, conformal=calibration)
