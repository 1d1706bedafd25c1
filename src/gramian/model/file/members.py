"""Reading of the kernel models in a file, and of a calibration; see `format` for the contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import scipy.sparse

from ..._arrays import Array
from ...conformal import CalibratedPart, ConformalPredictor, RowGroups, make
from ...data import LinearMap, QuantileMap, RowSource, Standardizer, as_rows, check_finite
from ...kernels import from_dict
from ...losses import link_of
from ..average import AverageModel
from ..base import KernelPart
from ..blend.blend_model import BlendModel
from ..blend.trees import Trees
from ..cells import CellCenters
from ..kernel_model import KernelModel
from ..uncertainty.factors import Variance
from .checks import check_floating, check_parts
from .format import (
    BLEND,
    CELLS,
    METRIC,
    OPTIONAL_ENTRIES,
    QUANTILES,
    SPARSE_CENTERS,
    VARIANCE,
    take_prefixed,
)
from .write import GROUP_VALUES


def read_function(
    header: Mapping[str, Any],
    tensors: dict[str, Array],
    shared: Mapping[str, Any],
    *,
    verify: bool,
    known: Sequence[KernelPart] = (),
) -> KernelModel | AverageModel | BlendModel:
    """Return the model of a header, and remove its tensors.

    - `shared`: arguments of `KernelModel` that all models of the file share.
    - `verify`: whether to check the centers for NaN.
    - `known`: models whose centers the file does not repeat.
    """
    blend = header.get("blend")
    trees = None if blend is None else Trees.from_tensors(take_prefixed(BLEND, tensors))
    # A single model has its parts in the header itself, and no number before its tensors.
    headers = header.get("members", [header])
    numbered = [
        take_prefixed(f"{i}.", tensors) if "members" in header else tensors
        for i in range(len(headers))
    ]
    models = []
    same_centers = header.get("centers_of", [None] * len(headers))
    for member, own, number in zip(headers, numbered, same_centers, strict=True):
        centers = None if number is None else known[number].centers
        models.append(_read_member(member, own, shared, centers, verify=verify))
    refuse_unknown(tensors)
    info = shared["info"]
    model: KernelModel | AverageModel | BlendModel = models[0]
    weights = header["weights"] if "members" in header else None
    if weights is not None:
        model = AverageModel(tuple(weights), tuple(models), info=info)
    if trees is not None:
        model = BlendModel(model, trees, float(header["blend"]["weight"]), info=info)
    return model


def _read_member(
    header: Mapping[str, Any],
    tensors: dict[str, Array],
    shared: Mapping[str, Any],
    centers: RowSource | None,
    *,
    verify: bool,
) -> KernelModel:
    """Return a kernel model.

    - `centers`: of another model, for a member without centers of its own.
    """
    # A missing key is damage, and raises KeyError; None means that the model has no such part.
    standardizer, quantiles, cells, link, variance = (header[key] for key in OPTIONAL_ENTRIES)
    metric = take_prefixed(METRIC, tensors)
    parts = {
        **shared,
        "kernel": from_dict(header["kernel"]),
        "centers": _read_centers(tensors, header["centers"], centers),
        "coef": tensors.pop("coef"),
        "standardizer": None if standardizer is None else Standardizer.from_dict(standardizer),
        "target_shift": tensors.pop("target_shift", None),
        "target_scale": tensors.pop("target_scale", None),
        "importances": tensors.pop("importances", None),
        "medians": tensors.pop("medians", None),
        "quantiles": None
        if quantiles is None
        else QuantileMap.from_parts(quantiles, take_prefixed(QUANTILES, tensors)),
        "metric": LinearMap.from_tensors(metric) if metric else None,
        "cells": None
        if cells is None
        else CellCenters.from_parts(cells, take_prefixed(CELLS, tensors)),
        "link": None if link is None else link_of(link),
        "variance": None
        if variance is None
        else Variance.from_parts(variance, take_prefixed(VARIANCE, tensors)),
    }
    # A newer version may have stored a map with a tensor that no part has read: predictions
    # without that map would be wrong without an error.
    refuse_unknown(tensors)
    check_parts(parts)
    # Centers of another model were checked with it.
    if verify and parts["centers"] is not centers:
        check_finite(parts["centers"], "centers")
    return KernelModel(**parts)


def refuse_unknown(tensors: Mapping[str, Array]) -> None:
    """Raise ValueError if a file holds tensors that no part of the model has read."""
    if tensors:
        raise ValueError(f"it has the unknown tensors {', '.join(sorted(tensors))}")


def _read_centers(
    tensors: dict[str, Array], shape: list[int], known: RowSource | None
) -> RowSource:
    """Return the centers in the tensors of a model, or else these of another model."""
    if SPARSE_CENTERS[0] in tensors:
        return _read_sparse(tensors, shape)
    is_known = known is not None and "centers" not in tensors
    centers: Any = known if is_known else tensors.pop("centers")
    if list(centers.shape) != shape:
        raise ValueError(
            f"its centers have shape {list(centers.shape)}, but its header has {shape}"
        )
    if not is_known:
        check_floating("centers", centers)
    return as_rows(centers)


def _read_sparse(tensors: dict[str, Array], shape: list[int]) -> RowSource:
    values, *indices = (tensors.pop(name) for name in SPARSE_CENTERS)
    check_floating("centers.values", values)
    try:
        matrix = scipy.sparse.csr_array((values, *indices), shape=tuple(shape))
        matrix.check_format(full_check=True)  # indices out of range would crash the process
    except (ValueError, TypeError) as error:
        raise ValueError(f"the sparse centers of the model are damaged: {error}") from error
    return as_rows(matrix)


def read_calibration(
    header: Any,
    tensors: dict[str, Array],
    shared: Mapping[str, Any],
    models: Sequence[KernelPart],
    *,
    verify: bool,
) -> ConformalPredictor:
    """Return the calibration of a header, and remove its tensors.

    - `shared`: arguments that all functions of the calibration share with the model, such as its
      encoding.
    - `models`: members of the model, for functions without centers of their own.
    - `verify`: whether to check centers for NaN.
    """
    if isinstance(header, list):
        header, tensors = _from_format_7(header, tensors)
    parts = []
    for number, entries in enumerate(header["parts"]):
        own = take_prefixed(f"{number}.", tensors)
        functions = {}
        for name, entry in entries.items():
            # A spread predicts logarithms of errors, and has no classes even if the model has.
            regression = {} if entry["classes"] else {"classes": None, "probabilities": None}
            # A single member has the weight 1, but is no average.
            entry = entry if len(entry["members"]) > 1 else {**entry, "weights": None}
            functions[name] = read_function(
                entry,
                take_prefixed(f"{name}.", own),
                {**shared, **regression},
                verify=verify,
                known=models,
            )
        parts.append(CalibratedPart(own.pop("scores"), functions, own.pop("groups", None)))
        refuse_unknown(own)
    groups, values = header["groups"], tensors.pop(GROUP_VALUES, None)
    refuse_unknown(tensors)
    has_groups = groups is not None and values is not None
    known_groups = RowGroups.from_dict(groups, values) if has_groups else None
    return ConformalPredictor(make(**header["method"]), tuple(parts), known_groups)


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
