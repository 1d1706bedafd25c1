"""Skotch and ASkotch: block coordinate descent on the full problem, in memory of order n."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ... import _arrays as xp
from ..._arrays import RandomStream
from ..._messages.checks import as_count, as_positive, check_count_or_auto
from ...lowrank import TEST_MATRICES
from ...problems import FullProblem
from ..base import Solver, solvers
from ..cost import ProblemSize, StoresEntries
from ..loop.state import State, check_residual, draw_seed
from .block_rules import BLOCK_RULES, BlockRule, FixedBlocks
from .blocks import BLOCK_SOLVERS, CURVATURE_PROBES, EXACT_ROWS, Blocks
from .progress import Progress
from .state import ASkotchState

LEAST_BLOCK = 1000
"""Least rows of an automatic block: products of fewer rows do not saturate the engine."""


@solvers.register("askotch")
@dataclass(frozen=True)
class ASkotch(StoresEntries, Solver[FullProblem, ASkotchState]):
    r"""ASkotch [1]_: preconditioned block coordinate descent with Nesterov's momentum.

    For a block B of b rows, with :math:`H = K_{BB} + D_B` and its preconditioner :math:`P` of
    rank r, the step is :math:`d = P^{-1} (K_{Bn} w + D_B w_B - y_B) / L`, where L is the largest
    eigenvalue of :math:`P^{-1} H` (algorithm 3 of [1]_). `FreshBlocks` and `FixedBlocks` describe
    the choice of blocks and the updates of z and w.

    Use it with all rows as centers if they are too many for `PCG`, or for an early rough solution.

    Parameters
    ----------
    block : int or "auto", default="auto"
        Number of rows b of a block. "auto": n / 100, at least 1,000, at most n.
    rank : int, default=100
        Rank r of the preconditioner, at most b.
    blocks : str, default="fresh"
        ``"fresh"``: b random rows in each iteration; ``"fixed"``: one partition, as in the first
        version of the paper. For the same number of passes, fresh blocks reach much lower errors.
    block_solver : str, default="auto"
        Preconditioner P: ``"nystrom"``, a randomised Nystrom approximation of rank r, damped by the
        ridge and its last eigenvalue, as in the paper; ``"exact"``, H itself, randomised block
        Gauss-Seidel, b³ / 3 operations; ``"none"``, the identity: NU_ACDM, or without momentum
        block coordinate descent; ``"auto"``: exact up to 4,000 rows, Nystrom beyond.
    accelerated : bool, default=True
        Whether steps have momentum; without it the method is `Skotch`.
    convexity : float or "auto", default="auto"
        :math:`\mu`, the strong convexity of the objective. Fresh blocks: in the metric of L P; from
        1 on, steps have no momentum. Fixed blocks: in the metric of P, any positive number; the
        paper uses the ridge, n times the penalty. "auto": estimated from the decay rate of the
        residuals, measured every two passes or more, and 0.3 at first. For fresh blocks the
        estimate is at least the mean over blocks of the least curvature :math:`\delta / (L
        (\delta + \lambda_r))` along a step, where :math:`\delta` is the ridge and
        :math:`\lambda_r` the last eigenvalue of P; for exact blocks it is the mean of
        :math:`\delta (H^{-1})_{ii}` over 32 of their rows.
    damping : float or "auto", default="auto"
        :math:`\rho`, which is added to the Nystrom approximation of a block. "auto": the ridge plus
        the last eigenvalue of the approximation, as the paper recommends.
    sampling_power : float, default=0.5
        Fixed blocks: a block is drawn with a probability proportional to this power :math:`\alpha`
        of its L. 0 draws all blocks alike. The paper's :math:`\beta` is :math:`1 - 2 \alpha`:
        with momentum the power is at most 0.5, the paper's recommendation; without, at most 1.
    test_matrix : str, default="normal"
        Random matrix of the Nystrom approximation: ``"normal"``, ``"hadamard"`` or
        ``"sparse_sign"``. They are equally accurate and fast: a reader of the paper can compare.
    store_bytes : int, default=0
        Memory for the entries of K in the dtype of products. If they fit, they are evaluated once,
        and each iteration reads b rows of them. An estimator assigns the memory that its limit
        leaves if rows have at least 24 features, or 48 with more than two targets.

    Notes
    -----
    Cost per iteration: n b kernel evaluations, b² for the block and b³ / 3 operations, about
    :math:`b^2 r` with Nystrom blocks; a pass over all pairs is n / b iterations. Memory: b²
    numbers, and six vectors of n numbers per target. The residual in the history comes from the
    blocks of about the last pass, each before its step, and costs nothing. Blocks may miss rows of
    large weight: the prediction error includes the current residual of rows with more than 1 / b
    of all weight and ten times the mean, at n kernel evaluations per row. Iterates are float64.
    Kernel entries and P have the dtype of the rows, or float64 with ``"exact"``.

    Departures: blocks of up to 4,000 rows, all automatic ones below 400,000 rows, are solved
    exactly, with L = 1 and without rank; the paper has Nystrom blocks only. The paper uses N
    penalty as the strong convexity, which changes with the units of K. With the estimate, the
    error after 20 and 80 passes was on average within factors of 2 and 3 of the best of a grid of
    seven, with fixed blocks on eleven problems (700 rows, penalties 1e-2 to 1e-6, 4 to 35 blocks).

    :math:`\nu = n / b`, which `FreshBlocks` uses, holds if all blocks are alike. If rows repeat,
    few blocks contain two similar rows, :math:`\nu` may be as large as :math:`n / (b \mu)`, and the
    momentum may do harm, more so with a smaller convexity. Whenever the residual has grown
    fourfold, two passes compare the objective with the objective of the best coefficients, which
    are the last ones of the pass with the least residual. If the objective has grown too, the
    method restarts at the best coefficients with kernel entries in float64 and :math:`\nu` times
    :math:`\mu^{-1/2}`. (Entries are float64 from the start if float32 cannot resolve the penalty,
    see `FullProblem.needs_float64`.) The second restart has no momentum, which is Skotch's step;
    the third time the method ends as "diverged". The history counts `restarts`, and as
    ``singular_blocks`` the blocks of ``"exact"`` that are singular to rounding: they are solved
    with the least jitter on their diagonal, and a warning.

    References
    ----------
    .. [1] Rathore, Frangella, Yang, Derezinski, Udell, *Have ASkotch: A neat solution for
       large-scale kernel ridge regression*, 2024, arXiv:2407.10070, algorithms 1 to 4.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.solvers import ASkotch
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> est = KernelRidge(
    ...     "matern52", lengthscale=3.0, penalty=1e-4, solver=ASkotch(block=200), tol=1e-4
    ... )
    >>> est = est.fit(train, "target")
    >>> est.stop_reason_, round(float(est.score(test)), 2)
    ('converged', 0.99)
    """

    block: Any = "auto"  # int or "auto", checked below
    rank: int = 100
    blocks: str = "fresh"
    block_solver: str = "auto"
    accelerated: bool = True
    convexity: Any = "auto"  # float or "auto", checked below
    damping: Any = "auto"  # float or "auto", checked below
    sampling_power: float | int = 0.5
    test_matrix: str = "normal"
    store_bytes: int = 0
    problem_types: ClassVar[tuple[type, ...]] = (FullProblem,)
    state_type: ClassVar[type] = ASkotchState
    needs_random_access: ClassVar[bool] = True

    def next(self, rule: BlockRule, s: ASkotchState) -> ASkotchState:
        """Run one iteration of algorithm 1; the comments quote the lines of the paper."""
        w, progress = s.ahead, Progress(rule)
        B = rule.draw(s.iteration, s.smoothness)  # sample b; P_b <- Nystrom; L_b <- get_L
        g = rule.blocks.gradient(B.index, w)  # g_b <- K_bn w + lambda w_b - y_b
        d = (B.P @ g) / B.L  # v_b <- (P_b + rho_b I)^-1 g_b; d is v_b / L_b
        # x_b <- w_b - v_b / L_b
        x = xp.add_at(xp.copy(w), xp.to_device(B.index, d.device), d, alpha=-1)
        # The mean of the bounds of all blocks so far.
        curvature = s.curvature + (B.curvature - s.curvature) / (s.iteration - s.first + 1)
        auto = self.convexity == "auto"
        mu = max(curvature, s.convexity) if auto else float(self.convexity)
        excess, limit = s.excess(mu), rule.most_convexity
        # From this limit on, the formulas would give a step without momentum anyway, and the
        # infinite excess after the last restart cannot enter them.
        if not self.accelerated or min(mu, limit) * excess >= limit:
            w = z = x  # algorithm 4: no momentum
        else:  # z <- (z + gamma lambda w) / (1 + gamma lambda) - ...; w <- tau z + (1 - tau) x
            w, z = rule.momentum(s, x, B, d, mu)
        moved = replace(s, coef=x, ahead=w, momentum=z, curvature=curvature)
        return progress.after(moved, g, B, mu)

    def iterate(
        self, problem: FullProblem, state: State | None = None, *, rng: RandomStream | None = None
    ) -> Iterator[ASkotchState]:
        seed = state.seed if isinstance(state, ASkotchState) else draw_seed(rng)
        needs_float64, precise = problem.needs_float64, problem.double()
        # The rule in float64 exists from the start, because a restart may need it at any iteration.
        float64 = self.rule(self.keeping(precise) if needs_float64 else precise, seed)
        rule = float64 if needs_float64 else self.rule(self.keeping(problem), seed)
        s = state if isinstance(state, ASkotchState) else Progress(rule).start(state)
        yield s
        while True:
            # A residual that grew may have grown by the rounding of float32 entries: after a
            # restart all entries are float64.
            s = self.next(float64 if s.restarts else rule, s)
            yield s

    def rule(self, problem: FullProblem, seed: int) -> BlockRule:
        """Return the rule that draws blocks of a problem and updates the momentum."""
        b = self.block_rows(problem.K.shape[0])
        blocks = Blocks(problem, b, self.rank, self.solver_for(b), self.damping, self.test_matrix)
        if self.blocks == "fixed":
            return FixedBlocks(blocks, seed, float(self.sampling_power))
        return BLOCK_RULES[self.blocks](blocks, seed)

    def __post_init__(self) -> None:
        check_count_or_auto(self.block, "block")
        as_count(self.rank, "rank")
        choices = {
            "blocks": tuple(BLOCK_RULES),
            "block_solver": BLOCK_SOLVERS,
            "test_matrix": tuple(TEST_MATRICES),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} must be one of {', '.join(allowed)}, not {getattr(self, name)!r}"
                )
        for name in ("convexity", "damping"):
            if getattr(self, name) != "auto":
                as_positive(getattr(self, name), name)
        largest = 0.5 if self.accelerated else 1.0
        if not 0 <= self.sampling_power <= largest:
            raise ValueError(
                f"sampling_power must be from 0 to {largest:g}, not {self.sampling_power!r}"
                + ("; without momentum, accelerated=False, to 1" if self.accelerated else "")
            )

    def verify(self, problem: FullProblem, state: ASkotchState) -> None:
        """Compare the true residual with the residual of the last blocks; see `check_residual`."""
        check_residual(problem, state)

    def block_rows(self, n: int) -> int:
        """Return the block size b for n rows."""
        return min(n, max(n // 100, LEAST_BLOCK) if self.block == "auto" else int(self.block))

    def iterations_per_pass(self, n: int) -> float:
        return n / self.block_rows(n)

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        b = self.block_rows(size.n)
        exact = self.solver_for(b) == "exact"
        # The block with its factor and copies of the factor, in float64.
        block = 8 * b * (2 * b + CURVATURE_PROBES if exact else b + 6 * min(self.rank, b))
        return size.vector_bytes + block + self.kept_bytes(size)

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        b, n, steps = self.block_rows(size.n), size.n, self.steps(size, iterations)
        if self.stores(size):
            return n * n + steps * b * b
        return steps * (n * b + b * b)

    def operations(self, size: ProblemSize, iterations: int) -> float:
        b = self.block_rows(size.n)
        # `evaluations` counts the products with entries, so that only factorisations remain.
        per_block = b**3 / 3 if self.solver_for(b) == "exact" else 4.0 * b * b * self.rank
        return iterations * self.iterations_per_pass(size.n) * per_block

    def steps(self, size: ProblemSize, iterations: int) -> int:
        return math.ceil(iterations * self.iterations_per_pass(size.n))

    def bytes_read(self, size: ProblemSize) -> float:
        # A block is copied, and scanned for entries that are not finite or too small.
        b = float(self.block_rows(size.n))
        return 64 * b**2 + self.kept_bytes(size) * b / size.n

    def solver_for(self, b: int) -> str:
        """Return the solver of blocks with b rows."""
        if self.block_solver == "auto":
            return "exact" if b <= EXACT_ROWS else "nystrom"
        return self.block_solver


@solvers.register("skotch")
@dataclass(frozen=True)
class Skotch(ASkotch):
    """Skotch: `ASkotch` without momentum (algorithm 4 of its paper), one vector of n numbers less.

    Parameters, cost and references as in `ASkotch`.

    Use it to measure the effect of momentum; otherwise use `ASkotch`.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.solvers import ASkotch, Skotch
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> est = KernelRidge("matern52", lengthscale=3.0, penalty=1e-4, tol=1e-4, random_state=0)
    >>> for solver in (Skotch(block=200), ASkotch(block=200)):
    ...     print(est.set_params(solver=solver).fit(train, "target").stop_reason_)
    converged
    converged
    """

    accelerated: bool = False
