"""Format of the file of a model: names of its entries, and header and tensors of kernel models.

A safetensors file with the tensors ``coef``, ``centers`` (or the three parts of sparse ones) and,
optionally, ``target_shift``, ``target_scale``, ``importances``, ``medians`` and tensors of a
quantile map, a metric, cells, an encoding and a variance; in its metadata a JSON header with the
rest, and a digest of the file. An average has the tensors of each model, with its number before
their names, and shared entries, such as the encoding, once.

A blend has the tensors of its trees under the prefix ``blend.``.

Older formats are read: format 9 has no blends, format 8 no options for reading text, format 7 no
medians and another header of a calibration, without its method, format 6 has neither a variance nor
a calibration, format 5 no map to probabilities and no link, format 4 no cells, format 3 neither
quantiles nor metrics nor averages, format 2 no encoding and no names of targets, and format 1
neither a digest nor the list of parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ... import _arrays as xp
from ... import data
from ..._arrays import Array
from ...data import RowSource
from ...data.rows.array import ArrayRows
from ..base import KernelPart
from ..blend.trees import Trees

MODEL_FORMAT = 10
"""Version of the file format. A reader refuses a newer one."""

HEADER_KEY = "gramian"
"""Key of the header in the metadata of the file."""

CENTER_BYTES = 1 << 28
"""Most bytes of centers that are copied in memory for a file; more are copied on disk.

Centers in an array are not copied.
"""

ENCODING, QUANTILES, METRIC, CELLS = "encoding.", "quantiles.", "metric.", "cells."
VARIANCE, CONFORMAL, BLEND = "variance.", "conformal.", "blend."
"""Prefixes of the names of tensors."""

SHARED_ENTRIES = (
    "feature_names", "classes", "encoding", "target", "probabilities", "conformal",
    "reading", "blend",
)  # fmt: skip
"""Optional entries that the models of an average have in common."""

OPTIONAL_ENTRIES = ("standardizer", "quantiles", "cells", "link", "variance")
"""Optional entries of each model of an average."""

SPARSE_CENTERS = ("centers.values", "centers.col", "centers.crow")
CENTER_TENSORS = ("centers", *SPARSE_CENTERS)
OPTIONAL_TENSORS = ("target_shift", "target_scale", "importances", "medians")
"""Optional tensors."""


def member_header(model: KernelPart) -> dict[str, Any]:
    """Return the fields of a member of an average that JSON can hold."""
    return {
        "kernel": model.kernel.to_dict(),
        "centers": list(model.centers.shape),
        "standardizer": model.standardizer and model.standardizer.to_dict(),
        "quantiles": model.quantiles and model.quantiles.to_dict(),
        "cells": model.cells and model.cells.to_dict(),
        "link": model.link and model.link.name,
        "variance": model.variance and model.variance.to_dict(),
    }


def member_tensors(model: KernelPart) -> dict[str, Array]:
    """Return the tensors of a model."""
    tensors = {"coef": model.coef, **center_tensors(model.centers)}
    tensors |= {name: t for name in OPTIONAL_TENSORS if (t := getattr(model, name)) is not None}
    if model.quantiles is not None:
        tensors |= with_prefix(QUANTILES, model.quantiles.tensors())
    if model.metric is not None:
        tensors |= with_prefix(METRIC, model.metric.tensors())
    if model.cells is not None:
        tensors |= with_prefix(CELLS, model.cells.tensors())
    if model.variance is not None:
        tensors |= with_prefix(VARIANCE, model.variance.tensors())
    return tensors


def blend_header(function: object) -> dict[str, Any] | None:
    """Return the weight of the kernel model in a blend, for JSON; None for other models."""
    weight = getattr(function, "weight", None)
    return None if weight is None else {"weight": weight}


def blend_tensors(function: object) -> dict[str, Array]:
    """Return the tensors of the trees of a blend; an empty dictionary for other models."""
    trees: Trees | None = getattr(function, "trees", None)
    return {} if trees is None else with_prefix(BLEND, trees.tensors())


def with_prefix(start: str, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Add a prefix to the names of tensors."""
    return {start + name: tensor for name, tensor in tensors.items()}


def take_prefixed(start: str, tensors: dict[str, Array]) -> dict[str, Array]:
    """Remove the tensors whose names have a prefix, and return them without the prefix.

    A reader removes the tensors that it uses: the others are unknown.
    """
    names = [name for name in tensors if name.startswith(start)]
    return {name.removeprefix(start): tensors.pop(name) for name in names}


def parts_of(header: dict[str, Any], tensors: Iterable[str]) -> list[str]:
    """Return the names of the optional parts of a model."""
    part_names = [
        name for name in (*SHARED_ENTRIES, *OPTIONAL_ENTRIES) if header.get(name) is not None
    ]
    for number, member in enumerate(header.get("members", [])):
        part_names += [f"{number}.{name}" for name in OPTIONAL_ENTRIES if member[name] is not None]
    return sorted([*tensors, *part_names])


def center_tensors(centers: RowSource) -> dict[str, Array]:
    """Return the tensors of centers for a file."""
    if isinstance(centers, ArrayRows):
        return {"centers": next(centers.blocks(len(centers)))[1]}  # a view, mapped or not
    z = data.gather_rows(centers, xp.arange(len(centers)), CENTER_BYTES)
    if not centers.sparse:
        return {"centers": z}
    parts = (xp.entries(z), xp.indices(z), xp.indptr(z))
    return dict(zip(SPARSE_CENTERS, parts, strict=True))
