"""Preconditioner of SketchySAGA, its damping and its step, from a sample of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array, RandomStream
from ...data import as_rows
from ...lowrank import POWER_SAFETY, RandomizedNystrom, largest_eigenvalue, randomized_nystrom
from ...operators import DenseBlock, KernelOperator, materialize
from ...preconditioners import LowRankInverse

SKETCH_ROWS = 1000
"""Least rows of the sketch; the square root of n in the paper is fewer below a million rows."""

MOST_DAMPINGS = 10
"""Most dampings to try, each a tenth of the one before, from the largest eigenvalue down."""

MOST_DAMPINGS_FLOAT32 = 7
"""The same for float32 entries, whose rounding a smaller damping amplifies beyond a step."""

SMOOTHNESS_GROWTH = 7.0
"""Largest growth of the smoothness when the damping falls to a tenth."""

SMOOTHNESS_EPOCHS = 2
"""The smoothness is at most the number of steps in this many epochs."""

PROBED_ROWS = 256
SMOOTHNESS_BATCHES = 3
"""Batches whose largest smoothness counts."""


@dataclass(frozen=True)
class Hessian:
    """Hessian over n, K' Omega K / n + penalty K_mm, to be estimated from samples of rows.

    - `K`, (n, m), and `omega`, (n,): as in the products.
    - `landmark_weight`, (m,): as in `NystromProblem`.
    - `K_mm`: omitted from products if None.
    - `entry`: largest c² / omega of the landmarks if the ridge is in the rows, else 0.
    """

    K: KernelOperator
    omega: Array
    landmark_weight: Array
    K_mm: DenseBlock | None
    penalty: float
    entry: float = 0.0

    def sample(self, rows: int, rng: RandomStream) -> Sampled:
        """Return the Hessian of random rows."""
        index = _draw_numbers(self.K.shape[0], rows, rng)
        return self._at(self.K.rows.take(index), self.omega[index])

    def sample_with_landmarks(self, rows: int, rng: RandomStream) -> Sampled:
        """Return the Hessian of random rows and as many landmarks, with the landmark weights.

        A landmark that is far from all others affects few rows besides its own. A batch with this
        row is the worst case for a preconditioner whose sketch lacks it.
        """
        index, chosen = (_draw_numbers(count, rows, rng) for count in self.K.shape)
        points, Z = self.K.rows.take(index), self.K.cols.take(chosen)
        # Landmarks are dense, and one matrix needs one layout.
        both = xp.concat(
            [xp.to_dense(points) if self.K.rows.sparse else points, xp.cast_like(Z, points)]
        )
        return self._at(both, xp.concat([self.omega[index], self.landmark_weight[chosen]]))

    def _at(self, points: Array, omega: Array) -> Sampled:
        K = replace(self.K, rows=as_rows(self.K.on_device(points)))
        return Sampled(self, materialize(K, self.K.memory_bytes // 2), omega[:, None])


@dataclass(frozen=True)
class Sampled:
    """The part of the Hessian that a sample of rows gives."""

    hessian: Hessian
    K: KernelOperator | DenseBlock
    omega: Array

    def product(self, v: Array) -> Array:
        """Return H v in float64."""
        v, K_mm = xp.to_float64(v), self.hessian.K_mm
        total = self.K.T @ (self.omega * (self.K @ v)) / len(self.omega)
        return total if K_mm is None else total + self.hessian.penalty * (K_mm @ v)

    def trace(self, rng: RandomStream) -> float:
        """Estimate the trace with one random vector of signs [Hutchinson]."""
        drawn = rng.integers(2, size=(self.K.shape[1], 1))
        signs = xp.cast_like(drawn, self.omega) * 2 - 1
        return float((signs * self.product(signs)).sum())

    def largest_row(self, P: LowRankInverse) -> float:
        """Return the largest omega k' P⁻¹ k of the rows k: the effect of one row on a batch."""
        largest = 0.0
        for start in range(0, len(self.omega), PROBED_ROWS):
            part = xp.arange(start, min(start + PROBED_ROWS, len(self.omega)))
            # A product with the identity yields the entries from an operator or a stored block
            # alike.
            k = self.K[part].T @ xp.eye(len(part), xp.float64, like=P.factor)
            largest = max(largest, float(((k * (P @ k)).sum(axis=0) * self.omega[part, 0]).max()))
        return largest


