"""FeatureMap: from rows to features whose inner products are nearly the kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la
from ..data import RowSource
from ..kernels import Kernel

DEFAULT_BLOCK_BYTES = 1 << 28
"""Memory for blocks if nobody says otherwise."""


NEGATIVE_SHARE = 1e-4
"""A negative eigenvalue relative to the largest one that is no rounding, of float32 entries."""


class FeatureMap(ABC):
    """A function of a row, f(x) of s numbers, with f(x)'f(z) ≈ k(x, z).

    Attributes
    ----------
    kernel : Kernel
        What is approximated.
    projects : bool
        True if the features are a projection, so that K - F F' is positive semidefinite.
    """

    kernel: Kernel
    projects: ClassVar[bool] = False

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of features s."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number d of what a row consists of."""

    @abstractmethod
    def apply(self, block: Float[Tensor, "b d"]) -> Float[Tensor, "b s"]:
        """Return the features of a few rows, dense or sparse, in their dtype."""

    @abstractmethod
    def block_size(self, rows: RowSource, memory_bytes: int) -> int:
        """Return of how many rows at once the features can be computed in so many bytes."""

    def features(
        self, rows: RowSource, *, memory_bytes: int = DEFAULT_BLOCK_BYTES
    ) -> Float[Tensor, "n {self.width}"]:
        """Return the features of all rows, in their dtype.

        Parameters
        ----------
        rows : RowSource of shape (n, d)
        memory_bytes : int
            For blocks of rows; the result is the caller's.

        Returns
        -------
        Tensor of shape (n, s)
        """
        return rows.map(self.apply, size=self.block_size(rows, memory_bytes))

    def strips(
        self, rows: RowSource, *, memory_bytes: int = DEFAULT_BLOCK_BYTES
    ) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Walk over the rows in order: which they are, the rows (b, d), their features (b, s)."""
        for part, block in rows.blocks(self.block_size(rows, memory_bytes)):
            yield part, block, self.apply(block)


def largest_first(
    A: Float[Tensor, "m m"], cut: float, most: int | None = None
) -> tuple[Float[Tensor, " s"], Float[Tensor, "m s"]]:
    """Return the eigenvalues above `cut` of a symmetric matrix, at most so many, and eigenvectors.

    At least one, even if none is above. The largest entry of each eigenvector is positive, so
    that the same matrix gives the same signs. ValueError if it is indefinite.

    Cost: about 9 m³ operations, 24 m² bytes.
    """
    values, vectors = la.eigenpairs(A)
    if values[0] < -NEGATIVE_SHARE * values[-1]:
        raise ValueError(
            "the matrix of the kernel is not positive semidefinite: its eigenvalues are from "
            f"{float(values[0]):.3g} to {float(values[-1]):.3g}"
        )
    count = max(int((values > cut).sum()), 1)
    count = min(count, most or count)
    values, vectors = values.flip(0)[:count], vectors.flip(1)[:, :count]
    largest = vectors.gather(0, vectors.abs().argmax(dim=0, keepdim=True))
    return values, vectors * torch.where(largest < 0, -1.0, 1.0)
