"""Newton's method for losses other than the square, by weighted least-squares problems."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from ... import _arrays as xp
from ..._arrays import Array, RandomStream
from ..._linalg.spectrum import spectrum_operations
from ...preconditioners._root import Root
from ...preconditioners.falkon import rounding_of
from ...problems import LossProblem
from ..base import Solver, solvers
from ..cost import PANEL_ROWS, ProblemSize
from ..falkon import VISIBLE_ROUNDING
from ..loop.state import RESIDUAL_KEY, State, starting_coef
from .coordinates import Coordinates, root_at
from .point import Point, take_step
from .stages import NewtonState, Stages

logger = logging.getLogger("gramian")

MOST_OF_A_STAGE = 12
"""Most Newton steps of a stage before the last one; the next stage starts where they end."""

MOST_ITERATIONS = 100
"""Most iterations of conjugate gradient in a Newton step."""

MANY_ITERATIONS = 25
"""Iterations of a step above which later factors are built from rows, if that is cheap."""

LEAST_ACCURACY = 1e-2
"""Least relative residual of a step: another step costs less than the iterations to reduce it."""

COARSE_STEPS = 2
"""Steps without a lower objective after which products with float32 rows run in float64."""

ROOT_OF_ROUNDING = 1e-8
"""Root of the rounding unit. The gradient of a constant target consists of rounding."""

ASSUMED_ITERATIONS = 5
"""Iterations of conjugate gradient per step in cost estimates."""


@solvers.register("newton")
@dataclass(frozen=True)
class Newton(Solver[LossProblem, NewtonState]):
    r"""Newton's method on a decreasing path of penalties [1]_: logistic FALKON, and other losses.

    The approximate Newton step :math:`\mathrm{ANM}_\rho(\mu, c)` runs conjugate gradient, in the
    coordinates of FALKON with the curvatures of the loss at the landmarks as weights, until the
    residual is :math:`\rho` times the gradient:

    1. from c = 0 and a large :math:`\mu`: c = ANM(mu, c), :math:`\mu \leftarrow q \mu`, until
       :math:`\mu = \lambda`;
    2. c = ANM(lambda, c) until the gradient is small.

    Use it for all losses except the square, as ``loss=`` of an estimator does.

    Parameters
    ----------
    decrease : float, default=0.1
        Factor q of the penalty between two stages, below 1.
    accuracy : float, default=1/7
        The :math:`\rho` of all stages but the last, which uses the square root of ``rel_residual``
        if it is smaller, down to 0.01.
    preconditioner_penalty : float, "auto" or None, default="auto"
        As in `Falkon`.

    Notes
    -----
    Guarantee [1]_, theorem 1, for generalized self-concordant losses (logistic, softmax) of points
    of norm at most R: with :math:`\rho \le 1/7`, two steps for each :math:`\mu`, decreases
    :math:`q_k = (1/3 + 7R\|c_k\|) / (1 + 7R\|c_k\|)` and T steps at the end, the objective is
    within :math:`\lambda R^{-2} 4^{-T}` of its minimum. The number of stages is of the order of
    :math:`\log(\mu_0/\lambda)`, whatever the condition number.

    Departures: the decrease is constant, and larger than the theorem allows. A step that is too
    long is halved until the objective falls as much as the slope promises [2]_, which makes every
    convex loss converge. A stage ends with its first step of full length. The line search needs no
    kernel evaluation, because values are linear along it. Losses with a kink are smoothed, over a
    width that falls threefold from stage to stage. If few rows are curved, near a kink, and after a
    step of many iterations, all curved rows build the preconditioner, if that is cheap.

    ``rel_residual``: the Newton decrement of the final problem (the last penalty, the last width),
    over the root of twice the decrease of the objective since the constant function, or of twice
    the objective for classes, if that is less. Half the square of the decrement is about the
    distance to the minimum, so that a tolerance of 1e-4 leaves 1e-8 of the gain, and of a log
    loss, however small it is for separable classes. ``objective``: the value of the objective.

    Cost of a step: for one output (2 + k) n m kernel evaluations, with k iterations of conjugate
    gradient (about 3 to 10); for several (2 + 2 k) n m. Factors: 2/3 m³ operations per output, one
    for all of `Softmax`. Memory: 8 m² bytes for the root of K_mm and for each factor, and about ten
    vectors of n numbers per output, most of them in the line search. Vectors, factors and sums are
    float64. Kernel entries have the dtype of the rows, or float64 if `FalkonFactor.rounding`
    estimates a visible error, and once two steps in a row have gained nothing.

    References
    ----------
    .. [1] Marteau-Ferey, Bach, Rudi, *Globally convergent Newton methods for ill-conditioned
       generalized self-concordant losses*, NeurIPS 2019, sections 4 and 5.
    .. [2] Nocedal & Wright, *Numerical optimization*, 2006, section 3.1.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.solvers import Newton
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge("matern32", lengthscale=5.0, loss="huber", penalty=0.01, solver=Newton())
    >>> est = est.fit(X, y)
    >>> est.stop_reason_, est.n_iter_ < 20
    ('converged', True)
    """

    decrease: float = 0.1
    accuracy: float = 1 / 7
    preconditioner_penalty: float | Literal["auto"] | None = "auto"
    problem_types: ClassVar[tuple[type, ...]] = (LossProblem,)
    state_type: ClassVar[type] = NewtonState

    def __post_init__(self) -> None:
        for name in ("decrease", "accuracy"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must be between 0 and 1, not {getattr(self, name)!r}")

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        factors = (2 + size.t) * 8 * size.m * size.m
        vectors = 8 * size.t * (6 * size.m + 10 * size.n)
        return vectors + factors + 16 * size.m * size.d

    def panel_bytes(self, size: ProblemSize) -> int:
        return 3 * PANEL_ROWS * 8 * size.m

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        passes = 2 + ASSUMED_ITERATIONS * (1 if size.t == 1 else 2)
        return (2 + passes * iterations) * size.n * size.m + size.m * size.m

    def operations(self, size: ProblemSize, iterations: int) -> float:
        searches_penalty = self.preconditioner_penalty == "auto"
        spectrum = spectrum_operations(size.m) if searches_penalty else 0.0
        return iterations * (0.7 * float(size.m) ** 3 + spectrum)

    def bytes_read(self, size: ProblemSize) -> float:
        return 16.0 * float(size.m) ** 2

    def iterate(
        self, problem: LossProblem, state: State | None = None, *, rng: RandomStream | None = None
    ) -> Iterator[NewtonState]:
        root = root_at(problem)
        stages = Stages.of(problem, self.decrease)
        s = self._start(stages, root, state)
        stages = xp.to_float64(stages) if s.wide else stages
        at = Point.of(stages.problem, s.coef)
        baseline = _Baseline.of(stages)
        while True:
            mu = stages.at(s.stage)
            # The factor of A depends on the curvatures at this point, and is built again in each
            # step; the root of K_mm is shared by all steps and outputs.
            B = Coordinates.at(mu, root, at.f, self.preconditioner_penalty, s.hard)
            s = s if s is state else _add_metrics(s, stages, B, at, baseline)
            yield s
            # Float32 entries limit the objective. Once steps gain nothing, later ones use float64.
            if not s.wide and s.idle >= COARSE_STEPS and stages.problem.K.dtype != xp.float64:
                logger.info(
                    "the residual no longer falls with K_nm in float32; continuing in float64"
                )
                s = replace(s, wide=True, idle=0, least=math.inf)
                stages = xp.to_float64(stages)
                mu, at = stages.at(s.stage), Point.of(stages.problem, s.coef)
                B = Coordinates.at(mu, root, at.f, self.preconditioner_penalty, s.hard)
            gradient = B.gradient(at.slopes(mu), at.on_centers)
            rho = self._accuracy(s, stages)
            beta, iterations = B.direction(gradient, rho, MOST_ITERATIONS)
            # The slope is the product of the step and the gradient in the coordinates, where both
            # are known.
            at, length = take_step(mu, at, B.to_coef(beta), (beta * gradient).sum(axis=0))
            s = _next(s, at, length, iterations, len(stages))

    def _accuracy(self, s: NewtonState, stages: Stages) -> float:
        """Return the relative residual at which a step ends."""
        if s.stage < len(stages) - 1:
            return self.accuracy
        # Inexact Newton: a tolerance like the root of the residual keeps superlinear convergence,
        # and far from the solution spends no iterations on a direction that the next step replaces.
        return max(LEAST_ACCURACY, min(self.accuracy, math.sqrt(s.metrics[RESIDUAL_KEY])))

    def _start(self, stages: Stages, root: Root, state: State | None) -> NewtonState:
        """Return the first state: `state` itself, its coefficients, or the constant function."""
        if isinstance(state, NewtonState):
            return state
        problem, last = stages.problem, len(stages) - 1
        zero = xp.zeros((problem.K.shape[1], problem.outputs), xp.float64, like=problem.targets)
        # Rounding is estimated before the first step, because it decides the dtype of all products.
        wide = problem.K.dtype != xp.float64 and self._rounds(stages, root)
        return NewtonState(
            0,
            starting_coef(state, zero),
            {"step": 1.0, "cg": 0},
            stage=0 if state is None else last,
            tried=0,
            wide=wide,
        )

    def _rounds(self, stages: Stages, root: Root) -> bool:
        """Return whether rounding kernel entries to float32 causes a visible error."""
        problem = stages.problem
        # A smoothed kink is widest in the first stage, where most rows have curvature.
        representative = stages.at(len(stages) - 1 if problem.loss.kink is None else 0)
        f = xp.expand(problem.offset, (len(problem.targets), -1))
        B = Coordinates.at(representative, root, f, self.preconditioner_penalty)
        return rounding_of(B.factors[0], problem) > VISIBLE_ROUNDING


def _next(s: NewtonState, at: Point, length: float, cg: int, stages: int) -> NewtonState:
    """Return the state after a step; a step of full length ends a stage, unless it is the last."""
    last = s.stage == stages - 1
    # Earlier stages only provide a start: a full step means that the next penalty is in the range
    # of Newton's method, and no step at all that this stage gains nothing more.
    ended = not last and (length in (0, 1) or s.tried + 1 >= MOST_OF_A_STAGE)
    return NewtonState(
        s.iteration + 1,
        at.coef,
        {"step": length, "cg": cg},
        stage=s.stage + ended,
        tried=0 if ended else s.tried + 1,
        wide=s.wide,
        hard=s.hard or cg > MANY_ITERATIONS,
        least=s.least,
        idle=s.idle,
    )


@dataclass(frozen=True, eq=False)
class _Baseline:
    """Objective of the constant function, and the Newton decrement that counts as rounding."""

    objectives: Array
    floor: float

    @classmethod
    def of(cls, stages: Stages) -> _Baseline:
        problem = stages.at(len(stages) - 1)
        f = xp.expand(problem.offset, (len(problem.targets), -1))
        mean_loss = float(xp.abs(problem.loss.values(f, xp.to_float64(problem.targets))).mean())
        return cls(problem.mean_loss(f), ROOT_OF_ROUNDING * math.sqrt(mean_loss))

    def residual(self, decrements: Array, objectives: Array, classes: bool) -> float:
        """Return the largest relative decrement, as `Newton` defines it."""
        scale = self.objectives - objectives
        scale = xp.minimum(scale, objectives) if classes else scale
        # The floor keeps the quotient finite for a constant target, whose decrement is rounding.
        relative = decrements / xp.sqrt((2 * scale).clip(min=self.floor**2 or 1.0))
        return float(relative.clip(max=1.0).max())


def _add_metrics(
    s: NewtonState, stages: Stages, B: Coordinates, at: Point, baseline: _Baseline
) -> NewtonState:
    """Return the state with residual and objective of the final problem."""
    last = len(stages) - 1
    final, mu = stages.at(last), stages.penalties[s.stage]
    gradient = B.gradient(at.slopes(final), at.on_centers, final.penalty)
    gradient = gradient.reshape(-1, 1) if final.loss.coupled else gradient
    # Coordinates of a larger penalty underestimate the decrement, at most by this factor.
    factor = math.sqrt(mu / final.penalty) if final.penalty > 0 else 1.0
    objectives = at.objectives(final)
    residual = baseline.residual(
        factor * xp.norm(gradient, axis=0), objectives, final.loss.of_classes
    )
    objective = float(objectives.sum())
    # Objectives of earlier stages belong to other penalties, and are not compared.
    lower = s.stage < last or objective < s.least
    return replace(
        s,
        metrics=s.metrics | {RESIDUAL_KEY: residual, "objective": objective, "stage_penalty": mu},
        least=objective if lower else s.least,
        idle=0 if lower else s.idle + 1,
    )
