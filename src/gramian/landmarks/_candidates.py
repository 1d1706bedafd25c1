"""Candidates for landmarks: distinct rows, each with the number of rows that equal it.

Equal rows are one landmark at most, so they are drawn as one: with the sum of their scores, and
with their number in the weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._sparse import is_sparse
from ..data import RowSource
from ..operators import KernelOperator
from .leverage import Dictionary, Scorer

KEY_BLOCK_NUMBERS = 1 << 17
"""Numbers in a block of which keys are made: a megabyte, which stays in the cache."""

SPARSE_ROWS = 1024
"""Rows in a block of sparse ones, most of whose numbers are not stored."""


@dataclass(frozen=True)
class Candidates:
    """Distinct rows to draw from.

    Attributes
    ----------
    index : Tensor of shape (k,)
        Row numbers, increasing: the first one of each group of equal rows.
    times : Tensor of shape (k,)
        How many candidates equal it, itself included.
    share : float
        Expected number of times that a row of the data is a candidate: its probability, if that
        is once at most.
    """

    index: Int[Tensor, " k"]
    times: Float[Tensor, " k"]
    share: float = 1.0

    @classmethod
    def among(
        cls,
        keys: Int[Tensor, " r"],
        index: Int[Tensor, " r"],
        times: Float[Tensor, " r"] | None = None,
        share: float = 1.0,
    ) -> Candidates:
        """Return the distinct ones of rows `index`, each given so many times, from their keys."""
        first, group = first_of_each(keys)
        times = torch.ones(len(keys), dtype=torch.float64) if times is None else times
        total = torch.zeros(len(first), dtype=torch.float64).index_add_(0, group, times)
        return cls(index[first], total, share)

    @classmethod
    def all(cls, K: KernelOperator) -> Candidates:
        """Return the distinct rows of all, each of which is a candidate. Cost: one pass."""
        return cls.among(row_keys(K.rows), torch.arange(K.shape[0]))

    @classmethod
    def of(
        cls,
        K: KernelOperator,
        index: Int[Tensor, " r"],
        times: Float[Tensor, " r"] | None = None,
        share: float = 1.0,
    ) -> Candidates:
        """Return the distinct ones of rows `index`, which increase. Cost: reading them."""
        rows = K.rows if len(index) == K.shape[0] else K[index].rows
        return cls.among(row_keys(rows), index, times, share)

    def __len__(self) -> int:
        return len(self.index)

    def whole(self) -> Dictionary:
        """Return the dictionary of all candidates."""
        return Dictionary(self.index, self.share / self.times)

    def scores(self, scorer: Scorer) -> Float[Tensor, " k"]:
        """Return the score of one row of each group."""
        n = scorer.K.shape[0]
        if len(self) == n:
            return scorer()
        # of remote rows a pass over all is cheaper than bringing most of them here
        most = scorer.K.rows.remote and 2 * len(self) > n
        return scorer()[self.index] if most else scorer(self.index)

    def effective_dimension(self, scores: Float[Tensor, " k"]) -> float:
        """Return the estimate of the sum of the scores of all rows."""
        return float((self.times * scores).sum()) / self.share

    def sampled(self, kept: Int[Tensor, " s"], probability: Float[Tensor, " s"]) -> Dictionary:
        """Return those at positions `kept`, given the probabilities with which these were kept."""
        copies = self.share * probability / self.times[kept]
        return Dictionary(self.index[kept], copies.clamp(min=1e-300))

    def coverage(self, dictionary: Dictionary, n: int) -> float:
        """Return the share of the distinct rows that a dictionary has; of all n, if unknown."""
        return len(dictionary) / (len(self) if self.share == 1 else n)


def first_of_each(keys: Int[Tensor, " r"]) -> tuple[Int[Tensor, " k"], Int[Tensor, " r"]]:
    """Return where each key occurs for the first time, in order, and the number of each's group.

    Cost: sorting r numbers.
    """
    order = keys.argsort(stable=True)
    ordered = keys[order]
    new = torch.ones(len(keys), dtype=torch.bool)
    new[1:] = ordered[1:] != ordered[:-1]
    first, rank = order[new].sort()
    place = torch.empty_like(rank)
    place[rank] = torch.arange(len(rank))
    group = torch.empty_like(order)
    group[order] = place[new.cumsum(0) - 1]
    return first, group


def row_keys(rows: RowSource) -> Int[Tensor, " n"]:
    """Return a number for each row, the same for equal rows.

    Of n different rows some have the same number with a probability of n² / 2⁶⁵, 3e-8 at n = 10⁶;
    one of them is then passed over. Cost: one pass, about 8 ns for each number; 8 n bytes.
    """
    size = SPARSE_ROWS if rows.sparse else max(1, KEY_BLOCK_NUMBERS // rows.shape[1])
    return rows.map(keys_of, size=size)


def keys_of(block: Float[Tensor, "b d"]) -> Int[Tensor, " b"]:
    """Return the keys of a block of rows, dense or sparse, on the host.

    The sum of a hash of each number times an odd number for its column, modulo 2⁶⁴. That of zero
    is zero: -0.0 is 0.0, as is an entry that is not stored.
    """
    if not is_sparse(block):
        words = _words(block)
        column = torch.arange(words.shape[1], device=block.device)
        return (_hash_(words) * _odd(column)).sum(dim=1).cpu()
    terms = _hash_(_words(block.values()[:, None])[:, 0]) * _odd(block.col_indices().long())
    row = torch.arange(block.shape[0], device=block.device)
    row = row.repeat_interleave(block.crow_indices().diff())
    out = torch.zeros(block.shape[0], dtype=torch.int64, device=block.device)
    return out.index_add_(0, row, terms).cpu()


def _words(block: Float[Tensor, "b d"]) -> Int[Tensor, "b w"]:
    """Return the bits of rows as 64-bit numbers, two of float32 in each."""
    d = block.shape[1]
    pad = d % 2 if block.dtype == torch.float32 else 0
    out = block.new_zeros(block.shape[0], d + pad)
    out[:, :d] = block
    return out.add_(0.0).view(torch.int64)


def _hash_(x: Int[Tensor, ...]) -> Int[Tensor, ...]:
    """Spread the bits of each number over all 64, one to one, in place."""
    x ^= (x >> 32) & 0xFFFFFFFF  # shifts carry the sign along
    x *= -0x61C8864680B583EB  # 2⁶⁴ over the golden ratio, as a signed number
    x ^= (x >> 32) & 0xFFFFFFFF
    return x


def _odd(column: Int[Tensor, ...]) -> Int[Tensor, ...]:
    return _hash_(_hash_(column + 1)) | 1
