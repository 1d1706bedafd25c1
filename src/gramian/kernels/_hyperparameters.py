"""Hyper-parameters of any kernel: names, values, and gradients of a function of the matrix."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from .. import _arrays as xp
from .._arrays import Array, Float
from ._lengthscale import LengthscaleKernel
from .base import Kernel
from .columns import Columns
from .combined import Product, Scaled, Sum

LOG_STEP = 6e-6
"""Step of a difference quotient in a logarithm: its error is about as large as rounding."""


def hyperparameters(kernel: Kernel) -> dict[str, float]:
    """Return the positive hyper-parameters of a kernel by name, as in `Kernel.get_params`.

    Lengthscales, factors, and the `Kernel.tuned` parameters of each part; the number of a feature
    follows a name in brackets. A single lengthscale without effect, as of `Tanimoto`, is left out.

    >>> from gramian.kernels import Gaussian, Haversine
    >>> hyperparameters(2.0 * Haversine(300.0).on([0, 1]) + Gaussian((1.0, 4.0)).on([2, 3]))
    ... # doctest: +NORMALIZE_WHITESPACE
    {'first__kernel__kernel__lengthscale': 300.0, 'first__factor': 2.0,
    'second__kernel__lengthscale[0]': 1.0, 'second__kernel__lengthscale[1]': 4.0}
    """
    numbers: dict[str, float] = {}
    for name, value in _walk(kernel):
        if isinstance(value, tuple):
            numbers.update({f"{name}[{k}]": entry for k, entry in enumerate(value)})
        else:
            numbers[name] = float(value)
    return numbers


def with_hyperparameters(kernel: Kernel, values: Sequence[float]) -> Kernel:
    """Return a kernel with other hyper-parameters, in the order of `hyperparameters`."""
    remaining = iter(values)
    changed = {
        name: tuple(float(next(remaining)) for _ in value)
        if isinstance(value, tuple)
        else float(next(remaining))
        for name, value in _walk(kernel)
    }
    return kernel.set_params(**changed)


def with_factors(kernel: Kernel) -> Kernel:
    """Return a kernel with a factor for each term of its sums that has none.

    >>> from gramian.kernels import Gaussian, Linear
    >>> with_factors(Gaussian() + 2.0 * Linear())
    ... # doctest: +NORMALIZE_WHITESPACE
    Sum(first=Scaled(kernel=Gaussian(lengthscale=1.0), factor=1.0),
        second=Scaled(kernel=Linear(lengthscale=1.0), factor=2.0))
    """
    if isinstance(kernel, Sum):
        return with_factors(kernel.first) + with_factors(kernel.second)
    return kernel if _has_factor(kernel) else 1.0 * kernel


def times_lengthscales(kernel: Kernel, ratio: float, *, circles: bool = True) -> Kernel:
    """Return a kernel with its lengthscales multiplied by a number.

    - `circles`: whether lengthscales of kernels with a period, in radii of a circle, are
      multiplied, too.
    """
    values, parameters = hyperparameters(kernel), kernel.get_params()

    def is_multiplied(name: str) -> bool:
        prefix = name.rpartition("lengthscale")[0]
        return "lengthscale" in name and (circles or f"{prefix}period" not in parameters)

    return with_hyperparameters(
        kernel, [v * ratio if is_multiplied(name) else v for name, v in values.items()]
    )


def amplify(kernel: Kernel, amplitude: float) -> Kernel:
    """Return a kernel times a number, which multiplies the factor that each term has."""
    if isinstance(kernel, Sum):
        return amplify(kernel.first, amplitude) + amplify(kernel.second, amplitude)
    if isinstance(kernel, Scaled):
        return replace(kernel, factor=amplitude * kernel.factor)
    if isinstance(kernel, Columns) and _has_factor(kernel):
        return replace(kernel, kernel=amplify(kernel.kernel, amplitude))
    if isinstance(kernel, Product) and _has_factor(kernel):
        part = "first" if _has_factor(kernel.first) else "second"
        return replace(kernel, **{part: amplify(getattr(kernel, part), amplitude)})
    return amplitude * kernel


def contract_gradients(
    kernel: Kernel, x: Float[Array, "n d"], weights: Float[Array, "n n"]
) -> list[float]:
    r"""Return :math:`\sum_{ij} G_{ij}\, \partial k(x_i, x_j) / \partial \log \theta_p` for each p.

    - `x`: dense rows, in float64.
    - `weights`: the symmetric matrix G: the derivative of a function with respect to the kernel
      matrix.

    Returns
    -------
    list of float
        In the order of `hyperparameters`.

    Notes
    -----
    Factors, and lengthscales that divide the features of a differentiable kernel, are exact:
    :math:`\partial k / \partial \log \ell_k = -x_k \partial_{x_k} k - z_k \partial_{z_k} k`, so
    that `Kernel.gradients` yields all lengthscales at once, for n² kernel evaluations and n² d
    operations. Others, such as the great circle's, take a difference quotient, of two matrices
    for each.
    """
    if isinstance(kernel, Sum):
        first = contract_gradients(kernel.first, x, weights)
        return first + contract_gradients(kernel.second, x, weights)
    if isinstance(kernel, Product):
        first = contract_gradients(kernel.first, x, weights * kernel.second(x, x))
        return first + contract_gradients(kernel.second, x, weights * kernel.first(x, x))
    if isinstance(kernel, Scaled):
        inner = contract_gradients(kernel.kernel, x, kernel.factor * weights)
        return [*inner, kernel.factor * float((weights * kernel.kernel(x, x)).sum())]
    if isinstance(kernel, Columns):
        return contract_gradients(kernel.kernel, kernel.select_features(x), weights)
    gradients: list[float] = []
    for name, value in _walk(kernel):
        if (
            name == "lengthscale"
            and isinstance(kernel, LengthscaleKernel)
            and kernel.differentiable
        ):
            slopes = _lengthscale_gradients(kernel, x, weights)
            gradients += slopes.tolist() if isinstance(value, tuple) else [float(slopes.sum())]
        else:
            gradients += _difference_quotients(kernel, name, value, x, weights)
    return gradients


def _walk(kernel: Kernel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each tuned parameter, part after part."""
    for name in (field.name for field in fields(kernel)):
        value = getattr(kernel, name)
        if isinstance(value, Kernel):
            yield from _walk(value, f"{prefix}{name}__")
        elif name in kernel.tuned and _matters(kernel, name, value):
            yield prefix + name, value


