"""Recipes, which a search tries, and trials, which are their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._arrays import Array, Float
from ..kernels import Kernel
from ..kernels._hyperparameters import hyperparameters, times_lengthscales
from ..kernels.base import kernels

RADIAL_KERNELS = ("laplacian", "matern32", "gaussian")
"""Candidate kernels of the Euclidean distance: rough, smoother, smooth."""

L1_KERNEL = "l1_laplacian"

FIRST_MULTIPLES = {"laplacian": 2.0, "matern32": 1.0, "gaussian": 0.5, L1_KERNEL: 1.0}
"""First lengthscale of each kernel, in medians: the best on four data sets of the study or next to
it, with all rows as centers."""


@dataclass(frozen=True)
class Recipe:
    """Parameters of a model, except its penalty.

    Attributes
    ----------
    kernel : str or Kernel
        A name, or an object with its own hyper-parameters.
    inputs : str
        ``"standard"``: features of mean 0 and standard deviation 1; ``"quantile"``: these as normal
        scores of their quantiles; ``"common"``: one scale for all, as for pixels or counts.
    multiple : float
        Lengthscale as a multiple of the median distance of mapped rows; of an object, the factor of
        its lengthscales.
    rounds : int
        Rounds of the recursive feature machine; 0: no learned metric.
    power : float
        Power of its matrix M that maps rows.
    learner : str, Kernel or None
        Kernel whose gradients make M; None without a learned metric.
    """

    kernel: str | Kernel
    inputs: str = "standard"
    multiple: float = 1.0
    rounds: int = 0
    power: float = 0.5
    learner: str | Kernel | None = None

    def make_kernel(self) -> Kernel:
        """Return the kernel with its lengthscale as a multiple of the median."""
        if isinstance(self.kernel, Kernel):
            return times_lengthscales(self.kernel, self.multiple)
        # `repr` writes all digits, so that the parsed number equals the multiple.
        return kernels.make(self.kernel, lengthscale=f"{self.multiple!r} median")

    @property
    def has_lengthscale(self) -> bool:
        """Whether the kernel has a lengthscale that matters."""
        kernel = kernels.make(self.kernel) if isinstance(self.kernel, str) else self.kernel
        return any("lengthscale" in name for name in hyperparameters(kernel))

    def __str__(self) -> str:
        metric = "" if not self.rounds else f", metric of round {self.rounds}, M^{self.power:g}"
        unit = "times its lengthscales" if isinstance(self.kernel, Kernel) else "medians"
        return f"{self.kernel}, {self.multiple:g} {unit}, {self.inputs} inputs{metric}"


@dataclass(frozen=True, eq=False)
class Trial:
    """Result of one fit of a recipe, with the held-out losses.

    Attributes
    ----------
    step : str
        ``"screen"``, ``"metric"``, ``"kernel"`` (a sample and landmarks), ``"landmarks"`` (all
        rows, if time is short), ``"fit"`` (all rows as centers, or all rows of some cells),
        ``"average"``, ``"cells"`` (all cells), ``"blend"`` (with trees), ``"refit"``.
    recipe : Recipe
    penalty : float
        Best penalty of the path.
    loss : float
        Held-out loss that compares fits: mean squared error of standardised targets, or of class
        codes, unless the user sets a score.
    losses : tuple of (penalty, loss)
        Loss of each penalty of the path.
    values : Array of shape (v, t), or None
        Predictions of all held-out rows by fits with all rows as centers.
    seconds : float
        Seconds of this fit.
    elapsed : float
        Seconds since the search began.
    evaluations : int
        Kernel evaluations of the search up to this trial.
    """

    step: str
    recipe: Recipe
    penalty: float
    loss: float
    losses: tuple[tuple[float, float], ...]
    values: Float[Array, "v t"] | None
    seconds: float
    elapsed: float
    evaluations: int


TrialCallback = Callable[[Trial], object]
"""Callback after each trial; if it returns True, the search ends with the best so far."""
