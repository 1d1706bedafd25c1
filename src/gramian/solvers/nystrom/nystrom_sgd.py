"""Nystrom SGD: stochastic gradients of the problem that FALKON solves."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ..._messages.checks import as_count, check_count_or_auto
from ...data import Batches, as_rows
from ...lowrank import POWER_SAFETY, largest_eigenvalue
from ...operators import KernelOperator
from ...problems import NystromProblem
from ..base import solvers
from ..cost import ProblemSize
from ..loop.minibatches import (
    BatchErrors,
    EpochPart,
    MiniBatchSolver,
    check_batch_error,
    kernel_block,
    load_centers,
    relative_weights,
)
from ..loop.state import BATCH_ERROR, EPOCH_KEY, State, starting_iteration
from .coordinates import Coordinates
from .gradient_descent import NystromDescent, check_coordinates
from .state import StochasticState

AUTOMATIC_BATCH = 256
"""Rows of an automatic batch."""

MEAN_OF_LAST = 8
"""The mean of iterates covers about the last eighth of them."""

STEP_ROWS = 1000
"""Rows from which the step length is estimated."""


@solvers.register("nystromsgd")
@dataclass(frozen=True)
class NystromSGD(MiniBatchSolver[NystromProblem, StochasticState], NystromDescent[StochasticState]):
    r"""Stochastic gradient descent on the Nystrom problem, equation (8) of [1]_.

    For each mini-batch B of b rows, with relative observation weights :math:`\Omega`,

    .. math:: \alpha \leftarrow \alpha - \tau\, B_0 B_0^\top \left( K_{Bm}^\top \Omega_B (K_{Bm}
        \alpha - y_B) / b + \lambda K_{mm} \alpha \right)

    Use it as a baseline, or for a rough model after one or two passes over the rows.

    Parameters
    ----------
    coordinates : {"functions", "coefficients"}, default="functions"
        "functions": :math:`B_0 = T^{-1}` with :math:`T^\top T = K_{mm}`; with ``penalty=0`` this is
        "NYTRO SGD" of figure 1 of [1]_. "coefficients": :math:`B_0` is the identity, "Nystrom SGD".
    batch : int or "auto", default="auto"
        Batch size b. "auto": 256.
    average : bool, default=True
        Whether `coef` is the mean of the iterates, in which late ones weigh more (the last eighth
        about half). The mean is far below the noise floor of a constant step.
    step_scale : float, default=1
        Factor of the automatic step, :math:`\tau = 1 / (L + R^2 / b)`, with L the largest
        eigenvalue of the Hessian and :math:`R^2` the largest trace of a row's, from 1,000 rows.
    states_per_epoch : int, default=1
        States per epoch; with several, time limits and callbacks act within an epoch.

    Notes
    -----
    An iteration is an epoch: n m kernel evaluations, and in functions 2 m² operations per batch and
    target. Setup: the factor T, m² kernel evaluations and m³ operations. Memory: 8 m² bytes, and a
    block of b by m. Rows may come from any source. Coefficients are float64, kernel entries have
    the dtype of the rows.

    With a constant step the method does not converge to the solution, but to its neighbourhood:
    `tol` does not stop it, and the number of epochs is a choice. If the batches have a hundred
    times the error of the first epoch, the method ends as "diverged".

    Departures: the papers state neither a step nor a mean of iterates.

    References
    ----------
    .. [1] Rudi, Carratino, Rosasco, *FALKON: An optimal large scale kernel method*, NeurIPS 2017,
       equation (8), figure 1.
    .. [2] Dieuleveut & Bach, *Nonparametric stochastic approximation with large step-sizes*, Annals
       of Statistics 44, 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.solvers import NystromSGD
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge("matern32", lengthscale=5.0, penalty=1e-3, landmarks=50, random_state=0)
    >>> est = est.set_params(solver=NystromSGD(batch=16), max_iter=20).fit(X, y)
    >>> est.score(X, y) > 0.45
    True
    """

    coordinates: Literal["functions", "coefficients"] = "functions"
    batch: Any = "auto"  # int or "auto", checked below
    average: bool = True
    states_per_epoch: int = 1
    state_type: ClassVar[type] = StochasticState
    allows_zero_penalty: ClassVar[bool] = True
    dense_centers: ClassVar[bool] = True
    solves_exactly: ClassVar[bool] = False

    def run_(
        self, S: Setup, beta: Array, mean: Array, count: int, batches: Iterable[Any]
    ) -> BatchErrors:
        """Run the loop over batches in place, with alpha = B_0 beta."""
        errors = BatchErrors()
        for B, rows in batches:
            K_Bm, y_B = kernel_block(S.K, rows), xp.to_float64(S.C.problem.targets[B])
            r = K_Bm @ S.C.to_coef(beta) - y_B
            errors.add(r, y_B)
            u = r if S.omega is None else S.omega[B, None] * r
            g = S.C.pull_back(K_Bm.T @ u) / len(B) + S.C.ridge(beta)
            beta -= S.tau * g
            count += 1
            # A mean of about the last eighth of the iterates: it removes the noise of the batches
            # without the first iterates, which are far off.
            mean += (MEAN_OF_LAST + 1) / (count + MEAN_OF_LAST) * (beta - mean)
            del K_Bm  # frees the block before the next one is allocated
        return errors

    def next(self, S: Setup, s: StochasticState) -> StochasticState:
        part = EpochPart.after(s.iteration, len(S.batches), self.states_per_epoch)
        # The loop works in place, and a yielded tensor must not change.
        beta, mean = xp.copy(s.beta), xp.copy(s.mean)
        batches = S.batches.epoch(part.epoch, part.start, part.stop)
        errors = self.run_(S, beta, mean, s.count, batches)
        return StochasticState(
            iteration=s.iteration + 1,
            coef=S.C.to_coef(mean if self.average else beta),
            metrics={EPOCH_KEY: part.done, BATCH_ERROR: errors.mse},
            beta=beta,
            mean=mean,
            count=s.count + part.stop - part.start,
            seed=s.seed,
            settings=s.settings,
            **s.progress(errors, part.length),
        )

    def setup(self, problem: NystromProblem, seed: int) -> Setup:
        """Return the coordinates, the batches and the step."""
        C = self.build_coordinates(problem)
        K, (n, m) = load_centers(problem.K), problem.K.shape
        fits = max(1, K.memory_bytes // (4 * m * K.dtype.itemsize))
        b = min(n, fits, AUTOMATIC_BATCH if self.batch == "auto" else int(self.batch))
        batches = Batches(K.rows, b, seed, K.host_bytes // 4)
        S = Setup(C, K, batches, relative_weights(problem), 0.0)
        return replace(S, tau=self.step_scale * S.stable_step())

    def start(self, S: Setup, coef: Array, state: State | None) -> StochasticState:
        beta = S.C.from_coef(coef)
        return StochasticState(
            starting_iteration(state),
            coef,
            beta=beta,
            mean=beta,
            seed=S.batches.seed,
            settings={"batch": S.batches.size, "step": S.tau},
        )

    def build_coordinates(self, problem: NystromProblem) -> Coordinates:
        return Coordinates.build(problem, self.coordinates)

    def verify(self, problem: NystromProblem, state: StochasticState) -> None:
        """Compare the coefficients with the iterates, and their errors with the last batches.

        Cost: 2 n m kernel evaluations.
        """
        C = self.build_coordinates(problem)
        iterates = (C.to_coef(state.beta), C.to_coef(state.mean), state.coef)
        check_batch_error(problem, state, iterates)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count_or_auto(self.batch, "batch")
        as_count(self.states_per_epoch, "states_per_epoch")
        check_coordinates(self.coordinates)

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        return iterations * size.n * size.m + size.m * (2 * size.m + STEP_ROWS)

    def steps(self, size: ProblemSize, iterations: int) -> int:
        b = AUTOMATIC_BATCH if self.batch == "auto" else int(self.batch)
        return iterations * math.ceil(size.n / min(b, size.n))


@dataclass(frozen=True)
class Setup:
    """Constants of the loop of `NystromSGD`.

    - `K`: the landmarks in memory or in a memory-mapped file.
    - `omega`: observation weights relative to their mean.
    - `tau`: step length.
    """

    C: Coordinates
    K: KernelOperator
    batches: Batches
    omega: Float[Array, " n"] | None
    tau: float = 0.0

    def stable_step(self) -> float:
        """Return 1 / (L + R² / b), from the rows of the first batches.

        Cost: 1,000 m kernel evaluations, and 1,000 m² operations.
        """
        sample = replace(self.batches, size=min(STEP_ROWS, self.K.shape[0]))
        B, x = next(iter(sample.epoch(0)))
        K_Bm = xp.to_float64(replace(self.K, rows=as_rows(x)).dense())
        weight = (
            xp.ones(len(B), like=K_Bm) if self.omega is None else xp.cast_like(self.omega[B], K_Bm)
        )
        features = self.C.pull_back(xp.contiguous(K_Bm.T)) * xp.sqrt(weight)

        def hessian(v: Array) -> Array:
            return features @ (features.T @ v) / len(B) + self.C.ridge(v)

        rng = RandomStream(self.batches.seed)
        start = rng.standard_normal((len(features), 1), xp.float64)
        L = POWER_SAFETY * largest_eigenvalue(hessian, xp.cast_like(start, features))
        trace = float(xp.square(features).sum(axis=0).max())
        # A kernel that vanishes at all rows leaves no curvature: any step serves.
        return 1.0 / ((L + trace / self.batches.size) or 1.0)
