"""EigenPro 2: stochastic gradient descent with the top of the kernel's spectrum flattened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ...data import Shuffle
from ...operators import DenseBlock, KernelOperator
from ...preconditioners import EigenProFactor
from ...preconditioners.samples import most_eigenpairs
from ...problems import FullProblem
from ..base import solvers
from ..cost import ProblemSize, StoresEntries
from ..loop.minibatches import BatchErrors, EpochPart, MiniBatchSolver, relative_weights
from ..loop.state import (
    BATCH_ERROR,
    EPOCH_KEY,
    PREDICTION_ERROR,
    RESIDUAL_KEY,
    State,
    check_residual,
    starting_iteration,
)
from .settings import EigenProSettings
from .state import EigenProState


@solvers.register("eigenpro2")
@dataclass(frozen=True)
class EigenPro2(EigenProSettings, StoresEntries, MiniBatchSolver[FullProblem, EigenProState]):
    r"""EigenPro 2 [1]_: stochastic gradient descent on K coef = y, preconditioned by a subsample.

    For each mini-batch B, with S and U of the `EigenProFactor` (algorithm 3 of [2]_):

    .. math:: g = K_{Bn}\, \mathrm{coef} - y_B, \qquad \mathrm{coef}_B \leftarrow
        \mathrm{coef}_B - \eta g, \qquad \mathrm{coef}_S \leftarrow \mathrm{coef}_S + \eta U
        U^\top K_{SB}\, g

    With a penalty, it runs on the kernel :math:`k + N \lambda [x = x']`, so that its fixed point is
    the solution of the problem; with observation weights, on :math:`\Omega^{1/2} (K + N \lambda
    W^{-1}) \Omega^{1/2}`, where :math:`\Omega = n W / N`. With penalty 0 it interpolates, as in
    the paper.

    Use it with ``penalty=0``: the number of epochs then regularises.

    Parameters
    ----------
    subsample : int or "auto", default="auto"
        Number s of rows for the eigenvectors. "auto": 2,000, or 5,000 from 100,000 rows on.
    rank : int or "auto", default="auto"
        Number q of flattened directions, see `EigenProFactor`; 0 is plain stochastic gradient
        descent.
    batch : int or "auto", default="auto"
        Batch size m. "auto": a quarter of the critical batch, beta / top, between 128 and 4,096.
    exponent : float, default=0.95
        Exponent a of `EigenProFactor`.
    step_scale : float, default=1
        Factor of the automatic step, :math:`\eta = 1.5 / (\beta + (m - 1) \lambda_{top})`; see
        `EigenProFactor.step`.
    states_per_epoch : int, default=1
        States per epoch; with several, time limits and callbacks act within an epoch.
    store_bytes : int, default=0
        Memory for the entries of K in the dtype of the rows. If they fit, they are evaluated once,
        and each batch reads its rows of them. An estimator assigns the memory that its limit
        leaves if rows have at least 24 features, or 48 with more than two targets.

    Notes
    -----
    An iteration is an epoch, a pass over all pairs: n² kernel evaluations, and n s for the
    correction. Memory: 8 n numbers per target, and a block of s by m. Coefficients are float64,
    kernel entries have the dtype of the rows. Errors decrease by about penalty · N / beta per epoch
    or faster. With small penalties, early epochs learn most of the function; use `PCG` to reach
    convergence.

    ``batch_mse`` and ``rel_residual`` in the history are measured on each batch before its step. If
    ``batch_mse`` is no lower after ten epochs than in the first, the method ends as "no_progress".

    Departures: top eigenvalue and step as in the notes of `EigenProFactor`.

    References
    ----------
    .. [1] Ma & Belkin, *Kernel machines that adapt to GPUs for effective large batch training*,
       MLSys 2019.
    .. [2] Abedsoltan, Belkin, Pandit, *Toward large kernel models*, ICML 2023, arXiv:2302.02605.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.solvers import EigenPro2
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> est = KernelRidge(
    ...     "laplacian", lengthscale=3.0, penalty=0.0, solver=EigenPro2(), random_state=0
    ... )
    >>> est = est.set_params(early_stopping=True).fit(train, "target")
    >>> est.best_iteration_ > 0, round(float(est.score(test)), 2)
    (True, 0.99)
    """

    store_bytes: int = 0
    problem_types: ClassVar[tuple[type, ...]] = (FullProblem,)
    state_type: ClassVar[type] = EigenProState
    needs_random_access: ClassVar[bool] = True
    dense_centers: ClassVar[bool] = True
    allows_zero_penalty: ClassVar[bool] = True

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        return size.vector_bytes + self.sample_bytes(size.n) + self.kept_bytes(size)

    def flexible_bytes(self, size: ProblemSize, available: int) -> int:
        return self.sample_bytes(size.n, available)

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        n, s = size.n, self.subsample_rows(size.n)
        of_rows = n * n if self.stores(size) else iterations * n * n
        return of_rows + iterations * n * s + 2 * s * s + n * s

    def operations(self, size: ProblemSize, iterations: int) -> float:
        q = most_eigenpairs(self.subsample_rows(size.n), size.n)
        return self.eigenvector_operations(size, q)

    def steps(self, size: ProblemSize, iterations: int) -> int:
        # The product with the subsample takes as long as a step of its own.
        return 2 * super().steps(size, iterations)

    def bytes_read(self, size: ProblemSize) -> float:
        per_batch = self.kept_bytes(size) / self.steps(size, 1)
        return 8 * float(self.subsample_rows(size.n)) ** 2 / 10 + per_batch

    def verify(self, problem: FullProblem, state: EigenProState) -> None:
        """Compare the true residual with the residual of the last batches; see `check_residual`."""
        check_residual(problem, state)

    def system(self, problem: FullProblem, seed: int) -> Descent:
        """Return the preconditioned system of a problem."""
        n, omega = problem.K.shape[0], relative_weights(problem)
        rng = RandomStream(seed)
        ridge = n * problem.penalty
        problem = self.keeping(problem)
        # The ridge must be in the factor: directions near its size would otherwise be flattened as
        # if they were below it.
        P = self.factor(problem.K, rng, weights=omega, ridge=ridge)
        m = self.batch_rows(P, n)
        eta = self.step_scale * P.step(m)
        return Descent(problem.K, P, Shuffle(n, m, seed), eta, problem.ridge, ridge, omega)

    def setup(self, problem: FullProblem, seed: int) -> tuple[FullProblem, Descent]:
        return problem, self.system(problem, seed)

    def start(
        self, S: tuple[FullProblem, Descent], coef: Array, state: State | None
    ) -> EigenProState:
        iteration, (_, system) = starting_iteration(state), S
        return EigenProState(iteration, coef, seed=system.shuffle.seed, settings=system.settings())

    def next(self, S: tuple[FullProblem, Descent], s: EigenProState) -> EigenProState:
        problem, system = S
        part = EpochPart.after(s.iteration, len(system.shuffle), self.states_per_epoch)
        batches = system.shuffle.indices(part.epoch, part.start, part.stop)
        # The loop works in place, and a yielded tensor must not change.
        coef, errors = xp.copy(s.coef), BatchErrors()
        system.run_(coef, problem.targets, batches, errors)
        return EigenProState(
            iteration=s.iteration + 1,
            coef=coef,
            metrics={
                EPOCH_KEY: part.done,
                BATCH_ERROR: errors.mse,
                RESIDUAL_KEY: errors.relative,
                PREDICTION_ERROR: problem.relative_error(errors.rmse),
            },
            seed=s.seed,
            settings=s.settings,
            **s.progress(errors, part.length),
        )


@dataclass(frozen=True)
class Descent:
    """The preconditioned system (K + D) coef = y, and the steps of EigenPro 2 on it.

    - `P`: the preconditioner.
    - `eta`: step per row.
    - `D`, (n, 1) or (): ridge of each row, or one ridge for all rows.
    - `ridge`: n times the penalty: the ridge of the system multiplied by the relative weights
      `omega`.
    - `omega`: weights relative to their mean.
    """

    K: KernelOperator | DenseBlock
    P: EigenProFactor
    shuffle: Shuffle
    eta: float
    D: Array
    ridge: float = 0.0
    omega: Float[Array, " n"] | None = None

    def run_(
        self, coef: Array, targets: Array, batches: Iterable[Array], errors: BatchErrors
    ) -> None:
        """Take a step for each batch of row indices, and change `coef` in place."""
        for B in batches:
            errors.add(self._step_(coef, targets[B], B), targets[B])

    def _step_(self, coef: Array, y: Array, B: Array) -> Array:
        D = self.D[B] if self.D.ndim else self.D
        r = self.K[B] @ coef + D * coef[B] - xp.to_float64(y)
        # The errors belong to r: weights change the step, not the residual.
        g = r if self.omega is None else self.omega[B, None] * r
        xp.add_at(coef, xp.to_device(B, g.device), g, alpha=-self.eta)
        if self.P.rank:
            h = self.K[self.P.index, B] @ g
            # The ridge is part of the kernel k + ridge [x = x'], so rows in both sets meet
            # themselves.
            if self.ridge:
                h += self.ridge * self._select_subsample(B, r)
            index = xp.to_device(self.P.index, h.device)
            xp.add_at(coef, index, self.P.correction(h), alpha=self.eta)
        return r

    def _select_subsample(self, B: Array, r: Array) -> Array:
        """Return r at the rows of the subsample, in this order, with zeros for rows not in B."""
        # The batch is sorted, so the search replaces a table of all rows. The clamp keeps `at` in
        # range.
        at = xp.find_insertions(B, self.P.index).clip(max=len(B) - 1)
        in_batch = xp.to_device(B[at] == self.P.index, r.device)
        return xp.where(in_batch[:, None], r[at], 0.0)

    def settings(self) -> dict[str, int | float]:
        """Return the chosen settings, for display."""
        return {**self.P.settings(), "batch": self.shuffle.size, "step": self.eta}
