"""The penalty in the gradients of SketchySAGA."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ... import _arrays as xp
from ..._arrays import Array
from ...operators import DenseBlock, KernelOperator, materialize
from ...problems import NystromProblem

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

    Attributes
    ----------
    at : Array of shape (n,), or None
        Landmark number of each row, -1 for other rows; None if the term is direct.
    entry : Array of shape (m, 1)
        c / omega of the landmarks.
    constant : Array of shape (m, t)
        c y / n of the landmarks.
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
