"""EigenPro 3: a model of p centers trained by mini-batches from a stream of any length."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ... import _arrays as xp
from ..._arrays import Array, RandomStream
from ..._messages.checks import check_count_or_auto
from ...data import Batches
from ...problems import NystromProblem
from ..base import solvers
from ..cost import BLOCK_BYTES, ProblemSize
from ..loop.minibatches import (
    LEAST_BATCH,
    BatchErrors,
    EpochPart,
    MiniBatchSolver,
    check_batch_error,
    load_centers,
    relative_weights,
)
from ..loop.state import BATCH_ERROR, EPOCH_KEY, State, starting_iteration
from .projection import build_projection, check_projection, resolve_delay, resolve_projection
from .settings import EigenProSettings
from .setup import CHUNK_ROWS, Setup, change_of_rows
from .state import EigenPro3State

CENTERS_PER_DIRECTION = 10
"""Bounds an automatic rank q by p / 10: more directions move the fixed point further away."""

FEATURES_SHARE = 4
"""The features of all rows may use the memory for blocks divided by this number."""

MEAN_OF_LAST = 8
"""The mean of iterates covers about the last eighth of them."""


@solvers.register("eigenpro3")
@dataclass(frozen=True)
class EigenPro3(EigenProSettings, MiniBatchSolver[NystromProblem, EigenPro3State]):
    r"""EigenPro 3 [1]_, at scale with the delayed projection of EigenPro 4 [2]_.

    The function :math:`f = K_{\cdot Z}\, \alpha` takes steps against the stochastic gradient
    of the squared error in function space, preconditioned by a subsample S of the rows, and is
    projected back onto the span of the centers Z. For each mini-batch B (algorithm 2 of [1]_):

    .. math:: g = f(X_B) - y_B, \qquad h = K_{ZB}\, g - K_{ZS} U U^\top K_{SB}\, g, \qquad
        K_{ZZ} \theta = h, \qquad \alpha \leftarrow \alpha - \eta \theta

    Delayed: for T batches, the rows of B are temporary centers of f, besides the subsample. Then
    one projection applies to the sum of the steps. Since a projection costs p² kernel evaluations
    and follows T m = p rows, an epoch costs about 3 n p of them: linear in p. An exact projection
    evaluates none, and an epoch costs 1.5 to 2 n p.

    Use it if m² numbers do not fit into memory, and for rows that stream or are augmented.

    Parameters
    ----------
    subsample, rank, batch, exponent, step_scale, states_per_epoch
        As in `EigenPro2`, for the rows. A batch also uses at most a quarter of the memory.
    projection : str, default="auto"
        ``"delayed"``; ``"inexact"``: after each batch; both by EigenPro 2 on the centers.
        ``"exact"``: by the Cholesky factor of K_ZZ (algorithm 1 of [1]_, if delay is 1, and batch
        and subsample are all rows): p³ / 3 operations, 8 p² bytes. ``"auto"``: exact for up
        to 10,000 centers if that fits into a quarter of the memory, else delayed. With 10,000 rows
        and 1,000 centers of fashion-MNIST, errors after an epoch were 16.4 % and 17.9 %.
    delay : int or "auto", default="auto"
        Number T of batches between projections. "auto": p / m if delayed or exact, else 1.
    projection_epochs : int or "auto", default="auto"
        Largest number of epochs of EigenPro 2 in a projection. "auto": 1 if delayed, else 2.
    projection_tol : float, default=1e-3
        Relative residual at which these epochs end.
    average : bool, default=True
        Whether `coef` is the mean of the iterates after projections, in which late ones weigh
        more (the last eighth about half). The mean is far below the noise floor of a constant step.
        If rows can be interpolated, or batches are all rows, it only lags behind.
    augment : callable, optional
        ``augment(x, y, rng)`` returns training rows and targets in place of a batch:
        see `gramian.data.noise`, `mixup`, `crop_flip`.

    Notes
    -----
    The fixed point is not the solution of the problem, which is penalized least squares. With
    :math:`K^P = K - K_{\cdot S} U U^\top K_{S \cdot}` it is the solution of

    .. math:: (K^P_{ZX} \Omega K_{XZ} + n \lambda K_{ZZ})\, \mathrm{coef} = K^P_{ZX} \Omega\, y

    a weighted least-squares problem (lemma 6 of [1]_ for s = n, no penalty): errors along the
    flattened eigenvectors weigh less. The function is the same as for least squares if rows can be
    interpolated, and similar otherwise; ``rank=0`` is least squares. The penalty :math:`\lambda` is
    a decay of f by :math:`\eta m \lambda` in each step; observation weights :math:`\Omega`,
    relative to their mean, multiply g. The paper has neither. To continue to the least-squares
    solution: ``solve(problem, Falkon(), state=State(0, coef))``, if p² numbers fit.

    An iteration is an epoch. A sequential source of rows is read twice at the start, for the
    subsample and for the step, and once per epoch. If the error of the batches is no lower after
    ten epochs than in the first, the method ends as "no_progress". Memory: a block of m by p, p q
    numbers, p temporary centers, and n q numbers, K(X, X_s) U, if they fit into a quarter of the
    memory for blocks; otherwise, and with augmented rows, an epoch takes n s more kernel
    evaluations. Coefficients are float64, kernel entries have the dtype of the rows. ``batch_mse``
    in the history comes from the batches, each before its step.

    Departures: penalty, weights and mean, as above; :math:`-\eta` is part of h, whose sum over T
    batches is projected. Top eigenvalue and step are as in the notes of `EigenProFactor`; the step
    at the critical batch agrees with the code of [1]_. A projection ends at a relative residual.
    The code uses an absolute residual, and ends at once when little is left to learn.

    References
    ----------
    .. [1] Abedsoltan, Belkin, Pandit, *Toward large kernel models*, ICML 2023, arXiv:2302.02605.
    .. [2] Abedsoltan, Ma, Pandit, Belkin, *Fast training of large kernel models with delayed
       projections*, 2024, arXiv:2411.16658.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.solvers import EigenPro3
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> est = KernelRidge("laplacian", lengthscale=3.0, penalty=0.0, landmarks=200, random_state=0)
    >>> est = est.set_params(solver=EigenPro3(), early_stopping=True).fit(train, "target")
    >>> round(float(est.score(test)), 2)
    0.98
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
    dense_centers: ClassVar[bool] = True
    streams: ClassVar[bool] = True
    takes_remote: ClassVar[bool] = True
    solves_exactly: ClassVar[bool] = False

    def next(self, S: Setup, s: EigenPro3State) -> EigenPro3State:
        """Run algorithm 2 over part of an epoch; the comments quote the lines of the paper."""
        part = EpochPart.after(s.iteration, len(S.batches), self.states_per_epoch)
        # The loop works in place, and a yielded state must not change: the iterate is copied.
        lam, alpha, mean, count = S.problem.penalty, xp.copy(s.last), s.coef, s.count
        f, eta, errors = S.temporary_centers(alpha.shape[1]), S.eta, BatchErrors()
        for segment in S.segments(part):
            f.enter(segment, alpha)  # K(X_m, Z) alpha of all batches in the segment
            for step in segment.steps:  # fetch minibatch (X_m, y_m)
                m, y_m = step.rows, step.y
                r = f.values(m) - y_m  # g_m <- K(X_m, Z) alpha - y_m
                errors.add(r, y_m)
                g = r if S.omega is None else S.omega[step.index, None] * r
                # The paper has no penalty. Its gradient in the space of functions is the function
                # itself: a step shrinks all coefficients, of centers and temporary centers alike.
                decay = 1 - eta * len(g) * lam
                alpha *= decay
                f.decay_(decay)
                f.add_(m, -eta * g)
            f.leave()  # h <- K(Z, X_m) g_m - C K(X_s, X_m) g_m, C = K(Z, X_s) U U'
            # The projection applies to the sum of the steps, because it is linear.
            if segment.due:
                theta = S.projection.solve(f.h, segment.number)
                alpha = alpha + theta  # alpha <- alpha - eta theta; h contains -eta
                f.clear()
                count += 1
                # The mean forgets: a plain mean would keep the first iterates, which are far off.
                # The first weight is 1, so that the start of `mean` does not matter.
                mean = xp.lerp(mean, alpha, (MEAN_OF_LAST + 1) / (count + MEAN_OF_LAST))
            del segment  # frees its blocks before the next ones are allocated
        return EigenPro3State(
            iteration=s.iteration + 1,
            coef=mean if self.average else alpha,
            metrics={EPOCH_KEY: part.done, BATCH_ERROR: errors.mse},
            seed=s.seed,
            settings=s.settings,
            last=alpha,
            count=count,
            **s.progress(errors, part.length),
        )

    def setup(self, problem: NystromProblem, seed: int) -> Setup:
        """Return the setup of algorithm 2: its first lines, the step and the projection."""
        K, rng = load_centers(problem.K), RandomStream(seed)
        (n, p), lam = K.shape, problem.penalty
        omega = relative_weights(problem)
        change = change_of_rows(self.augment, problem.targets.shape[1], rng)
        # The fixed point depends on the directions that are flattened outside of the span of the
        # centers: few centers allow few directions.
        max_q = max(1, p // CENTERS_PER_DIRECTION)
        room = K.memory_bytes // FEATURES_SHARE
        P = self.factor(
            K, rng, weights=omega, change=change, most=max_q, decay=lam, features_bytes=room
        )
        # The block of a batch against the centers may take a quarter of the memory.
        fits = max(1, K.memory_bytes // (4 * p * K.dtype.itemsize))
        m = min(self.batch_rows(P, n, lam), fits)
        kind = resolve_projection(self.projection, p, K.memory_bytes)
        projection, sizes = build_projection(
            replace(K, rows=K.cols), kind, self.projection_epochs, self.projection_tol, seed, rng
        )
        eta, delay = self.step_scale * P.step(m, lam), resolve_delay(self.delay, kind, p, m)
        batches = Batches(K.rows, m, seed, K.host_bytes // 4)
        # K(Z, X_s) U once for the whole fit: the correction of each batch then takes q numbers per
        # center, and no kernel entry.
        K_Zs_U = replace(K, rows=P.points).T @ P.vectors
        settings = {**P.settings(), "batch": m, "step": eta, "delay": delay, **sizes}
        return Setup(
            problem, K, P, K_Zs_U, projection, batches, omega, eta, delay, self.augment, settings
        )

    def start(self, S: Setup, coef: Array, state: State | None) -> EigenPro3State:
        return EigenPro3State(
            starting_iteration(state),
            coef,
            seed=S.batches.seed,
            settings=S.settings,
            last=coef,
            count=0,
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_projection(self.projection, self.projection_epochs, self.projection_tol)
        check_count_or_auto(self.delay, "delay")
        if self.augment is not None and not callable(self.augment):
            raise ValueError(f"augment must be a function of x, y and rng, not {self.augment!r}")

    def check(self, problem: Any) -> None:
        super().check(problem)
        if self.augment is not None and problem.K.rows.sparse:
            raise ValueError("augment needs dense rows, but these are sparse; pass dense rows")

    def verify(self, problem: NystromProblem, state: EigenPro3State) -> None:
        """Compare errors of the iterate and of the mean with the errors of the last batches.

        Augmented batches are not compared, since their errors belong to other rows. Cost: 2 n p
        kernel evaluations.
        """
        # Either may have been changed in the file: the mean is the model, and the iterate
        # continues.
        if self.augment is None:
            check_batch_error(problem, state, (state.last, state.coef))

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        p = size.m
        centers = 0 if mapped else 2 * size.center_bytes  # centers and temporary centers
        factors = 8 * self._factor_entries(p, 0) + 16 * p * self._most_flattened(size)
        return size.vector_bytes + centers + self.sample_bytes(size.n) + factors

    def flexible_bytes(self, size: ProblemSize, available: int) -> int:
        """Return the bytes of the subsample, of K_ZZ and of the row features."""
        chosen = self._factor_entries(size.m, available) - self._factor_entries(size.m, 0)
        of_rows = self._feature_bytes(size, available)
        return self.sample_bytes(size.n, available) + 8 * chosen + of_rows

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        n, p, s = size.n, size.m, self.subsample_rows(size.n)
        of_sample = 0 if self._feature_bytes(size, BLOCK_BYTES) else s
        once = 2 * s * s + p * (p + s) + (n * s if self.augment is None else 0)
        return iterations * n * (p + of_sample + self._waiting(size)) + once

    def operations(self, size: ProblemSize, iterations: int) -> float:
        factorization = self._factor_entries(size.m, BLOCK_BYTES) * float(size.m) / 3
        q = self._most_flattened(size)
        features = 2.0 * size.n * self.subsample_rows(size.n) * q if self.augment is None else 0.0
        # Large matrix products run twice as fast in float32.
        products = features * size.itemsize / 16
        return self.eigenvector_operations(size, q) + factorization + products

    def bytes_read(self, size: ProblemSize) -> float:
        """Return the bytes read for the batches of a step, with their share of a projection."""
        p, s = float(size.m), float(self.subsample_rows(size.n))
        q, feature_bytes = self._most_flattened(size), self._feature_bytes(size, BLOCK_BYTES)
        of_projection = p * q + self._factor_entries(size.m, BLOCK_BYTES)
        of_batch = of_projection / self._delay(size) + (0 if feature_bytes else s * q)
        return 8 * of_batch * self._batches_per_step(size)

    def steps(self, size: ProblemSize, iterations: int) -> int:
        """Return the number of batches, halved if most share their kernel entries."""
        return -(-super().steps(size, iterations) // self._batches_per_step(size))

    def _batches_per_step(self, size: ProblemSize) -> int:
        return 2 if self._feature_bytes(size, BLOCK_BYTES) else 1

    def _waiting(self, size: ProblemSize) -> int:
        """Return the kernel evaluations per row that are not with centers or the subsample."""
        if resolve_projection(self.projection, size.m, BLOCK_BYTES) == "delayed":
            return 2 * size.m
        delay = self._delay(size)
        rows = min(delay * self._least_batch(size), size.n)
        return (rows + min(rows, CHUNK_ROWS)) // 2 if delay > 1 else 0

    def _delay(self, size: ProblemSize) -> int:
        """Return the number of batches between projections, for the smallest automatic batch."""
        kind = resolve_projection(self.projection, size.m, BLOCK_BYTES)
        return resolve_delay(self.delay, kind, size.m, self._least_batch(size))

    def _least_batch(self, size: ProblemSize) -> int:
        return min(size.n, LEAST_BATCH if self.batch == "auto" else int(self.batch))

    def _feature_bytes(self, size: ProblemSize, memory_bytes: int) -> int:
        """Return the bytes of the features of all rows if they are stored, else 0."""
        numbers = size.n * self._most_flattened(size)
        need = numbers * size.itemsize if self.augment is None else 0
        return need if need <= memory_bytes // FEATURES_SHARE else 0

    def _factor_entries(self, p: int, memory_bytes: int) -> int:
        """Return p² if `memory_bytes` allow an exact projection, else 0."""
        return p * p if resolve_projection(self.projection, p, memory_bytes) == "exact" else 0

    def _most_flattened(self, size: ProblemSize) -> int:
        """Return the largest number of flattened directions; see `EigenProFactor`."""
        if self.rank != "auto":
            return int(self.rank)
        s = self.subsample_rows(size.n)
        return min(max(1, size.m // CENTERS_PER_DIRECTION), s if s == size.n else s // 10)
