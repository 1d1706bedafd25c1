"""Parameters of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ..._arrays import Array
from ...callbacks import Checkpoint
from ...data import RowSource
from ...engines import Engine
from ...search import Budget, Space, TrialCallback

LossOf = Callable[[Array, Array, Array | None], float]


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Parameters of a search: budget, space, score, splits and limits.

    Attributes
    ----------
    cv : None, int, splitter or pairs
        None: five folds of fewer than 1,500 rows, else a fifth of the rows, at most 2,000.
    standardize : bool
        Whether features that are not encoded are scaled to mean 0 and deviation 1.
    score : callable, optional
        Loss that compares fits, a function of predictions, true targets and weights of held-out
        rows; the mean squared error if None.
    memory_limit : int, optional
        Approximate limit of the memory, without the given data.
    watchers : sequence of callables
        Called with each `Trial`; one that returns True ends the search.
    checkpoint : Checkpoint, optional
        Names the file of the journal that keeps the steps of the search.
    blend : str, optional
        Package whose trees are averaged with the result; None for no trees.
    """

    budget: Budget = field(default_factory=Budget)
    space: Space = field(default_factory=Space)
    cv: object = None
    engine: str | Engine = "auto"
    standardize: bool = True
    score: LossOf | None = None
    memory_limit: int | None = None
    watchers: Sequence[TrialCallback] = ()
    checkpoint: Checkpoint | None = None
    blend: str | None = None

    def of(self, rows: RowSource) -> SearchSettings:
        """Return the settings of a search on given rows, without maps for sparse rows."""
        return replace(self, space=self.space.of_sparse()) if rows.sparse else self
