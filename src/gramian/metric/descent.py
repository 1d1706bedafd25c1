"""Gradient descent on the lengthscales, penalty and landmarks of a Nystrom fit.

The method of [1]_, with few landmarks. Departures:

* Each step uses a random part of the sample: with 200 landmarks, all rows add little information,
  and take longer.
* For the held-out objective, each step divides its rows into fitted and held-out rows, so that no
  rows are memorised.
* All numbers are float64: gradients need solutions with two Cholesky factors.
* The result is the best of all evaluations on rows that are neither fitted nor used for gradients.

References
----------
.. [1] Meanti, Carratino, De Vito, Rosasco, *Efficient hyperparameter tuning for large scale kernel
   ridge regression*, AISTATS 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, RandomStream
from .._messages.checks import as_count, as_positive
from ..data import LinearMap
from ..engines import Engine
from ..kernels import Kernel
from ..kernels._lengthscale import lengthscale_of
from ..paths.sample import MEDIAN_ROWS, Sample
from ._entries import is_differentiable
from .base import HELD_SHARE, LearnedMetric, Round, SampledMetric, metrics
from .objectives import NystromFit, Parameters, Rows

DESCENT_OBJECTIVES = ("held_out", "complexity")

STEPS_PER_EVALUATION = 10
"""Steps from one evaluation on the held-out rows to the next."""

ADAM_BETAS = (0.9, 0.99)
"""Decay rates of the running means in Adam."""

ADAM_EPSILON = 1e-8
"""Number added to the root of the second moment in Adam."""


@dataclass(frozen=True, eq=False)
class DescentState:
    """State of the gradient descent: number of steps, parameters and error.

    - `error`: mean squared error on the held-out rows, in variances of the targets, of a fit to
      all other rows.
    - `scales`: factors of the features: the fitted kernel has lengthscale 1 after this scaling.
    - `landmarks`: positions of the landmarks, in the units of the features.
    """

    steps: int
    error: float
    scales: Float[Array, " d"]
    penalty: float
    landmarks: Float[Array, "m d"]


@metrics.register("gradients")
@dataclass(frozen=True)
class LengthscaleDescent(SampledMetric):
    r"""One lengthscale for each feature, by gradients of the error of a Nystrom fit.

    Lengthscales, penalty and positions of few landmarks follow the gradient of the held-out error,
    or of a bound of it, with Adam. The metric is diagonal: it scales features without rotation.

    Use it if few of the features matter and there are enough rows for many steps.

    Parameters
    ----------
    objective : str, default="held_out"
        ``"held_out"``: the error of a fifth of each step's rows, predicted from the others;
        ``"complexity"``: a sum of data fit, effective dimension and the trace that the landmarks
        miss.
    landmarks : int, default=200
        Centers of the fit, initially rows.
    rows : int, default=8000
        Largest number of rows to learn from; at most a fifth as many other rows select the best
        step.
    batch : int, default=2000
        Rows of a step.
    steps : int, default=200
    rate : float, default=0.05
        Learning rate of Adam: the size of the first steps, for logarithms of lengthscales and
        penalty, and for landmarks in units of a feature's deviation.
    move_landmarks : bool, default=True
        If False, landmarks stay at their rows.
    penalty : float, default=1e-4
        Initial penalty; the kernel sets the initial lengthscale.

    Notes
    -----
    Cost of a step of b rows and m landmarks: b m kernel evaluations, three times, about b m²
    operations (2 b m² for ``"complexity"``) and, with the l1 distance, 9 b m d; an evaluation costs
    a fit to all rows. Memory: about 20 n m bytes, and 45 b m.

    The learned kernel has lengthscale 1 in the mapped rows: use ``lengthscale=1.0`` for it, or
    ``"median"`` to measure a new lengthscale. More landmarks mostly need a longer lengthscale.

    References
    ----------
    .. [1] Meanti, Carratino, De Vito, Rosasco, *Efficient hyperparameter tuning for large scale
       kernel ridge regression*, AISTATS 2022.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.metric import LengthscaleDescent
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> metric = LengthscaleDescent(landmarks=50, steps=30)
    >>> est = KernelRidge("gaussian", lengthscale=1.0, penalty=1e-6, metric=metric, random_state=0)
    >>> est = est.fit(train, "target")
    >>> est.metric_.shape, round(float(est.score(test)), 2)
    ((8,), 1.0)
    """

    objective: str = "held_out"
    landmarks: int = 200
    rows: int = 8000
    batch: int = 2000
    steps: int = 200
    rate: float = 0.05
    move_landmarks: bool = True
    penalty: float = 1e-4

    def __post_init__(self) -> None:
        if self.objective not in DESCENT_OBJECTIVES:
            allowed = ", ".join(DESCENT_OBJECTIVES)
            raise ValueError(f"objective must be one of {allowed}, not {self.objective!r}")
        for name in ("landmarks", "rows", "batch", "steps"):
            as_count(getattr(self, name), name)
        as_positive(self.rate, "rate")
        as_positive(self.penalty, "penalty")

    def learn_sample(
        self,
        kernel: Kernel,
        sample: Sample,
        *,
        rng: RandomStream,
        engine: str | Engine = "auto",
    ) -> LearnedMetric:
        states = list(self.descend(sample, kernel, rng=rng))
        best = min(states, key=lambda state: state.error)
        matrix = xp.square(best.scales)
        rounds = tuple(Round(k, s.error, s.penalty, 1.0) for k, s in enumerate(states))
        return LearnedMetric(LinearMap(scales=best.scales), matrix / matrix.sum(), matrix, rounds)

    def descend(
        self, sample: Sample, kernel: Kernel, *, rng: RandomStream
    ) -> Iterator[DescentState]:
        """Yield the initial state, and the state after every ten steps.

        Parameters
        ----------
        sample : Sample
        kernel : Kernel
            If its lengthscale is a multiple of the median, the sample resolves it.
        rng : RandomStream
            Draws the rows of each step.

        Raises
        ------
        ValueError
            If the kernel has no gradients with respect to its lengthscales.
        """
        if not is_differentiable(kernel):
            raise ValueError(
                f"metric='gradients' needs a kernel of the Euclidean distance or the l1 Laplacian, "
                f"not {kernel!r}; metric='learned' supports other kernels"
            )
        frame, rows, held_rows = _standardise(sample)
        at, steps = self._start(kernel, sample, rows, frame), 0
        adam = _Adam.of(at.all() if self.move_landmarks else at.all()[:2], self.rate)
        # The initial state is a candidate, too: the result is no worse on the held-out rows.
        while True:
            yield _evaluate(kernel, at, rows, held_rows, frame, steps)
            if steps >= self.steps:
                return
            for _ in range(min(STEPS_PER_EVALUATION, self.steps - steps)):
                index = rng.sample(len(rows.X), self.batch)
                gradients = self._gradients(kernel, at, rows[index])
                # A matrix that is no longer positive definite has no gradient; the states until
                # then remain.
                if gradients is None:
                    return
                adam.step(gradients.all())
                steps += 1

    def _start(self, kernel: Kernel, sample: Sample, rows: Rows, frame: _Frame) -> Parameters:
        """Return the lengthscale of the kernel, and the first distinct rows as landmarks."""
        # All factors start from one lengthscale: the descent must find the features that matter
        # from a kernel that sees all of them alike.
        lengthscale = lengthscale_of(kernel.resolve(sample.X[:MEDIAN_ROWS]))
        # Equal landmarks make K_mm singular. Twice as many rows make up for copies; if they are
        # more than needed, `unique` has sorted them, and the first ones would be a biased choice.
        Z = np.unique(rows.X[: 2 * self.landmarks], axis=0)
        if len(Z) > self.landmarks:
            Z = np.unique(rows.X[: self.landmarks], axis=0)
        return Parameters(np.log(frame.unit / lengthscale), np.array(math.log(self.penalty)), Z)

    @np.errstate(all="ignore")
    def _gradients(self, kernel: Kernel, at: Parameters, batch: Rows) -> Parameters | None:
        """Return the gradients; None if a matrix is no longer positive definite."""
        try:
            if self.objective == "complexity":
                _, gradients = NystromFit.of(kernel, at, batch).complexity()
            else:
                # The batch is in random order, so its first rows are a random choice.
                held_rows = slice(0, max(1, len(batch.X) // HELD_SHARE))
                fitted = slice(held_rows.stop, None)
                fit = NystromFit.of(kernel, at, batch[fitted])
                _, gradients = fit.log_held_out(batch[held_rows])
        except la.NotPositiveDefinite:
            return None
        return gradients if all(np.isfinite(g).all() for g in gradients.all()) else None


@dataclass(eq=False)
class _Adam:
    """Optimiser: Kingma & Ba, *Adam*, 2015, algorithm 1.

    - `parameters`: updated in place by each step.
    - `first`, `second`: running means of the gradients and of their squares.
    """

    parameters: list[np.ndarray]
    first: list[np.ndarray]
    second: list[np.ndarray]
    rate: float
    count: int = 0

    @classmethod
    def of(cls, parameters: list[np.ndarray], rate: float) -> _Adam:
        """Return the optimiser before the first step."""
        first, second = ([np.zeros_like(p) for p in parameters] for _ in range(2))
        return cls(parameters, first, second, rate)

    def step(self, gradients: list[np.ndarray]) -> None:
        """Take a step: move the parameters against the gradients."""
        self.count += 1
        # Both means start at zero, and are too small at first.
        bias_first, bias_second = (1 - beta**self.count for beta in ADAM_BETAS)
        for p, m, v, g in zip(self.parameters, self.first, self.second, gradients, strict=False):
            m += (1 - ADAM_BETAS[0]) * (g - m)
            v += (1 - ADAM_BETAS[1]) * (np.square(g) - v)
            p -= self.rate * (m / bias_first) / (np.sqrt(v / bias_second) + ADAM_EPSILON)


@dataclass(frozen=True, eq=False)
class _Frame:
    """Mean and standard deviation of the features of the sample: (d,) and (d,)."""

    mean: np.ndarray
    unit: np.ndarray

    def rows(self, X: Array, Y: Array, weights: Array | None, size: float) -> Rows:
        """Return rows as standard deviations from the mean, with targets in units of `size`."""
        w = np.ones(len(X)) if weights is None else _double(weights)
        return Rows((_double(X) - self.mean) / self.unit, _double(Y) / size, w)


def _standardise(sample: Sample) -> tuple[_Frame, Rows, Rows]:
    """Return the frame of a sample, and its standardised rows with scaled targets."""
    X = _double(sample.X)
    unit = X.std(axis=0)
    # A constant feature has no scale; any factor leaves its differences zero.
    frame = _Frame(X.mean(axis=0), np.where(unit > 0, unit, 1.0))
    size = float(np.sqrt(np.square(_double(sample.Y)).mean())) or 1.0
    rows = frame.rows(sample.X, sample.Y, sample.weights, size)
    return frame, rows, frame.rows(sample.held_X, sample.held_Y, sample.held_weights, size)


def _double(x: Array) -> np.ndarray:
    return xp.to_host(xp.to_float64(x))


@np.errstate(all="ignore")
def _evaluate(
    kernel: Kernel, at: Parameters, rows: Rows, held_rows: Rows, frame: _Frame, steps: int
) -> DescentState:
    try:
        error = NystromFit.of(kernel, at, rows).held_out(held_rows)
    except la.NotPositiveDefinite:
        # No error to the caller: a state of infinite error is never chosen, and the states before
        # it remain.
        error = math.inf
    scales, landmarks = np.exp(at.log_scales) / frame.unit, at.Z * frame.unit + frame.mean
    return DescentState(
        steps,
        error if math.isfinite(error) else math.inf,  # a NaN could win `min` over the states
        scales,
        float(np.exp(at.log_penalty)),
        landmarks,
    )
