"""Checks of the parts of a model: shapes, types and finite numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ... import _arrays as xp
from ... import data
from ..._arrays import Array
from ...data import RowSource
from ...kernels import Kernel
from ..blend.trees import Trees
from ..cells import CellCenters


def check_parts(parts: Mapping[str, Any]) -> None:
    """Raise ValueError for inconsistent parts of a model, without a pass over the centers."""
    kernel, centers, coef = parts["kernel"], parts["centers"], parts["coef"]
    # The shape alone: mapped centers are not read, as they may be larger than memory.
    m, k = centers.shape
    if coef.ndim != 2 or 0 in coef.shape:
        raise ValueError(f"coef must have shape ({m}, t), not {tuple(coef.shape)}")
    t, d = coef.shape[1], _inputs(parts)
    if len(coef) != m:
        raise ValueError(f"coef must have a row for each of the {m} centers, not {len(coef)} rows")
    _check_numbers("coef", coef, tuple(coef.shape))
    _check_kernel(kernel, k)
    for name in ("target_shift", "target_scale"):
        if parts[name] is not None:
            _check_numbers(name, parts[name], (t,), positive=name == "target_scale")
    if (standardizer := parts["standardizer"]) is not None:
        _check_numbers("standardizer.mean", standardizer.mean, (d,))
        _check_numbers("standardizer.scale", standardizer.scale, (d,), positive=True)
    _check_maps(parts, k, d)
    _check_texts("feature_names", parts["feature_names"], d)
    _check_texts("target", parts["target"], t if parts["classes"] is None else 1)
    if (encoding := parts["encoding"]) is not None and encoding.width != d:
        raise ValueError(f"the encoding gives {encoding.width} features, but the model takes {d}")
    _check_classes(parts, t)
    _check_cells(parts["cells"], centers)
    if parts["variance"] is not None:
        parts["variance"].check(m, t)


def check_average(weights: Sequence[Any], members: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError for an average of incompatible models."""
    # A boolean is an int to Python, but not a weight.
    shares = all(
        isinstance(w, int | float) and not isinstance(w, bool) and 0 <= w <= 1 for w in weights
    )
    if len(weights) != len(members) or not shares or abs(sum(weights) - 1) > 1e-6:
        raise ValueError(
            f"an average of {len(members)} models requires as many weights, of at least 0 and with "
            f"the sum 1, not {weights!r}"
        )
    sizes = {(_inputs(parts), parts["coef"].shape[-1]) for parts in members}
    if len(sizes) > 1:
        sizes_text = " and ".join(f"{d} to {t}" for d, t in sorted(sizes))
        raise ValueError(
            "the models of an average must have the same numbers of features and targets, not "
            f"{sizes_text}"
        )


def check_blend(trees: Trees, weight: float, outputs: int) -> None:
    """Raise ValueError for a blend of incompatible models, or a weight that is not from 0 to 1."""
    if not 0 <= weight <= 1:
        raise ValueError(f"the weight of a blend must be from 0 to 1, not {weight!r}")
    if len(trees.shift) != outputs:
        raise ValueError(
            f"trees of {len(trees.shift)} targets cannot be blended with a model of {outputs}"
        )


def same_encoding(a: data.Encoding | None, b: data.Encoding | None) -> bool:
    """Return whether two encodings, or two Nones, give the same rows for the same tables."""
    if a is None or b is None or a is b:
        return a is b
    tensors = b.tensors()
    return a.to_dict() == b.to_dict() and all(
        xp.array_equal(tensor, tensors[name]) for name, tensor in a.tensors().items()
    )


def _inputs(parts: Mapping[str, Any]) -> int:
    """Return the number of features that rows of a model must have."""
    metric = parts["metric"]
    return int(parts["centers"].shape[1]) if metric is None else int(metric.inputs)


def _check_maps(parts: Mapping[str, Any], k: int, d: int) -> None:
    """Raise ValueError unless the maps can be chained from d to k features."""
    quantiles, metric, importances = (parts[n] for n in ("quantiles", "metric", "importances"))
    # In the order of a prediction: features of the user, quantiles, metric, centers.
    if quantiles is not None and quantiles.features != d:
        raise ValueError(f"the quantile map has {quantiles.features} features, not {d}")
    if metric is not None and metric.outputs != k:
        raise ValueError(f"the metric gives {metric.outputs} features, but centers have {k}")
    if parts["medians"] is not None:
        _check_numbers("medians", parts["medians"], (d,))
    if importances is not None:
        _check_numbers("importances", importances, (d,))
        if bool((importances < 0).any()):
            raise ValueError("importances must not be negative")


def _check_cells(cells: CellCenters | None, centers: RowSource) -> None:
    if cells is None:
        return
    m, k = centers.shape
    if int(cells.starts[-1]) != m or centers.sparse:
        raise ValueError(
            f"the starts of cells must end at the number of dense centers, {m}, not at "
            f"{int(cells.starts[-1])}"
        )
    if cells.cells.features not in (None, k):
        raise ValueError(f"the cells have {cells.cells.features} features, but the centers {k}")


def _check_kernel(kernel: Kernel, d: int) -> None:
    if kernel.dim not in (None, d):
        raise ValueError(f"the kernel has {kernel.dim} lengthscales for {d} features")
    # Sums and products nest their kernels: JSON shows the lengthscales of all of them.
    if "median" in json.dumps(kernel.to_dict()):
        raise ValueError(
            "the lengthscale of the kernel must be a number, not a multiple of the median"
        )


def check_floating(name: str, tensor: Array) -> None:
    """Raise ValueError for tensors of other types than float32 and float64."""
    if tensor.dtype not in (xp.float32, xp.float64):
        raise ValueError(f"{name} must be float32 or float64, not {tensor.dtype}")


def _check_numbers(
    name: str, tensor: Array, shape: tuple[int, ...], positive: bool = False
) -> None:
    check_floating(name, tensor)
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} must have shape {shape}, not {tuple(tensor.shape)}")
    if not bool(xp.isfinite(tensor).all()):
        raise ValueError(f"{name} must hold finite numbers")
    if positive and not bool((tensor > 0).all()):
        raise ValueError(f"{name} must be positive")


def _check_texts(what: str, names: tuple[Any, ...] | None, count: int) -> None:
    if names is None:
        return
    if len(names) != count or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{what} must be {count} strings, not {names!r}")


def _check_classes(parts: Mapping[str, Any], t: int) -> None:
    classes: tuple[Any, ...] | None = parts["classes"]
    if classes is None:
        if parts["probabilities"] is not None:
            raise ValueError("probabilities require classes, which a regression does not have")
        return
    # Two classes share one column of codes.
    expected = 2 if t == 1 else t
    if len(classes) != expected or len(set(classes)) != expected:
        raise ValueError(f"classes must be {expected} labels for {t} targets, not {classes!r}")
    if not all(isinstance(label, str | int | float) for label in classes):
        raise ValueError(f"classes must be strings or numbers, not {classes!r}")
    if any(isinstance(label, float) and not math.isfinite(label) for label in classes):
        raise ValueError(f"classes must be finite, not {classes!r}")
