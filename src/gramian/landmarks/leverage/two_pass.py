"""Two-pass sampling: uniform rows score all rows, which are then sampled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..._arrays import RandomStream
from ..._messages.checks import as_count
from ...operators import KernelOperator, largest_diagonal
from ..base import selectors
from . import sampling as _sampling
from .candidates import Candidates
from .scores import Dictionary, Scorer, spectrum
from .selecting import Level, LeverageSelector, draw_exactly, draw_independently


@selectors.register("two_pass")
@dataclass(frozen=True, kw_only=True)
class TwoPass(LeverageSelector):
    r"""Two-pass sampling [1]_: score all n rows by a uniform dictionary, then sample.

    Use it for comparison, or if the penalty is large.

    Parameters
    ----------
    m : int, optional
        Number of landmarks.
    penalty : float, optional
        Penalty of the leverage scores, which determines the number of landmarks.
    oversampling : float, default=3
        Landmarks over the effective dimension.
    first : int, optional
        Rows of the uniform dictionary. Default: :math:`\kappa^2 / \lambda`, or m if m is set.

    Notes
    -----
    Cost: :math:`n / \lambda` kernel evaluations and :math:`n / \lambda^2` operations, memory
    :math:`8 / \lambda^2` bytes: feasible only for large penalties, unless `first` is set. Four
    passes over a sequential source.

    References
    ----------
    .. [1] El Alaoui & Mahoney, *Fast randomized kernel ridge regression with statistical
       guarantees*, NeurIPS 2015.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import nystrom_error
    >>> from gramian.data import sample_path
    >>> from gramian.landmarks import TwoPass
    >>> places = pd.read_parquet(
    ...     sample_path("california_housing"), columns=["latitude", "longitude"]
    ... )
    >>> places = places.sample(1000, random_state=0)
    >>> chosen = TwoPass(m=60, first=100)
    >>> error = nystrom_error("gaussian", places, chosen, lengthscale=1.0, random_state=0)
    >>> print(f"norm of K - K^: {error:.1f}")
    norm of K - K^: 10.4
    """

    first: int | None = None
    takes_remote: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first is not None:
            as_count(self.first, "first")

    def sample(self, K: KernelOperator, penalty: float, *, rng: RandomStream) -> Level:
        first = self.first or math.ceil(largest_diagonal(K) / penalty)
        uniform, rows = self._uniform(K, first, rng), Candidates.all(K)
        scores = rows.scores(Scorer.build(K, uniform, penalty))
        dictionary = draw_independently(rows, scores, self.oversampling, rng)
        d = rows.effective_dimension(scores)
        return Level(penalty, dictionary, d, rows.coverage(dictionary, K.shape[0]))

    def sample_of_size(self, K: KernelOperator, m: int, *, rng: RandomStream) -> Level:
        uniform, rows = self._uniform(K, self.first or m, rng), Candidates.all(K)
        least_penalty = 1e-13 * largest_diagonal(K)
        penalty = spectrum(K, uniform).penalty_for(m / self.oversampling, least_penalty)
        scores = rows.scores(Scorer.build(K, uniform, penalty))
        dictionary = draw_exactly(rows, scores, m, rng)
        d = rows.effective_dimension(scores)
        return Level(penalty, dictionary, d, rows.coverage(dictionary, K.shape[0]))

    def _uniform(self, K: KernelOperator, first: int, rng: RandomStream) -> Dictionary:
        """Draw rows uniformly, among all rows, so that equal rows may be drawn several times."""
        n = K.shape[0]
        index = _sampling.draw_distinct(n, min(first, n), rng)
        return Dictionary.uniform(index, len(index) / n)