def _matters(kernel: Kernel, name: str, value: Any) -> bool:
    if isinstance(value, str):
        raise ValueError(
            f"{name}={value!r} of {kernel!r} has no value yet: call kernel.resolve(sample) with "
            "about 1,000 random rows, or give a number"
        )
    # A logarithm needs positive numbers, and `coef0` may be 0.
    if isinstance(value, tuple):
        return True
    without_effect = name == "lengthscale" and kernel.scale_free
    return value > 0 and not without_effect


def _has_factor(kernel: Kernel) -> bool:
    if isinstance(kernel, Product):
        return _has_factor(kernel.first) or _has_factor(kernel.second)
    if isinstance(kernel, Columns):
        return _has_factor(kernel.kernel)
    return isinstance(kernel, Scaled | Sum)


def _lengthscale_gradients(
    kernel: Kernel, x: Float[Array, "n d"], weights: Float[Array, "n n"]
) -> Float[Array, " d"]:
    # Around their mean the rows have the smallest norms, and the fewest digits cancel.
    x = x - x.mean(axis=0) if kernel.stationary else x
    sides = kernel.prepare(x, "left"), kernel.prepare(x, "right")
    slopes = kernel.gradients(*sides, xp.ones((len(x), 1), like=x), weights)[:, 0]
    # Both sides move, by equal sums, because the weights are symmetric.
    return -2 * (x * slopes).sum(axis=0)


def _difference_quotients(
    kernel: Kernel, name: str, value: Any, x: Float[Array, "n d"], weights: Float[Array, "n n"]
) -> list[float]:
    numbers = value if isinstance(value, tuple) else (value,)
    quotients = []
    for k in range(len(numbers)):
        sums = []
        for step in (LOG_STEP, -LOG_STEP):
            moved = (*numbers[:k], numbers[k] * math.exp(step), *numbers[k + 1 :])
            changed = moved if isinstance(value, tuple) else moved[0]
            sums.append(float((weights * kernel.set_params(**{name: changed})(x, x)).sum()))
        quotients.append((sums[0] - sums[1]) / (2 * LOG_STEP))
    return quotients
