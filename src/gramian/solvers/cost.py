"""Cost of a solver by the sizes of a problem, and of entries that are evaluated once and stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from ..operators import triangle_entries
from ..problems import LinearProblem

BLOCK_BYTES = 1 << 30
"""Default memory for blocks of rows."""


PANEL_ROWS = 1024
"""Rows of a panel in a factorisation on a device."""


@dataclass(frozen=True)
class ProblemSize:
    """Sizes of a problem, available before any computation.

    Attributes
    ----------
    n, d, t, m : int
        Rows, features, targets, centers.
    itemsize : int
        Bytes per number of a row.
    full : bool
        Whether all rows are centers.
    pairs_once : bool
        Whether rows are dense with random access: a product of all rows with all rows then
        evaluates each pair once, if the rows fit into memory.
    dense : bool
        Whether rows are dense.
    targets_here : bool
        Whether each target has a local vector of n numbers, which is False for remote targets.
    """

    n: int
    d: int
    t: int
    m: int
    itemsize: int
    full: bool
    pairs_once: bool = True
    dense: bool = True
    targets_here: bool = True

    @property
    def vector_bytes(self) -> int:
        """Bytes of the vectors of an iterative solver, with m or n numbers per target each."""
        of_rows = 8 * self.n if self.full else self.n * self.targets_here
        return 8 * self.t * (6 * self.m + of_rows)

    @property
    def center_bytes(self) -> int:
        """Bytes of the centers, if they are not rows of the data."""
        return 0 if self.full else self.m * self.d * self.itemsize


LinearType = TypeVar("LinearType", bound=LinearProblem)

FEW_TARGETS = 2


class StoresEntries:
    """Base of solvers that may store the entries of K, because they multiply with it often.

    - `store_bytes`: memory for the entries in the dtype of products: if they fit, they are
      evaluated once, and each product reads them.
    - `stored_features`: least number of features for which storing pays: with one or two targets,
      and with more, for which products with stored entries cost more. Storing then pays after ten
      to twenty products (`full_kept` and `peers` of the benchmarks).
    - `whole_matrix`: whether all entries are stored. False if each product is with all rows at
      once: then the lower triangle suffices.
    """

    store_bytes: int
    stored_features: ClassVar[tuple[int, int]] = (24, 48)
    whole_matrix: ClassVar[bool] = True

    def keeping(self, problem: LinearType) -> LinearType:
        """Return the problem with stored entries if they fit."""
        K = problem.K.keeping(self.store_bytes, whole=self.whole_matrix)
        return problem if K is problem.K else replace(problem, K=K)

    def entry_bytes(self, size: ProblemSize) -> int:
        """Return the bytes of all entries."""
        entries = size.n * size.m if self.whole_matrix else triangle_entries(size.n)
        return entries * size.itemsize

    def stores(self, size: ProblemSize) -> bool:
        """Return whether entries are stored."""
        return self.entry_bytes(size) <= self.store_bytes

    def kept_bytes(self, size: ProblemSize) -> int:
        """Return the bytes of the stored entries, in float64 if memory suffices."""
        # A float64 copy is stored only if both sizes fit, and then it is the larger one.
        return max((b for b in self._sizes(size) if b <= self.store_bytes), default=0)

    def storing(self, size: ProblemSize, available: int) -> Any:
        """Return a solver that stores entries if that pays and `available` bytes suffice.

        Entries of float32 rows are stored in float64 if products require float64 and memory
        suffices.
        """
        fits = [b for b in self._sizes(size) if b <= available]
        least_features = self.stored_features[size.t > FEW_TARGETS]
        if not size.dense or size.d < least_features or not fits:
            return self
        changed: Any = self
        return replace(changed, store_bytes=max(self.store_bytes, *fits))

    def _sizes(self, size: ProblemSize) -> tuple[int, int]:
        """Return the bytes of entries in the dtype of the rows, and in float64."""
        narrow = self.entry_bytes(size)
        return narrow, 8 * narrow // size.itemsize
