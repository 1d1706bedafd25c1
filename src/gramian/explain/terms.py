"""Kernels as sums of products over groups of features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations_with_replacement, product
from math import factorial, gamma, prod

import numpy as np

from .._arrays import Array, Float
from ..kernels import (
    ChiSquared,
    Columns,
    Gaussian,
    Kernel,
    L1Laplacian,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    Sum,
)
from ..kernels.radial.base import Radial

MOST_TERMS = 2000
"""Most terms of a kernel; kernels with more are sampled."""

NODE_DISTANCE = 0.3
"""Distance of the logarithms of the rates of a mixture: its error is below 1e-10."""

LEAST_NODE_WEIGHT = 1e-12
"""Least weight of a rate, relative to the largest."""

LARGEST_LOG_RATE = 32.0
"""Largest logarithm of a rate: faster Gaussians differ from it for distances below 1e-6 alone."""


@dataclass(frozen=True)
class Factor:
    """A kernel of some features, all in one group.

    - `group`: index of the group.
    - `kernel`: a kernel of `features` alone.
    """

    group: int
    kernel: Kernel
    features: tuple[int, ...]

    def __call__(self, x: Float[Array, "a d"], z: Float[Array, "m d"]) -> Float[Array, "a m"]:
        """Return the kernel of all pairs of rows, in float64."""
        columns = list(self.features)
        return self.kernel(x[:, columns], z[:, columns])


@dataclass(frozen=True)
class Term:
    """A number times a product of factors.

    - `factors`: several factors may be of one group.
    """

    weight: float
    factors: tuple[Factor, ...] = ()

    @property
    def groups(self) -> tuple[int, ...]:
        """The groups of the factors, increasing."""
        return tuple(sorted({factor.group for factor in self.factors}))

    def values(
        self, group: int, x: Float[Array, "a d"], z: Float[Array, "m d"]
    ) -> Float[Array, "a m"]:
        """Return the product of the factors of a group at all pairs of rows; ones without any."""
        factors = [factor for factor in self.factors if factor.group == group]
        return prod((factor(x, z) for factor in factors), start=np.ones((len(x), len(z))))


def product_terms(kernel: Kernel, group_of: Sequence[int]) -> list[Term] | None:
    """Return terms whose sum is a kernel, each a product over groups of features.

    - `group_of`: the group of each feature.

    Return None if the kernel has no such form, or too many terms.

    Notes
    -----
    Kernels of the Euclidean distance that are positive definite for any number of features are
    mixtures of Gaussians, which are products over the features [1]_. The mixtures of Matern and
    rational quadratic kernels are cut into 50 to 200 Gaussians, with an error below 1e-10.

    References
    ----------
    .. [1] Schoenberg, *Metric spaces and completely monotone functions*, Annals of Mathematics 39,
       1938.
    """
    terms = _terms(kernel, tuple(range(len(group_of))), group_of)
    return None if terms is None or len(terms) > MOST_TERMS else terms


def _terms(kernel: Kernel, features: tuple[int, ...], group_of: Sequence[int]) -> list[Term] | None:
    """Return the terms of a kernel of some of the features."""
    if isinstance(kernel, Scaled):
        terms = _terms(kernel.kernel, features, group_of)
        return terms and [replace(term, weight=kernel.factor * term.weight) for term in terms]
    if isinstance(kernel, Columns):
        return _terms(kernel.kernel, tuple(features[k] for k in kernel.numbers), group_of)
    if isinstance(kernel, Sum | Product):
        first = _terms(kernel.first, features, group_of)
        second = _terms(kernel.second, features, group_of)
        if first is None or second is None or len(first) * len(second) > MOST_TERMS:
            return None
        if isinstance(kernel, Sum):
            return first + second
        return [Term(a.weight * b.weight, a.factors + b.factors) for a, b in product(first, second)]
    return _terms_of_groups(kernel, features, [group_of[feature] for feature in features])


def _terms_of_groups(
    kernel: Kernel, features: tuple[int, ...], groups: Sequence[int]
) -> list[Term] | None:
    """Return the terms of a kernel without parts, from the group of each of its features."""
    distinct = sorted(set(groups))
    if len(distinct) == 1:  # any kernel of a single group is a factor
        return [Term(1.0, (Factor(distinct[0], kernel, features),))]
    places = {group: [k for k, own in enumerate(groups) if own == group] for group in distinct}
    factors = [_restrict(kernel, features, own, group) for group, own in places.items()]
    if isinstance(kernel, Gaussian | L1Laplacian | ChiSquared | Periodic):
        return [Term(1.0, tuple(factors))]
    if isinstance(kernel, Linear | Polynomial):
        return _polynomial_terms(kernel, factors)
    rates = list(_rates(kernel)) if isinstance(kernel, Radial) else []
    return [
        Term(weight, tuple(replace(f, kernel=_gaussian(f.kernel, rate)) for f in factors))
        for weight, rate in rates
    ] or None


def _restrict(kernel: Kernel, features: tuple[int, ...], places: list[int], group: int) -> Factor:
    """Return the factor of a group: the kernel with the lengthscales of its features."""
    values = {f.name: getattr(kernel, f.name) for f in fields(kernel)}
    # Only parameters with a number for each feature are tuples.
    own = {k: tuple(v[p] for p in places) for k, v in values.items() if isinstance(v, tuple)}
    return Factor(group, replace(kernel, **own), tuple(features[p] for p in places))


def _polynomial_terms(kernel: Linear | Polynomial, factors: list[Factor]) -> list[Term] | None:
    """Return the terms of a power of a sum over groups, by the multinomial theorem."""
    degree, constant = (kernel.degree, kernel.coef0) if isinstance(kernel, Polynomial) else (1, 0.0)
    if prod(range(len(factors) + 1, len(factors) + degree + 1)) / factorial(degree) > MOST_TERMS:
        return None
    sums = [replace(factor, kernel=Linear(factor.kernel.lengthscale)) for factor in factors]  # type: ignore[attr-defined]
    terms = []
    choices: list[Factor | None] = [None, *sums]
    for chosen in combinations_with_replacement(choices, degree):
        counts = Counter(chosen)
        weight = factorial(degree) / prod(map(factorial, counts.values()))
        weight *= constant ** counts[None]
        if weight:
            terms.append(Term(weight, tuple(f for f in chosen if isinstance(f, Factor))))
    return terms


def _rates(kernel: Radial) -> Iterator[tuple[float, float]]:
    """Yield weights and rates of the Gaussians exp(-rate s) whose mixture is the profile of s.

    The weights are values of the density of the logarithm of the rate, at equal distances.
    """
    smoothness: dict[type, float] = {Laplacian: 0.5, Matern32: 1.5, Matern52: 2.5}
    shape = next((v for kind, v in smoothness.items() if isinstance(kernel, kind)), None)
    log_rates = np.arange(-750 * NODE_DISTANCE, LARGEST_LOG_RATE, NODE_DISTANCE)
    with np.errstate(over="ignore", under="ignore"):
        if shape is not None:
            density = np.exp(-shape * (log_rates + np.log(4)) - np.exp(-log_rates) / 4)
            density /= gamma(shape)
        elif isinstance(kernel, RationalQuadratic):
            density = np.exp(kernel.alpha * log_rates - np.exp(log_rates)) / gamma(kernel.alpha)
        else:
            return
    used = density > LEAST_NODE_WEIGHT * density.max()
    # Their sum is k(x, x), which is 1: the last one has the weight of all faster Gaussians.
    weights = NODE_DISTANCE * density[used]
    weights[-1] += 1 - weights.sum()
    yield from zip(weights.tolist(), np.exp(log_rates[used]).tolist(), strict=True)


def _gaussian(kernel: Kernel, rate: float) -> Gaussian:
    """Return the Gaussian kernel exp(-rate s), where s is the argument of the profile."""
    assert isinstance(kernel, Radial)  # checked by the caller
    factor = (2 * kernel.scale * rate) ** -0.5
    lengthscale = kernel.lengthscale
    return Gaussian(
        tuple(factor * v for v in lengthscale)
        if isinstance(lengthscale, tuple)
        else factor * lengthscale
    )
