"""Rows to study a model with: features as its kernel sees them, and as it was given them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..._sparse import dense
from ...data import RowSource, as_rows
from ...model import KernelPart
from ..inputs.truth import Truth

MOST_ROWS = 10_000
"""Rows of a table that are studied; metrics are of all rows."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a table and their target.

    Attributes
    ----------
    given : Tensor of shape (k, d)
        Features, encoded if the model has an encoding.
    seen : RowSource of shape (k, p)
        The same as the kernel sees them: standardised, mapped.
    y : ndarray of shape (k,)
    """

    given: Float[Tensor, "k d"]
    seen: RowSource
    y: np.ndarray

    @property
    def given_rows(self) -> RowSource:
        """The features that were given, as rows."""
        return as_rows(self.given)

    @classmethod
    def of(cls, truth: Truth, part: KernelPart, index: Tensor) -> Sample:
        """Return the rows with these numbers."""
        features = dense(truth.rows.take(index))
        return cls(features, part.prepared(as_rows(features)), truth.y[index.numpy()])


def draw_sample(n: int, rng: torch.Generator) -> Tensor:
    """Return numbers of up to `MOST_ROWS` of n rows, in random order."""
    return torch.randperm(n, generator=rng)[:MOST_ROWS]


def largest_part(parts: tuple[KernelPart, ...], shares: tuple[float, ...]) -> KernelPart:
    """Return the kernel model of the largest weight."""
    return parts[int(np.argmax(shares))]
