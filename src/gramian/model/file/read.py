"""Read and check the file of a model; see `format` for its contents."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scipy.sparse
from torch import Tensor

from ..._files.tensors import DamagedFile, read_tensors
from ..._messages.display import display_text
from ...data import Encoding, LinearMap, QuantileMap, RowSource, Standardizer, as_rows, check_finite
from ...kernels import from_dict
from ...losses import link_of
from ..cells import CellCenters
from ..uncertainty.probabilities import probabilities_from
from ..uncertainty.variance import Variance
from .checks import check_average, check_floating, check_parts
from .format import (
    CELLS,
    CENTER_TENSORS,
    CONFORMAL,
    ENCODING,
    HEADER_KEY,
    METRIC,
    MODEL_FORMAT,
    OPTIONAL_ENTRIES,
    OPTIONAL_TENSORS,
    QUANTILES,
    SHARED_ENTRIES,
    SPARSE_CENTERS,
    VARIANCE,
    parts_of,
    without_prefix,
)

NEW_ENTRIES = {
    3: ("encoding", "target"), 4: ("quantiles",), 5: ("cells",), 6: ("probabilities", "link"),
    7: ("variance", "conformal"),
}  # fmt: skip
"""Optional parts that a format was the first to have."""

DAMAGE_ERRORS = (
    ValueError, TypeError, AttributeError, OverflowError, RuntimeError, IndexError,
)  # fmt: skip
"""Errors of Python and torch where the parts of a file have unexpected types or shapes."""

OF_MODEL = {"kernel", "centers", *OPTIONAL_ENTRIES}
OF_AVERAGE = {"weights", "members"}
OF_FILE = {"format", "info", *SHARED_ENTRIES}


@dataclass(frozen=True)
class Saved:
    """The contents of the file of a model.

    Attributes
    ----------
    members : list of dict
        Arguments of `KernelModel`, one dict for each model.
    weights : list of float, or None
        Weights of an average; None for a single model.
    conformal : list of SavedPart, or None
    """

    members: list[dict[str, Any]]
    weights: list[float] | None
    conformal: list[SavedPart] | None = None


@dataclass(frozen=True)
class SavedPart:
    """The contents of a part of `Conformal`.

    Attributes
    ----------
    scores : Tensor
    values : Saved or None
    spread : dict or None
        Arguments of `KernelModel`.
    """

    scores: Tensor
    values: Saved | None
    spread: dict[str, Any] | None


def read_model(path: Path, verify: bool) -> Saved:
    """Return the contents of the file of a model.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no model, is damaged, or was written by a newer version.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {display_text(path)}")
    try:
        contents = read_tensors(path, verify=verify)
        # A safetensors file of another program has no header: null, which `_check_format` refuses.
        header = json.loads(contents.metadata.pop(HEADER_KEY, "null"))
    # JSON that is nested too deeply exhausts the stack of Python: damage, not a bug.
    except (DamagedFile, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a gramian model, or was cut off while it was copied, or was changed "
            f"since it was written ({error})"
        ) from error
    _check_format(path, header)
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
    for part in saved.conformal or []:
        if part.values is not None:
            _check_members(part.values, verify)
        if part.spread is not None:
            check_parts(part.spread)
    for parts in saved.members:
        check_parts(parts)
        if verify:
            check_finite(parts["centers"], "centers")
    if saved.weights is not None:
        check_average(saved.weights, saved.members)


def _check_format(path: Path, header: Any) -> None:
    if not (isinstance(header, dict) and isinstance(header.get("format"), int)):
        raise ValueError(f"{path} is a safetensors file but not a gramian model")
    if header["format"] > MODEL_FORMAT:
        info = header.get("info")
        version = info.get("version", "(newer)") if isinstance(info, dict) else "(newer)"
        raise ValueError(
            f"{path} has format {header['format']}, written by gramian {version}; this version "
            f"reads up to {MODEL_FORMAT}: upgrade gramian"
        )


