"""SQUEAK: leverage score sampling in one pass over the rows, chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import Array, Int, RandomStream
from ..._messages.checks import as_count
from ...operators import KernelOperator, largest_diagonal
from ..base import selectors
from . import sampling as _sampling
from .candidates import Candidates, group_keys, keys_of
from .scores import Dictionary, own_scores, spectrum
from .selecting import Level, LeverageSelector


@selectors.register("squeak")
@dataclass(frozen=True, kw_only=True)
class Squeak(LeverageSelector):
    r"""SQUEAK [1]_: merge each chunk of rows into the dictionary, then shrink it.

    A new row enters with probability p = 1. The union is scored by itself, eq. (3) of `Scorer`;
    :math:`p_i` becomes :math:`\min(p_i, q \tilde\ell_i)`, and a row is kept with probability new p
    over old p. So :math:`p_i`, the weight in A, is the total probability. A row that equals a row
    of the dictionary adds one to its 1 / p.

    Use it if rows can be read only once.

    Parameters
    ----------
    m : int, optional
        Number of landmarks. The penalty is chosen for 1.1 m + 3 sqrt(m) landmarks, from the
        spectrum of a uniform sample, and the last dictionary is thinned to m. If the dictionary has
        fewer rows, another pass follows with a quarter of the penalty; if the rank of K is below m,
        with a least probability for each row.
    penalty : float, optional
        Penalty of the leverage scores, which determines the number of landmarks.
    oversampling : float, default=3
        q: landmarks per effective dimension.
    chunk : int, default=500
        Rows merged at once.

    Notes
    -----
    Cost, with s rows in the dictionary and chunks of c: :math:`n (s + c)^2 / c` kernel
    evaluations and :math:`n (s + c)^3 / c` operations, memory :math:`8 (s + c)^2` bytes, one pass
    over the rows, in their order; with `m` two more, without kernel evaluations, and 8 n bytes.

    References
    ----------
    .. [1] Calandriello, Lazaric, Valko, *Distributed adaptive sampling for kernel matrix
       approximation*, AISTATS 2017.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import nystrom_error
    >>> from gramian.data import sample_path
    >>> from gramian.landmarks import Squeak
    >>> places = pd.read_parquet(
    ...     sample_path("california_housing"), columns=["latitude", "longitude"]
    ... )
    >>> places = places.sample(1000, random_state=0)
    >>> for penalty in (1e-2, 1e-3):
    ...     chosen = Squeak(penalty=penalty)
    ...     error = nystrom_error("gaussian", places, chosen, lengthscale=1.0, random_state=0)
    ...     print(f"norm of K - K^: {error:.1f}")
    norm of K - K^: 4.5
    norm of K - K^: 0.1
    """

    chunk: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count(self.chunk, "chunk")

    def sample(self, K: KernelOperator, penalty: float, *, rng: RandomStream) -> Level:
        return self._pass(K, penalty, 0.0, rng)

    def _pass(self, K: KernelOperator, penalty: float, least: float, rng: RandomStream) -> Level:
        """Return the level after one pass, in which each row has at least a probability `least`."""
        J, keys, d = Dictionary.empty(), xp.empty(0, xp.int64), 0.0
        points: Array | None = None
        for part, block in K.rows.blocks(self.chunk):
            new = Dictionary.uniform(xp.arange(part.start, part.stop))
            keys = xp.concat([keys, keys_of(block)])
            J, first = _union(J, new, keys)
            keys, points = keys[first], _stack(K, points, block, J, first)
            scores = own_scores(K, points, J.copies, penalty)
            # A row of the dictionary represents 1 / copies rows, so that their scores sum to the
            # effective dimension of all rows so far.
            d = float((scores / J.copies).sum())
            # Probabilities only fall, because a row that was dropped cannot return.
            p = xp.minimum(J.copies, (self.oversampling * scores).clip(min=least))
            positions = _sampling.bernoulli(p / J.copies, rng)
            if len(positions) == 0:
                # An empty dictionary could not score the next chunk.
                positions = p.argmax().reshape(1)
            J = Dictionary(J.index[positions], p[positions].clip(min=1e-300))
            keys = keys[positions]
            # Sparse rows are read again by number: to stack them costs more than to read them.
            points = None if K.rows.sparse else points[positions]
        return Level(penalty, J, d, len(J) / K.shape[0])

    def sample_of_size(self, K: KernelOperator, m: int, *, rng: RandomStream) -> Level:
        n, rows = K.shape[0], Candidates.all(K)
        if len(rows) <= m:
            return Level(0.0, rows.to_dictionary(), float(len(rows)), 1.0)
        index = _sampling.draw_distinct(n, min(n, max(2 * m, 500)), rng)
        estimate = spectrum(K, Dictionary.uniform(index, len(index) / n))
        least_penalty = 1e-13 * largest_diagonal(K)
        # The margin makes a run with too few rows rare, which would bias the selection.
        target = 1.1 * m + 3 * m**0.5
        penalty = estimate.penalty_for(target / self.oversampling, least_penalty)
        level = self.sample(K, penalty, rng=rng)
        # The pass cannot be continued with a smaller penalty, because it has dropped rows: it
        # starts again.
        while len(level.dictionary) < m and level.penalty > least_penalty:
            level = self.sample(K, max(level.penalty / 4, least_penalty), rng=rng)
        floor = m / n
        # K has no rank m at any penalty, so that the least probability of each row rises instead.
        while len(level.dictionary) < m:  # with a floor of one, all distinct rows are kept
            level, floor = self._pass(K, level.penalty, floor, rng), 4 * floor
        J = level.dictionary
        # All rows are thinned with the same probability, which preserves their proportions.
        p = xp.full((len(J),), m / len(J), dtype=xp.float64)
        positions = _sampling.systematic(p, rng)
        J = Dictionary(J.index[positions], J.copies[positions] * (m / len(J)))
        return Level(level.penalty, J, level.effective_dimension, rows.coverage(J, n))


def _union(
    a: Dictionary, b: Dictionary, keys: Int[Array, " k"]
) -> tuple[Dictionary, Int[Array, " s"]]:
    """Unite two dictionaries, with equal rows merged; return also the positions of the rows."""
    index, copies = xp.concat([a.index, b.index]), xp.concat([a.copies, b.copies])
    first, group = group_keys(keys)
    if len(first) < len(keys):
        total = xp.zeros(len(first), xp.float64)
        # Each dictionary represents 1 / copies of its rows, and these numbers add up.
        copies = xp.reciprocal(xp.add_at(total, group, 1 / copies))
    return Dictionary(index[first], copies), first


def _stack(
    K: KernelOperator, points: Array | None, block: Array, J: Dictionary, first: Array
) -> Array:
    """Return the rows of J: positions `first` of the earlier points and the new block."""
    if K.rows.sparse:
        return K.rows.take(J.index)
    stacked = block if points is None else xp.concat([points, block])
    return stacked if len(first) == len(stacked) else stacked[first]
