"""Models as sums of functions, in the coordinates in which each is explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.errors import ParameterError
from ..data import as_rows
from ..model import BlendModel, KernelModel, KernelPart, Model
from .columns import to_array

Output = Literal["raw", "prediction"]

MOST_BACKGROUND_ROWS = 100
"""Most rows of the background."""


@dataclass(frozen=True)
class Summand:
    """A function of rows, with one value for each output.

    - `function`: from rows, (k, d), to values, (k, t).
    - `x`, `background`: the rows in the coordinates of the function: features, or features as the
      kernel takes them.
    - `part`: kernel model of the function, if its coordinates are the features one by one.
    - `coef`: the coefficients of `part`, in units of the output.
    """

    function: Callable[[Array], Array]
    x: Float[Array, "n d"]
    background: Float[Array, "b d"]
    part: KernelPart | None = None
    coef: Float[Array, "m t"] | None = None


def summands_of(
    model: Model, x: Float[Array, "n d"], background: Float[Array, "b d"] | None, output: Output
) -> list[Summand]:
    """Return functions whose sum is the output of a model, up to a constant.

    - `x`: features of the rows to explain.
    - `background`: features of the background; None for the centers of each kernel model.
    """
    if output not in ("raw", "prediction"):
        raise ParameterError("output", output, "'raw' or 'prediction'")
    is_sum = output == "raw" or not (model.classes or any(part.link for part in model.parts))
    if is_sum and not isinstance(model, BlendModel) and all(map(_is_kept, model.parts)):
        pairs = zip(model.shares, model.parts, strict=True)
        return [_kernel_summand(weight, part, x, background) for weight, part in pairs]
    if background is None:
        raise ParameterError(
            "background", None, "a table or array of training rows",
            "the centers of this model are no rows of features, or its output is no sum of kernels",
        )  # fmt: skip
    return [Summand(partial(outputs_of, model, output), x, background)]


def outputs_of(model: Model, output: Output, features: Float[Array, "k d"]) -> Array:
    """Return the raw values of a model, or predictions, or probabilities of classes, (k, t)."""
    rows: Any = as_rows(features)
    if output == "prediction":
        values = model.predict(rows)
        return values if model.classes is None else model.class_map(values)
    if any(part.link for part in model.parts):
        if not isinstance(model, KernelModel):
            raise ParameterError("output", output, "'prediction' for a mean of models with links")
        model = replace(model, link=None)
    return model.predict(rows)


def _is_kept(part: KernelPart) -> bool:
    """Return whether each feature stays one number up to the kernel."""
    return part.cells is None and (part.metric is None or part.metric.matrix is None)


def _kernel_summand(weight: float, part: KernelPart, x: Array, background: Array | None) -> Summand:
    if background is None:
        m = len(part.centers)
        index = np.linspace(0, m - 1, min(m, MOST_BACKGROUND_ROWS)).astype(int)
        prepared = xp.to_float64(to_array(as_rows(part.centers.take(index))))
    else:
        prepared = to_array(part.prepare_rows(as_rows(background)))
    scale = weight if part.target_scale is None else weight * xp.to_float64(part.target_scale)
    coef = xp.to_float64(part.coef) * scale
    # Without maps: rows are mapped once, and then combined feature by feature.
    bare = KernelModel(part.kernel, part.centers, coef)
    function = lambda rows: bare.predict(as_rows(rows))  # noqa: E731
    return Summand(function, to_array(part.prepare_rows(as_rows(x))), prepared, part, coef)
