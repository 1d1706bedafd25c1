"""Sampled rows of a table, with plain features and as the kernel maps them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._arrays import Array, Float, RandomStream
from .._sparse import dense
from ..data import RowSource, as_rows
from ..model import KernelPart
from ..scoring.truth import Truth

MOST_ROWS = 10_000
"""Most sampled rows; metrics use all rows."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Sampled rows of a table and their target.

    - `features`: features, encoded if the model has an encoding.
    - `mapped`: of shape (k, p); the same rows as the kernel takes them: standardised and mapped.
    - `y`: of shape (k,).
    """

    features: Float[Array, "k d"]
    mapped: RowSource
    y: np.ndarray

    @property
    def feature_rows(self) -> RowSource:
        """The features as a row source."""
        return as_rows(self.features)

    @classmethod
    def of(cls, truth: Truth, part: KernelPart, index: Array) -> Sample:
        """Return the sample of the rows at given indices."""
        features = dense(truth.rows.take(index))
        return cls(features, part.prepare_rows(as_rows(features)), truth.y[index])


def draw_sample(n: int, rng: RandomStream) -> Array:
    """Draw up to `MOST_ROWS` of n row indices, in random order."""
    return rng.permutation(n)[:MOST_ROWS]


def largest_part(parts: tuple[KernelPart, ...], shares: tuple[float, ...]) -> KernelPart:
    """Return the kernel model with the largest weight in an average."""
    return parts[int(np.argmax(shares))]
