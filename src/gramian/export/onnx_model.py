"""Export of models to ONNX."""

from __future__ import annotations

from importlib.metadata import version
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from .. import _arrays as xp
from .._files.atomic import check_output, write_atomically
from ..explain.columns import resolve_model, to_array
from ..kernels import (
    Columns,
    Gaussian,
    Kernel,
    L1Laplacian,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    Sum,
)
from ..kernels.dot_product.polynomial import InnerProduct
from ..kernels.radial.base import Radial
from ..model import BlendModel, KernelPart, LogOdds, Model, Shares
from ..model.uncertainty.probabilities import OUTER_SLOPE
from .graph import Graph
from .onnx_inputs import add_features, add_prepared


def to_onnx(model: Any, path: str | Path | None = None) -> Any:
    """Return a model in the format of ONNX, for onnxruntime and other runtimes.

    The graph computes in float64. A model of an array has the input ``X``, (n, d); a model of a
    table has an input of shape (n, 1) for each column: float64 for numbers and booleans, NaN for
    gaps; texts for categories, the empty text for gaps. A regression has the output
    ``predictions``, (n, t); a classifier ``label``, (n,), and ``probabilities``, (n, k).

    Parameters
    ----------
    model : estimator, Model, or path
    path : str or Path, optional
        File to write.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    ValueError
        If a part of the model cannot be exported; the message names the part.
    ImportError
        If onnx is not installed.

    Notes
    -----
    Exported are Gaussian, Laplacian, Matern, l1 Laplacian, rational quadratic, linear and
    polynomial kernels, their sums, products and multiples, means of models, the encodings of
    numbers, booleans and categories, standardisation, quantile maps, learned metrics and
    probabilities. Dates, ordered categories, trees, cells, quantile regressions, intervals and
    standard deviations are not.

    A prediction of n rows takes 8 n m bytes, with l1 kernels 8 n m d: divide large batches.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> from gramian.export import to_onnx
    >>> X = np.arange(20.0)[:, None]
    >>> est = KernelRidge("gaussian", lengthscale=1.0, penalty=1e-6).fit(X, X[:, 0])
    >>> [x.name for x in to_onnx(est).graph.output]  # doctest: +SKIP
    ['predictions']
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "export to ONNX needs onnx, which is not installed: `pip install 'gramian[onnx]'`"
        ) from error
    if path is not None:
        check_output(Path(path))
    resolved = resolve_model(model)
    _refuse_parts(resolved)
    graph = Graph()
    x = add_features(graph, resolved)
    values = _add_values(graph, resolved, x)
    if resolved.classes is None:
        graph.output("predictions", values, np.float64, ["n", resolved.outputs])
    else:
        _add_classes(graph, resolved, values)
    names = resolved.feature_names or ()
    exported = graph.model("gramian", {"gramian": version("gramian"), "features": ",".join(names)})
    if path is not None:
        write_atomically(Path(path), lambda part: onnx.save(exported, str(part)))
    return exported


def _refuse_parts(model: Model) -> None:
    """Raise ValueError for models with parts that ONNX does not get."""
    reasons = {
        "trees of a blend": isinstance(model, BlendModel),
        "cells": any(part.cells is not None for part in model.parts),
        "sparse centers": any(part.centers.sparse for part in model.parts),
        "sorted quantiles": any(
            part.link is not None and part.link.name == "sorted" for part in model.parts
        ),
    }
    reason = next((name for name, applies in reasons.items() if applies), None)
    if reason is not None:
        raise ValueError(f"this model cannot be exported to ONNX, because it has {reason}")


def _add_values(graph: Graph, model: Model, x: str) -> str:
    """Return the predictions, or the decision values of a classifier, (n, t)."""
    total = ""
    for weight, part in zip(model.shares, model.parts, strict=True):
        value = _add_part(graph, part, x)
        if len(model.parts) > 1:
            value = graph.add("Mul", value, weight)
        total = graph.add("Add", total, value) if total else value
    return total


def _add_part(graph: Graph, part: KernelPart, x: str) -> str:
    centers = to_array(part.centers)
    K = _add_kernel(graph, part.kernel, add_prepared(graph, part, x), centers)
    values = graph.add("MatMul", K, xp.to_float64(part.coef))
    if part.target_scale is not None:
        values = graph.add("Mul", values, xp.to_float64(part.target_scale))
    if part.target_shift is not None:
        values = graph.add("Add", values, xp.to_float64(part.target_shift))
    if part.link is not None and part.link.name == "exp":
        values = graph.add("Exp", values)
    return values


def _add_kernel(graph: Graph, kernel: Kernel, x: str, z: np.ndarray) -> str:
    """Return the kernel of rows and centers, (n, m)."""
    if isinstance(kernel, Scaled):
        return graph.add("Mul", _add_kernel(graph, kernel.kernel, x, z), kernel.factor)
    if isinstance(kernel, Sum | Product):
        first = _add_kernel(graph, kernel.first, x, z)
        second = _add_kernel(graph, kernel.second, x, z)
        return graph.add("Add" if isinstance(kernel, Sum) else "Mul", first, second)
    if isinstance(kernel, Columns):
        columns = list(kernel.numbers)
        return _add_kernel(graph, kernel.kernel, graph.gather(x, columns), z[:, columns])
    if isinstance(kernel, L1Laplacian):
        rows = graph.node(
            "Unsqueeze",
            [_divide_by_lengthscale(graph, kernel, x), graph.constant([1], np.int64)],
            {},
        )
        size = graph.add("Abs", graph.add("Sub", rows, z / np.asarray(kernel.lengthscale)))
        axis = graph.constant([2], np.int64)
        distance = graph.node("ReduceSum", [size, axis], {"keepdims": 0})
        return graph.add("Exp", graph.add("Neg", distance))
    if isinstance(kernel, Linear | Polynomial):
        return _add_inner_product(graph, kernel, x, z)
    if isinstance(kernel, Gaussian | Laplacian | Matern32 | Matern52 | RationalQuadratic):
        return _add_radial(graph, kernel, x, z)
    raise ValueError(f"the kernel {kernel!r} cannot be exported to ONNX")


def _divide_by_lengthscale(graph: Graph, kernel: Any, x: str) -> str:
    return graph.add("Div", x, np.asarray(kernel.lengthscale, np.float64))


def _add_inner_product(graph: Graph, kernel: InnerProduct, x: str, z: np.ndarray) -> str:
    product = graph.add(
        "MatMul", _divide_by_lengthscale(graph, kernel, x), (z / np.asarray(kernel.lengthscale)).T
    )
    if not isinstance(kernel, Polynomial):
        return product
    return graph.add("Pow", graph.add("Add", product, kernel.coef0), float(kernel.degree))


def _add_radial(graph: Graph, kernel: Radial, x: str, z: np.ndarray) -> str:
    """Return the profile of the scaled squared distances."""
    # Around the mean of the centers the fewest digits cancel.
    origin = z.mean(axis=0)
    factor = sqrt(abs(kernel.scale)) / np.asarray(kernel.lengthscale, np.float64)
    rows = graph.add("Mul", graph.add("Sub", x, origin), factor)
    points = (z - origin) * factor
    norms = graph.sum(graph.add("Mul", rows, rows), 1)
    both = graph.add("Add", norms, (points**2).sum(axis=1)[None])
    s = graph.add("Add", both, graph.add("MatMul", rows, -2 * points.T))
    s = graph.add("Max", s, 0.0)
    if isinstance(kernel, Gaussian):
        return graph.add("Exp", graph.add("Neg", s))
    if isinstance(kernel, RationalQuadratic):
        return graph.add("Pow", graph.add("Add", s, 1.0), -kernel.alpha)
    u = graph.add("Sqrt", s)
    decay = graph.add("Exp", graph.add("Neg", u))
    if isinstance(kernel, Laplacian):
        return decay
    factor_of_decay = graph.add("Add", u, 1.0)
    if isinstance(kernel, Matern52):
        factor_of_decay = graph.add("Add", factor_of_decay, graph.add("Div", s, 3.0))
    return graph.add("Mul", decay, factor_of_decay)


def _add_classes(graph: Graph, model: Model, values: str) -> None:
    """Add the label and the probabilities."""
    classes = np.asarray(model.classes)
    k, t = len(classes), model.outputs
    if t == 1:
        index = graph.gather(graph.cast(graph.add("Greater", values, 0.0), np.int64), 0)
    else:
        index = graph.node("ArgMax", [values], {"axis": 1, "keepdims": 0})
    # ONNX has texts, whole numbers and floating-point numbers, but no labels of other kinds.
    dtype = np.dtype(np.str_) if classes.dtype.kind == "U" else classes.dtype
    labels = graph.constant(classes.astype(object) if dtype.kind == "U" else classes, None)
    graph.output("label", graph.gather(labels, index, axis=0), dtype, ["n"])
    logs = _add_logs(graph, model.class_map, values, t)
    graph.output("probabilities", graph.node("Softmax", [logs], {"axis": 1}), np.float64, ["n", k])


def _add_logs(graph: Graph, class_map: Any, values: str, t: int) -> str:
    """Return numbers whose softmax are the probabilities, (n, k)."""
    if isinstance(class_map, LogOdds):
        return values if t > 1 else graph.concat([graph.add("Mul", values, 0.0), values])
    if not isinstance(class_map, Shares):
        raise ValueError(f"probabilities by {class_map!r} cannot be exported to ONNX")
    if t == 1:
        both = graph.concat([graph.add("Neg", values), values])
        shares = graph.add("Mul", graph.add("Add", both, 1.0), 0.5)
    else:
        shares = graph.add("Add", graph.add("Mul", values, (t - 1) / t), 1 / t)
    inside = graph.add("Clip", shares, class_map.least_share, 1.0)
    excess = graph.add("Clip", graph.add("Sub", shares, inside), -1.0, 1.0)
    positive_shares = graph.add("Add", inside, graph.add("Mul", excess, OUTER_SLOPE))
    return graph.add("Mul", graph.add("Log", positive_shares), class_map.power)