@dataclass(frozen=True)
class Sketch:
    """Damped preconditioner with its step length."""

    P: LowRankInverse
    rho: float
    smoothness: float
    step: float
    rank: int

    @classmethod
    def build(
        cls,
        H: Hessian,
        rank: int,
        batch: int,
        damping: float | int | str,
        scale: float | int,
        rng: RandomStream,
    ) -> Sketch:
        """Sketch the Hessian and choose the damping; see `SketchySAGA`."""
        n, m = H.K.shape
        # 1. Sketch the Hessian of a sample: with fewer than about twice as many rows as the rank,
        # the last directions of the sketch would be single rows.
        first = H.sample_with_landmarks(max(math.isqrt(n), SKETCH_ROWS, 2 * rank), rng)
        # In float64, because with a small damping P⁻¹ loses the digits of Lambda_1 / rho.
        low = randomized_nystrom(
            first.product, m, rank, first.trace(rng), device=H.K.device, rng=rng
        )
        # 2. Draw batches, whose largest eigenvalue under P decides the step, and a larger sample
        # for the rows that these batches lack. One batch of all rows is exact.
        batches = [H.sample(batch, rng) for _ in range(1 if batch >= n else SMOOTHNESS_BATCHES)]
        probe = H.sample(max(4 * batch, SKETCH_ROWS), rng)
        # All dampings start from one vector, so that their smoothness differs by the damping alone.
        start = xp.to_device(rng.standard_normal((m, 1), xp.float64), H.K.device)

        def at(rho: float) -> Sketch:
            return cls._at(low, rho, batches, probe, float(scale), start)

        if damping != "auto":
            return at(float(damping))
        # 3. Lower the damping from the largest eigenvalue on, ten times each.
        top = float(low.values[0]) or 1.0
        steps = MOST_DAMPINGS if H.K.dtype == xp.float64 else MOST_DAMPINGS_FLOAT32
        # The generator builds a sketch only when it is compared, and stops with the first failure.
        sketches = (at(top * 10.0**-j) for j in range(steps))
        return _choose_damping(sketches, SMOOTHNESS_EPOCHS * n / batch)

    @classmethod
    def _at(
        cls,
        low: RandomizedNystrom,
        rho: float,
        batches: list[Sampled],
        probe: Sampled,
        scale: float,
        start: Array,
    ) -> Sketch:
        P = LowRankInverse.build(low.factor, rho)
        largest = (largest_eigenvalue(B.product, start, P.__matmul__, P.apply) for B in batches)
        single = 0.0
        if len(batches) > 1:
            # A few batches rarely have the row with the largest effect: a bound of its effect on a
            # batch is added, with its entry of the ridge, which P only damps by rho.
            single = (probe.largest_row(P) + probe.hessian.entry / rho) / len(batches[0].omega)
        # Rows whose kernel entries vanish carry no information. Over all rows, L is at least this.
        top = float(low.values[0]) or 1.0
        L = POWER_SAFETY * max(max(largest) + single, top / (top + rho))
        return cls(P, rho, L, scale / L, low.factor.shape[1])

    def settings(self) -> dict[str, int | float]:
        """Return the chosen settings, for display."""
        return {
            "rank": self.rank,
            "rho": self.rho,
            "smoothness": self.smoothness,
            "step": self.step,
        }


def damping_operations(m: int, r: float, batch: int, itemsize: int) -> float:
    """Return the operations to choose the damping: a factor, and all probed rows, for each."""
    dampings = MOST_DAMPINGS if itemsize == 8 else MOST_DAMPINGS_FLOAT32
    return dampings * m * r * (r + 4 * max(4 * batch, SKETCH_ROWS))


def _draw_numbers(n: int, count: int, rng: RandomStream) -> Array:
    """Draw distinct integers below n, in increasing order."""
    return xp.sort(rng.sample(n, min(count, n)))


def _choose_damping(sketches: Iterator[Sketch], steps: float) -> Sketch:
    """Return the last of decreasing dampings before the smoothness L grows too much.

    Outside of the sketch, errors contract by lambda / (rho L) per step: a smaller damping pays as
    long as L grows more slowly than the damping falls. Within the sketch they contract by 1 / L,
    which must not take many epochs.
    """
    best = next(sketches)
    for sketch in sketches:
        smoothness = best.smoothness
        if sketch.smoothness > min(SMOOTHNESS_GROWTH * smoothness, max(steps, 2 * smoothness)):
            break
        best = sketch
    return best
