"""Format of the file of a model, and writing it.

A safetensors file with the tensors ``coef``, ``centers`` (or the three parts of sparse ones) and,
optionally, ``target_shift``, ``target_scale``, ``importances`` and tensors of a quantile map, a
metric, cells, an encoding and a variance; in its metadata a JSON header with the rest, and a digest
of the file. An average has the tensors of each model, with its number before their names, and
shared entries, such as the encoding, once.

Older formats are read: format 6 has neither a variance nor a calibration of intervals, format 5 no
map to probabilities and no link, format 4 no cells, format 3 neither quantiles nor metrics nor
averages, format 2 no encoding and no names of targets, and format 1 neither a digest nor the list
of parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..._files.tensors import write_tensors
from ...data import RowSource, gather_rows
from ...data.rows.array import ArrayRows
from ..base import KernelPart, Model
from ..uncertainty.conformal import Calibrated, Conformal

MODEL_FORMAT = 7
"""Version of the file format. A reader refuses a newer one."""

HEADER_KEY = "gramian"
"""Key of the header in the metadata of the file."""

CENTER_BYTES = 1 << 28
"""Most bytes of centers that are copied in memory for a file; more are copied on disk.

Centers in an array are not copied.
"""

ENCODING, QUANTILES, METRIC, CELLS = "encoding.", "quantiles.", "metric.", "cells."
VARIANCE, CONFORMAL = "variance.", "conformal."
"""Prefixes of the names of tensors."""

SHARED_ENTRIES = ("feature_names", "classes", "encoding", "target", "probabilities", "conformal")
"""Optional entries that the models of an average have in common."""

OPTIONAL_ENTRIES = ("standardizer", "quantiles", "cells", "link", "variance")
"""Optional entries of each model of an average."""

SPARSE_CENTERS = ("centers.values", "centers.col", "centers.crow")
CENTER_TENSORS = ("centers", *SPARSE_CENTERS)
OPTIONAL_TENSORS = ("target_shift", "target_scale", "importances")
"""Optional tensors."""


def write_model(path: str | Path, model: Model, weights: tuple[float, ...] | None = None) -> None:
    """Write a model, or an average with these weights, for `read_model`."""
    header: dict[str, Any] = {
        "feature_names": model.feature_names,
        "classes": model.classes,
        "encoding": model.encoding and model.encoding.to_dict(),
        "target": model.target,
        "probabilities": model.probabilities and model.probabilities.to_dict(),
        "conformal": model.conformal
        and [_of_calibrated(part, model) for part in model.conformal.parts],
        "info": dict(model.info),
    }
    tensors = {} if model.encoding is None else _with_prefix(ENCODING, model.encoding.tensors())
    if weights is None:
        (member,) = model.parts
        header |= _header(member)
        tensors |= _tensors(member)
    else:
        header |= {"weights": list(weights), "members": [_header(member) for member in model.parts]}
        for number, member in enumerate(model.parts):
            tensors |= _with_prefix(f"{number}.", _tensors(member))
    if model.conformal is not None:
        tensors |= _with_prefix(CONFORMAL, _conformal_tensors(model, model.conformal))
    # Host memory in row order; a tensor that has it already is not copied.
    stored_tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    # The list of parts shows the reader whether header and tensors belong together.
    about = {"format": MODEL_FORMAT, **header, "parts": parts_of(header, stored_tensors)}
    write_tensors(path, stored_tensors, {HEADER_KEY: json.dumps(about)})


def _header(model: KernelPart) -> dict[str, Any]:
    """Return the header entries of one model."""
    return {
        "kernel": model.kernel.to_dict(),
        "centers": list(model.centers.shape),
        "standardizer": model.standardizer and model.standardizer.to_dict(),
        "quantiles": model.quantiles and model.quantiles.to_dict(),
        "cells": model.cells and model.cells.to_dict(),
        "link": model.link and model.link.name,
        "variance": model.variance and model.variance.to_dict(),
    }


def _tensors(model: KernelPart) -> dict[str, Tensor]:
    tensors = {"coef": model.coef, **center_tensors(model.centers)}
    tensors |= {name: t for name in OPTIONAL_TENSORS if (t := getattr(model, name)) is not None}
    if model.quantiles is not None:
        tensors |= _with_prefix(QUANTILES, model.quantiles.tensors())
    if model.metric is not None:
        tensors |= _with_prefix(METRIC, model.metric.tensors())
    if model.cells is not None:
        tensors |= _with_prefix(CELLS, model.cells.tensors())
    if model.variance is not None:
        tensors |= _with_prefix(VARIANCE, model.variance.tensors())
    return tensors


def _of_calibrated(part: Calibrated, model: Model) -> dict[str, Any]:
    """Return the header entries of a part of `Conformal`, in the form of an average."""
    values = None
    if part.values is not None:
        members = [_header(member) for member in part.values.parts]
        values = {"weights": list(part.values.shares), "members": members}
    spread = None if part.spread is None else part.spread.parts[0]
    like = None
    if spread is not None:
        # By identity, as a comparison would read all centers: a refit keeps the object if they are
        # equal, and the file then holds them once. `like` is the number of the model that has them.
        same = [i for i, member in enumerate(model.parts) if member.centers is spread.centers]
        like = same[0] if same else None
    return {"values": values, "spread": spread and _header(spread), "like": like}


def _conformal_tensors(model: Model, conformal: Conformal) -> dict[str, Tensor]:
    """Return the tensors of the calibration, without centers that the model also has."""
    tensors: dict[str, Tensor] = {}
    for number, part in enumerate(conformal.parts):
        tensors[f"{number}.scores"] = part.scores
        functions = {} if part.values is None else dict(enumerate(part.values.parts))
        function_tensors = {f"values.{i}": member for i, member in functions.items()}
        spread = {} if part.spread is None else {"spread": part.spread.parts[0]}
        for name, member in (function_tensors | spread).items():
            own = _tensors(member)
            if any(member.centers is known_part.centers for known_part in model.parts):
                own = {key: tensor for key, tensor in own.items() if key not in CENTER_TENSORS}
            tensors |= _with_prefix(f"{number}.{name}.", own)
    return tensors


def _with_prefix(start: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {start + name: tensor for name, tensor in tensors.items()}


def without_prefix(start: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names have a prefix, under names without it."""
    return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}


def parts_of(header: dict[str, Any], tensors: Iterable[str]) -> list[str]:
    """Return the names of the optional parts of a model."""
    part_names = [
        name for name in (*SHARED_ENTRIES, *OPTIONAL_ENTRIES) if header.get(name) is not None
    ]
    for number, member in enumerate(header.get("members", [])):
        part_names += [f"{number}.{name}" for name in OPTIONAL_ENTRIES if member[name] is not None]
    return sorted([*tensors, *part_names])


def center_tensors(centers: RowSource) -> dict[str, Tensor]:
    """Return the tensors of centers for a file."""
    if isinstance(centers, ArrayRows):
        return {"centers": next(centers.blocks(len(centers)))[1]}  # a view, mapped or not
    z = gather_rows(centers, torch.arange(len(centers)), CENTER_BYTES)
    if not centers.sparse:
        return {"centers": z}
    parts = (z.values(), z.col_indices(), z.crow_indices())
    return dict(zip(SPARSE_CENTERS, parts, strict=True))
