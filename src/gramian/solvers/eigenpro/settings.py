"""Parameters of EigenPro 1, 2 and 3, and the costs that they determine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..._arrays import RandomStream
from ..._messages.checks import as_count, as_positive, check_count_or_auto
from ...lowrank import block_columns
from ...operators import KernelOperator
from ...preconditioners import EigenProFactor
from ...preconditioners.samples import (
    BYTES_PER_PAIR,
    LARGE_SAMPLE,
    MANY_ROWS,
    SMALL_SAMPLE,
    uses_subspace,
)
from ..cost import ProblemSize
from ..loop.minibatches import LARGEST_BATCH, LEAST_BATCH


@dataclass(frozen=True)
class EigenProSettings:
    """Parameters shared by EigenPro 1, 2 and 3; the solvers document them."""

    subsample: Any = "auto"  # int or "auto", checked below, as the next three
    rank: Any = "auto"
    batch: Any = "auto"
    exponent: float | int = 0.95
    step_scale: float | int = 1.0
    states_per_epoch: int = 1

    def __post_init__(self) -> None:
        check_count_or_auto(self.subsample, "subsample")
        check_count_or_auto(self.batch, "batch")
        # Rank 0 is plain stochastic gradient descent, although counts are positive elsewhere.
        if not (isinstance(self.rank, int) and self.rank == 0):
            check_count_or_auto(self.rank, "rank")
        as_positive(self.step_scale, "step_scale")
        as_count(self.states_per_epoch, "states_per_epoch")
        if not 0 < self.exponent <= 1:
            raise ValueError(f"exponent must be above 0 and at most 1, not {self.exponent!r}")

    def subsample_rows(self, n: int) -> int:
        """Return the rows of the eigenvector subsample, if memory suffices."""
        automatic = SMALL_SAMPLE if n < MANY_ROWS else LARGE_SAMPLE
        return min(n, automatic if self.subsample == "auto" else int(self.subsample))

    @property
    def automatic_sample(self) -> bool:
        """Whether the memory for blocks of rows limits the subsample."""
        return bool(self.subsample == "auto")

    def sample_bytes(self, n: int, available: int | None = None) -> int:
        """Return the memory for the subsample matrix and its eigenvectors.

        A subsample set by the user counts in full. An automatic subsample uses at most half of
        `available`.
        """
        need = BYTES_PER_PAIR * self.subsample_rows(n) ** 2
        if available is None:
            # An automatic sample shrinks to the memory that is left, so that it has no fixed need.
            return 0 if self.automatic_sample else need
        return min(need, available // 2) if self.automatic_sample else 0

    def eigenvector_operations(self, size: ProblemSize, q: int) -> float:
        """Return the operations of the eigenvectors: 4 s³, as `syevr` runs at a third of the speed.

        Operations in float32 count half. Subspace iteration for q vectors takes about 12 s²
        operations per column of its block.
        """
        s = self.subsample_rows(size.n)
        coarse = self.rank == "auto" and size.itemsize == 4
        if coarse and uses_subspace(s, q):
            return 6.0 * s * s * block_columns(q)
        return (2 if coarse else 4) * float(s) ** 3

    def steps(self, size: ProblemSize, iterations: int) -> int:
        """Return the number of batches in some epochs, for the least batch size if automatic."""
        batch = LEAST_BATCH if self.batch == "auto" else int(self.batch)
        return iterations * math.ceil(size.n / min(batch, size.n))

    def factor(self, K: KernelOperator, rng: RandomStream, **data: Any) -> EigenProFactor:
        """Build the preconditioner for the rows of an operator."""
        return EigenProFactor.build(
            K,
            subsample=None if self.subsample == "auto" else self.subsample,
            rank=None if self.rank == "auto" else self.rank,
            exponent=self.exponent,
            rng=rng,
            **data,
        )

    def batch_rows(self, P: EigenProFactor, n: int, decay: float = 0.0) -> int:
        """Return the batch size m, by default a quarter of the critical batch."""
        if self.batch != "auto":
            return min(int(self.batch), n)
        return min(max(P.batch(decay), LEAST_BATCH), LARGEST_BATCH, n)
