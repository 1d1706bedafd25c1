"""Problems: objectives with all rows or m landmarks as centers.

`FullProblem` and `NystromProblem` define linear systems, which solvers solve. Their solutions
minimise

    (1 / N) sum_i w_i (f(x_i) - y_i)² + penalty · ‖f‖²,    N = sum_i w_i,

over functions f that are combinations of k(., z) for centers z. An integer weight equals repeated
rows. `LossProblem` has another loss in place of the square. Problems are immutable: two solvers may
work on one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from . import _arrays as xp
from ._arrays import Array, Float, Int
from ._messages.errors import ParameterError
from .data import RowNumbers, RowWeights, Targets, as_columns
from .losses import Loss
from .model import KernelModel
from .operators import KernelOperator, largest_diagonal


@dataclass(frozen=True)
class _Ridge:
    """Base of the problems: a matrix, targets, a penalty and observation weights.

    Vectors and matrices that solvers keep are on the device of the targets; row numbers are on the
    host. Targets and weights may be `Columns` of a cluster.
    """

    K: KernelOperator
    targets: Targets
    penalty: float
    weights: RowWeights | None = None
    penalties: tuple[float, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        device = self.targets.device
        if self.K.device != device:
            # Problems are frozen for their users, and their parts must be on one device.
            object.__setattr__(self, "K", replace(self.K, device=device))
        if self.weights is not None:
            object.__setattr__(self, "weights", xp.to_device(self.weights, device))
        if not (math.isfinite(self.penalty) and self.penalty >= 0):
            remedy = "it is the ridge per sample: scikit-learn's alpha / n"
            raise ParameterError("penalty", self.penalty, "finite and at least 0", remedy)
        n, shape = self.K.shape[0], tuple(self.targets.shape)
        if len(shape) != 2 or shape[0] != n:
            raise ValueError(f"targets must have shape ({n}, t) for {n} rows, not {shape}")
        if self.weights is not None:
            _check_weights(self.weights, n)
        if self.penalties is not None:
            _check_penalties(self.penalties, shape[1])

    @property
    def penalty_per_target(self) -> float | Float[Array, " t"]:
        """The penalty of each target, as one number if they share it."""
        if self.penalties is None:
            return self.penalty
        return xp.array(self.penalties, dtype=xp.float64, like=self.targets)

    def by_penalty(self) -> Iterator[tuple[Int[Array, " k"], Self]]:
        """Yield each distinct penalty's problem, with the index of its targets."""
        t, penalties = self.targets.shape[1], self.penalties
        if penalties is None:
            yield xp.arange(t), self
            return
        # Targets of equal penalties share a factorisation.
        for penalty in sorted(set(penalties)):
            columns = xp.array([k for k in range(t) if penalties[k] == penalty], xp.int64)
            targets = self.targets[:, xp.to_device(columns, self.targets.device)]
            yield columns, replace(self, targets=targets, penalty=penalty, penalties=None)

    @property
    def total(self) -> float:
        """N, the sum of the weights, or the number of rows without weights."""
        if self.weights is None:
            return float(self.K.shape[0])
        return float(xp.sum_float64(self.weights))

    @property
    def spread(self) -> Float[Array, " t"]:
        """Weighted standard deviation of each target.

        For a constant target it is the root mean square, or 1 if the target is zero. Cost: a pass
        over the targets.
        """
        return self._moments[1]

    @property
    def relative_mean(self) -> float:
        """The largest mean of a target in units of its spread. Cost: as for `spread`."""
        mean, spread = self._moments
        return float((xp.abs(mean) / spread).max())

    @functools.cached_property
    def _moments(self) -> tuple[Float[Array, " t"], Float[Array, " t"]]:
        """The mean and the spread of each target."""
        mean, scale = as_columns(self.targets).moments(self.weights, self.total)
        scale = xp.where(scale > 0, scale, xp.abs(mean))
        return mean, xp.where(scale > 0, scale, 1.0)

    def relative_error(self, errors: Float[Array, " t"]) -> float:
        """Return the largest root mean square error of a target, in units of its spread."""
        return float((xp.cast_like(errors, self.spread) / self.spread).max())

    @property
    def shift(self) -> float:
        """N · penalty, in the units of the kernel's values."""
        return self.total * self.penalty


def _check_penalties(penalties: tuple[float, ...], t: int) -> None:
    if len(penalties) != t:
        raise ValueError(f"there are {len(penalties)} penalties, but {t} targets")
    if not all(math.isfinite(penalty) and penalty > 0 for penalty in penalties):
        raise ValueError(f"penalties must be positive and finite, not {penalties!r}")


def _check_weights(weights: RowNumbers, n: int) -> None:
    if tuple(weights.shape) != (n,):
        raise ValueError(f"weights must have shape ({n},), not {tuple(weights.shape)}")
    if not (as_columns(weights).range[0] >= 0 and 0 < float(weights.sum()) < math.inf):
        raise ValueError("weights must be finite, not negative, and not all zero")


