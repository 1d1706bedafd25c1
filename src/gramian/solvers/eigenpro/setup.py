"""Constants of the loop of EigenPro 3, and the minibatches, augmented or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ...data import EPOCH_STRIDE, Augmentation, Batches, as_rows
from ...operators import DenseBlock, KernelOperator, materialize
from ...preconditioners import EigenProFactor
from ...problems import NystromProblem
from ..loop.minibatches import EpochPart
from .projection import Projection
from .state import Product, Segment, Step
from .temporary_centers import TemporaryCenters

CHUNK_ROWS, CHUNK_ENTRIES = 1024, 1 << 21
"""Rows whose kernel entries are evaluated at once: for fewer rows, calls cost more than entries."""

Minibatch = tuple[int, Array, Array, Array]
"""Number among all batches, row numbers, rows and targets."""


@dataclass(frozen=True)
class Setup:
    """Constants of the loop of `EigenPro3`, in the symbols of its paper.

    - `K`: K(X, Z), with the centers in memory or in a memory-mapped file.
    - `P`: the subsample X_s and U, with Q_s = U U'.
    - `K_Zs_U`: K(Z, X_s) U.
    - `omega`: observation weights relative to their mean.
    - `eta`: step per row.
    - `delay`: T, the batches between two projections.
    - `settings`: chosen settings, for display.
    """

    problem: NystromProblem
    K: KernelOperator
    P: EigenProFactor
    K_Zs_U: Float[Array, "p q"]
    projection: Projection
    batches: Batches
    omega: Float[Array, " n"] | None
    eta: float
    delay: int
    augment: Augmentation | None
    settings: dict[str, int | float]

    def minibatches(self, part: EpochPart) -> Iterator[Minibatch]:
        """Yield the batches of part of an epoch; augmentation draws with a generator per batch."""
        batches = self.batches.epoch(part.epoch, part.start, part.stop)
        for number, (index, x) in zip(part.numbers(len(self.batches)), batches, strict=True):
            y = self.problem.targets[index]
            if self.augment is not None:
                # A generator per batch makes each augmentation the same after a resumption within
                # an epoch.
                seed = self.batches.seed + EPOCH_STRIDE * (number + 1)
                x, y = self.augment(x, y, RandomStream(seed))
            yield number, index, x, xp.to_float64(y)

    def segments(self, part: EpochPart) -> Iterator[Segment]:
        """Yield the batches of part of an epoch, grouped into segments."""
        last = part.numbers(len(self.batches))[-1]
        # One call for the entries of many small batches costs less than a call for each.
        for chunk in self.chunks(part):
            x = chunk[0][2] if len(chunk) == 1 else xp.concat([x for _, _, x, _ in chunk])
            K_cZ, K_cs_U = self.kernel_blocks(x, [index for _, index, _, _ in chunk])
            start, segment_size = 0, self.delay if len(chunk) > self.delay else len(chunk)
            for first in range(0, len(chunk), segment_size):
                batches = chunk[first : first + segment_size]
                rows = slice(start, start + sum(len(x) for _, _, x, _ in batches))
                number, start = batches[-1][0], rows.stop
                # A state ends with a projection, because it has no room for temporary centers.
                due = number == last or self._place(number, part) == self.delay - 1
                # Sparse rows cannot be sliced, and always form a chunk of one batch.
                own = x if len(batches) == len(chunk) else x[rows]
                yield self._segment(batches, own, K_cZ[rows], K_cs_U[rows], due)
            # Free these blocks before the next ones are allocated.
            del K_cZ, K_cs_U

    def chunks(self, part: EpochPart) -> Iterator[list[Minibatch]]:
        """Yield the batches of part of an epoch in chunks; only small dense batches share a chunk.

        A chunk spans one or more delays between projections, or an even share of one delay.
        """
        # A chunk has whole delays if several fit. Otherwise a delay is divided evenly: with full
        # chunks the last one of each delay would be short, and cost nearly as much as a full one.
        fits = max(1, self._chunk_rows // self.batches.size)
        chunk_size = fits // self.delay * self.delay or math.ceil(
            self.delay / math.ceil(self.delay / fits)
        )
        chunk: list[Minibatch] = []
        for batch in self.minibatches(part):
            number, _, x, _ = batch
            chunk.append(batch)
            # A segment must not span two chunks around a projection: the chunk ends where the next
            # delay would not fit into it whole.
            is_before_projection = self._place(number, part) == self.delay - 1
            full = len(chunk) >= chunk_size or xp.is_sparse(x)
            if full or (is_before_projection and len(chunk) + self.delay > chunk_size):
                yield chunk
                chunk = []
        if chunk:
            yield chunk

    def _place(self, number: int, part: EpochPart) -> int:
        """Return the number of batches since the previous projection."""
        return (number - part.numbers(len(self.batches))[0]) % self.delay

    def _segment(
        self,
        batches: list[Minibatch],
        x: Array,
        K_bZ: KernelOperator | DenseBlock,
        K_bs_U: DenseBlock | Product,
        due: bool,
    ) -> Segment:
        steps, stop = [], 0
        for _, index, rows, y in batches:
            start, stop = stop, stop + len(rows)
            steps.append(Step(slice(start, stop), index, y))
        K_bb = None
        if len(steps) > 1:
            source = as_rows(x)
            # The rows of a batch are temporary centers of the later batches of its segment: each of
            # these reads its strip of this matrix.
            K_bb = materialize(replace(self.K, rows=source, cols=source), self.K.memory_bytes // 4)
        return Segment(x, steps, K_bZ, K_bs_U, K_bb, batches[-1][0], due)

    @property
    def _chunk_rows(self) -> int:
        """Largest number of rows of a chunk whose kernel entries fit into memory."""
        numbers = self.K.memory_bytes // self.K.dtype.itemsize
        # Half of the memory is for K(x, Z), and a quarter for K(x, x).
        fits = min(numbers // (2 * self.K.shape[1]), math.isqrt(numbers // 4))
        if self.P.features is None:
            fits = min(fits, numbers // (4 * len(self.P.index)))
        return min(max(CHUNK_ROWS, CHUNK_ENTRIES // self.K.shape[1]), fits)

    def kernel_blocks(
        self, x: Array, indices: list[Array]
    ) -> tuple[KernelOperator | DenseBlock, DenseBlock | Product]:
        """Return K(x, Z) and K(x, X_s) U, stored if they fit into a half and a quarter."""
        K = replace(self.K, rows=as_rows(x))
        room = K.memory_bytes // 4
        if self.P.features is not None:
            # The features K(x, X_s) U are stored for all rows if these are never augmented: U stays
            # the same, so that no entry with the subsample is evaluated again.
            index = xp.to_device(xp.concat(indices), self.P.features.device)
            features = self.P.features[index]
            return materialize(K, 2 * room), DenseBlock(features)
        K_s = materialize(replace(K, cols=self.P.points), room)
        return materialize(K, 2 * room), Product(K_s, self.P.vectors)

    def temporary_centers(self, t: int) -> TemporaryCenters:
        """Allocate the temporary centers between two projections, for t targets."""
        return TemporaryCenters(self.K, self.K_Zs_U, t, self.delay, self.batches)


def change_of_rows(
    augment: Augmentation | None, t: int, rng: RandomStream
) -> Callable[[Array], Array] | None:
    """Restrict the augmentation to rows, with t dummy targets; None without augmentation."""
    if augment is None:
        return None
    # The setup has no targets of the sampled rows, and needs the changed rows alone.
    return lambda x: augment(x, xp.zeros((len(x), t), like=x), rng)[0]
