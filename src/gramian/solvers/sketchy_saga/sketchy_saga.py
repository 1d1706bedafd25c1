"""SketchySAGA: preconditioned, variance-reduced stochastic gradients in memory of order m."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from ... import _arrays as xp
from ..._arrays import Array, RandomStream
from ..._messages.checks import as_count, as_positive, check_count_or_auto
from ...data import Batches
from ...problems import NystromProblem
from ..base import solvers
from ..cost import ProblemSize
from ..loop.minibatches import (
    BatchErrors,
    EpochPart,
    MiniBatchSolver,
    kernel_block,
    load_centers,
)
from ..loop.state import State
from .setup import RIDGE_FORMS, Ridge, Setup, check_average, in_rows, row_weights
from .sketch import Hessian, Sketch, damping_operations
from .state import Certificate, SagaState, is_factor_cheap

AUTOMATIC_BATCH = 512
"""Rows of an automatic batch; the paper takes 256 to 65,536."""

AUTOMATIC_RANK = 500
"""Rank of an automatic preconditioner."""

SKETCH_STEPS = 270
"""Products with the sketch to choose the damping, in units of a step."""


@solvers.register("sketchysaga")
@dataclass(frozen=True)
class SketchySAGA(MiniBatchSolver[NystromProblem, SagaState]):
    r"""SketchySAGA [1]_, algorithm 5: SAGA with a randomised Nystrom preconditioner.

    With :math:`P` of rank r for a sketch of the Hessian and damping :math:`\rho`, for each batch B
    of b rows:

    .. math:: \psi = \Omega_B (K_{Bm} w - y_B), \quad a = K_{Bm}^\top (\psi - \Psi_B), \quad
        g = x + a / b + \lambda K_{mm} w, \quad x \leftarrow x + a / n, \quad \Psi_B \leftarrow
        \psi, \quad w \leftarrow w - \eta (P + \rho I)^{-1} g

    all divided by n. The table :math:`\Psi` holds one number for each row and target.

    Use it for the model of `Falkon` if its m² numbers do not fit.

    Parameters
    ----------
    batch : int or "auto", default="auto"
        Batch size b. "auto": 512, limited by a quarter of the memory.
    rank : int or "auto", default="auto"
        Rank r of the sketch. "auto": 500. A step costs 4 m r more operations, about a tenth of all
        with 512 rows.
    damping : float or "auto", default="auto"
        :math:`\rho`, in units of the Hessian over n. "auto": :math:`\Lambda_1 \cdot 10^{-j}` with
        the largest eigenvalue :math:`\Lambda_1` of the sketch. j is the largest number up to 9 for
        which the smoothness L grows less than sevenfold at each decrease, and is at most the number
        of steps in two epochs; up to 6 for float32 rows, whose rounding a smaller damping
        amplifies. Steps along directions outside of the sketch have length :math:`1 / (\rho L)`,
        and within it :math:`1 / L`.
    step_scale : float, default=1.0
        :math:`\eta L`: the step length times the preconditioned smoothness L.
    ridge : str, default="auto"
        Form of the term :math:`\lambda K_{mm} w`: ``"direct"``, m² kernel evaluations per batch,
        none if K_mm fits into a quarter of the memory; ``"rows"``, for landmarks that are rows of
        the data, see the notes. "auto": "rows" if possible and if K_mm does not fit.
    states_per_epoch : int, default=1
        States per epoch; with several, time limits and callbacks act within an epoch.

    Notes
    -----
    An iteration is an epoch: n m kernel evaluations. Setup: one pass for the size of the right-hand
    side, and the sketch. Memory: n numbers per target, m r numbers and a block of b by m; m² only
    if that fits. Rows may come from any source. Vectors and P are float64, kernel entries have the
    dtype of the rows.

    With E the rows of the identity that belong to the landmarks and :math:`c = n \lambda / 2`,

    .. math:: K^\top \Omega (K w - y) + 2 c K_{mm} w = (K + c\, \Omega^{-1} E)^\top \Omega ((K + c\,
        \Omega^{-1} E) w - y) - c^2 \Omega_Z^{-1} w + c\, y_Z

    exactly, so that with ``ridge="rows"`` the penalty is also a sum over rows.

    If the squared residual of the batches grows to four times its minimum, or is not finite, the
    method returns to the start of that part of the epoch with half the step: `halvings` in the
    history counts this, with a log message. If that does not help, it restarts from zero, and after
    40 halvings it ends as "diverged".

    ``prediction_error`` is the norm of the gradient in the metric of FALKON's preconditioner (see
    `Falkon`), over the root of the least eigenvalue of the Hessian in that metric, which 30 Lanczos
    steps on a sample of rows estimate. ``rel_residual`` is relative to the right-hand side in the
    same metric. The gradient comes from the table, which lags behind, and the larger of the last
    two gradients counts. The metric costs about m³ operations and 8 m² bytes, if m² is at most
    300 n and that fits into a quarter of the memory; otherwise, and without a penalty, P replaces
    it. On 30 random problems (as for `Falkon`), after 2 to 30 epochs, the estimate was 1.2 to 30
    times the true error in nine of ten cases, and at least a quarter of it; with the metric of P
    0.7 to 200 times, most of it in the first epochs.

    Departures: the table starts with the initial residuals, not with zeros. Batches of a sequential
    source come from a shuffled pass. Batches drawn independently converge with longer steps,
    because a row may return soon. L is the largest over three batches of b rows, not of n / 50,
    plus the largest contribution of one row among 1,000 or more other rows, times 1.1: a step must
    suit its own batch, and the rows of the worst batch. The sketch has 1,000 rows or more, with the
    ridge if K_mm fits; the paper gives no rule for the damping. The step of the paper is 0.5 / L,
    with a smaller L that lacks these additions.

    References
    ----------
    .. [1] Rathore, Frangella, Yang, Derezinski, Udell, *Have ASkotch: A neat solution for
       large-scale kernel ridge regression*, 2024, arXiv:2407.10070, algorithm 5 and section B.5.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.solvers import SketchySAGA
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> est = KernelRidge("laplacian", lengthscale=3.0, penalty=1e-5, landmarks=200, random_state=0)
    >>> est = est.set_params(solver=SketchySAGA(), tol=1e-3).fit(train, "target")
    >>> est.stop_reason_, round(float(est.score(test)), 2)
    ('converged', 0.97)
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
    dense_centers: ClassVar[bool] = True
    streams: ClassVar[bool] = True

    def run_(
        self,
        S: Setup,
        w: Array,
        x: Array,
        Psi: Array,
        eta: float,
        batches: Iterable[tuple[Array, Array]],
    ) -> BatchErrors:
        """Run the loop of algorithm 5 in place; the comments quote the lines of the paper.

        Departures: all terms are over n, with weights omega; the ridge may be part of the rows.
        """
        n, errors = S.K.shape[0], BatchErrors()
        for B, rows in batches:  # sample batch B
            K_Bm, y_B = kernel_block(S.K, rows), xp.to_float64(S.problem.targets[B])
            r = S.ridge.add_to_rows_(K_Bm @ w, w, B) - y_B
            errors.add(r, y_B)
            psi = S.omega[B, None] * r  # psi <- n (K_Bm w - y_B)
            change = psi - Psi[B]
            aux = S.ridge.add_to_landmarks_(K_Bm.T @ change, change, B)  # K_Bm' (psi - Psi_B)
            g = x + aux / len(B) + S.ridge.gradient(w)  # g <- x + aux / b + lambda K_mm w
            x += aux / n  # x <- x + aux / n
            Psi[B] = psi  # Psi_B <- psi
            v = S.sketch.P @ g  # v <- (P + rho I)^-1 g
            w -= eta * v  # w <- w - eta v
            del K_Bm  # frees the block before the next one is allocated
        return errors

    def next(self, S: Setup, s: SagaState) -> SagaState:
        """Return the state after part of an epoch, or an earlier state with half the step."""
        part = EpochPart.after(s.iteration, len(S.batches), self.states_per_epoch)
        # The loop works in place, and a yielded tensor must not change.
        w, x, Psi = xp.copy(s.coef), xp.copy(s.average), xp.copy(s.table)
        eta = S.sketch.step / 2**s.halvings
        errors = self.run_(S, w, x, Psi, eta, S.minibatches(part))
        if s.has_diverged(errors.mse, w):
            half = s.halve_step(part.done, errors.mse)
            return S.restart(half) if s.halved_last else half
        # The table lags behind, and a gradient of few numbers may pass through zero once.
        ends = [average + S.ridge.gradient(at) for at, average in ((s.coef, s.average), (w, x))]
        norms = xp.max(xp.stack([S.certificate.norm(gradient) for gradient in ends]), axis=0)
        error = S.problem.relative_error(S.certificate.error(norms))
        return s.after(part.done, errors.mse, w, x, Psi, norms, error)

    def setup(self, problem: NystromProblem, seed: int) -> Setup:
        """Return the setup of algorithm 5: P <- Nystrom, L_P <- get_L, eta."""
        K, omega = load_centers(problem.K), row_weights(problem)
        n, m = K.shape
        ridge = Ridge.build(problem, K, omega, self.ridge)
        b = self.batch_rows(n, K.memory_bytes // (4 * m * K.dtype.itemsize))
        weight = problem.landmark_weight
        landmark_weight = xp.ones(m, like=omega) if weight is None else xp.to_float64(weight)
        H = Hessian(
            K, omega, landmark_weight, ridge.dense, problem.penalty, ridge.largest(problem, omega)
        )
        rng = RandomStream(seed)
        sketch = Sketch.build(H, self.sketch_rank(m), b, self.damping, self.step_scale, rng)
        batches = Batches(K.rows, b, seed, K.host_bytes // 4)
        # Independent rows estimate the eigenvalue: the rows of the sketch would overestimate it.
        other_rows = RandomStream(seed + 1)
        certificate = Certificate.build(problem, H, sketch.P, other_rows)
        return Setup(problem, K, ridge, sketch, batches, omega, certificate)

    def start(self, S: Setup, coef: Array, state: State | None) -> SagaState:
        return S.start(coef, state)

    def __post_init__(self) -> None:
        check_count_or_auto(self.batch, "batch")
        check_count_or_auto(self.rank, "rank")
        if self.damping != "auto":
            as_positive(self.damping, "damping")
        as_positive(self.step_scale, "step_scale")
        as_count(self.states_per_epoch, "states_per_epoch")
        if self.ridge not in RIDGE_FORMS:
            raise ValueError(f"ridge must be one of {', '.join(RIDGE_FORMS)}, not {self.ridge!r}")

    def check(self, problem: Any) -> None:
        super().check(problem)
        if self.ridge == "rows" and not in_rows(problem):
            raise ValueError(
                "ridge='rows' needs distinct landmarks that are rows of the data, with their row "
                "numbers and positive weights (NystromProblem.at gives them); use ridge='direct'"
            )

    def verify(self, problem: NystromProblem, state: SagaState) -> None:
        """Compare the average gradient with the table; see `check_average`."""
        check_average(problem, state, self.ridge)

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        centers = 0 if mapped else size.center_bytes
        # The factor of the sketch and the sketched products.
        sketch = 64 * size.m * self.sketch_rank(size.m)
        return size.vector_bytes + centers + 16 * size.n * size.t + sketch

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        return (iterations + 1) * size.n * size.m + size.m * size.m

    def operations(self, size: ProblemSize, iterations: int) -> float:
        factor = float(size.m) ** 3 if is_factor_cheap(size.n, size.m) else 0.0
        if self.damping != "auto":
            return factor
        batch, r = self.batch_rows(size.n, size.n), float(self.sketch_rank(size.m))
        return factor + damping_operations(size.m, r, batch, size.itemsize)

    def steps(self, size: ProblemSize, iterations: int) -> int:
        return iterations * math.ceil(size.n / self.batch_rows(size.n, size.n)) + SKETCH_STEPS

    def bytes_read(self, size: ProblemSize) -> float:
        m, r = float(size.m), self.sketch_rank(size.m)
        b = self.batch_rows(size.n, size.n)
        return 16 * m * r + 8 * r * r + size.itemsize * m * (m + 3 * b)

    def batch_rows(self, n: int, fits: int) -> int:
        """Return the batch size b for n rows; at most `fits` if automatic."""
        if self.batch != "auto":
            return min(int(self.batch), n)
        return max(1, min(n, AUTOMATIC_BATCH, fits))

    def sketch_rank(self, m: int) -> int:
        """Return the rank r for m landmarks."""
        return min(m, AUTOMATIC_RANK if self.rank == "auto" else int(self.rank))
