"""Kernels: positive-definite functions of two points.

A kernel is a value: a frozen dataclass that holds its parameters and no data. Call it on two sets
of rows to get a block of the kernel matrix, ``k(x, z)``; combine kernels with ``+``, ``*`` and
positive numbers::

    k = 2.0 * Gaussian(lengthscale=1.5) + Linear()

The ``lengthscale`` is a number in the units of the features, one number per feature, or
``"median"``, which the estimators replace by the median distance within a random sample of rows
(`Kernel.resolve`), or a multiple of it such as ``"2 median"``.

=====================  ==========================================  =====================
name                   k(x, z), with r = ‖x - z‖₂ / lengthscale     class
=====================  ==========================================  =====================
gaussian               exp(-r² / 2)                                Gaussian
laplacian, matern12    exp(-r)                                     Laplacian, Matern12
l1_laplacian           exp(-‖x - z‖₁ / lengthscale)                L1Laplacian
matern32               (1 + √3 r) exp(-√3 r)                       Matern32
matern52               (1 + √5 r + 5 r² / 3) exp(-√5 r)            Matern52
rational_quadratic     (1 + r² / (2 alpha))^(-alpha)               RationalQuadratic
linear                 x · z / lengthscale²                        Linear
polynomial             (x · z / lengthscale² + coef0)^degree       Polynomial
cosine                 x · z / (‖x‖ ‖z‖)                           Cosine
tanimoto               x · z / (‖x‖² + ‖z‖² - x · z)               Tanimoto
chi_squared            exp(-Σ (x - z)² / (x + z) / lengthscale)    ChiSquared
periodic               exp(-2 Σ sin²(π (x - z) / period) / ls²)    Periodic
haversine              exp(-d / lengthscale) on the globe          Haversine
=====================  ==========================================  =====================

Estimators do not standardise the features of the last four kernels. ``kernel.on([0, 3])`` is a
kernel of features 0 and 3 alone, so that sums and products mix blocks::

    k = Gaussian("median").on([0, 1, 2]) * Haversine(200.0).on([3, 4]) + Periodic(1.0, 24.0).on([5])

To add a kernel of the distance, subclass `Radial`, give `scale` and `profile`, and register it:
engines, estimators, the command line and the contract tests find it by its name. For fused tiles on
a GPU, also write its profile in Triton's language, in `gramian.engines._fused.profiles`.

A package adds kernels by entry points of the group ``gramian.kernels``, with the names of the
kernels; solvers and selectors of landmarks likewise, by ``gramian.solvers`` and
``gramian.landmarks``::

    [project.entry-points."gramian.kernels"]
    wendland = "my_package.kernels:Wendland"
"""

from __future__ import annotations

from typing import Any

# The names of kernels are in the order of these imports: kernels of the distance come first.
from ._lengthscale import medians
from .base import Kernel, from_dict, kernels
from .radial.base import Radial
from .radial.gaussian import Gaussian
from .radial.matern import Laplacian, Matern12, Matern32, Matern52
from .radial.rational_quadratic import RationalQuadratic

# isort: split
from ._hyperparameters import hyperparameters, with_hyperparameters
from .columns import Columns
from .combined import Product, Scaled, Sum
from .dot_product.cosine import Cosine
from .dot_product.polynomial import Linear, Polynomial
from .dot_product.tanimoto import Tanimoto
from .radial.chi_squared import ChiSquared
from .radial.great_circle import Haversine
from .radial.l1 import L1Laplacian
from .radial.periodic import Periodic

# isort: split
from ._seasonal import seasonal

COMPOSITE_NAMES = ("sum", "product", "scaled", "columns")


def make(name: str, **parameters: Any) -> Kernel:
    """Return the kernel called `name`, for example ``make("gaussian", lengthscale=2.0)``.

    Parameters
    ----------
    name : str
        One of `names`.
    **parameters
        Parameters of the class: ``lengthscale`` and others.

    Raises
    ------
    ValueError
        If there is no such kernel, or a value of a parameter is invalid.
    """
    return kernels.make(name, **parameters)


def hint(name: object) -> str:
    """Return the end of an error about an unknown name: "; did you mean gaussian?" for "rbf"."""
    return kernels.hint(name)


def names() -> tuple[str, ...]:
    """Return the names of the elementary kernels, including kernels of other packages."""
    return tuple(name for name in kernels.names() if name not in COMPOSITE_NAMES)


__all__ = [
    "ChiSquared",
    "Columns",
    "Cosine",
    "Gaussian",
    "Haversine",
    "Kernel",
    "L1Laplacian",
    "Laplacian",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Polynomial",
    "Product",
    "Radial",
    "RationalQuadratic",
    "Scaled",
    "Sum",
    "Tanimoto",
    "from_dict",
    "hint",
    "hyperparameters",
    "make",
    "medians",
    "names",
    "seasonal",
    "with_hyperparameters",
]
