"""Closed-form refit in float64, for leverages, leave-one-out residuals and the evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, Float
from ..._messages.errors import SETTING_FORM, ParameterError, TextError
from ..._sparse import are_equal
from ...data import RowSource, refuse_remote
from ...model import KernelPart
from ...model.uncertainty.factors import (
    Factors,
    LandmarkFactors,
    RowFactors,
    above_rounding,
    diagonal_of,
    features,
)
from ...operators import KernelOperator
from ...preconditioners._root import Root
from ...problems import FullProblem, NystromProblem
from ...solvers import Direct
from ..inputs.training_data import TrainingData
from ..plans.memory import FitSize, divide_memory
from .center_removal import CenterRemoval

SAME_FUNCTION = 0.05
"""Largest relative distance of the values of a model from the solution of its system."""

SAME_ROWS = 1e-4
"""Largest relative distance of mapped rows from the centers of a model that they equal."""


@dataclass(frozen=True, eq=False)
class Solved:
    r"""Exact solution of a kernel ridge regression, with the leave-one-out residual of each row.

    With H the matrix that maps targets to fitted values, the residual of row i in the fit without
    the row is :math:`(y - H y)_i / (1 - H_{ii})`, as in
    `gramian.paths.leave_one_out_formula.Spectrum`: a row is left out with its whole weight. A
    landmark that is a row is removed from the centers together with it, see `CenterRemoval`.
    :math:`N \lambda`, the other landmarks and all maps of features and targets stay as they are.

    - `residuals`: residuals y - H y, in the units of the targets.
    - `left_out_residuals`: residual of each row by the fit without it.
    - `residual_leverage`: 1 - H_ii, with all centers.
    - `variance`: v of each row in the fit without the row; see
      `gramian.model.uncertainty.deviations`.
    - `diagonal`: the mean of k(x, x).
    - `amplitude`: the most likely variance of a Gaussian process, in units of k(x, x) and of the
      targets squared: :math:`y^\top (K + N \lambda W^{-1})^{-1} y / n`.
    - `evidence`: logarithm of the marginal likelihood of the targets as the solver sees them,
      summed over targets; NaN with landmarks.
    """

    factors: Factors
    residuals: Float[Array, "n t"]
    left_out_residuals: Float[Array, "n t"]
    residual_leverage: Float[Array, " n"]
    variance: Float[Array, " n"]
    diagonal: float
    amplitude: Float[Array, " t"]
    evidence: float = math.nan


def solved_exactly(
    model: KernelPart, data: TrainingData, penalty: float, limit: int | None
) -> Solved:
    """Solve the system of a model by factorisation in float64.

    - `data`: data of the fit of the model, without rows of weight zero.
    - `limit`: bytes of memory; by default the memory of the machine.

    Raise ValueError if the system exceeds the memory, the matrix is singular to rounding, or the
    model is not the solution of this system.

    All rows as centers: n² kernel evaluations, n³ operations, 8 n² bytes. Landmarks: 2 n m + m²
    kernel evaluations in two passes over the rows, about 5 n m² operations, 40 m² bytes.
    """
    refuse_remote(
        data.rows,
        "standard deviations and leave-one-out errors need all rows on one machine, but these "
        "are on other machines; use {conformal='split'} instead",
    )
    problem = system_of(model, data, penalty, limit)
    coef = xp.to_float64(model.coef)
    if isinstance(problem, NystromProblem):
        solution, values = _nystrom(problem, coef)
    else:
        solution, values = _full(problem), problem.K @ coef
    exact = problem.targets - solution.residuals
    # `not <=` is also true for NaN.
    if not float(xp.norm(values - exact)) <= SAME_FUNCTION * float(xp.norm(exact)):
        raise TextError(
            "the model is not the exact solution of its system: the solver had not converged, or "
            "the model was fitted to other rows, as when the budget of a search ends early; raise "
            "the iterations or the budget, or use {solver='direct'}"
        )
    scale = 1.0 if model.target_scale is None else model.target_scale
    amplitude = solution.amplitude * scale**2
    return replace(
        solution,
        residuals=solution.residuals * scale,
        left_out_residuals=solution.left_out_residuals * scale,
        amplitude=amplitude,
    )


def system_of(
    model: KernelPart, data: TrainingData, penalty: float, limit: int | None
) -> FullProblem | NystromProblem:
    """Return the system of a model in float64; raise ValueError if it exceeds the memory.

    The system is the full problem if all rows are centers, else the Nystrom problem.
    """
    rows = model.prepare_rows(data.rows)
    # Targets as the solver saw them: the penalty is in these units.
    y = xp.to_float64(data.targets)
    if model.target_shift is not None:
        y = y - model.target_shift
    if model.target_scale is not None:
        y = y / model.target_scale
    # A model in a file does not say whether its centers were all rows.
    full = _are_the_same(rows, model.centers)
    (n, d), (m, t) = rows.shape, model.coef.shape
    size = FitSize(n=n, d=d, t=t, m=m, itemsize=8, full=full)
    _, blocks = divide_memory(limit, Direct(), size)
    weights = None if data.weights is None else xp.to_float64(data.weights)
    if full:
        # The centers, not the rows that equal them up to rounding: their matrix is symmetric.
        K = xp.to_float64(
            KernelOperator(model.kernel, model.centers, model.centers, memory_bytes=blocks)
        )
        return FullProblem(K, y, penalty, weights)
    K = KernelOperator(model.kernel, rows, model.centers, memory_bytes=blocks).double()
    return NystromProblem(K, y, penalty, weights)


def _are_the_same(rows: RowSource, centers: RowSource) -> bool:
    """Return whether rows are the centers, up to the rounding of their maps."""
    if len(rows) != len(centers) or rows.sparse is not centers.sparse:
        return False
    if rows.sparse:
        index = xp.arange(len(rows))
        return are_equal(rows.take(index), centers.take(index))
    largest_distance = 0.0
    for (_, a), (_, b) in zip(rows.blocks(4096), centers.blocks(4096), strict=True):
        # Relative to the largest entry of the block; 1 if all entries are zero.
        largest_distance = max(
            largest_distance, float(xp.abs(a - b).max()) / (float(xp.abs(b).max()) or 1.0)
        )
    return largest_distance <= SAME_ROWS


def _full(problem: FullProblem) -> Solved:
    """Solve the full problem by a factor of K + ridge; the ridge must be positive."""
    y, n = problem.targets, len(problem.targets)
    ridge = xp.to_host(problem.ridge).reshape(-1)
    factors = RowFactors(ridge)
    # With C C' = (K + ridge)^-1, diagonal, coefficients and determinant all come from one factor.
    C = factors.inverse_factor(problem.K)
    white = C.T @ y
    coef = C @ white
    # In parts, because the square of C would take as much memory as C.
    inverse = xp.concat([xp.square(part).sum(axis=1) for part in xp.split(C, 512)])
    free_share = ridge * inverse
    # The logarithm of the determinant of K + ridge.
    determinant = -2 * float(xp.log(xp.diagonal(C)).sum())
    t = y.shape[1]
    evidence = -0.5 * (
        float(xp.square(white).sum()) + t * (determinant + n * math.log(2 * math.pi))
    )
    diagonal = diagonal_of(problem.K)
    return Solved(
        factors,
        residuals=ridge.reshape(-1, 1) * coef,
        left_out_residuals=coef / inverse[:, None],
        residual_leverage=free_share,
        variance=above_rounding(1 / inverse - ridge, diagonal),
        diagonal=float(diagonal.mean()),
        amplitude=xp.square(white).sum(axis=0) / n,
        evidence=evidence,
    )


def _nystrom(problem: NystromProblem, coef: Float[Array, "m t"]) -> tuple[Solved, Array]:
    """Solve the Nystrom problem by the factors of `LandmarkFactors`; return also K_nm coef."""
    factors, beta, root = _landmark_factors(problem)
    diagonal, y = diagonal_of(problem.K), problem.targets
    values, off, left_out = xp.empty_like(y), xp.empty_like(y), xp.empty_like(y)
    free_share, variance = xp.empty_like(diagonal), xp.empty_like(diagonal)
    removal = CenterRemoval.build(problem, factors, beta, root)
    shift = problem.shift
    for rows, block in problem.K.strips():
        f = factors.features(block)
        # 1. Leverages with all centers.
        norm, spread = xp.square(f).sum(axis=1), factors.spread(f)
        w = 1.0 if problem.weights is None else problem.weights[rows]
        free_share[rows] = _free_share(shift, w, norm, spread)
        off[rows], values[rows] = y[rows] - f @ beta, block @ coef
        # 2. The same without the center of a row that is a landmark.
        residual, norm, spread = removal.apply(rows, f, off[rows], norm, spread)
        without = _free_share(shift, w, norm, spread)
        left_out[rows] = residual / without[:, None]
        # 3. The variance: of the part of k(x, x) outside the
        # features, and of the coefficients inside.
        beyond = (diagonal[rows] - norm).clip(min=0.0)
        variance[rows] = above_rounding(beyond + shift * spread / without, diagonal[rows])
    fitted = off if problem.weights is None else problem.weights[:, None] * off
    amplitude = ((y * fitted).sum(axis=0) / (shift * len(y))).clip(min=0.0)
    mean = float(diagonal.mean())
    return Solved(factors, off, left_out, free_share, variance, mean, amplitude), values


def _free_share(
    shift: float, w: Array | float, norm: Float[Array, " b"], spread: Float[Array, " b"]
) -> Float[Array, " b"]:
    """Return 1 - H_ii of rows, but at least its value for a single row.

    A smaller value can only be a rounding error.
    """
    return xp.maximum(1 - w * spread, shift / (shift + w * norm))


def _landmark_factors(problem: NystromProblem) -> tuple[LandmarkFactors, Array, Root]:
    """Return the factors, the coefficients of the features, and the root of K_mm."""
    if problem.shift == 0:
        why = "has no leverages: each row may be interpolated"
        raise ParameterError("penalty", 0, why, form=SETTING_FORM)
    P = la.by_columns(xp.to_host(problem.K_mm.dense()))
    la.prepare_(P)
    root = Root.build(P, xp.float64)
    q, t = len(root.T), problem.targets.shape[1]
    index = xp.arange(q) if root.order is None else root.order[:q]
    T = xp.triu(root.T)
    R = xp.zeros((q, q + t), xp.float64)
    # QR of one block after another, as normal equations would square the condition number. The
    # ridge is the first block, so that R is invertible. The targets are the last columns, whose
    # part of R then gives the coefficients.
    xp.fill_(xp.diagonal(R), problem.shift**0.5)
    for rows, block in problem.K.strips():
        F = xp.concat([features(T, index, block), problem.targets[rows]], axis=1)
        if problem.weights is not None:
            F *= xp.sqrt(problem.weights[rows, None])
        R = la.stacked_triangle([R, F])[:q]
    beta: Array = xp.solve_triangular(R[:, :q], R[:, q:], upper=True)
    return LandmarkFactors(index, T, xp.contiguous(R[:, :q]), problem.shift), beta, root
