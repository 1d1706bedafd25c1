"""States from which EigenPro resumes exactly, and its batches between two projections."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ..._arrays import Array, Float
from ...operators import DenseBlock, KernelOperator
from ..loop.minibatches import BatchErrors
from ..loop.state import State, StopReason

STALLED_EPOCHS, STALLED_RATIO = 10, 0.999
"""Epochs, and ratio to the first batch error below which the error must be after them."""

DIVERGED_ERROR = 100.0
"""Batch error of a diverged run, relative to the targets and to the first error."""


@dataclass(kw_only=True)
class EigenProState(State):
    """State of EigenPro, enough to resume exactly.

    Attributes
    ----------
    seed : int
        Seeds the draw of each batch, together with the number of the iteration.
    settings : dict of str to float
        Chosen settings: subsample, rank, tail, top, beta, batch, step.
    first, least : float
        Mean squared batch error before the second state, -1 at first, and the least error since.
    epochs : float
        Epochs since the first state.
    lost : bool
        Whether the error of the last batches is far above their targets.
    """

    seed: int = 0
    settings: dict[str, int | float] = field(default_factory=dict)
    first: float = -1.0
    least: float = math.inf
    epochs: float = 0.0
    lost: bool = False

    @property
    def verdict(self) -> StopReason | None:
        if self.lost:
            return "diverged"
        late = self.epochs >= STALLED_EPOCHS
        stalled = late and self.first > 0 and self.least > STALLED_RATIO * self.first
        return "no_progress" if stalled else None

    def progress(self, errors: BatchErrors, epochs: float) -> dict[str, Any]:
        """Return the fields of the next state, from the batch errors since the last state."""
        if self.first < 0:
            return {"first": errors.mse, "least": math.inf, "epochs": epochs}
        # The negated comparison is also true for NaN.
        grown = not errors.mse <= DIVERGED_ERROR**2 * self.first
        return {
            "first": self.first,
            "least": min(self.least, errors.mse),
            "epochs": self.epochs + epochs,
            "lost": grown and not errors.relative <= DIVERGED_ERROR,
        }


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

    Attributes
    ----------
    rows : slice
        Position of its rows in the segment.
    index : Array of shape (m,)
        Indices of the rows of the batch.
    y : Array of shape (m, t)
    """

    rows: slice
    index: Array
    y: Array


@dataclass(frozen=True)
class Segment:
    """Batches without a projection between them, with kernel entries of their rows x.

    Attributes
    ----------
    x : Array of shape (b, d)
    K_bZ : KernelOperator or DenseBlock of shape (b, p)
    K_bs_U : DenseBlock or Product of shape (b, q)
        K(x, X_s) U.
    K_bb : KernelOperator or DenseBlock of shape (b, b), or None
        Kernel of the rows with themselves; None if there is only one batch.
    number : int
        Number of the last batch among all batches.
    due : bool
        Whether a projection follows.
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
