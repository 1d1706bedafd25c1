"""Recipe and Trial: what a search chooses, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from ..kernels import Kernel
from ..kernels.base import kernels

RADIAL = ("laplacian", "matern32", "gaussian")
"""Kernels of the Euclidean distance that are tried: rough, smoother, smooth."""

L1 = "l1_laplacian"

MULTIPLES = {"laplacian": 2.0, "matern32": 1.0, "gaussian": 0.5, L1: 1.0}
"""Lengthscale in medians with which each is tried first: the best of four sets of the study or next
to it, with all rows as centers."""


@dataclass(frozen=True)
class Recipe:
    """The parameters of a model, but for its penalty.

    Attributes
    ----------
    kernel : str
    inputs : str
        ``"standard"``: features of mean 0 and deviation 1; ``"quantile"``: made normal by their
        quantiles then; ``"common"``: one scale for all, as for pixels or counts.
    multiple : float
        The lengthscale in medians of the distance, of rows as they are mapped.
    rounds : int
        Of the recursive feature machine; 0: no learned metric.
    power : float
        Of its matrix M, by which rows are mapped.
    learner : str or None
        The kernel whose gradients M is made of; None without a learned metric.
    """

    kernel: str
    inputs: str = "standard"
    multiple: float = 1.0
    rounds: int = 0
    power: float = 0.5
    learner: str | None = None

    def make_kernel(self) -> Kernel:
        """Return the kernel, its lengthscale still a multiple of the median."""
        return kernels.make(self.kernel, lengthscale=f"{self.multiple!r} median")

    def __str__(self) -> str:
        metric = "" if not self.rounds else f", metric of round {self.rounds}, M^{self.power:g}"
        return f"{self.kernel}, {self.multiple:g} medians, {self.inputs} inputs{metric}"


@dataclass(frozen=True, eq=False)
class Trial:
    """One recipe that was tried.

    Attributes
    ----------
    step : str
        ``"screen"``, ``"metric"``, ``"kernel"`` (a sample and landmarks), ``"landmarks"`` (all
        rows, for want of time for more), ``"fit"`` (all rows as centers, of one cell
        where there are many), ``"average"``, ``"cells"`` (all of them), ``"refit"``.
    recipe : Recipe
    penalty : float
        The best of its path.
    loss : float
        What is chosen by, on held-out rows: mean squared error of standardised targets, or of the
        codes of classes, unless another score was asked for.
    losses : tuple of (penalty, loss)
        The whole path of penalties.
    values : Tensor of shape (v, t), or None
        Predictions of all held-out rows, of fits with all rows as centers.
    seconds : float
        That it took.
    elapsed : float
        Seconds since the search began.
    evaluations : int
        Kernel evaluations of the search until then.
    """

    step: str
    recipe: Recipe
    penalty: float
    loss: float
    losses: tuple[tuple[float, float], ...]
    values: Float[Tensor, "v t"] | None
    seconds: float
    elapsed: float
    evaluations: int


Watcher = Callable[[Trial], object]
"""Called after each trial; the search ends, with the best so far, if it returns True."""