def _check_header(header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
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


def _assemble_model(header: dict[str, Any], tensors: dict[str, Tensor]) -> Saved:
    """Return the parts of all models; ValueError if tensors are left over."""
    # 1. Entries that all models of the file share.
    names, classes, encoding, target, chances, conformal = (header[key] for key in SHARED_ENTRIES)
    shared = {
        "feature_names": None if names is None else tuple(names),
        "classes": None if classes is None else tuple(classes),
        "encoding": None,
        "target": None if target is None else tuple(target),
        "probabilities": None if chances is None else probabilities_from(chances),
        "info": header["info"],
    }
    # 2. Each kind of tensors leaves `own` by its prefix, so that unknown ones remain at the end.
    own = tensors
    if encoding is not None:
        shared["encoding"] = Encoding.from_parts(encoding, without_prefix(ENCODING, tensors))
        own = _without(ENCODING, tensors)
    parts = None
    if conformal is not None:
        of_parts, own = without_prefix(CONFORMAL, own), _without(CONFORMAL, own)
        centers = [without_prefix(start, own) for start in _starts(header)]
        parts = _conformal(conformal, of_parts, shared | {"info": {}}, centers)
    if "members" not in header:
        return Saved([shared | _member(header, own)], None, parts)
    members = _members(header["members"], own, shared)
    _check_all_known(_without_numbers(len(members), own))
    return Saved(members, header["weights"], parts)


def _starts(header: dict[str, Any]) -> list[str]:
    """Return the prefix of the tensor names of each model."""
    return [f"{i}." for i in range(len(header["members"]))] if "members" in header else [""]


def _members(
    headers: list[dict[str, Any]], tensors: dict[str, Tensor], shared: dict[str, Any]
) -> list[dict[str, Any]]:
    return [
        shared | _member(member, without_prefix(f"{number}.", tensors))
        for number, member in enumerate(headers)
    ]


def _without_numbers(count: int, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    for number in range(count):
        tensors = _without(f"{number}.", tensors)
    return tensors


def _conformal(
    headers: list[dict[str, Any]],
    tensors: dict[str, Tensor],
    shared: dict[str, Any],
    known: list[dict[str, Tensor]],
) -> list[SavedPart]:
    """Return the contents of the parts; a function without centers has the centers of the model."""
    calibrated_parts = []
    for number, header in enumerate(headers):
        # `tensors` shrinks by each part: any that remain after the last one are unknown.
        own = without_prefix(f"{number}.", tensors)
        tensors = _without(f"{number}.", tensors)
        of_values, of_spread = without_prefix("values.", own), without_prefix("spread.", own)
        _check_all_known(set(_without("values.", _without("spread.", own))) - {"scores"})
        values, spread = header["values"], header["spread"]
        functions = None
        if values is not None:
            _check_all_known(_without_numbers(len(values["members"]), of_values))
            tensors_by_name = {
                f"{i}.{key}": tensor
                for i in range(len(values["members"]))
                for key, tensor in _with_centers(
                    without_prefix(f"{i}.", of_values), known[i]
                ).items()
            }
            # A single member has the weight 1, but is no average.
            weights = values["weights"] if len(values["members"]) > 1 else None
            functions = Saved(_members(values["members"], tensors_by_name, shared), weights)
        # Tensors of a function that the header does not have: refuse them by name.
        elif of_values:
            _check_all_known(of_values)
        if spread is not None and header["like"] is not None:
            of_spread = _with_centers(of_spread, known[header["like"]])
        calibrated_parts.append(
            SavedPart(own["scores"], functions, _spread(spread, of_spread, shared))
        )
    _check_all_known(tensors)
    return calibrated_parts


def _spread(
    header: dict[str, Any] | None,
    tensors: dict[str, Tensor],
    shared: dict[str, Any],
) -> dict[str, Any] | None:
    if header is None:
        _check_all_known(tensors)
        return None
    # A spread predicts logarithms of errors, and has no classes even if the model has.
    plain = {"classes": None, "target": None, "probabilities": None}
    return shared | plain | _member(header, tensors)


def _with_centers(tensors: dict[str, Tensor], known: dict[str, Tensor]) -> dict[str, Tensor]:
    if "centers" in tensors or SPARSE_CENTERS[0] in tensors:
        return tensors
    # The file holds centers that the model also has only once, with the model.
    return tensors | {name: known[name] for name in CENTER_TENSORS if name in known}


def _member(header: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Return the arguments of `KernelModel` that are not shared."""
    standardizer, quantiles, cells, link, variance = (header[key] for key in OPTIONAL_ENTRIES)
    starts = (QUANTILES, METRIC, CELLS, VARIANCE)
    of_quantiles, of_metric, of_cells, of_variance = (
        without_prefix(start, tensors) for start in starts
    )
    parts = {
        "kernel": from_dict(header["kernel"]),
        "centers": _centers(tensors, header["centers"]),
        "coef": tensors["coef"],
        "standardizer": None if standardizer is None else Standardizer.from_dict(standardizer),
        "target_shift": tensors.get("target_shift"),
        "target_scale": tensors.get("target_scale"),
        "importances": tensors.get("importances"),
        "quantiles": None if quantiles is None else QuantileMap.from_parts(quantiles, of_quantiles),
        "metric": LinearMap.from_tensors(of_metric) if of_metric else None,
        "cells": None if cells is None else CellCenters.from_parts(cells, of_cells),
        "link": None if link is None else link_of(link),
        "variance": None if variance is None else Variance.from_parts(variance, of_variance),
    }
    known_names = {
        "coef",
        *OPTIONAL_TENSORS,
        *(SPARSE_CENTERS if SPARSE_CENTERS[0] in tensors else ("centers",)),
    }
    known_names |= {METRIC + name for name in of_metric}
    if quantiles is not None:
        known_names |= {QUANTILES + name for name in of_quantiles}
    if cells is not None:
        known_names |= {CELLS + name for name in of_cells}
    if variance is not None:
        known_names |= {VARIANCE + name for name in of_variance}
    _check_all_known(set(tensors) - known_names)
    return parts


def _without(start: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(start)}


def _check_all_known(rest: Iterable[str]) -> None:
    if unknown := sorted(rest):
        raise ValueError(f"it has the unknown tensors {', '.join(unknown)}")


def _centers(tensors: dict[str, Tensor], shape: list[int]) -> RowSource:
    if SPARSE_CENTERS[0] not in tensors:
        dense = tensors["centers"]
        if list(dense.shape) != shape:
            raise ValueError(
                f"its centers have shape {list(dense.shape)}, but its header has {shape}"
            )
        check_floating("centers", dense)
        return as_rows(dense)
    values, *indices = (tensors[name] for name in SPARSE_CENTERS)
    check_floating("centers.values", values)
    try:
        matrix = scipy.sparse.csr_array(
            (values.numpy(), *(index.numpy() for index in indices)), shape=tuple(shape)
        )
        matrix.check_format(full_check=True)  # indices out of range would crash the process
    except (ValueError, TypeError) as error:
        raise ValueError(f"the sparse centers of the model are damaged: {error}") from error
    return as_rows(matrix)
