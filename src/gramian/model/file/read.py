"""Reading and checking of the file of a model; see `format` for the contents of the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ... import data
from ..._arrays import Array
from ..._files.tensors import DamagedFile, read_tensors
from ..._messages.display import display_text
from ...data import ReadOptions, check_finite
from ..uncertainty.probabilities import probabilities_from
from .checks import check_average, check_blend, check_parts
from .conformal import read_calibration
from .format import (
    BLEND,
    CONFORMAL,
    ENCODING,
    HEADER_KEY,
    MODEL_FORMAT,
    OPTIONAL_ENTRIES,
    SHARED_ENTRIES,
    parts_of,
    without_prefix,
)
from .members import (
    Saved,
    read_blend,
    read_member,
    read_members,
    refuse_unknown,
    without_numbers,
    without_tensors,
)

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


def read_model(path: Path, verify: bool) -> Saved:
    """Return the contents of the file of a model.

    Raise FileNotFoundError if there is no such file, and ValueError if the file is not a
    model, is damaged, or was written by a newer version.
    """
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
        saved = _assemble_model(header, contents.tensors)
        _check_members(saved, verify)
    # Apart from the others, because the text of a KeyError is only the missing key.
    except KeyError as error:
        raise ValueError(f"{path} is a damaged gramian model: missing {error}") from error
    except DAMAGE_ERRORS as error:
        raise ValueError(f"{path} is a damaged gramian model: {error}") from error
    return saved


def _check_members(saved: Saved, verify: bool) -> None:
    for part in [] if saved.conformal is None else saved.conformal.parts:
        for function in part.functions.values():
            _check_members(function, verify)
    for parts in saved.members:
        check_parts(parts)
        if verify:
            check_finite(parts["centers"], "centers")
    if saved.weights is not None:
        check_average(saved.weights, saved.members)
    if saved.blend is not None:
        check_blend(*saved.blend, saved.members[0]["coef"].shape[1])


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


def _assemble_model(header: dict[str, Any], tensors: dict[str, Array]) -> Saved:
    """Return the parts of all models; raise ValueError for unused tensors."""
    # 1. Entries that all models of the file share.
    names, classes, encoding, target, chances, conformal, reading, blend = (
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
    # 2. Each kind of tensors leaves `own` by its prefix, so that unknown ones remain at the end.
    own = tensors
    if encoding is not None:
        shared["encoding"] = data.Encoding.from_parts(encoding, without_prefix(ENCODING, tensors))
        own = without_tensors(ENCODING, tensors)
    of_trees, own = without_prefix(BLEND, own), without_tensors(BLEND, own)
    trees, parts = read_blend(blend, of_trees), None
    if conformal is not None:
        of_parts, own = without_prefix(CONFORMAL, own), without_tensors(CONFORMAL, own)
        centers = [without_prefix(start, own) for start in _starts(header)]
        parts = read_calibration(conformal, of_parts, shared | {"info": {}}, centers)
    if "members" not in header:
        return Saved([shared | read_member(header, own)], None, parts, trees)
    members = read_members(header["members"], own, shared)
    refuse_unknown(without_numbers(len(members), own))
    return Saved(members, header["weights"], parts, trees)


def _starts(header: dict[str, Any]) -> list[str]:
    """Return the prefix of the tensor names of each model."""
    return [f"{i}." for i in range(len(header["members"]))] if "members" in header else [""]
