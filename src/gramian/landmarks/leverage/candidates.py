"""Candidates for landmarks: distinct rows, each with the number of rows that equal it.

Equal rows form one candidate. The probability that it is drawn grows with the sum of their scores.
A drawn candidate is weighted by their number.
"""

from __future__ import annotations

from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._sparse import is_sparse
from ...data import RowSource
from ...operators import KernelOperator
from .scores import Dictionary, Scorer

KEY_BLOCK_NUMBERS = 1 << 17
"""Numbers in a block whose keys are computed at once: a megabyte, which stays in the cache."""

SPARSE_ROWS = 1024
"""Rows in a block of sparse rows, which store few of their numbers."""


@dataclass(frozen=True)
class Candidates:
    """Distinct rows from which a selector draws.

    - `index`: increasing row indices: the first row of each group of equal rows.
    - `times`: number of candidates that equal the row, including the row itself.
    - `share`: expected number of times that a row of the data is a candidate, which is the
      probability if the row can be a candidate only once.
    """

    index: Int[Array, " k"]
    times: Float[Array, " k"]
    share: float = 1.0

    @classmethod
    def among(
        cls,
        keys: Int[Array, " r"],
        index: Int[Array, " r"],
        times: Float[Array, " r"] | None = None,
        share: float = 1.0,
    ) -> Candidates:
        """Return the distinct rows of `index`, each counted `times`, from their keys."""
        first, group = group_keys(keys)
        times = xp.ones(len(keys), xp.float64) if times is None else times
        total = xp.add_at(xp.zeros(len(first), xp.float64), group, times)
        return cls(index[first], total, share)

    @classmethod
    def all(cls, K: KernelOperator) -> Candidates:
        """Return the distinct rows of the data as candidates. Cost: one pass."""
        return cls.among(row_keys(K.rows), xp.arange(K.shape[0]))

    @classmethod
    def of(
        cls,
        K: KernelOperator,
        index: Int[Array, " r"],
        times: Float[Array, " r"] | None = None,
        share: float = 1.0,
    ) -> Candidates:
        """Return the distinct rows at increasing indices. Cost: reading these rows."""
        # All rows are passed over in order: to select them would cost a copy.
        rows = K.rows if len(index) == K.shape[0] else K[index].rows
        return cls.among(row_keys(rows), index, times, share)

    def __len__(self) -> int:
        return len(self.index)

    def to_dictionary(self) -> Dictionary:
        """Return all candidates as a `Dictionary`, each drawn with certainty."""
        return Dictionary(self.index, self.share / self.times)

    def scores(self, scorer: Scorer) -> Float[Array, " k"]:
        """Return the score of one row per group."""
        n = scorer.K.shape[0]
        if len(self) == n:
            return scorer()
        # Where a pass stays with the rows, it is cheaper than the transfer of most of them.
        scores_all = 2 * len(self) > n and not scorer.K.rows.fits()
        return scorer()[self.index] if scores_all else scorer(self.index)

    def effective_dimension(self, scores: Float[Array, " k"]) -> float:
        """Estimate the sum of the scores of all rows."""
        return float((self.times * scores).sum()) / self.share

    def sample(self, positions: Int[Array, " s"], probability: Float[Array, " s"]) -> Dictionary:
        """Return the dictionary of sampled positions, given their inclusion probabilities."""
        # A row stands for all equal rows, so its probability is divided by their number.
        copies = self.share * probability / self.times[positions]
        return Dictionary(self.index[positions], copies.clip(min=1e-300))

    def coverage(self, dictionary: Dictionary, n: int) -> float:
        """Return the share of the distinct rows in a dictionary; of all n rows if unknown."""
        # The distinct rows are counted only if all rows are candidates.
        return len(dictionary) / (len(self) if self.share == 1 else n)


def group_keys(keys: Int[Array, " r"]) -> tuple[Int[Array, " k"], Int[Array, " r"]]:
    """Return the first position of each distinct key, in order, and for each key its group.

    Cost: sorting r numbers.
    """
    # A stable sort makes the first position of each key its first occurrence.
    order = keys.argsort(stable=True)
    ordered = keys[order]
    new = xp.ones(len(keys), xp.bool)
    new[1:] = ordered[1:] != ordered[:-1]
    first, rank = xp.sort_with_order(order[new])
    place = xp.empty_like(rank)
    # The inverse permutation renumbers groups by their first occurrence instead of by key.
    place[rank] = xp.arange(len(rank))
    group = xp.empty_like(order)
    group[order] = place[new.cumsum(axis=0) - 1]
    return first, group


def row_keys(rows: RowSource) -> Int[Array, " n"]:
    """Return an integer key for each row, which is the same for equal rows.

    Among n different rows, two share a number with a probability of n² / 2⁶⁵, 3e-8 at n = 10⁶; one
    of them is then skipped. Cost: one pass, about 8 ns per number; 8 n bytes.
    """
    size = SPARSE_ROWS if rows.sparse else max(1, KEY_BLOCK_NUMBERS // rows.shape[1])
    return rows.map(keys_of, size=size)


def keys_of(block: Float[Array, "b d"]) -> Int[Array, " b"]:
    """Return the keys of a block of rows, dense or sparse, on the host.

    A key is the sum over columns of a hash of the number times an odd number, modulo 2⁶⁴. Zeros add
    zero: -0.0 equals 0.0, and an entry that is not stored.
    """
    if not is_sparse(block):
        words = _words(block)
        column = xp.arange(words.shape[1], like=block)
        return xp.to_host((_hash_(words) * _odd(column)).sum(axis=1))
    terms = _hash_(_words(xp.entries(block)[:, None])[:, 0]) * _odd(
        xp.cast(xp.indices(block), xp.int64)
    )
    row = xp.arange(block.shape[0], like=block)
    row = xp.repeat(row, xp.diff(xp.indptr(block)))
    out = xp.zeros(block.shape[0], xp.int64, like=block)
    return xp.to_host(xp.add_at(out, row, terms))


def _words(block: Float[Array, "b d"]) -> Int[Array, "b w"]:
    """Return the bits of rows as 64-bit integers, two float32 numbers in each."""
    d = block.shape[1]
    pad = d % 2 if xp.dtype_of(block) == xp.float32 else 0
    out = xp.zeros((block.shape[0], d + pad), like=block)
    out[:, :d] = block
    # Adding zero turns -0.0 into 0.0, whose bits differ although the numbers are equal.
    return xp.view_as(xp.add_(out, 0.0), xp.int64)


def _hash_(x: Int[Array, ...]) -> Int[Array, ...]:
    """Apply a bijective hash of 64 bits to each number, in place."""
    x ^= (x >> 32) & 0xFFFFFFFF  # the mask removes the sign bits of the arithmetic shift
    x *= -0x61C8864680B583EB  # 2⁶⁴ over the golden ratio, as a signed number
    x ^= (x >> 32) & 0xFFFFFFFF
    return x


def _odd(column: Int[Array, ...]) -> Int[Array, ...]:
    return _hash_(_hash_(column + 1)) | 1
