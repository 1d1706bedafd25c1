"""Reading of the kernel models in a file; see `format` for the contents of the file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import scipy.sparse

from ..._arrays import Array
from ...data import LinearMap, QuantileMap, RowSource, Standardizer, as_rows
from ...kernels import from_dict
from ...losses import link_of
from ..blend.trees import Trees
from ..cells import CellCenters
from ..uncertainty.factors import Variance
from .checks import check_floating
from .format import (
    CELLS,
    CENTER_TENSORS,
    METRIC,
    OPTIONAL_ENTRIES,
    OPTIONAL_TENSORS,
    QUANTILES,
    SPARSE_CENTERS,
    VARIANCE,
    without_prefix,
)


@dataclass(frozen=True)
class Saved:
    """The contents of the file of a model.

    - `members`: arguments of `KernelModel`, one dict for each model.
    - `weights`: weights of an average; None for a single model.
    - `blend`: trees of a blend, and the weight of its kernel model.
    """

    members: list[dict[str, Any]]
    weights: list[float] | None
    conformal: SavedCalibration | None = None
    blend: tuple[Trees, float] | None = None


@dataclass(frozen=True)
class SavedPart:
    """The contents of a `CalibratedPart`."""

    scores: Array
    groups: Array | None
    functions: dict[str, Saved]


@dataclass(frozen=True)
class SavedCalibration:
    """The contents of a `ConformalPredictor`.

    - `method`: its name and parameters.
    - `known_values`: the values of the groups.
    """

    method: dict[str, Any]
    parts: list[SavedPart]
    groups: dict[str, Any] | None
    known_values: Array | None


def read_blend(header: Any, tensors: dict[str, Array]) -> tuple[Trees, float] | None:
    """Return the trees of a blend and the weight of its kernel model; None without a blend."""
    return None if header is None else (Trees.from_tensors(tensors), float(header["weight"]))


def read_members(
    headers: list[dict[str, Any]], tensors: dict[str, Array], shared: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the fields of all models, and the fields that all models share."""
    return [
        shared | read_member(member, without_prefix(f"{number}.", tensors))
        for number, member in enumerate(headers)
    ]


def without_numbers(count: int, tensors: dict[str, Array]) -> dict[str, Array]:
    """Return the tensors that belong to no single member of an average."""
    for number in range(count):
        tensors = without_tensors(f"{number}.", tensors)
    return tensors


def with_centers(tensors: dict[str, Array], known_tensors: dict[str, Array]) -> dict[str, Array]:
    """Return the tensors of a model, with the centers of another model if it has none."""
    if "centers" in tensors or SPARSE_CENTERS[0] in tensors:
        return tensors
    # The file holds centers that the model also has only once, with the model.
    return tensors | {name: known_tensors[name] for name in CENTER_TENSORS if name in known_tensors}


def read_member(header: dict[str, Any], tensors: dict[str, Array]) -> dict[str, Any]:
    """Return the arguments of `KernelModel` that are not shared."""
    # 1. Entries of JSON: a missing key is damage, and raises KeyError; None means that the model
    # has no such part.
    standardizer, quantiles, cells, link, variance = (header[key] for key in OPTIONAL_ENTRIES)
    starts = (QUANTILES, METRIC, CELLS, VARIANCE)
    # 2. Tensors of a part have its name in front, which their readers do not know.
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
        "medians": tensors.get("medians"),
        "quantiles": None if quantiles is None else QuantileMap.from_parts(quantiles, of_quantiles),
        "metric": LinearMap.from_tensors(of_metric) if of_metric else None,
        "cells": None if cells is None else CellCenters.from_parts(cells, of_cells),
        "link": None if link is None else link_of(link),
        "variance": None if variance is None else Variance.from_parts(variance, of_variance),
    }
    # 3. A tensor that no part has read is refused: a newer version may have stored a map with it,
    # and predictions without that map would be wrong without an error.
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
    refuse_unknown(set(tensors) - known_names)
    return parts


def without_tensors(start: str, tensors: dict[str, Array]) -> dict[str, Array]:
    """Return the tensors whose names do not begin with a prefix."""
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(start)}


def refuse_unknown(rest: Iterable[str]) -> None:
    """Raise ValueError if a file holds tensors that no part of the model has read."""
    if unknown := sorted(rest):
        raise ValueError(f"it has the unknown tensors {', '.join(unknown)}")


def _centers(tensors: dict[str, Array], shape: list[int]) -> RowSource:
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
        matrix = scipy.sparse.csr_array((values, *(index for index in indices)), shape=tuple(shape))
        matrix.check_format(full_check=True)  # indices out of range would crash the process
    except (ValueError, TypeError) as error:
        raise ValueError(f"the sparse centers of the model are damaged: {error}") from error
    return as_rows(matrix)
