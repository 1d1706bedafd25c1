"""Lengthscale of a kernel: one number, one per feature, or the median of the distances."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.errors import SETTING_FORM, ParameterError
from .._sparse import distances, is_sparse, scale_columns
from .base import Kernel

Lengthscale = float | tuple[float, ...] | str
"""A text is "median", or a multiple of it such as "2 median"."""


@dataclass(frozen=True)
class LengthscaleKernel(Kernel):
    """Base of kernels that divide rows by a lengthscale.

    Parameters
    ----------
    lengthscale : float, sequence of d floats, or str
        In the units of the features. ``"median"``, and a multiple of it such as ``"2 median"``, are
        replaced by `resolve`.
    """

    lengthscale: Any = 1.0  # also a whole number, a list or an array; converted to a Lengthscale

    tuned: ClassVar[tuple[str, ...]] = ("lengthscale",)
    norm: ClassVar[float] = 2.0
    """The p of the distance whose median is the median heuristic."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", checked_lengthscale(self.lengthscale))

    @property
    def dim(self) -> int | None:
        return len(self.lengthscale) if isinstance(self.lengthscale, tuple) else None

    def resolve(self, sample: Float[Array, "s d"]) -> Kernel:
        factor = self.medians
        if factor is None:
            return self
        if self.scale_free:
            return replace(self, lengthscale=factor)
        # The square of a difference in float32 keeps too few digits for rows that are far from
        # zero.
        sample = sample if is_sparse(sample) else xp.to_float64(sample)
        return replace(self, lengthscale=factor * self.median(sample))

    @property
    def medians(self) -> float | None:
        """The lengthscale as a multiple of the median distance; None if it is given in numbers."""
        return medians(self.lengthscale)

    def median(self, sample: Float[Array, "s d"]) -> float:
        """Return the median distance between the distinct rows of `sample`.

        Equal rows count once, so that a repeated row equals a row with a weight. If all rows are
        equal, it is 1.
        """
        if is_sparse(sample):
            return self._median_of_sparse(sample)
        distinct = _distinct(sample)
        if len(distinct) < 2:
            return 1.0
        # Squares of large or small numbers leave the range of float64. A power of two as the factor
        # rounds nothing.
        power = min(max(math.frexp(float(xp.abs(distinct).max()))[1], -1000), 1000)
        return float(xp.median(self.distances(distinct * 2.0**-power))) * 2.0**power

    def _median_of_sparse(self, sample: Float[Array, "s d"]) -> float:
        self.check_layout(sample)
        pair_distances = distances(sample)
        return float(xp.median(pair_distances)) if len(pair_distances) else 1.0

    def distances(self, sample: Float[Array, "s d"]) -> Float[Array, " p"]:
        """Return the distances of all pairs of rows, whose median may be the lengthscale."""
        return xp.pdist(sample, p=self.norm)

    def scaled(self, points: Array) -> Array:
        """Return ``points / lengthscale``; raise ValueError if the numbers of features differ.

        With a lengthscale of 1 the points themselves are returned, not a copy.
        """
        if self.medians is not None:
            raise no_value_yet(self.lengthscale)
        if self.dim not in (None, points.shape[1]):
            raise ValueError(
                f"the kernel has {self.dim} lengthscales but the rows have {points.shape[1]} "
                "features; give one number, or one per feature"
            )
        if self.lengthscale == 1.0:
            return points
        return scale_columns(points, self._inverse(points))

    def coordinates(self, points: Float[Array, "n d"]) -> Float[Array, "n d"]:
        return self.scaled(points)

    def _inverse(self, like: Array) -> Array:
        """Return one over the lengthscale, in the dtype and on the device of `like`."""
        return 1 / xp.array(self.lengthscale, dtype=like.dtype, like=like)

    def diag(self, x: Array) -> Float[Array, " b"]:
        return xp.ones(x.shape[0], x.dtype, like=x)


def _distinct(sample: Float[Array, "s d"]) -> Float[Array, "r d"]:
    """Return the distinct rows, in any order; only rows with equal first features are compared."""
    if len(xp.unique(sample[:, 0])) == len(sample):
        return sample
    # Sorting whole rows is slow, so that it is left to samples with ties in the first feature.
    distinct: Array = xp.unique(sample, axis=0)
    return distinct


def medians(lengthscale: object) -> float | None:
    """Return the factor in a text such as "2 median"; None for other values.

    >>> medians("median"), medians("0.5 median"), medians(0.5)
    (1.0, 0.5, None)
    """
    if not isinstance(lengthscale, str):
        return None
    match = re.fullmatch(r"(?:([0-9]*\.?[0-9]+(?:e-?[0-9]+)?) )?median", lengthscale)
    return None if match is None else float(match[1] or 1)


def no_value_yet(lengthscale: object) -> ParameterError:
    """Return the error about a lengthscale "median" that no sample of rows has replaced yet."""
    problem = "has no value yet"
    remedy = "call kernel.resolve(sample) with about 1,000 random rows, or give a number"
    return ParameterError("lengthscale", lengthscale, problem, remedy, SETTING_FORM)


@runtime_checkable
class HasLengthscale(Protocol):
    """A kernel with a parameter ``lengthscale``."""

    lengthscale: Any


def lengthscale_of(kernel: Kernel) -> Lengthscale:
    """Return the lengthscale of a kernel; TypeError if it has none."""
    if not isinstance(kernel, HasLengthscale):
        raise TypeError(f"{kernel!r} has no lengthscale")
    lengthscale: Lengthscale = kernel.lengthscale
    return lengthscale


def checked_lengthscale(lengthscale: object) -> Lengthscale:
    """Convert a lengthscale to the form that kernels store; raise ValueError if it is invalid."""
    factor = medians(lengthscale)
    if isinstance(lengthscale, str) and factor is not None and 0 < factor < math.inf:
        return lengthscale
    # Arrays without axes and NumPy scalars are numbers, although the former are no `Real`.
    if isinstance(lengthscale, float | numbers.Real) or getattr(lengthscale, "ndim", None) == 0:
        values = [float(cast("float", lengthscale))]
        result: Lengthscale = values[0]
    elif isinstance(lengthscale, Iterable) and not isinstance(lengthscale, str):
        values = [float(value) for value in lengthscale]
        result = tuple(values)
    else:
        problem = (
            "is neither a number, nor one number per feature, nor 'median', nor a multiple of it, "
            "as '2 median'"
        )
        raise ParameterError("lengthscale", lengthscale, problem, form=SETTING_FORM)
    if not values or not all(math.isfinite(value) and value > 0 for value in values):
        raise ParameterError("lengthscale", lengthscale, "positive and finite")
    return result
