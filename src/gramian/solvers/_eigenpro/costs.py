"""EigenPro3Costs: what EigenPro 3 says of its memory and work before it starts."""

from __future__ import annotations

from typing import Any

from ..cost import BLOCK_BYTES, ProblemSize
from ..minibatches import LEAST_BATCH
from .projection import chosen_delay, projection_for
from .settings import EigenProSettings
from .setup import CHUNK_ROWS

CENTERS_PER_DIRECTION = 10
"""Bounds an automatic rank q by p / 10: the more directions, the further the fixed point is off."""

FEATURES_SHARE = 4
"""Features of all rows may take this part of the memory for blocks."""


class EigenPro3Costs(EigenProSettings):
    """Base of EigenPro 3 with what a `Solver` says of a `ProblemSize`."""

    projection: str
    delay: Any
    augment: Any

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        """See `Solver.peak_bytes`."""
        p = size.m
        centers = 0 if mapped else 2 * size.center_bytes  # with those that are temporary
        factors = 8 * self._factor_entries(p, 0) + 16 * p * self._most_flattened(size)
        return size.vector_bytes + centers + self.sample_bytes(size.n) + factors

    def flexible_bytes(self, size: ProblemSize, available: int) -> int:
        """Return the bytes of the subsample, of K_ZZ and of the features of rows."""
        chosen = self._factor_entries(size.m, available) - self._factor_entries(size.m, 0)
        of_rows = self._feature_bytes(size, available)
        return self.sample_bytes(size.n, available) + 8 * chosen + of_rows

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        """Return those of the setup, and of each epoch."""
        n, p, s = size.n, size.m, self.subsample_rows(size.n)
        of_sample = 0 if self._feature_bytes(size, BLOCK_BYTES) else s
        once = 2 * s * s + p * (p + s) + (n * s if self.augment is None else 0)
        return iterations * n * (p + of_sample + self._waiting(size)) + once

    def operations(self, size: ProblemSize, iterations: int) -> float:
        """Return those of the eigenvectors and of the projection."""
        factorization = self._factor_entries(size.m, BLOCK_BYTES) * float(size.m) / 3
        q = self._most_flattened(size)
        features = 2.0 * size.n * self.subsample_rows(size.n) * q if self.augment is None else 0.0
        products = features * size.itemsize / 16  # of large matrices: faster, in float32 twice
        return self.eigenvector_operations(size, q) + factorization + products

    def bytes_read(self, size: ProblemSize) -> float:
        """Return the bytes of the batches of a step, with their share of a projection."""
        p, s = float(size.m), float(self.subsample_rows(size.n))
        q, kept = self._most_flattened(size), self._feature_bytes(size, BLOCK_BYTES)
        of_projection = p * q + self._factor_entries(size.m, BLOCK_BYTES)
        of_batch = of_projection / self._delay(size) + (0 if kept else s * q)
        return 8 * of_batch * self._batches_per_step(size)

    def steps(self, size: ProblemSize, iterations: int) -> int:
        """Return the batches, or half of them if most have no kernel entries of their own."""
        return -(-super().steps(size, iterations) // self._batches_per_step(size))

    def _batches_per_step(self, size: ProblemSize) -> int:
        return 2 if self._feature_bytes(size, BLOCK_BYTES) else 1

    def _waiting(self, size: ProblemSize) -> int:
        """Return the kernel evaluations for a row beside those with centers and subsample."""
        if projection_for(self.projection, size.m, BLOCK_BYTES) == "delayed":
            return 2 * size.m
        delay = self._delay(size)
        rows = min(delay * self._least_batch(size), size.n)
        return (rows + min(rows, CHUNK_ROWS)) // 2 if delay > 1 else 0

    def _delay(self, size: ProblemSize) -> int:
        """Return the batches between projections, an automatic batch taken to be the least."""
        kind = projection_for(self.projection, size.m, BLOCK_BYTES)
        return chosen_delay(self.delay, kind, size.m, self._least_batch(size))

    def _least_batch(self, size: ProblemSize) -> int:
        return min(size.n, LEAST_BATCH if self.batch == "auto" else int(self.batch))

    def _feature_bytes(self, size: ProblemSize, memory_bytes: int) -> int:
        """Return the bytes of the features of all rows if they are kept, else 0."""
        numbers = size.n * self._most_flattened(size)
        need = numbers * size.itemsize if self.augment is None else 0
        return need if need <= memory_bytes // FEATURES_SHARE else 0

    def _factor_entries(self, p: int, memory_bytes: int) -> int:
        """Return p² if K_ZZ is factorised with so much memory for blocks, else 0."""
        return p * p if projection_for(self.projection, p, memory_bytes) == "exact" else 0

    def _most_flattened(self, size: ProblemSize) -> int:
        """Return the directions that are flattened at most, see `EigenProFactor`."""
        if self.rank != "auto":
            return int(self.rank)
        s = self.subsample_rows(size.n)
        return min(max(1, size.m // CENTERS_PER_DIRECTION), s if s == size.n else s // 10)
