"""Constants of the loop of SketchySAGA, with the batches, the start and the penalty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ...data import EPOCH_STRIDE, Batches
from ...operators import DenseBlock, KernelOperator, materialize
from ...problems import NystromProblem
from ..loop.minibatches import EpochPart, load_centers, relative_weights
from ..loop.state import State, starting_iteration
from .sketch import Sketch
from .state import Certificate, SagaState

AVERAGE_TOLERANCE = 1e-4
"""Largest difference between the average gradient of a loaded state and its table.

Rounding of float32 entries over hundreds of steps amounted to 2e-7 of the right-hand side.
"""


@dataclass(frozen=True)
class Setup:
    """Constants of the loop of `SketchySAGA`, in the symbols of its paper.

    - `K`: the landmarks in memory or in a memory-mapped file.
    - `sketch`: P with its damping, and the step length.
    - `omega`: observation weights relative to their mean.
    - `certificate`: the metric of gradients.
    """

    problem: NystromProblem
    K: KernelOperator
    ridge: Ridge
    sketch: Sketch
    batches: Batches
    omega: Float[Array, " n"]
    certificate: Certificate

    def start(self, coef: Float[Array, "m t"], state: State | None) -> SagaState:
        """Return the state before the first step, with all residuals in the table."""
        y, n = xp.to_float64(self.problem.targets), self.K.shape[0]
        rhs = self.K.normal(None, self.omega, y) / n  # of the opposite sign
        table, average = -self.omega[:, None] * y, rhs
        # From zero, the residual is the target, and one pass yields both the average and the size.
        if coef.any():
            r = self.ridge.add_to_rows_(self.K @ coef, coef, xp.arange(n)) - y
            table = self.omega[:, None] * r
            average = self.K.T @ table / n
        # A ridge in the rows belongs to the row of a landmark, which adds its part of the gradient
        # to that landmark alone.
        average = self.ridge.add_to_landmarks_(average * n, table, xp.arange(n)) / n
        settings = {
            **self.sketch.settings(),
            "batch": self.batches.size,
            "ridge_in_rows": int(self.ridge.at is not None),
        }
        return SagaState(
            iteration=starting_iteration(state),
            coef=coef,
            metrics={"halvings": 0},
            table=table,
            average=average,
            size=self.certificate.norm(rhs),
            # The residual itself, without weights, as batches measure it later. The floor makes 0 /
            # 0 of a row of weight zero 0.
            least=float(xp.square(table / self.omega[:, None].clip(min=1e-300)).mean()),
            seed=self.batches.seed,
            settings=settings,
        )

    def restart(self, s: SagaState) -> SagaState:
        """Return a state that restarts from zero with the step of another state.

        The other state may be at a point from which no step is short enough.
        """
        first = self.start(xp.zeros_like(s.coef), s)
        return replace(first, metrics=s.metrics, halvings=s.halvings)

    def minibatches(self, part: EpochPart) -> Iterator[tuple[Array, Array]]:
        """Yield the row indices and the rows of independently drawn batches.

        A sequential source, or a batch of all rows, yields the batches of a shuffled pass instead.
        """
        batches = self.batches
        n, b = batches.rows.shape[0], batches.size
        if b >= n or not batches.rows.random_access:
            yield from batches.epoch(part.epoch, part.start, part.stop)
            return
        for number in part.numbers(len(batches)):
            rng = RandomStream(batches.seed + EPOCH_STRIDE * (number + 1))
            # A row drawn twice would be subtracted from the table twice.
            index = xp.unique(rng.integers(n, size=(b,)))
            yield index, batches.rows.take(index)


def row_weights(problem: NystromProblem) -> Float[Array, " n"]:
    """Return the observation weights relative to their mean; ones without weights."""
    omega = relative_weights(problem)
    if omega is None:
        return xp.ones(problem.K.shape[0], xp.float64, like=problem.targets)
    return omega


def check_average(problem: NystromProblem, state: SagaState, ridge: str) -> None:
    """Raise ValueError if the average gradient of a state differs from its table.

    The fixed point depends on the agreement of both; coefficients and table may have any value.
    Cost: n m kernel evaluations.
    """
    K, omega = load_centers(problem.K), row_weights(problem)
    term = Ridge.build(problem, K, omega, ridge)
    all_rows = xp.arange(K.shape[0])
    n, t = state.table.shape
    # Both products share one pass over the rows.
    sums = K.T @ xp.concat([state.table, omega[:, None] * problem.targets], axis=1)
    average = term.add_to_landmarks_(sums[:, :t], state.table, all_rows) / n
    size = xp.norm(sums[:, t:], axis=0) / n
    size = xp.where(size > 0, size, 1.0)
    apart = float((xp.norm(average - state.average, axis=0) / size).max())
    if not apart <= AVERAGE_TOLERANCE:
        raise ValueError(
            f"its average gradient differs from the average of its table by {apart:.1e}, relative "
            "to the right-hand side: it was changed, or belongs to other data. Delete it to start "
            "again"
        )


RIDGE_FORMS = ("auto", "direct", "rows")


def in_rows(problem: NystromProblem) -> bool:
    """Return whether each landmark is a distinct row with a positive weight."""
    index, weights = problem.index, problem.weights
    # The table `at` has room for one landmark per row.
    if index is None or len(xp.unique(index)) < len(index):
        return False
    return weights is None or bool((weights[index] > 0).all())


@dataclass(frozen=True)
class Ridge:
    """The term lambda K_mm w of the gradient: direct, or added to the rows that are landmarks.

    - `at`, (n,): landmark number of each row, -1 for other rows; None if the term is direct.
    - `entry`, (m, 1): c / omega of the landmarks.
    - `constant`, (m, t): c y / n of the landmarks.
    """

    K_mm: KernelOperator | DenseBlock
    penalty: float
    at: Array | None
    entry: Array
    constant: Array

    @classmethod
    def build(cls, problem: NystromProblem, K: KernelOperator, omega: Array, kind: str) -> Ridge:
        """Build the term in the form that `SketchySAGA` selects; K is the operator of the problem.

        K_mm is stored if it fits into a quarter of the memory.
        """
        n, m = K.shape
        K_mm = materialize(replace(K, rows=K.cols), K.memory_bytes // 4)
        none = xp.empty((0, 0), like=omega)
        # A stored K_mm makes the direct term cheaper than two corrections per batch.
        direct = kind == "direct" or (kind == "auto" and isinstance(K_mm, DenseBlock))
        if direct or problem.index is None or not in_rows(problem):
            return cls(K_mm, problem.penalty, None, none, none)
        at = xp.full((n,), -1)
        at[problem.index] = xp.arange(m)
        c = n * problem.penalty / 2
        entry = c / omega[problem.index, None]
        return cls(
            K_mm, problem.penalty, at, entry, c * xp.to_float64(problem.targets[problem.index]) / n
        )

    @property
    def dense(self) -> DenseBlock | None:
        """The matrix K_mm, if it is stored."""
        return self.K_mm if isinstance(self.K_mm, DenseBlock) else None

    def largest(self, problem: NystromProblem, omega: Array) -> float:
        """Return the largest c² / omega added to a row, 0 if the term is direct."""
        if self.at is None:
            return 0.0
        return float((xp.square(self.entry) * omega[problem.index, None]).max())

    def gradient(self, w: Array) -> Array:
        """Return the part of the gradient over n that is not a sum over rows."""
        if self.at is None:
            return self.penalty * (self.K_mm @ w)
        return self.constant - (self.penalty / 2) * (self.entry * w)

    def add_to_rows_(self, product: Array, w: Array, B: Array) -> Array:
        """Add c / omega E_B w to K_Bm w."""
        if self.at is not None:
            landmark = self.at[B]
            is_landmark = landmark >= 0
            product[is_landmark] += (self.entry * w)[landmark[is_landmark]]
        return product

    def add_to_landmarks_(self, product: Array, v: Array, B: Array) -> Array:
        """Add c / omega E_B' v to K_Bm' v."""
        if self.at is not None:
            landmark = self.at[B]
            is_landmark = landmark >= 0
            product[landmark[is_landmark]] += self.entry[landmark[is_landmark]] * v[is_landmark]
        return product
