"""Functions of each entry of an array, by NumPy, compiled code or torch."""

from __future__ import annotations

import functools
import logging
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy  # which imports scipy.special where it is used

from ._kinds import is_tensor, loaded_torch, namesake

__all__ = [
    "abs", "add", "asin", "cos", "deg2rad", "exp", "expm1", "floor", "isfinite", "isnan",
    "lerp", "log", "log1p", "log2", "logit", "logsigmoid", "maximum", "minimum", "negative",
    "power", "reciprocal", "rsqrt", "sigmoid", "sign", "sin", "softplus", "sqrt", "square",
    "subtract", "where",
]  # fmt: skip

logger = logging.getLogger("gramian")

NATIVE_MODULE = "gramian.engines._native"

NEWEST_FUNCTION = "quantile_shares"
"""A function that modules lack that were built from older sources."""


@functools.cache
def load_compiled() -> Any:
    """Return the module of compiled code; None if it was not built.

    A module that was built from older sources is not used; a warning is logged.
    """
    if find_spec(NATIVE_MODULE) is None:
        return None
    module = import_module(NATIVE_MODULE)
    if not hasattr(module, NEWEST_FUNCTION):
        logger.warning(
            "%s was built from older sources and is not used until you rebuild it (pip install .)",
            NATIVE_MODULE,
        )
        return None
    return module


FLOAT_TYPES = (np.dtype("float32"), np.dtype("float64"))

COMPILED_TYPES = {
    "exp": FLOAT_TYPES,
    "log1p": FLOAT_TYPES,
    "asin": FLOAT_TYPES,
    "cos": FLOAT_TYPES[1:],
    "sin": FLOAT_TYPES[1:],
}
"""Types of numbers for which functions are compiled: those for which NumPy is slower."""

COMPILED_NUMBERS = 1 << 10
"""Least numbers for compiled functions: for fewer the call takes as long as NumPy's."""


def _map_compiled(name: str, x: Any, out: Any) -> Any:
    """Return the values of a function by compiled code, or None where NumPy computes them.

    NumPy has vectors for few functions on machines without AVX-512: with AVX2, exponentials in
    float64 take 4.5 ns there and 1.7 ns compiled.
    """
    is_fit = name in COMPILED_TYPES and isinstance(x, np.ndarray) and x.size >= COMPILED_NUMBERS
    if not is_fit or x.dtype not in COMPILED_TYPES[name] or load_compiled() is None:
        return None
    target = np.empty(x.shape, x.dtype) if out is None else out
    for side in (x, target):
        if side.ndim not in (1, 2) or side.strides[-1] != side.itemsize or side.dtype != x.dtype:
            return None
    load_compiled().map_("best", name, x, target)
    return target


def _elementwise(name: str, numpy: Any) -> Any:
    """Return a function of the elements of one array."""

    def function(x: Any, out: Any = None) -> Any:
        if is_tensor(x):
            return getattr(loaded_torch(), name)(x, out=out)
        if (values := _map_compiled(name, x, out)) is not None:
            return values
        # As on a device: infinity and NaN are results, on which callers decide.
        with np.errstate(all="ignore"):
            return numpy(x, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return `{numpy.__name__}` of NumPy, or its namesake of torch."
    return function


square = _elementwise("square", np.square)
sqrt = _elementwise("sqrt", np.sqrt)
exp = _elementwise("exp", np.exp)
expm1 = _elementwise("expm1", np.expm1)
log = _elementwise("log", np.log)
log1p = _elementwise("log1p", np.log1p)
abs = _elementwise("abs", np.abs)
cos = _elementwise("cos", np.cos)
sin = _elementwise("sin", np.sin)
floor = _elementwise("floor", np.floor)
negative = _elementwise("negative", np.negative)


def of_scipy(name: str) -> Any:
    """Return a function of `scipy.special`, found at its first call, or its namesake of torch."""

    def function(*args: Any, **settings: Any) -> Any:
        return getattr(scipy.special, name)(*args, **settings)

    function.__name__ = name
    return namesake(name, function)


logit = of_scipy("logit")


def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x))."""
    if is_tensor(x):
        return x.sigmoid()
    inverse = exp(-x)
    inverse += 1
    return reciprocal(inverse, out=inverse)


def power(x: Any, degree: int, out: Any = None) -> Any:
    """Return a power with a whole exponent."""
    if is_tensor(x):
        return loaded_torch().pow(x, degree, out=out)
    if degree < 2:
        return np.power(x, degree, out=out)
    # Products are up to ten times as fast as NumPy's power.
    factors = [name for bit in bin(int(degree))[3:] for name in ("itself", "x")[: 1 + int(bit)]]
    product = x
    for number, name in enumerate(factors, 1):
        is_last, by = number == len(factors), product if name == "itself" else x
        target = out if is_last else None if product is x else product
        product = np.multiply(product, by, out=target)
    return product


def reciprocal(x: Any, out: Any = None) -> Any:
    """Return one over the numbers, which takes half as long as NumPy's function of this name."""
    if is_tensor(x):
        return loaded_torch().reciprocal(x, out=out)
    with np.errstate(all="ignore"):
        return np.divide(1, x, out=out)


def softplus(x: Any) -> Any:
    """Return log(1 + exp(x)) without overflow."""
    if is_tensor(x):
        return loaded_torch().nn.functional.softplus(x)
    near = log1p(exp(-np.abs(x)))
    near += np.maximum(x, 0)
    return near


def logsigmoid(x: Any) -> Any:
    """Return the logarithm of the sigmoid, with its digits where the sigmoid is 0 or 1."""
    if is_tensor(x):
        return loaded_torch().nn.functional.logsigmoid(x)
    return -softplus(-x)


def rsqrt(x: Any) -> Any:
    """Return one over the square root."""
    if is_tensor(x):
        return x.rsqrt()
    with np.errstate(all="ignore"):
        return 1 / np.sqrt(x)


isfinite = namesake("isfinite", np.isfinite)
isnan = namesake("isnan", np.isnan)
where = namesake("where", np.where)


def _pair(name: str, numpy: Any) -> Any:
    """Return a function of the elements of two arrays."""

    def function(x: Any, y: Any, out: Any = None) -> Any:
        if is_tensor(x) or is_tensor(y):
            return getattr(loaded_torch(), name)(x, y, out=out)
        with np.errstate(all="ignore"):
            return numpy(x, y, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return `{numpy.__name__}` of NumPy, or its namesake of torch."
    return function


add = _pair("add", np.add)
subtract = _pair("subtract", np.subtract)
maximum = _pair("maximum", np.maximum)
minimum = _pair("minimum", np.minimum)


def lerp(start: Any, end: Any, weight: Any) -> Any:
    """Return the point between two arrays at a weight from 0 to 1."""
    if is_tensor(start):
        return loaded_torch().lerp(start, end, weight)
    # Either end is exact: the formula is the one of torch.
    span = end - start
    return np.where(np.asarray(weight) < 0.5, start + weight * span, end - span * (1 - weight))


sign = _elementwise("sign", np.sign)
asin = _elementwise("asin", np.arcsin)
log2 = _elementwise("log2", np.log2)
deg2rad = _elementwise("deg2rad", np.deg2rad)
