"""ASkotch: accelerated block coordinate descent on the full problem, in memory of order n."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._checks import as_count, check_count_or_auto
from ..lowrank import SAFETY, largest_eigenvalue, randomized_nystrom
from ..preconditioners import LowRankInverse
from ..problems import FullProblem
from .base import Solver, State, drawn_seed, solvers, starting_coef

LEAST_BLOCK = 1000
"""Rows of a block at least, if there are as many: below, the products do not fill the engine."""

WORSE = 4.0
"""Growth of the residual over its least at which the momentum starts again."""


@dataclass
class ASkotchState(State):
    """All that the method needs to go on.

    Attributes
    ----------
    ahead, momentum : Tensor of shape (n, t)
        The sequences Y and V; `coef` is W.
    recent : Tensor of shape (k, t)
        Squared norms of the last block residuals, over their rows: those of about one pass.
    least : float
        The least mean of them.
    convexity : float
        Sum of the estimates of nu · mu over the iterations; `restarts` counts new starts.
    seed : int
        From which, with the number of the iteration, each block is drawn.
    """

    ahead: Float[Tensor, "n t"] = field(default_factory=lambda: torch.empty(0, 0))
    momentum: Float[Tensor, "n t"] = field(default_factory=lambda: torch.empty(0, 0))
    recent: Float[Tensor, "k t"] = field(default_factory=lambda: torch.empty(0, 0))
    least: float = math.inf
    convexity: float = 0.0
    restarts: int = 0
    seed: int = 0


@solvers.register("askotch")
@dataclass(frozen=True)
class ASkotch(Solver[FullProblem, ASkotchState]):
    r"""ASkotch [1]_ with a new random block in each iteration.

    For a block B of b rows, with :math:`H = K_{BB} + D_B` and its preconditioner :math:`P` of
    rank r, the step is :math:`d = P^{-1} (K_{Bn} Y + D_B Y_B - y_B) / L`, where L is the largest
    eigenvalue of :math:`P^{-1} H`; Nesterov's momentum runs over the blocks:

    .. math:: W = Y - I_B d, \quad V \leftarrow \beta V + (1 - \beta) Y - \gamma I_B d, \quad
        Y = \alpha V + (1 - \alpha) W

    with :math:`\beta = 1 - \sqrt{\mu / \nu}`, :math:`\gamma = 1 / \sqrt{\mu \nu}`, :math:`\alpha =
    1 / (1 + \gamma \nu)` and :math:`\nu = n / b`.

    Parameters
    ----------
    block : int or "auto", default="auto"
        b. "auto": n / 100, at least 1,000, at most n.
    rank : int, default=100
        r, at most b.
    accelerated : bool, default=True
        False: Skotch, W = V = Y.

    Notes
    -----
    Cost per iteration: n b kernel evaluations, b² for the block and about :math:`b^2 r`
    operations; a pass over all pairs is n / b iterations. Memory: b² and b r numbers, and five
    vectors of n numbers per target. The residual in the history is that of the blocks of about the
    last pass, each at the time it was drawn, which costs nothing. Iterates are float64; kernel
    entries and P have the dtype of the rows.

    Departures: the paper takes mu = N penalty, which changes with the units of K. Here :math:`\mu =
    \mathrm{mean}(\delta / (L (\delta + \lambda_r))) / \nu`, over the iterations so far, where
    :math:`\delta` is the ridge and :math:`\lambda_r` the last eigenvalue of P: the least
    curvature that a step can meet. On six problems (n = 2,000, penalties 1e-2 to 1e-6, three block
    sizes and ranks) it was within a factor of three of the best mu of a grid. If the residual
    grows to four times the least one, momentum starts again from W; the history counts `restarts`.

    References
    ----------
    .. [1] Rathore, Frangella, Yang, Derezinski, Udell, *Have ASkotch: A neat solution for
       large-scale kernel ridge regression*, 2024, arXiv:2407.10070.
    """

    block: Any = "auto"  # int or "auto", checked below
    rank: int = 100
    accelerated: bool = True
    problem_types: ClassVar[tuple[type, ...]] = (FullProblem,)
    state_type: ClassVar[type] = ASkotchState
    needs_random_access: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count_or_auto(self.block, "block")
        as_count(self.rank, "rank")

    def iterate(
        self,
        problem: FullProblem,
        state: State | None = None,
        *,
        rng: torch.Generator | None = None,
    ) -> Iterator[ASkotchState]:
        s = state if isinstance(state, ASkotchState) else _start(problem, state, rng)
        work = _Work(problem, self.block_rows(problem.K.shape[0]), self.rank, self.accelerated)
        yield s
        while True:
            s = work.step(s)
            yield s

    def block_rows(self, n: int) -> int:
        """Return b for n rows."""
        return min(n, max(n // 100, LEAST_BLOCK) if self.block == "auto" else int(self.block))

    def block_bytes(self, n: int) -> int:
        """Return the memory for a block of n rows, its factor and copies of that, in float64."""
        b = self.block_rows(n)
        return 8 * b * (b + 6 * min(self.rank, b))


def _start(problem: FullProblem, state: State | None, rng: torch.Generator | None) -> ASkotchState:
    W = starting_coef(state, problem.rhs.double())
    residual = problem.rhs if state is None else problem.rhs - problem.apply(W)
    metrics = {"rel_residual": _relative(residual.double().square().mean(dim=0), problem.rhs)}
    iteration = 0 if state is None else state.iteration
    recent = W.new_empty(0, W.shape[1])
    return ASkotchState(iteration, W, metrics, W, W, recent, seed=drawn_seed(rng))


def _relative(mean_square: Tensor, rhs: Tensor) -> float:
    size = rhs.double().square().mean(dim=0)
    return float((mean_square / torch.where(size > 0, size, 1.0)).sqrt().max())


@dataclass(frozen=True)
class _Block:
    """A block of rows with its preconditioner, and what the step needs to know of it."""

    index: Int[Tensor, " b"]
    P: LowRankInverse
    L: float
    curvature: float


@dataclass(frozen=True)
class _Work:
    problem: FullProblem
    b: int
    rank: int
    accelerated: bool

    @property
    def nu(self) -> float:
        return self.problem.K.shape[0] / self.b

    def step(self, s: ASkotchState) -> ASkotchState:
        rng = torch.Generator().manual_seed(s.seed + 7919 * (s.iteration + 1))
        B = self.draw(rng)
        g = self.gradient(B.index, s.ahead)
        d = (B.P @ g) / B.L
        recent = torch.cat([s.recent, g.square().mean(dim=0)[None]])[-math.ceil(self.nu) :]
        convexity = s.convexity + B.curvature
        W, V, Y = self.moved(s, B.index, d, convexity)
        mean = float(recent.mean())
        settled = len(recent) >= self.nu
        restart = settled and mean > WORSE**2 * s.least
        return ASkotchState(
            iteration=s.iteration + 1,
            coef=W,
            metrics={
                "rel_residual": _relative(recent.mean(dim=0), self.problem.rhs),
                "restarts": s.restarts + restart,
            },
            ahead=W if restart else Y,
            momentum=W if restart else V,
            recent=recent[:0] if restart else recent,
            least=math.inf if restart else min(s.least, mean if settled else math.inf),
            convexity=convexity,
            restarts=s.restarts + restart,
            seed=s.seed,
        )

    def draw(self, rng: torch.Generator) -> _Block:
        n, K = self.problem.K.shape[0], self.problem.K
        index = torch.randperm(n, generator=rng)[: self.b].sort().values
        H = K[index, index].dense()
        trace = float(H.diagonal().double().sum())
        low = randomized_nystrom(lambda x: H @ x, self.b, self.rank, trace, dtype=H.dtype, rng=rng)
        ridge = self.ridge(index)
        last = float(low.values[-1])
        P = LowRankInverse.build(low.factor, ridge + last)
        L = SAFETY * _largest(H, ridge, P, rng)
        least = float(ridge.min())
        return _Block(index, P, max(L, 1.0), least / (max(L, 1.0) * (least + last)))

    def ridge(self, index: Tensor) -> Tensor:
        """Return the diagonal that is added to K, in some rows: (b, 1), or one number."""
        ridge = self.problem.ridge
        return ridge[index] if ridge.ndim else ridge

    def gradient(self, index: Tensor, Y: Tensor) -> Float[Tensor, "b t"]:
        product = self.problem.K[index] @ Y
        return product + self.ridge(index) * Y[index] - self.problem.rhs[index].double()

    def moved(
        self, s: ASkotchState, index: Tensor, d: Tensor, convexity: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the next W, V and Y."""
        W = s.ahead.index_add(0, index, d, alpha=-1)
        if not self.accelerated:
            return W, W, W
        nu = self.nu
        mu = min(convexity / (s.iteration + 1), 1.0) / nu
        beta, gamma = 1 - math.sqrt(mu / nu), 1 / math.sqrt(mu * nu)
        alpha = 1 / (1 + gamma * nu)
        V = torch.lerp(s.ahead, s.momentum, beta).index_add_(0, index, d, alpha=-gamma)
        return W, V, torch.lerp(W, V, alpha)


def _largest(H: Tensor, ridge: Tensor, P: LowRankInverse, rng: torch.Generator) -> float:
    """Return the largest eigenvalue of P⁻¹ (H + ridge): algorithm 3 of the paper."""
    ridge = ridge.to(H.dtype)
    start = torch.randn(len(H), 1, dtype=H.dtype, generator=rng)
    return largest_eigenvalue(lambda v: H @ v + ridge * v, start, P.__matmul__, P.apply)