@dataclass(frozen=True)
class FullProblem(_Ridge):
    """All n rows are centers: (K + N penalty W⁻¹) coef = targets.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
    targets : Array of shape (n, t)
    penalty : float
        The penalty, at least 0; `Solver.allows_zero_penalty` tells which solvers allow 0.
    weights : Array of shape (n,), optional
        Positive observation weights; ones if None.
    penalties : tuple of t float, optional
        One penalty for each target. Preconditioners are still built for `penalty`;
        `Solver.takes_penalties` tells which solvers support it.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.K.rows is not self.K.cols:
            raise ValueError("the full problem needs the same row source on both sides of K")
        if self.weights is not None and not bool((self.weights > 0).all()):
            raise ValueError(
                "weights of the full problem must be positive; leave out the rows of weight zero"
            )

    @property
    def rhs(self) -> Float[Array, "n t"]:
        """The right-hand side."""
        return self.targets

    @property
    def ridge(self) -> Array:
        """The diagonal that is added to K: (n, 1), or one number if there are no weights.

        With penalties of targets: (n, t), or (t,).
        """
        shift = xp.asarray(self.total * self.penalty_per_target, dtype=xp.float64)
        shift = xp.to_device(shift, self.targets.device)
        return shift if self.weights is None else shift / xp.to_float64(self.weights)[:, None]

    def apply(self, coef: Float[Array, "n t"]) -> Float[Array, "n t"]:
        """Return (K + N penalty W⁻¹) coef in the dtype of `coef`. Cost: n² kernel evaluations."""
        return self.K @ coef + xp.cast(self.ridge * coef, coef.dtype)

    def error_bound(self, residual: Float[Array, "n t"]) -> float:
        """Bound the error of predictions on the rows, `relative_error`, by the residual.

        With S = W^(1/2) K W^(1/2) the weighted errors are S (S + N penalty)^(-1) W^(1/2) residual,
        and no eigenvalue of that matrix exceeds 1.
        """
        square = xp.square(xp.to_float64(residual))
        if self.weights is not None:
            square = xp.to_float64(self.weights)[:, None] * square
        return self.relative_error(xp.sqrt(square.sum(axis=0) / self.total))

    def double(self) -> FullProblem:
        """Return the same problem with kernel entries computed in float64."""
        return replace(self, K=self.K.double(), targets=xp.to_float64(self.targets))

    @property
    def needs_float64(self) -> bool:
        """Whether rounding float32 entries may make the matrix indefinite: then use `double`.

        Rounding errors eps of the entries form a matrix of norm about 2 eps sqrt(n); five times
        this norm must be below the ridge. Measured (nycflights, n = 1,000 and 4,000): with float32
        entries, conjugate gradient with refinement converges if the ridge is at least twice this
        limit, and fails below half of it.
        """
        if self.K.dtype == xp.float64:
            return False
        error = xp.finfo(self.K.dtype).eps * math.sqrt(self.K.shape[0])
        # The smallest ridge decides: a row of large weight has a small one.
        return float(self.ridge.min()) < 10 * error * largest_diagonal(self.K)

    def model(self, coef: Float[Array, "n t"]) -> KernelModel:
        """Return the model with coefficients `coef`, a tensor on the device of the problem."""
        return KernelModel(self.K.kernel, self.K.cols, coef)


@dataclass(frozen=True)
class _AtLandmarks(_Ridge):
    """Base of the problems with m landmarks as centers; `NystromProblem` has the parameters."""

    landmark_weight: Float[Array, " m"] | None = None
    coverage: float | None = None
    index: Int[Array, " m"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        m = self.K.shape[1]
        if self.coverage is not None and not self.coverage >= 0:
            raise ValueError(f"coverage must be at least 0, not {self.coverage!r}")
        if self.landmark_weight is not None:
            weight = xp.to_device(self.landmark_weight, self.targets.device)
            object.__setattr__(self, "landmark_weight", weight)
        if self.index is not None and tuple(self.index.shape) != (m,):
            raise ValueError(f"index must have shape ({m},), not {tuple(self.index.shape)}")

    @property
    def covered_fraction(self) -> float:
        """The fraction of the rows that equal a landmark: `coverage`; by default m / n.

        The share is 0 for points chosen by the user.
        """
        if self.coverage is not None:
            return self.coverage
        n, m = self.K.shape
        # Points that are no rows say nothing about the rows: none counts as covered.
        return min(m / n, 1.0) if self.centers_are_rows else 0.0

    @property
    def centers_are_rows(self) -> bool:
        """Whether centers are rows, or represent rows with a known coverage."""
        return self.index is not None or self.coverage is not None

    @property
    def K_mm(self) -> KernelOperator:
        """Kernel operator of the landmarks with themselves."""
        return replace(self.K, rows=self.K.cols)

    def model(self, coef: Float[Array, "m t"]) -> KernelModel:
        """Return the model with coefficients `coef`, a tensor on the device of the problem."""
        return KernelModel(self.K.kernel, self.K.cols, coef)


@dataclass(frozen=True)
class NystromProblem(_AtLandmarks):
    """m landmarks are centers: (K_nm' W K_nm + N penalty K_mm) coef = K_nm' W targets.

    Parameters
    ----------
    K : KernelOperator of shape (n, m)
        Rows against landmarks.
    targets : Array of shape (n, t)
    penalty : float
        The penalty, at least 0; `Solver.allows_zero_penalty` tells which solvers allow 0.
    weights : Array of shape (n,), optional
        Observation weights, at least zero; ones if None.
    landmark_weight : Array of shape (m,), optional
        Share of the rows that each landmark represents, relative to 1/m: 1 / (n p), with p its
        probability of being drawn, times its observation weight over the mean weight. Only
        preconditioners use it; the solution does not depend on it.
    coverage : float, optional
        The fraction of the rows that equal a landmark; by default m / n with `index`, else 0. If it
        is 1, the landmarks with their weights are the data, and a preconditioner built from them is
        exact.
    index : Array of shape (m,), optional
        Row numbers of the landmarks, if they are rows: the penalty is then also a sum over rows,
        see `SketchySAGA`.
    penalties : as in `FullProblem`
    """

    @classmethod
    def at(
        cls,
        K: KernelOperator,
        index: Int[Array, " m"],
        targets: Targets,
        penalty: float,
        weights: RowWeights | None = None,
        landmark_weight: Float[Array, " m"] | None = None,
    ) -> NystromProblem:
        """Return the problem whose landmarks are rows `index` of an (n, n) operator."""
        weight = xp.ones(len(index), xp.float32) if landmark_weight is None else landmark_weight
        if weights is not None:
            # A landmark with a large observation weight represents more of the objective.
            # Weights that are not finite are refused below.
            with np.errstate(invalid="ignore"):
                relative_weight = weights[index] / weights.mean()
            weight = xp.to_device(weight, weights.device) * relative_weight
        K = replace(K, device=targets.device)
        against = K.against(K.points(index))
        return cls(against, targets, penalty, weights, xp.to_float64(weight), index=index)

    @property
    def rhs(self) -> Float[Array, "m t"]:
        """The right-hand side, in float64. Cost: n m kernel evaluations."""
        # Without v the normal product is -K' W y.
        return -self.K.normal(None, self.weights, self.targets)

    def apply(self, coef: Float[Array, "m t"]) -> Float[Array, "m t"]:
        """Return the matrix of the system times `coef`, float64. Cost: n m kernel evaluations."""
        ridge = self.total * self.penalty_per_target * (self.K_mm @ coef)
        return self.K.normal(xp.to_float64(coef), self.weights) + ridge

    def double(self) -> NystromProblem:
        """Return the same problem with kernel entries computed in float64.

        Targets keep their dtype; products convert them to the dtype of the entries, block by block.
        """
        return replace(self, K=self.K.double())


@dataclass(frozen=True)
class LossProblem(_AtLandmarks):
    r"""m landmarks are centers, and the loss is not the square.

    The function is :math:`f = b + K_{nm} c`, b a constant for each output, and c minimises

    .. math:: F(c) = \frac1N \sum_i w_i \ell(f(x_i), y_i) + \frac\lambda2 c^\top K_{mm} c .

    Parameters
    ----------
    K, targets, penalty, weights, landmark_weight, coverage, index : as in `NystromProblem`
        Targets divided by the unit of the loss, or codes of classes.
    loss : Loss
    offset : Array of shape (q,)
        The constant b.
    """

    loss: Loss = field(kw_only=True)
    offset: Float[Array, " q"] = field(kw_only=True)

    @property
    def outputs(self) -> int:
        """The number q of predicted values of a row."""
        return len(self.offset)

    def values(self, coef: Float[Array, "m q"]) -> Float[Array, "n q"]:
        """Return f at the rows, in float64. Cost: n m kernel evaluations."""
        return self.K @ xp.to_float64(coef) + self.offset

    def mean_loss(self, f: Float[Array, "n q"]) -> Float[Array, " c"]:
        """Return the weighted mean loss of each output, or of all together if they are coupled."""
        losses = self.loss.values(f, xp.to_float64(self.targets))
        if self.weights is None:
            return losses.mean(axis=0)
        return (xp.to_float64(self.weights)[:, None] * losses).sum(axis=0) / self.total

    def double(self) -> LossProblem:
        """Return the same problem with kernel entries computed in float64."""
        return replace(self, K=self.K.double(), targets=xp.to_float64(self.targets))

    def model(self, coef: Float[Array, "m q"]) -> KernelModel:
        """Return the model with coefficients `coef`, a tensor on the device of the problem."""
        return KernelModel(self.K.kernel, self.K.cols, coef, target_shift=self.offset)


LinearProblem = FullProblem | NystromProblem
Problem = LinearProblem | LossProblem
