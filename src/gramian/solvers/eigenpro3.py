"""EigenPro 3: a model of p centers trained by mini-batches from a stream of any length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import as_count, check_count_or_auto
from ..data import EPOCH_STRIDE, Augmentation, Batches, as_rows
from ..operators import KernelOperator, kept
from ..preconditioners import EigenProFactor
from ..problems import NystromProblem
from .base import Solver, State, drawn_seed, solvers, starting_coef
from .eigenpro2 import EigenPro2, EigenProSettings, EigenProState
from .projection import ExactProjection, InexactProjection, Projection
from .streaming import BatchErrors, Stretch, held_centers, relative_weights

PROJECTIONS = ("auto", "delayed", "inexact", "exact")

MOST_EXACT = 10_000
"""Centers up to which an automatic projection is exact, if their matrix fits."""

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

    An iteration is an epoch. Rows may come from any source; a sequential one is read once for the
    subsample and once per epoch. Memory: a block of m by p, p q numbers, where delayed p
    temporary centers. Coefficients are float64, kernel entries have the dtype of the rows.
    ``batch_mse`` in the history is that of the batches, each before its step.

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

    def projection_for(self, p: int, memory_bytes: int) -> str:
        """Return the projection for p centers."""
        if self.projection != "auto":
            return self.projection
        return "exact" if p <= MOST_EXACT and 8 * p * p <= memory_bytes // 4 else "delayed"

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
        change = _changed(solver.augment, problem, rng)
        most = max(1, p // PER_DIRECTION)
        P = solver.factor(K, rng, weights=omega, change=change, most=most)
        fits = max(1, K.memory_bytes // (4 * p * K.dtype.itemsize))
        m = min(solver.batch_rows(P, n, lam), fits)
        solver = replace(solver, projection=solver.projection_for(p, K.memory_bytes))
        delay = _delay(solver, p, m)
        projection, about = _projection(solver, replace(K, rows=K.cols), seed, rng)
        eta = solver.step_scale * P.step(m, lam)
        K_SZ = replace(K, rows=P.points)
        batches = Batches(K.rows, m, seed, K.memory_bytes // 4)
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
        )

    def changed(self, number: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows and targets of a batch, augmented."""
        augment: Augmentation | None = self.solver.augment
        if augment is None:
            return x, y
        rng = torch.Generator().manual_seed(self.batches.seed + EPOCH_STRIDE * (number + 1))
        return augment(x, y, rng)


class _Walk:
    """The steps of one stretch: the function with its temporary centers, and the mean."""

    def __init__(self, training: _Training, coef: Tensor, mean: Tensor, count: int) -> None:
        self.training = training
        self.coef, self.mean, self.count = coef, mean, count
        self.seen = BatchErrors()
        self.key = 0
        self._forget()

    def _forget(self) -> None:
        self.pending = 0
        self.h = torch.zeros_like(self.coef)
        self.points: list[Tensor] = []
        self.temporary: list[Tensor] = []
        self.at_subsample = self.coef.new_zeros(len(self.training.P.index), self.coef.shape[1])

    def step(self, number: int, index: Tensor, x: Tensor) -> None:
        """Take a step with a batch, and project if it is time."""
        T = self.training
        x, y = T.changed(number, x, T.problem.targets[index])
        rows = as_rows(x)
        K_BZ = kept(replace(T.K, rows=rows), T.K.memory_bytes // 2)
        K_BS = kept(replace(T.K, rows=rows, cols=T.P.points), T.K.memory_bytes // 4)
        r = K_BZ @ self.coef + K_BS @ self.at_subsample - y.double()
        if self.points:
            r += replace(T.K, rows=rows, cols=as_rows(_stacked(self.points))) @ torch.cat(
                self.temporary
            )
        self.seen.add(r, y)
        g = r if T.omega is None else T.omega[index, None] * r
        small = T.P.vectors.t() @ (K_BS.T @ g)
        self._decay(1 - T.eta * len(x) * T.problem.penalty)
        self.h -= T.eta * (K_BZ.T @ g - T.K_ZS_U @ small)
        self.pending, self.key = self.pending + 1, number
        if self.pending == T.delay:
            self.project()
            return
        self.at_subsample += T.eta * (T.P.vectors @ small)
        self.points.append(x)
        self.temporary.append(-T.eta * g)

    def _decay(self, factor: float) -> None:
        if factor != 1:
            for part in (self.coef, self.h, self.at_subsample, *self.temporary):
                part *= factor

    def project(self) -> None:
        """Replace temporary centers by the projection of their function, and take the mean."""
        if not self.pending:
            return
        self.coef = self.coef + self.training.projection.solve(self.h, self.key)
        self._forget()
        self.count += 1
        self.mean = torch.lerp(self.mean, self.coef, (TAIL + 1) / (self.count + TAIL))


def _stacked(points: list[Tensor]) -> Tensor:
    return torch.cat([x.to_dense() if x.layout != torch.strided else x for x in points])


def _changed(augment: Augmentation | None, problem: NystromProblem, rng: torch.Generator) -> Any:
    """Return what augmentation does to rows alone, or None."""
    if augment is None:
        return None
    t = problem.targets.shape[1]
    return lambda x: augment(x, x.new_zeros(len(x), t), rng)[0]


def _delay(solver: EigenPro3, p: int, m: int) -> int:
    if solver.delay != "auto":
        return int(solver.delay)
    return max(1, p // m) if solver.projection == "delayed" else 1


def _projection(
    solver: EigenPro3, K_ZZ: KernelOperator, seed: int, rng: torch.Generator
) -> tuple[Projection, dict[str, int | float]]:
    """Return the projection, and what was chosen for it."""
    if solver.projection == "exact":
        return ExactProjection.build(K_ZZ), {}
    epochs = solver.projection_epochs
    if epochs == "auto":
        epochs = 1 if solver.projection == "delayed" else 2
    settings = EigenPro2()
    P = settings.factor(K_ZZ, rng)
    m = settings.batch_rows(P, K_ZZ.shape[0])
    about: dict[str, int | float] = {
        "center_subsample": len(P.index), "center_rank": P.rank, "center_batch": m,
    }  # fmt: skip
    tol = float(solver.projection_tol)
    return InexactProjection.build(
        K_ZZ, P, m, as_count(epochs, "epochs"), tol, seed, settings.step_scale
    ), about
