"""EigenPro3Costs: memory and work of EigenPro 3, estimated before a run."""

from __future__ import annotations

from typing import Any

from ..cost import BLOCK_BYTES, ProblemSize
from ..loop.minibatches import LEAST_BATCH
from .projection import resolve_delay, resolve_projection
from .settings import EigenProSettings
from .setup import CHUNK_ROWS

CENTERS_PER_DIRECTION = 10
"""Bounds an automatic rank q by p / 10: more directions move the fixed point further away."""

FEATURES_SHARE = 4
"""The features of all rows may use the memory for blocks divided by this number."""


class EigenPro3Costs(EigenProSettings):
    """Base of EigenPro 3 with the cost estimates of a `Solver`."""

    projection: str
    delay: Any
    augment: Any

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        """See `Solver.peak_bytes`."""
        p = size.m
        centers = 0 if mapped else 2 * size.center_bytes  # centers and temporary centers
        factors = 8 * self._factor_entries(p, 0) + 16 * p * self._most_flattened(size)
        return size.vector_bytes + centers + self.sample_bytes(size.n) + factors

    def flexible_bytes(self, size: ProblemSize, available: int) -> int:
        """Return the bytes of the subsample, of K_ZZ and of the row features."""
        chosen = self._factor_entries(size.m, available) - self._factor_entries(size.m, 0)
        of_rows = self._feature_bytes(size, available)
        return self.sample_bytes(size.n, available) + 8 * chosen + of_rows

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        """Return the kernel evaluations of the setup and of some epochs."""
        n, p, s = size.n, size.m, self.subsample_rows(size.n)
        of_sample = 0 if self._feature_bytes(size, BLOCK_BYTES) else s
        once = 2 * s * s + p * (p + s) + (n * s if self.augment is None else 0)
        return iterations * n * (p + of_sample + self._waiting(size)) + once

    def operations(self, size: ProblemSize, iterations: int) -> float:
        """Return the operations of the eigenvectors and of the projection."""
        factorization = self._factor_entries(size.m, BLOCK_BYTES) * float(size.m) / 3
        q = self._most_flattened(size)
        features = 2.0 * size.n * self.subsample_rows(size.n) * q if self.augment is None else 0.0
        # Large matrix products run twice as fast in float32.
        products = features * size.itemsize / 16
        return self.eigenvector_operations(size, q) + factorization + products

    def bytes_read(self, size: ProblemSize) -> float:
        """Return the bytes read for the batches of a step, with their share of a projection."""
        p, s = float(size.m), float(self.subsample_rows(size.n))
        q, feature_bytes = self._most_flattened(size), self._feature_bytes(size, BLOCK_BYTES)
        of_projection = p * q + self._factor_entries(size.m, BLOCK_BYTES)
        of_batch = of_projection / self._delay(size) + (0 if feature_bytes else s * q)
        return 8 * of_batch * self._batches_per_step(size)

    def steps(self, size: ProblemSize, iterations: int) -> int:
        """Return the number of batches, halved if most share their kernel entries."""
        return -(-super().steps(size, iterations) // self._batches_per_step(size))

    def _batches_per_step(self, size: ProblemSize) -> int:
        return 2 if self._feature_bytes(size, BLOCK_BYTES) else 1

    def _waiting(self, size: ProblemSize) -> int:
        """Return the kernel evaluations per row that are not with centers or the subsample."""
        if resolve_projection(self.projection, size.m, BLOCK_BYTES) == "delayed":
            return 2 * size.m
        delay = self._delay(size)
        rows = min(delay * self._least_batch(size), size.n)
        return (rows + min(rows, CHUNK_ROWS)) // 2 if delay > 1 else 0

    def _delay(self, size: ProblemSize) -> int:
        """Return the number of batches between projections, for the smallest automatic batch."""
        kind = resolve_projection(self.projection, size.m, BLOCK_BYTES)
        return resolve_delay(self.delay, kind, size.m, self._least_batch(size))

    def _least_batch(self, size: ProblemSize) -> int:
        return min(size.n, LEAST_BATCH if self.batch == "auto" else int(self.batch))

    def _feature_bytes(self, size: ProblemSize, memory_bytes: int) -> int:
        """Return the bytes of the features of all rows if they are stored, else 0."""
        numbers = size.n * self._most_flattened(size)
        need = numbers * size.itemsize if self.augment is None else 0
        return need if need <= memory_bytes // FEATURES_SHARE else 0

    def _factor_entries(self, p: int, memory_bytes: int) -> int:
        """Return p² if `memory_bytes` allow an exact projection, else 0."""
        return p * p if resolve_projection(self.projection, p, memory_bytes) == "exact" else 0

    def _most_flattened(self, size: ProblemSize) -> int:
        """Return the largest number of flattened directions; see `EigenProFactor`."""
        if self.rank != "auto":
            return int(self.rank)
        s = self.subsample_rows(size.n)
        return min(max(1, size.m // CENTERS_PER_DIRECTION), s if s == size.n else s // 10)
