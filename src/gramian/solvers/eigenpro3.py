"""EigenPro 3: a model of p centers trained by mini-batches from a stream of any length."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import check_count_or_auto
from ..data import Batches, as_rows
from ..operators import KernelOperator, kept
from ..preconditioners import EigenProFactor
from ..problems import NystromProblem
from ._eigenpro.augmented_batches import augmented, changed_rows
from ._eigenpro.projection import PROJECTIONS, Projection, chosen_projection, projection_for
from ._eigenpro.settings import EigenProSettings, EigenProState
from ._eigenpro.temporary_centers import Temporary
from .base import Solver, State, drawn_seed, solvers, starting_coef
from .cost import BLOCK_BYTES, ProblemSize
from .minibatches import BatchErrors, Stretch, held_centers, relative_weights
from .verification import refuse_beyond

PER_DIRECTION = 10
"""Centers per flattened direction at least: beyond, the weights in the fixed point do harm."""

TAIL = 8
"""The mean of iterates reaches back over about the last 1 / TAIL of them."""


@dataclass
class EigenPro3State(EigenProState):
    """The mean of the iterates as `coef`, and what it takes to go on.

    Attributes
    ----------
    last : Tensor of shape (p, t)
        The iterate itself.
    count : int
        Iterates that are in the mean.
    """

    last: Float[Tensor, "p t"] = field(default_factory=lambda: torch.empty(0, 0))
    count: int = 0


@solvers.register("eigenpro3")
@dataclass(frozen=True)
class EigenPro3(EigenProSettings, Solver[NystromProblem, EigenPro3State]):
    r"""EigenPro 3 [1]_, at scale with the delayed projection of EigenPro 4 [2]_.

    The function :math:`f = K_{\cdot Z}\, \mathrm{coef}` takes steps against the stochastic gradient
    of the squared error in function space, preconditioned by a subsample S of the rows, and is
    projected back onto the span of the centers Z. For each mini-batch B (algorithm 2 of [1]_):

    .. math:: g = f(X_B) - y_B, \qquad h = K_{ZB}\, g - K_{ZS} U U^\top K_{SB}\, g, \qquad
        K_{ZZ} \theta = h, \qquad \mathrm{coef} \leftarrow \mathrm{coef} - \eta \theta

    Delayed: for T batches rows of B are temporary centers of f, beside the subsample; then one
    projection of the sum of the steps. Since a projection costs p² kernel evaluations and is
    made after T m = p rows, an epoch costs about 3 n p of them: linear in p.

    Parameters
    ----------
    subsample, rank, batch, exponent, step_scale, states_per_epoch
        As in `EigenPro2`, for the rows. A batch is also held to a quarter of the memory.
    projection : str, default="auto"
        ``"delayed"``; ``"inexact"``: after each batch; both by EigenPro 2 on the centers.
        ``"exact"``: after each batch, by the Cholesky factor of K_ZZ (algorithm 1 of [1]_, if
        batch and subsample are all rows): p³ / 3 operations, 8 p² bytes. ``"auto"``: exact for up
        to 10,000 centers if that fits into a quarter of the memory, else delayed. With 10,000 rows
        and 1,000 centers of fashion-MNIST errors after an epoch were 16.4 % and 17.9 %.
    delay : int or "auto", default="auto"
        T. "auto": p / m where delayed, else 1.
    projection_epochs : int or "auto", default="auto"
        Epochs of EigenPro 2 in a projection at most. "auto": 1 where delayed, else 2.
    projection_tol : float, default=1e-3
        Relative residual at which they end.
    average : bool, default=True
        Whether `coef` is the mean of the iterates after projections, in which late ones weigh
        more (the last eighth about half): a constant step has a noise floor, which the mean is
        far below. Where rows can be interpolated, or batches are all rows, it is only late.
    augment : callable, optional
        ``augment(x, y, rng)`` gives rows and targets to train with instead of those of a batch:
        see `gramian.data.noise`, `mixup`, `crop_flip`.

    Notes
    -----
    The fixed point is not the solution of the problem, which is least squares with a penalty, but
    with :math:`K^P = K - K_{\cdot S} U U^\top K_{S \cdot}` the solution of

    .. math:: (K^P_{ZX} \Omega K_{XZ} + n \lambda K_{ZZ})\, \mathrm{coef} = K^P_{ZX} \Omega\, y

    a weighted least squares (lemma 6 of [1]_ for s = n, no penalty): errors along the directions
    of the flattened eigenvectors weigh less. It is the same function where rows can be
    interpolated, and a similar one else; ``rank=0`` is least squares. The penalty :math:`\lambda`
    is a decay of f by :math:`\eta m \lambda` in each step, observation weights :math:`\Omega`,
    relative to their mean, multiply g. The paper has neither. To go from here to the least
    squares: ``solve(problem, Falkon(), state=State(0, coef))``, where p² numbers fit.

    An iteration is an epoch. Rows may come from any source; a sequential one is read twice at the
    start, for the subsample and for the step, and once per epoch. If the error of the batches is
    no lower after ten epochs than in the first, it ends as "no_progress". Memory: a block of m by
    p, p q numbers, where delayed p temporary centers. Coefficients are float64, kernel entries
    have the dtype of the rows. ``batch_mse`` in the history is that of the batches, each before
    its step.

    Departures: top eigenvalue and step as in the notes of `EigenProFactor`, the step at the
    critical batch is that of the code of [1]_. The residual at which a projection ends is
    relative, absolute in the code, where it ends at once when little is left to learn.

    References
    ----------
    .. [1] Abedsoltan, Belkin, Pandit, *Toward large kernel models*, ICML 2023, arXiv:2302.02605.
    .. [2] Abedsoltan, Ma, Pandit, Belkin, *Fast training of large kernel models with delayed
       projections*, 2024, arXiv:2411.16658.
    """

    projection: str = "auto"
    delay: Any = "auto"  # int or "auto", checked below
    projection_epochs: Any = "auto"
    projection_tol: float | int = 1e-3
    average: bool = True
    augment: Any = None  # Augmentation or None, checked below
    problem_types: ClassVar[tuple[type, ...]] = (NystromProblem,)
    state_type: ClassVar[type] = EigenPro3State
    allows_zero_penalty: ClassVar[bool] = True
    streams: ClassVar[bool] = True
    solves_exactly: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.projection not in PROJECTIONS:
            raise ValueError(
                f"projection must be one of {', '.join(PROJECTIONS)}, not {self.projection!r}"
            )
        check_count_or_auto(self.delay, "delay")
        check_count_or_auto(self.projection_epochs, "projection_epochs")
        if not 0 <= self.projection_tol < 1:
            raise ValueError(
                f"projection_tol must be at least 0 and below 1, not {self.projection_tol!r}"
            )
        if self.augment is not None and not callable(self.augment):
            raise ValueError(f"augment must be a function of x, y and rng, not {self.augment!r}")

    def check(self, problem: Any) -> None:
        super().check(problem)
        if self.augment is not None and problem.K.rows.sparse:
            raise ValueError("augment changes dense rows, and these are sparse; pass dense rows")

    def verify(self, problem: NystromProblem, state: EigenPro3State) -> None:
        """Compare errors of the iterate and the mean with those of the last batches.

        Not if batches are augmented, whose errors are those of other rows. Cost: 2 n p kernel
        evaluations.
        """
        said = state.metrics.get("batch_mse")
        if said is None or self.augment is not None:
            return
        for coef in (state.last, state.coef):
            r = problem.K @ coef - problem.targets.double()
            refuse_beyond("an error", math.sqrt(said), float(r.square().mean().sqrt()))

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        m = size.m
        centers = 0 if mapped else 2 * size.center_bytes  # with those that are temporary
        sample = self.sample_bytes(size.n)
        exact = 8 * m * m if self.projection == "exact" else 0
        return size.vector_bytes + centers + sample + exact + 16 * m * self._most_flattened(size)

    def flexible_bytes(self, size: ProblemSize, available: int) -> int:
        m = size.m
        chosen = self.projection == "auto" and projection_for("auto", m, available) == "exact"
        return self.sample_bytes(size.n, available) + (8 * m * m if chosen else 0)

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        n, m, s = size.n, size.m, self.subsample_rows(size.n)
        delayed = projection_for(self.projection, m, BLOCK_BYTES) == "delayed"
        once = 2 * s * s + m * (m + s) + (n * s if self.augment is None else 0)
        return iterations * (n * (m + s) + 2 * n * m * delayed) + once

    def operations(self, size: ProblemSize, iterations: int) -> float:
        exact = projection_for(self.projection, size.m, BLOCK_BYTES) == "exact"
        return self.eigenvector_operations(size.n) + exact * float(size.m) ** 3 / 3

    def bytes_read(self, size: ProblemSize) -> float:
        m, s = float(size.m), float(self.subsample_rows(size.n))
        exact = projection_for(self.projection, size.m, BLOCK_BYTES) == "exact"
        return 8 * self._most_flattened(size) * (s + m) + (8 * m * m if exact else 0)

    def _most_flattened(self, size: ProblemSize) -> int:
        """Return the directions that are flattened at most, see `EigenProFactor`."""
        if self.rank != "auto":
            return int(self.rank)
        s = self.subsample_rows(size.n)
        return min(max(1, size.m // PER_DIRECTION), s if s == size.n else s // 10)

    def delay_for(self, kind: str, p: int, m: int) -> int:
        """Return T for a kind of projection, p centers and batches of m rows."""
        if self.delay != "auto":
            return int(self.delay)
        return max(1, p // m) if kind == "delayed" else 1

    def iterate(
        self,
        problem: NystromProblem,
        state: State | None = None,
        *,
        rng: torch.Generator | None = None,
    ) -> Iterator[EigenPro3State]:
        seed = state.seed if isinstance(state, EigenPro3State) else drawn_seed(rng)
        start = starting_coef(state, problem.targets.new_zeros(_shape(problem)).double())
        training = _Training.build(self, problem, seed)
        s = state if isinstance(state, EigenPro3State) else training.begin(start, state)
        yield s
        while True:
            s = training.next(s)
            yield s


def _shape(problem: NystromProblem) -> tuple[int, int]:
    return problem.K.shape[1], problem.targets.shape[1]


@dataclass(frozen=True)
class _Training:
    """What stays the same in all steps."""

    solver: EigenPro3
    problem: NystromProblem
    K: KernelOperator
    P: EigenProFactor
    K_ZS_U: Tensor
    projection: Projection
    batches: Batches
    omega: Tensor | None
    eta: float
    delay: int
    settings: dict[str, int | float]

    @classmethod
    def build(cls, solver: EigenPro3, problem: NystromProblem, seed: int) -> _Training:
        K, rng = held_centers(problem.K), torch.Generator().manual_seed(seed)
        (n, p), lam = K.shape, problem.penalty
        omega = relative_weights(problem)
        change = changed_rows(solver.augment, problem.targets.shape[1], rng)
        most = max(1, p // PER_DIRECTION)
        P = solver.factor(K, rng, weights=omega, change=change, most=most, decay=lam)
        fits = max(1, K.memory_bytes // (4 * p * K.dtype.itemsize))
        m = min(solver.batch_rows(P, n, lam), fits)
        kind = projection_for(solver.projection, p, K.memory_bytes)
        delay = solver.delay_for(kind, p, m)
        projection, about = chosen_projection(
            replace(K, rows=K.cols),
            kind,
            solver.projection_epochs,
            solver.projection_tol,
            seed,
            rng,
        )
        eta = solver.step_scale * P.step(m, lam)
        K_SZ = replace(K, rows=P.points)
        batches = Batches(K.rows, m, seed, K.host_bytes // 4)
        settings = {**P.settings(), "batch": m, "step": eta, "delay": delay, **about}
        return cls(
            solver, problem, K, P, K_SZ.T @ P.vectors, projection, batches, omega, eta, delay,
            settings,
        )  # fmt: skip

    def begin(self, coef: Tensor, state: State | None) -> EigenPro3State:
        iteration = 0 if state is None else state.iteration
        return EigenPro3State(
            iteration, coef, {}, self.batches.seed, self.settings, last=coef, count=0
        )

    def next(self, s: EigenPro3State) -> EigenPro3State:
        """Return the state after the next stretch of an epoch, which ends with a projection."""
        part = Stretch.after(s.iteration, len(self.batches), self.solver.states_per_epoch)
        walk = _Walk(self, s.last.clone(), s.coef, s.count)
        batches = self.batches.epoch(part.epoch, part.start, part.stop)
        for number, (index, x) in enumerate(batches, part.epoch * len(self.batches) + part.start):
            walk.step(number, index, x)
        walk.project()
        return EigenPro3State(
            iteration=s.iteration + 1,
            coef=walk.mean if self.solver.average else walk.coef,
            metrics={"epoch": part.done, "batch_mse": walk.seen.mse},
            seed=s.seed,
            settings=s.settings,
            last=walk.coef,
            count=walk.count,
            **s.progress(walk.seen, part.length),
        )


class _Walk:
    """The steps of one stretch: the function with its temporary centers, and the mean."""

    def __init__(self, training: _Training, coef: Tensor, mean: Tensor, count: int) -> None:
        self.training = training
        self.coef, self.mean, self.count = coef, mean, count
        self.seen = BatchErrors()
        T = training
        most = min(T.delay - 1, len(T.batches)) * T.batches.size
        self.temporary = Temporary(T.K, T.P, coef.shape[1], most)
        self.key = 0

    def step(self, number: int, index: Tensor, x: Tensor) -> None:
        """Take a step with a batch, and project if it is time."""
        T, f = self.training, self.temporary
        x, y = augmented(T.solver.augment, x, T.problem.targets[index], T.batches.seed, number)
        rows = as_rows(x)
        K_BZ = kept(replace(T.K, rows=rows), T.K.memory_bytes // 2)
        K_BS = kept(replace(T.K, rows=rows, cols=T.P.points), T.K.memory_bytes // 4)
        r = K_BZ @ self.coef + f.values(rows, K_BS) - y.double()
        self.seen.add(r, y)
        g = r if T.omega is None else T.omega[index, None] * r
        U_g = T.P.vectors.t() @ (K_BS.T @ g)
        decay = 1 - T.eta * len(x) * T.problem.penalty
        self.coef *= decay
        f.decay_(decay)
        f.add_(-T.eta * (K_BZ.T @ g - T.K_ZS_U @ U_g))
        self.key = number
        if f.steps < T.delay and f.holds(len(x)):
            f.keep_(x, -T.eta * g, T.eta * U_g)
        else:
            self.project()

    def project(self) -> None:
        """Replace temporary centers by the projection of their function, and take the mean."""
        if not self.temporary.steps:
            return
        self.coef = self.coef + self.training.projection.solve(self.temporary.h, self.key)
        self.temporary.clear()
        self.count += 1
        self.mean = torch.lerp(self.mean, self.coef, (TAIL + 1) / (self.count + TAIL))
