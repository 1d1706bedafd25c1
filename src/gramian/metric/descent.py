"""LengthscaleDescent: lengthscales, penalty and landmarks of a Nystrom fit by gradients.

The way of [1]_, with few landmarks. Departures:

* Each step looks at other rows, a random part of the sample: of 200 landmarks all rows say little
  more than a part, and take longer.
* The held-out objective divides each step's rows anew into those that are fitted and those that are
  not, so that no rows are learned by heart.
* Everything is float64: gradients go through two Cholesky factors.
* The result is the best of all looks at rows that neither fit nor steer.

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
from .._checks import as_count, as_positive
from ..data import LinearMap
from ..engines import Engine
from ..kernels import Kernel
from ..paths.sample import MEDIAN_ROWS, Sample
from ._entries import differentiable
from .base import LearnedMetric, Round, SampledMetric, metrics
from .objectives import NystromFit, Parameters, Rows
from .sampling import HELD_SHARE

OBJECTIVES = ("held_out", "complexity")

LOOK = 10
"""Steps from one look at the held-out rows to the next."""

BETAS = (0.9, 0.99)
"""Of Adam."""

EPSILON = 1e-8
"""The same: what is added to the root of the second moment."""


@dataclass(frozen=True, eq=False)
class Look:
    """Where the descent is.

    Attributes
    ----------
    steps : int
    error : float
        Mean squared error of the held-out rows, in variances of the targets, of a fit to all
        others.
    scales : Tensor of shape (d,)
        What the features are multiplied by: a kernel of lengthscale 1 is the one that was fitted.
    penalty : float
    landmarks : Tensor of shape (m, d)
        In the units of the features.
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
    or of a bound of it, with Adam. The metric is diagonal: it weighs features and rotates nothing.

    Take it where few of the features matter and there are rows for many steps.

    Parameters
    ----------
    objective : str, default="held_out"
        ``"held_out"``: a fifth of each step's rows is predicted from the others;
        ``"complexity"``: data fit, effective dimension and what the landmarks miss, of all of them.
    landmarks : int, default=200
        Centers of the fit; they begin at rows.
    rows : int, default=8000
        Rows to learn from, at most; a fifth as many, at most, say which step was the best.
    batch : int, default=2000
        Rows of a step.
    steps : int, default=200
    rate : float, default=0.05
        Of Adam: logarithms of lengthscales and penalty move by so much a step at first, landmarks
        by so much of a feature's deviation.
    move_landmarks : bool, default=True
        False: landmarks stay at their rows.
    penalty : float, default=1e-4
        To begin with, as the lengthscale of the kernel.

    Notes
    -----
    Cost of a step of b rows and m landmarks: b m kernel evaluations, twice, about 6 b m² operations
    and, with the l1 distance, 4 b m d; of a look, that of a fit to all rows. Memory: about 60 n m
    bytes.

    What is learned is a kernel of lengthscale 1 of the mapped rows: give ``lengthscale=1.0`` for
    that one, ``"median"`` for one that is measured anew. More landmarks mostly want a longer one.

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
        if self.objective not in OBJECTIVES:
            known = ", ".join(OBJECTIVES)
            raise ValueError(f"objective must be one of {known}, not {self.objective!r}")
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
        looks = list(self.descend(sample, kernel, rng=rng))
        best = min(looks, key=lambda look: look.error)
        matrix = best.scales.square()
        rounds = tuple(Round(k, look.error, look.penalty, 1.0) for k, look in enumerate(looks))
        return LearnedMetric(LinearMap(scales=best.scales), matrix / matrix.sum(), matrix, rounds)

    def descend(self, sample: Sample, kernel: Kernel, *, rng: torch.Generator) -> Iterator[Look]:
        """Yield the start, and where the descent is after every ten steps.

        Parameters
        ----------
        sample : Sample
        kernel : Kernel
            A lengthscale that is a multiple of the median is resolved in the rows of the sample.
        rng : torch.Generator
            For the rows of each step.

        Raises
        ------
        ValueError
            If gradients of such a kernel with respect to its lengthscales are not known.
        """
        if not differentiable(kernel):
            raise ValueError(
                f"lengthscales by gradients are known for kernels of the Euclidean distance and "
                f"for the l1 Laplacian, not for {kernel!r}; metric='learned' takes others"
            )
        frame, rows, held = _framed(sample)
        at = self._start(kernel, sample, rows, frame).copies(free=True)
        moved = at.all() if self.move_landmarks else at.all()[:2]
        adam, steps = _Adam.of(moved, self.rate), 0
        while True:
            yield _look(kernel, at, rows, held, frame, steps)
            if steps >= self.steps:
                return
            for _ in range(min(LOOK, self.steps - steps)):
                some = torch.randperm(len(rows.X), generator=rng)[: self.batch]
                if not self._gradients(kernel, at, rows[some], moved):
                    return
                adam.step()
                steps += 1

    def _start(self, kernel: Kernel, sample: Sample, rows: Rows, frame: _Frame) -> Parameters:
        """Return the lengthscale of the kernel, and the first distinct rows as landmarks."""
        lengthscale = kernel.resolve(sample.X[:MEDIAN_ROWS]).lengthscale  # type: ignore[attr-defined]
        inverse = 1 / torch.tensor(lengthscale, dtype=torch.float64)
        Z = rows.X[: 2 * self.landmarks].unique(dim=0)
        if len(Z) > self.landmarks:
            Z = rows.X[: self.landmarks].unique(dim=0)
        return Parameters(
            (frame.unit * inverse).log(), torch.tensor(self.penalty).double().log(), Z
        )

    def _gradients(self, kernel: Kernel, at: Parameters, some: Rows, moved: list[Tensor]) -> bool:
        """Set the gradients; False if there are none, because a matrix is not definite any more."""
        for each in moved:
            each.grad = None
        try:
            if self.objective == "complexity":
                value = NystromFit.of(kernel, at, some).complexity()
            else:
                held = slice(0, max(1, len(some.X) // HELD_SHARE))
                rest = slice(held.stop, None)
                value = NystromFit.of(kernel, at, some[rest]).held_out(some[held]).log()
        except la.NotPositiveDefinite:
            return False
        value.backward()
        return all(p.grad is not None and bool(p.grad.isfinite().all()) for p in moved)


@dataclass(eq=False)
class _Adam:
    """Kingma & Ba, *Adam*, 2015, algorithm 1; that of torch takes a second to import.

    Attributes
    ----------
    parameters : list of Tensor
        Overwritten by each step, against their gradients.
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
        """Return that of before the first step."""
        first, second = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
        return cls(parameters, first, second, rate)

    @torch.no_grad()
    def step(self) -> None:
        self.count += 1
        one, two = (1 - beta**self.count for beta in BETAS)
        for p, m, v in zip(self.parameters, self.first, self.second, strict=True):
            if p.grad is None:
                continue
            m.lerp_(p.grad, 1 - BETAS[0])
            v.lerp_(p.grad.square(), 1 - BETAS[1])
            p -= self.rate * (m / one) / ((v / two).sqrt() + EPSILON)


@dataclass(frozen=True, eq=False)
class _Frame:
    """Mean and deviation of the features of the sample: (d,) and (d,)."""

    mean: Tensor
    unit: Tensor

    def into(self, X: Tensor) -> Tensor:
        """Return rows in deviations from the mean."""
        return (X.double() - self.mean) / self.unit


def _framed(sample: Sample) -> tuple[_Frame, Rows, Rows]:
    """Return a frame, and the sample in it, in units of its targets."""
    X, Y = sample.X.double(), sample.Y.double()
    unit = X.std(dim=0, correction=0)
    frame = _Frame(X.mean(dim=0), torch.where(unit > 0, unit, 1.0))
    size = float(Y.square().mean().sqrt()) or 1.0
    held = Rows(
        frame.into(sample.held_X), sample.held_Y.double() / size, _double(sample.held_weights)
    )
    return frame, Rows(frame.into(X), Y / size, _double(sample.weights)), held


def _double(weights: Tensor | None) -> Tensor | None:
    return None if weights is None else weights.double()


@torch.no_grad()
def _look(
    kernel: Kernel, at: Parameters, rows: Rows, held: Rows, frame: _Frame, steps: int
) -> Look:
    try:
        error = float(NystromFit.of(kernel, at, rows).held_out(held))
    except la.NotPositiveDefinite:
        error = math.inf
    now, error = at.copies(), error if math.isfinite(error) else math.inf
    landmarks = now.Z * frame.unit + frame.mean
    return Look(
        steps, error, now.log_scales.exp() / frame.unit, float(now.log_penalty.exp()), landmarks
    )
