"""Recursive RLS-Nystrom: leverage scores of all rows by a sample of half the rows, recursively."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, RandomStream
from ...operators import KernelOperator
from ..base import SizeOrPenalty, selectors
from .candidates import Candidates, row_keys
from .scores import Dictionary, Scorer, gram, own_scores
from .selecting import LEAST_LEVEL_ROWS, Level, LeverageSelector, draw_exactly, draw_independently

SCORE_OVERESTIMATE = 1.5
"""The 3/2 of algorithm 2, which makes every estimate an upper bound with high probability."""

LEAST_PENALTY = 1e-5
"""Least penalty of a level, relative to the mean k(x, x), if the dictionary has no tail."""


@selectors.register("recursive_rls")
@dataclass(frozen=True, kw_only=True)
class RecursiveRLS(LeverageSelector):
    r"""Recursive RLS-Nystrom [1]_: algorithm 2 with a penalty, the fixed-budget version with `m`.

    The rows are in a random order, and a short prefix is its own dictionary. The dictionary of one
    prefix scores the rows of the prefix twice as long, which are sampled for the next dictionary.
    With a penalty, a row is kept with probability min(1, oversampling · score), where the score is
    3/2 of eq. (3) of `Scorer`. With `m`, each level has its own penalty, the tail of the
    dictionary's spectrum beyond :math:`k = m / (4 \log m)` values divided by k, and keeps about m
    rows; the last level draws m.

    Use it, as the default does, if small groups of rows matter: it is never much worse than
    uniform landmarks.

    Parameters
    ----------
    m : int, optional
        Number of landmarks.
    penalty : float, optional
        Penalty of the leverage scores, which determines the number of landmarks.
    oversampling : float or None, default=3
        Used with a penalty only. None: the value of the theorem, :math:`16 \log(\sum_i \ell_i /
        \delta)`, which selects all rows well beyond n = 10⁴.
    accelerated : bool, default=False
        Used with `m` only: :math:`\sqrt{(n m + m^3) / (4 n)}` rows in the inner levels (appendix
        G), so that the selection costs about as much as using the landmarks.
    delta : float, default=0.1
        Probability of failure; the recursion ends at :math:`192 \log(1/\delta)` rows.

    Notes
    -----
    Cost: with a dictionary of s rows, about 2 n s kernel evaluations and :math:`n s^2`
    operations; accelerated :math:`n m`. Memory :math:`8 s^2` bytes and a block of rows. A
    sequential source is read twice per level, :math:`\log_2(n / s)` levels, and a further time to
    detect equal rows.

    Departures: the base of the fixed-budget version is its smallest prefix (m/2 to m rows); inner
    levels have at least about 64 rows. The authors draw the last m rows one after the other without
    replacement; systematic sampling has exact inclusion probabilities, and so correct weights.

    References
    ----------
    .. [1] Musco & Musco, *Recursive sampling for the Nystrom method*, NeurIPS 2017; the version
       with a fixed budget: section 5 and the authors' code.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import nystrom_error
    >>> from gramian.data import sample_path
    >>> from gramian.landmarks import RecursiveRLS, Uniform
    >>> places = pd.read_parquet(
    ...     sample_path("california_housing"), columns=["latitude", "longitude"]
    ... )
    >>> places = places.sample(1000, random_state=0)
    >>> for chosen in (Uniform(60), RecursiveRLS(m=60)):
    ...     error = nystrom_error("gaussian", places, chosen, lengthscale=1.0, random_state=0)
    ...     print(f"norm of K - K^: {error:.1f}")
    norm of K - K^: 8.7
    norm of K - K^: 2.2
    """

    oversampling: int | float | None = 3.0  # type: ignore[assignment]
    accelerated: bool = False
    delta: float = 0.1
    takes_remote: ClassVar[bool] = True

    def __post_init__(self) -> None:
        # The base would reject None, which means the value of the theorem here.
        if self.oversampling is None:
            SizeOrPenalty.__post_init__(self)
        else:
            super().__post_init__()
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must be between 0 and 1, not {self.delta!r}")

    def sample(self, K: KernelOperator, penalty: float, *, rng: RandomStream) -> Level:
        n = K.shape[0]
        order = rng.permutation(n)
        base = 192 * math.log(1 / self.delta)
        # The recursion of algorithm 2, from its innermost call outwards: prefixes of one random
        # order are the random halves, each contained in the next.
        sizes = _halvings(n, base)
        # The keys of all rows are computed in one pass, and serve the prefixes of all levels.
        keys = row_keys(K.rows)
        rows = _prefix(keys, order, sizes[0])
        dictionary, d = rows.to_dictionary(), 0.0
        # Without a recursion no level would score the rows.
        if sizes == [n]:
            scores = own_scores(K, K.rows.take(rows.index), dictionary.copies, penalty)
            d = rows.effective_dimension(scores)
        for level, size in enumerate(sizes[1:]):
            rows = _prefix(keys, order, size)
            # Delta falls to a third with each recursive call, and the outermost call comes last.
            delta = self.delta / 3 ** (len(sizes) - 2 - level)
            scores = rows.scores(Scorer.build(K, dictionary, penalty))
            d = rows.effective_dimension(scores)
            # Scores from a sampled dictionary may be too small: the theorem needs upper bounds.
            scores = (SCORE_OVERESTIMATE * scores).clip(max=1.0)
            total = rows.effective_dimension(scores)
            factor = self.oversampling or 16 * math.log(max(total / delta, math.e))
            dictionary = draw_independently(rows, scores, factor, rng)
        return Level(penalty, dictionary, d, rows.coverage(dictionary, n))

    def evaluations(self, n: int, m: int) -> int:
        return 2 * n * self._inner(n, m)

    def operations(self, n: int, d: int, m: int) -> float:
        # The last dictionary scores all rows; each level computes eigenvalues of its dictionary.
        return float(n) * self._inner(n, m) ** 2 + 20.0 * self._inner(n, m) ** 3

    def _inner(self, n: int, m: int) -> int:
        """Return the number of rows of intermediate dictionaries for m landmarks."""
        # Scoring all rows by a dictionary of this size takes n inner² operations: no more than a
        # quarter of the later fit's n m entries and m³ operations.
        inner = math.ceil(math.sqrt((n * m + m**3) / (4 * n))) if self.accelerated else m
        return max(inner, LEAST_LEVEL_ROWS)

    def sample_of_size(self, K: KernelOperator, m: int, *, rng: RandomStream) -> Level:
        n = K.shape[0]
        inner = self._inner(n, m)
        order = rng.permutation(n)
        sizes = _halvings(n, inner)
        keys = row_keys(K.rows)
        dictionary = _prefix(keys, order, sizes[0]).to_dictionary()
        for size in sizes[1:-1]:
            rows = _prefix(keys, order, size)
            scorer = Scorer.build(K, dictionary, _tail_penalty(K, dictionary, inner))
            dictionary = draw_independently(rows, rows.scores(scorer), _log(inner), rng)
        # The last level has its own dictionary of exactly m rows; smaller dictionaries before it
        # only have to score well enough.
        penalty = _tail_penalty(K, dictionary, min(inner, m))
        rows = _prefix(keys, order, n)
        scores = rows.scores(Scorer.build(K, dictionary, penalty))
        dictionary = draw_exactly(rows, scores, m, rng)
        d = rows.effective_dimension(scores)
        return Level(penalty, dictionary, d, rows.coverage(dictionary, n))


def _halvings(n: int, base: int | float) -> list[int]:
    """Return the sizes ceil(n / 2^l) of the recursion, from the first of at most `base` up to n."""
    sizes = [n]
    while sizes[-1] > max(base, 1):
        sizes.append(math.ceil(sizes[-1] / 2))
    return sizes[::-1]


def _prefix(keys: Array, order: Array, size: int) -> Candidates:
    """Return the distinct rows among the first `size` rows of a random order."""
    # Increasing row numbers are read in order from a file.
    index = xp.sort(order[:size])
    return Candidates.among(keys[index], index)


def _log(m: int) -> float:
    return max(1.0, math.log(m))


def _tail_penalty(K: KernelOperator, dictionary: Dictionary, m: int) -> float:
    """Return the penalty of a level: the sum of the dictionary's eigenvalues beyond k, over k n."""
    A = gram(K, K.rows.take(dictionary.index))
    root = xp.rsqrt(xp.cast_like(dictionary.copies, A))
    values = la.eigenvalues(root[:, None] * A * root)
    k = math.ceil(m / (4 * _log(m)))
    least_penalty = LEAST_PENALTY * (
        float(xp.diagonal(A).mean()) or 1.0
    )  # 1 if the kernel vanishes
    tail = float(values[:-k].sum()) / k if len(values) > k else 0.0
    return max(tail, least_penalty) / K.shape[0]
