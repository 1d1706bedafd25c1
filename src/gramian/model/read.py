"""Reading the file of a model, and believing it: see `file` for what is in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scipy.sparse
from torch import Tensor

from .._tensors import DamagedFile, read_tensors
from ..data import (
    Encoding,
    LinearMap,
    QuantileMap,
    RowSource,
    Standardizer,
    as_rows,
    check_finite,
)
from ..kernels import from_dict
from .cells import CellCenters
from .checks import check_average, check_floating, check_parts
from .file import (
    CELLS,
    ENCODING,
    FORMAT,
    KEY,
    METRIC,
    OPTIONAL,
    PLAIN,
    QUANTILES,
    SHARED,
    SPARSE,
    parts_of,
    unnamed,
)

NEW = {3: ("encoding", "target"), 4: ("quantiles",), 5: ("cells",)}
"""Optional parts that a format was the first to have."""

OF_MODEL = {"kernel", "centers", *OPTIONAL}
OF_AVERAGE = {"weights", "members"}
OF_FILE = {"format", "info", *SHARED}


@dataclass(frozen=True)
class Saved:
    """The contents of the file of a model.

    Attributes
    ----------
    members : list of dict
        The arguments of `KernelModel`, for each model that there is.
    weights : list of float, or None
        Those of an average; None if there is one model, and no average.
    """

    members: list[dict[str, Any]]
    weights: list[float] | None


def read_model(path: Path, verify: bool) -> Saved:
    """Return what is in the file of a model.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no model, is damaged, or was written by a newer version.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    try:
        contents = read_tensors(path, verify=verify)
        header = json.loads(contents.metadata.pop(KEY, "null"))
    except (DamagedFile, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a gramian model, or was cut off while it was copied, or changed "
            f"since it was written ({error})"
        ) from error
    _check_format(path, header)
    try:
        if contents.metadata or (header["format"] > 1 and contents.digest is None):
            raise ValueError("its digest is missing")
        _check_header(header, contents.tensors)
        saved = _assembled(header, contents.tensors)
        _check_members(saved, verify)
    except KeyError as error:
        raise ValueError(f"{path} is a damaged gramian model: missing {error}") from error
    except (ValueError, TypeError, AttributeError, OverflowError, RuntimeError) as error:
        raise ValueError(f"{path} is a damaged gramian model: {error}") from error
    return saved


def _check_members(saved: Saved, verify: bool) -> None:
    for parts in saved.members:
        check_parts(parts)
        if verify:
            check_finite(parts["centers"], "centers")
    if saved.weights is not None:
        check_average(saved.weights, saved.members)


def _check_format(path: Path, header: Any) -> None:
    if not (isinstance(header, dict) and isinstance(header.get("format"), int)):
        raise ValueError(f"{path} is a safetensors file but not a gramian model")
    if header["format"] > FORMAT:
        info = header.get("info")
        version = info.get("version", "(newer)") if isinstance(info, dict) else "(newer)"
        raise ValueError(
            f"{path} has format {header['format']}, written by gramian {version}; this version "
            f"reads up to {FORMAT}: upgrade gramian"
        )


def _check_header(header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    for since, names in NEW.items():
        if header["format"] < since:
            header |= dict.fromkeys(names)
            for one in header.get("members", []):
                one |= dict.fromkeys(names)
    there = set(parts_of(header, tensors))
    named = set(header.pop("parts")) if header["format"] > 1 else there
    if there != named:
        raise ValueError(f"header and contents differ by {', '.join(map(str, there ^ named))}")
    fields = OF_FILE | (OF_AVERAGE if "members" in header else OF_MODEL)
    _check_fields(header, fields)
    for one in header.get("members", []):
        _check_fields(one, OF_MODEL)
    if not isinstance(header["info"], dict):
        raise ValueError("info is no object")


def _check_fields(header: dict[str, Any], known: set[str]) -> None:
    if unknown := set(header) - known:
        raise ValueError(f"its header has the unknown fields {', '.join(sorted(unknown))}")


def _assembled(header: dict[str, Any], tensors: dict[str, Tensor]) -> Saved:
    """Return the parts of all models; ValueError if tensors are left over."""
    names, classes, encoding, target = (header[key] for key in SHARED)
    shared = {
        "feature_names": None if names is None else tuple(names),
        "classes": None if classes is None else tuple(classes),
        "encoding": None,
        "target": None if target is None else tuple(target),
        "info": header["info"],
    }
    own = tensors
    if encoding is not None:
        shared["encoding"] = Encoding.from_parts(encoding, unnamed(ENCODING, tensors))
        own = _without(ENCODING, tensors)
    if "members" not in header:
        return Saved([shared | _member(header, own)], None)
    members = []
    for number, one in enumerate(header["members"]):
        members.append(shared | _member(one, unnamed(f"{number}.", own)))
        own = _without(f"{number}.", own)
    _check_all_known(own)
    return Saved(members, header["weights"])


def _member(header: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Return the parts that a model has for itself."""
    standardizer, quantiles, cells = (header[key] for key in OPTIONAL)
    starts = (QUANTILES, METRIC, CELLS)
    of_quantiles, of_metric, of_cells = (unnamed(start, tensors) for start in starts)
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
    }
    known = {"coef", *PLAIN, *(SPARSE if SPARSE[0] in tensors else ("centers",))}
    known |= {METRIC + name for name in of_metric}
    if quantiles is not None:
        known |= {QUANTILES + name for name in of_quantiles}
    if cells is not None:
        known |= {CELLS + name for name in of_cells}
    _check_all_known(set(tensors) - known)
    return parts


def _without(start: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(start)}


def _check_all_known(rest: Iterable[str]) -> None:
    if unknown := sorted(rest):
        raise ValueError(f"it has the unknown tensors {', '.join(unknown)}")


def _centers(tensors: dict[str, Tensor], shape: list[int]) -> RowSource:
    if SPARSE[0] not in tensors:
        dense = tensors["centers"]
        if list(dense.shape) != shape:
            raise ValueError(f"its centers have shape {list(dense.shape)}, the header says {shape}")
        check_floating("centers", dense)
        return as_rows(dense)
    values, *indices = (tensors[name] for name in SPARSE)
    check_floating("centers.values", values)
    try:
        matrix = scipy.sparse.csr_array(
            (values.numpy(), *(index.numpy() for index in indices)), shape=tuple(shape)
        )
        matrix.check_format(full_check=True)  # indices out of range would crash the process
    except (ValueError, TypeError) as error:
        raise ValueError(f"the sparse centers of the model are damaged: {error}") from error
    return as_rows(matrix)
