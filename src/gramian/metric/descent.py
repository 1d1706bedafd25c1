"""LengthscaleDescent: lengthscales, penalty and landmarks of a Nystrom fit by gradient descent.

The method of [1]_, with few landmarks. Departures:

* Each step uses a random part of the sample: with 200 landmarks, all rows add little information,
  and take longer.
* For the held-out objective, each step divides its rows into fitted and held-out rows, so that no
  rows are memorised.
* All numbers are float64: gradients pass through two Cholesky factors.
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

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la
from .._messages.checks import as_count, as_positive
from ..data import LinearMap
from ..engines import Engine
from ..kernels import Kernel
from ..kernels._lengthscale import lengthscale_of
from ..paths.sample import MEDIAN_ROWS, Sample
from ._entries import is_differentiable
from .base import LearnedMetric, Round, SampledMetric, metrics
from .objectives import NystromFit, Parameters, Rows
from .sampling import HELD_SHARE

DESCENT_OBJECTIVES = ("held_out", "complexity")

STEPS_PER_EVALUATION = 10
"""Steps from one evaluation on the held-out rows to the next."""

ADAM_BETAS = (0.9, 0.99)
"""Decay rates of the running means in Adam."""

ADAM_EPSILON = 1e-8
"""Number added to the root of the second moment in Adam."""


@dataclass(frozen=True, eq=False)
class DescentState:
    """State of the descent.

    Attributes
    ----------
    steps : int
    error : float
        Mean squared error on the held-out rows, in variances of the targets, of a fit to all other
        rows.
    scales : Tensor of shape (d,)
        Factors of the features: the fitted kernel has lengthscale 1 after this scaling.
    penalty : float
    landmarks : Tensor of shape (m, d)
        Positions of the landmarks, in the units of the features.
    """

    steps: int
    error: float
    scales: Float[Tensor, " d"]
    penalty: float
    landmarks: Float[Tensor, "m d"]


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
    Cost of a step of b rows and m landmarks: b m kernel evaluations, twice, about 6 b m² operations
    and, with the l1 distance, 4 b m d; an evaluation costs a fit to all rows. Memory: about 60 n m
    bytes.

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
        rng: torch.Generator,
        engine: str | Engine = "auto",
    ) -> LearnedMetric:
        states = list(self.descend(sample, kernel, rng=rng))
        best = min(states, key=lambda state: state.error)
        matrix = best.scales.square()
        rounds = tuple(Round(k, s.error, s.penalty, 1.0) for k, s in enumerate(states))
        return LearnedMetric(LinearMap(scales=best.scales), matrix / matrix.sum(), matrix, rounds)

    def descend(
        self, sample: Sample, kernel: Kernel, *, rng: torch.Generator
    ) -> Iterator[DescentState]:
        """Yield the initial state, and the state after every ten steps.

        Parameters
        ----------
        sample : Sample
        kernel : Kernel
            If its lengthscale is a multiple of the median, the sample resolves it.
        rng : torch.Generator
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
        at = self._start(kernel, sample, rows, frame).copies(free=True)
        parameters = at.all() if self.move_landmarks else at.all()[:2]
        adam, steps = _Adam.of(parameters, self.rate), 0
        # The initial state is a candidate, too: the result is no worse on the held-out rows.
        while True:
            yield _evaluate(kernel, at, rows, held_rows, frame, steps)
            if steps >= self.steps:
                return
            for _ in range(min(STEPS_PER_EVALUATION, self.steps - steps)):
                index = torch.randperm(len(rows.X), generator=rng)[: self.batch]
                # A matrix that is no longer positive definite has no gradient; the states until
                # then remain.
                if not self._set_gradients(kernel, at, rows[index], parameters):
                    return
                adam.step()
                steps += 1

    def _start(self, kernel: Kernel, sample: Sample, rows: Rows, frame: _Frame) -> Parameters:
        """Return the lengthscale of the kernel, and the first distinct rows as landmarks."""
        lengthscale = lengthscale_of(kernel.resolve(sample.X[:MEDIAN_ROWS]))
        inverse = 1 / torch.tensor(lengthscale, dtype=torch.float64)
        # Equal landmarks make K_mm singular. Twice as many rows make up for copies; if they are
        # more than needed, `unique` has sorted them, and the first ones would be a biased choice.
        Z = rows.X[: 2 * self.landmarks].unique(dim=0)
        if len(Z) > self.landmarks:
            Z = rows.X[: self.landmarks].unique(dim=0)
        return Parameters(
            (frame.unit * inverse).log(), torch.tensor(self.penalty).double().log(), Z
        )

    def _set_gradients(
        self, kernel: Kernel, at: Parameters, batch: Rows, parameters: list[Tensor]
    ) -> bool:
        """Set the gradients; return False if a matrix is no longer positive definite."""
        for parameter in parameters:
            parameter.grad = None
        try:
            if self.objective == "complexity":
                value = NystromFit.of(kernel, at, batch).complexity()
            else:
                # The batch is in random order, so its first rows are a random choice.
                held_rows = slice(0, max(1, len(batch.X) // HELD_SHARE))
                fitted = slice(held_rows.stop, None)
                value = NystromFit.of(kernel, at, batch[fitted]).held_out(batch[held_rows]).log()
        except la.NotPositiveDefinite:
            return False
        value.backward()
        return all(p.grad is not None and bool(p.grad.isfinite().all()) for p in parameters)


@dataclass(eq=False)
class _Adam:
    """Optimiser: Kingma & Ba, *Adam*, 2015, algorithm 1; torch's version takes 1 s to import.

    Attributes
    ----------
    parameters : list of Tensor
        Updated in place by each step, from their gradients.
    first, second : list of Tensor
        Running means of the gradients and of their squares.
    rate : float
    count : int
    """

    parameters: list[Tensor]
    first: list[Tensor]
    second: list[Tensor]
    rate: float
    count: int = 0

    @classmethod
    def of(cls, parameters: list[Tensor], rate: float) -> _Adam:
        """Return the optimiser before the first step."""
        first, second = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
        return cls(parameters, first, second, rate)

    @torch.no_grad()
    def step(self) -> None:
        self.count += 1
        # Both means start at zero, and are too small at first.
        bias_first, bias_second = (1 - beta**self.count for beta in ADAM_BETAS)
        for p, m, v in zip(self.parameters, self.first, self.second, strict=True):
            if p.grad is None:
                continue
            m.lerp_(p.grad, 1 - ADAM_BETAS[0])
            v.lerp_(p.grad.square(), 1 - ADAM_BETAS[1])
            p -= self.rate * (m / bias_first) / ((v / bias_second).sqrt() + ADAM_EPSILON)


@dataclass(frozen=True, eq=False)
class _Frame:
    """Mean and standard deviation of the features of the sample: (d,) and (d,)."""

    mean: Tensor
    unit: Tensor

    def scale(self, X: Tensor) -> Tensor:
        """Return rows in standard deviations from the mean."""
        return (X.double() - self.mean) / self.unit


def _standardise(sample: Sample) -> tuple[_Frame, Rows, Rows]:
    """Return the frame of a sample, and its standardised rows with scaled targets."""
    X, Y = sample.X.double(), sample.Y.double()
    unit = X.std(dim=0, correction=0)
    # A constant feature has no scale; any factor leaves its differences zero.
    frame = _Frame(X.mean(dim=0), torch.where(unit > 0, unit, 1.0))
    size = float(Y.square().mean().sqrt()) or 1.0
    held_rows = Rows(
        frame.scale(sample.held_X), sample.held_Y.double() / size, _double(sample.held_weights)
    )
    return frame, Rows(frame.scale(X), Y / size, _double(sample.weights)), held_rows


def _double(weights: Tensor | None) -> Tensor | None:
    return None if weights is None else weights.double()


@torch.no_grad()
def _evaluate(
    kernel: Kernel, at: Parameters, rows: Rows, held_rows: Rows, frame: _Frame, steps: int
) -> DescentState:
    try:
        error = float(NystromFit.of(kernel, at, rows).held_out(held_rows))
    except la.NotPositiveDefinite:
        error = math.inf
    # A copy, because Adam updates the parameters in place. A NaN could win `min` over the states.
    copy, error = at.copies(), error if math.isfinite(error) else math.inf
    landmarks = copy.Z * frame.unit + frame.mean
    return DescentState(
        steps, error, copy.log_scales.exp() / frame.unit, float(copy.log_penalty.exp()), landmarks
    )
