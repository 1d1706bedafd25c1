"""States from which EigenPro resumes exactly, and its batches between two projections."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..._arrays import Array, Float
from ...operators import DenseBlock, KernelOperator
from ..loop.minibatches import BatchErrors, MiniBatchState
from ..loop.state import StopReason

STALLED_EPOCHS, STALLED_RATIO = 10, 0.999
"""Epochs, and ratio to the first batch error below which the error must be after them."""


@dataclass(kw_only=True)
class EigenProState(MiniBatchState):
    """State of EigenPro; its settings are subsample, rank, tail, top, beta, batch and step.

    Attributes
    ----------
    least : float
        The least mean squared batch error after the second state.
    epochs : float
        Epochs since the first state.
    """

    least: float = math.inf
    epochs: float = 0.0

    @property
    def verdict(self) -> StopReason | None:
        late = self.epochs >= STALLED_EPOCHS
        stalled = late and self.first > 0 and self.least > STALLED_RATIO * self.first
        return super().verdict or ("no_progress" if stalled else None)

    def progress(self, errors: BatchErrors, epochs: float) -> dict[str, Any]:
        """Return the fields of the next state, from the batch errors since the last state."""
        least = math.inf if self.first < 0 else min(self.least, errors.mse)
        after = {"least": least, "epochs": self.epochs + epochs}
        return super().progress(errors, epochs) | after


@dataclass(kw_only=True)
class EigenPro3State(EigenProState):
    """State of EigenPro 3, with the mean of the iterates as `coef`.

    Attributes
    ----------
    last : Array of shape (p, t)
        The iterate itself.
    count : int
        Number of iterates in the mean.
    """

    last: Float[Array, "p t"]
    count: int = 0


@dataclass(frozen=True)
class Step:
    """A batch of a segment: its rows, and their indices and targets.

    - `rows`: position of its rows in the segment.
    - `index`, (m,): indices of the rows of the batch, with targets `y`, (m, t).
    """

    rows: slice
    index: Array
    y: Array


@dataclass(frozen=True)
class Segment:
    """Batches without a projection between them, with kernel entries of their rows x.

    - `K_bZ`, (b, p), and `K_bs_U`, (b, q): K(x, Z) and K(x, X_s) U.
    - `K_bb`, (b, b): kernel of the rows with themselves; None if there is only one batch.
    - `number`: number of the last batch among all batches.
    - `due`: whether a projection follows.
    """

    x: Array
    steps: list[Step]
    K_bZ: KernelOperator | DenseBlock
    K_bs_U: DenseBlock | Product
    K_bb: KernelOperator | DenseBlock | None
    number: int
    due: bool


@dataclass(frozen=True)
class Product:
    """Product of two matrices that is never formed, only multiplied with vectors.

    Attributes
    ----------
    left : KernelOperator or DenseBlock of shape (b, s), or Array
    right : Array of shape (s, q), or KernelOperator or DenseBlock
    """

    left: Any
    right: Any

    @property
    def T(self) -> Product:
        """The transpose."""
        return Product(self.right.T, self.left.T)

    def __getitem__(self, rows: slice) -> Product:
        """Return some rows."""
        return Product(self.left[rows], self.right)

    def __matmul__(self, v: Array) -> Array:
        """Return the product with a matrix; the right factor is multiplied first."""
        product: Array = self.left @ (self.right @ v)
        return product
