"""SketchySAGA: preconditioned, variance-reduced stochastic gradients in memory of order m."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._checks import as_count, as_positive, check_count_or_auto
from ..data import Batches, as_rows
from ..operators import KernelOperator, kept
from ..problems import NystromProblem
from ._saga.ridge import RIDGES, Ridge, in_rows
from ._saga.sketch import Hessian, Sketch
from ._saga.state import SagaState
from .base import Solver, State, drawn_seed, solvers, starting_coef
from .cost import ProblemSize
from .minibatches import BatchErrors, Stretch, drawn_batches, held_centers, relative_weights

BATCH = 512
"""Rows of an automatic batch; the paper takes 256 to 65,536."""

RANK = 500
"""Rank of an automatic preconditioner."""

SKETCH_STEPS = 380
"""Products with the sketch by which the damping is chosen, in units of a step."""

APART = 1e-4
"""Distance at which the average gradient of a state from a file is not that of its table.

Rounding of float32 entries in hundreds of steps came to 2e-7 of the right-hand side.
"""


@solvers.register("sketchysaga")
@dataclass(frozen=True)
class SketchySAGA(Solver[NystromProblem, SagaState]):
    r"""SketchySAGA [1]_, algorithm 5: SAGA with a randomised Nystrom preconditioner.

    With :math:`P` of rank r for a sketch of the Hessian and damping :math:`\rho`, for each batch B
    of b rows:

    .. math:: \psi = \Omega_B (K_{Bm} w - y_B), \quad a = K_{Bm}^\top (\psi - \Psi_B), \quad
        g = x + a / b + \lambda K_{mm} w, \quad x \leftarrow x + a / n, \quad \Psi_B \leftarrow
        \psi, \quad w \leftarrow w - \eta (P + \rho I)^{-1} g

    all divided by n. The table :math:`\Psi` holds one number for each row and target.

    Parameters
    ----------
    batch : int or "auto", default="auto"
        b. "auto": 512, and what fits into a quarter of the memory.
    rank : int or "auto", default="auto"
        r. "auto": 500. A step costs 4 m r operations more, about a tenth of all with 512 rows.
    damping : float or "auto", default="auto"
        :math:`\rho`, in units of the Hessian over n. "auto": :math:`\Lambda_1 \cdot 10^{-j}` with
        the largest eigenvalue :math:`\Lambda_1` of the sketch, for the largest j up to 9 until
        which the smoothness L grows less than sevenfold each time and is at most the number of
        steps in two epochs; up to 6 for float32 rows, whose rounding a smaller damping amplifies.
        Steps along directions outside of the sketch are as long as :math:`1 / (\rho L)`, along the
        others as :math:`1 / L`.
    step_scale : float, default=1.0
        :math:`\eta L`: the step is this over the preconditioned smoothness L.
    ridge : str, default="auto"
        How the term :math:`\lambda K_{mm} w` is computed: ``"direct"``, m² kernel evaluations per
        batch, none if K_mm fits into a quarter of the memory; ``"rows"``, for landmarks that are
        rows of the data: see the notes. "auto": rows where it can, and K_mm does not fit.
    states_per_epoch : int, default=1
        More of them let time limits and callbacks act within an epoch.

    Notes
    -----
    An iteration is an epoch: n m kernel evaluations. Setup: one pass for the size of the right-hand
    side, and the sketch. Memory: n numbers per target, m r numbers and a block of b by m; m² only
    if that fits. Rows may come from any source. Vectors and P are float64, kernel entries have the
    dtype of the rows.

    With E the rows of the identity that belong to the landmarks and :math:`c = n \lambda / 2`,

    .. math:: K^\top \Omega (K w - y) + 2 c K_{mm} w = (K + c\, \Omega^{-1} E)^\top \Omega ((K + c\,
        \Omega^{-1} E) w - y) - c^2 \Omega_Z^{-1} w + c\, y_Z

    exactly, so that with ``ridge="rows"`` the penalty is a sum over rows too.

    If the squared residual of the batches grows to four times the least one, or beyond numbers, it
    goes back to where that stretch began, with half the step: `halvings` in the history counts it,
    and the logger tells. If that does not help it starts again from zero, and after 40 halvings it
    ends as "diverged". ``rel_residual`` is that of the normal equations,
    from the table: it lags behind.

    Departures: the table starts with the residuals at the start, not with zeros. Batches of a
    sequential source are those of a shuffled pass; drawn independently they converge with longer
    steps, since a row that has just been seen may come again. L is the largest over three batches
    of b rows, not of n / 50, and what the largest of 1,000 or more other rows alone adds to a
    batch, times 1.1: a step must suit the batch it is made from, and the rows of the worst batch.
    The sketch is of 1,000 rows or more, with the ridge if K_mm fits; the paper gives no rule for
    the damping. Its step is 0.5 / L, with an L that is smaller by what the departures add.

    References
    ----------
    .. [1] Rathore, Frangella, Yang, Derezinski, Udell, *Have ASkotch: A neat solution for
       large-scale kernel ridge regression*, 2024, arXiv:2407.10070, algorithm 5 and section B.5.
    """

    batch: Any = "auto"  # int or "auto", checked below, as the next
    rank: Any = "auto"
    damping: Any = "auto"
    step_scale: float | int = 1.0
    ridge: str = "auto"
    states_per_epoch: int = 1
    problem_types: ClassVar[tuple[type, ...]] = (NystromProblem,)
    state_type: ClassVar[type] = SagaState
    allows_zero_penalty: ClassVar[bool] = True
    streams: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count_or_auto(self.batch, "batch")
        check_count_or_auto(self.rank, "rank")
        if self.damping != "auto":
            as_positive(self.damping, "damping")
        as_positive(self.step_scale, "step_scale")
        as_count(self.states_per_epoch, "states_per_epoch")
        if self.ridge not in RIDGES:
            raise ValueError(f"ridge must be one of {', '.join(RIDGES)}, not {self.ridge!r}")

    def check(self, problem: Any) -> None:
        super().check(problem)
        if self.ridge == "rows" and not in_rows(problem):
            raise ValueError(
                "ridge='rows' needs distinct landmarks that are rows of the data, with their row "
                "numbers and positive weights (NystromProblem.at gives them); use ridge='direct'"
            )

    def iterate(
        self,
        problem: NystromProblem,
        state: State | None = None,
        *,
        rng: torch.Generator | None = None,
    ) -> Iterator[SagaState]:
        seed = state.seed if isinstance(state, SagaState) else drawn_seed(rng)
        m, t = problem.K.shape[1], problem.targets.shape[1]
        start = starting_coef(state, problem.targets.new_zeros(m, t).double())
        work = _Work.build(self, problem, seed)
        s = state if isinstance(state, SagaState) else work.begin(start, state)
        yield s
        while True:
            s = work.next(s)
            yield s

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        centers = 0 if mapped else size.center_bytes
        # the sketch: its factor, and what it is made of
        sketch = 64 * size.m * self.sketch_rank(size.m)
        return size.vector_bytes + centers + 16 * size.n * size.t + sketch

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        return (iterations + 1) * size.n * size.m + size.m * size.m

    def operations(self, size: ProblemSize, iterations: int) -> float:
        return 0.0

    def steps(self, size: ProblemSize, iterations: int) -> int:
        return iterations * math.ceil(size.n / self.batch_rows(size.n, size.n)) + SKETCH_STEPS

    def bytes_read(self, size: ProblemSize) -> float:
        m, r = float(size.m), self.sketch_rank(size.m)
        b = self.batch_rows(size.n, size.n)
        return 16 * m * r + 8 * r * r + size.itemsize * m * (m + 3 * b)

    def verify(self, problem: NystromProblem, state: SagaState) -> None:
        """Compare the average gradient with that of the table: the fixed point hangs on it.

        Coefficients and table themselves may be any. Cost: n m kernel evaluations.
        """
        K, omega = held_centers(problem.K), _omega(problem)
        ridge = Ridge.build(problem, K, omega, self.ridge)
        every = torch.arange(K.shape[0])
        average = ridge.added_transpose_(K.T @ state.table, state.table, every) / K.shape[0]
        size = torch.where(state.size > 0, state.size, 1.0)
        apart = float(((average - state.average).norm(dim=0) / size).max())
        if not apart <= APART:
            raise ValueError(
                f"its average gradient is {apart:.1e} away from that of its table, relative to "
                "the right-hand side: it was changed, or is of other data. Delete it to start again"
            )

    def batch_rows(self, n: int, fits: int) -> int:
        """Return b for n rows, of which so many fit into the memory of a batch."""
        return max(1, min(n, BATCH, fits)) if self.batch == "auto" else min(int(self.batch), n)

    def sketch_rank(self, m: int) -> int:
        """Return r for m landmarks."""
        return min(m, RANK if self.rank == "auto" else int(self.rank))


def _omega(problem: NystromProblem) -> Tensor:
    """Return the weights of the rows relative to their mean."""
    omega = relative_weights(problem)
    if omega is None:
        return problem.targets.new_ones(problem.K.shape[0], dtype=torch.float64)
    return omega


@dataclass(frozen=True)
class _Work:
    """What stays the same in all steps."""

    solver: SketchySAGA
    problem: NystromProblem
    K: KernelOperator
    ridge: Ridge
    sketch: Sketch
    batches: Batches
    omega: Tensor

    @classmethod
    def build(cls, solver: SketchySAGA, problem: NystromProblem, seed: int) -> _Work:
        K = held_centers(problem.K)
        n, m = K.shape
        omega = _omega(problem)
        ridge = Ridge.build(problem, K, omega, solver.ridge)
        b = solver.batch_rows(n, K.memory_bytes // (4 * m * K.dtype.itemsize))
        given = problem.landmark_weight
        landmark_weight = omega.new_ones(m) if given is None else given.double()
        hessian = Hessian(
            K, omega, landmark_weight, ridge.kept, problem.penalty, ridge.largest(problem, omega)
        )
        rng = torch.Generator().manual_seed(seed)
        sketch = Sketch.build(
            hessian, solver.sketch_rank(m), b, solver.damping, solver.step_scale, rng
        )
        return cls(
            solver, problem, K, ridge, sketch, Batches(K.rows, b, seed, K.host_bytes // 4), omega
        )

    def begin(self, coef: Tensor, state: State | None) -> SagaState:
        y, n = self.problem.targets.double(), self.K.shape[0]
        rhs = self.K.normal(None, self.omega, y) / n  # of the opposite sign
        table, average = -self.omega[:, None] * y, rhs
        if coef.any():
            r = self.ridge.added_(self.K @ coef, coef, torch.arange(n)) - y
            table = self.omega[:, None] * r
            average = self.K.T @ table / n
        average = self.ridge.added_transpose_(average * n, table, torch.arange(n)) / n
        settings = {
            **self.sketch.settings(),
            "batch": self.batches.size,
            "ridge_in_rows": int(self.ridge.at is not None),
        }
        return SagaState(
            iteration=0 if state is None else state.iteration,
            coef=coef,
            metrics={"halvings": 0},
            table=table,
            average=average,
            size=rhs.norm(dim=0),
            least=float((table / self.omega[:, None].clamp(min=1e-300)).square().mean()),
            seed=self.batches.seed,
            settings=settings,
        )

    def anew(self, s: SagaState) -> SagaState:
        """Return the state that starts from zero with the step of another one.

        The stretch before the one that was given up may have ended where no step is short enough.
        """
        first = self.begin(torch.zeros_like(s.coef), s)
        return replace(first, metrics=s.metrics, halvings=s.halvings)

    def next(self, s: SagaState) -> SagaState:
        """Return the state after the next stretch, or an earlier one with half the step."""
        part = Stretch.after(s.iteration, len(self.batches), self.solver.states_per_epoch)
        w, x, table, seen = s.coef.clone(), s.average.clone(), s.table.clone(), BatchErrors()
        eta = self.sketch.step / 2**s.halvings
        for index, rows in drawn_batches(self.batches, part):
            self._step_(w, x, table, eta, index, rows, seen)
        if s.diverged(seen.mse, w):
            half = s.halved(part.done, seen.mse)
            return self.anew(half) if s.halved_last else half
        return s.after(part.done, seen.mse, w, x, table, (x + self.ridge.gradient(w)).norm(dim=0))

    def _step_(
        self,
        w: Tensor,
        x: Tensor,
        table: Tensor,
        eta: float,
        B: Tensor,
        rows: Tensor,
        seen: BatchErrors,
    ) -> None:
        K_Bm = kept(replace(self.K, rows=as_rows(rows)), self.K.memory_bytes // 2)
        y = self.problem.targets[B].double()
        r = self.ridge.added_(K_Bm @ w, w, B) - y
        seen.add(r, y)
        psi = self.omega[B, None] * r
        change = psi - table[B]
        aux = self.ridge.added_transpose_(K_Bm.T @ change, change, B)
        g = x + aux / len(B) + self.ridge.gradient(w)
        x += aux / self.K.shape[0]
        table[B] = psi
        w -= eta * (self.sketch.P @ g)
