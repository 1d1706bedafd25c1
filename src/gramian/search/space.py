"""Candidates of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..kernels import Kernel
from ..kernels.base import kernels
from ..metric import RecursiveFeatureMachine
from .recipe import FIRST_MULTIPLES, L1_KERNEL, RADIAL_KERNELS

INPUT_SCALINGS = ("standard", "quantile", "common")
"""Features scaled by standard deviations, by quantiles, or by one common scale."""


@dataclass(frozen=True)
class Space:
    """Candidate kernels, inputs, lengthscales and metrics.

    Attributes
    ----------
    kernels : tuple of str or Kernel
    inputs : tuple of str
    multiples : tuple of float, or None
        Lengthscales as multiples of the median; None to search from the default of each kernel.
    machine : RecursiveFeatureMachine or None
        Learner of metrics; None to learn no metric.
    averages : bool
        Whether the result may be the mean of several fits.
    fits : int
        Largest number of fits with all rows as centers.
    precise : bool
        Whether to try penalties that only products in float64 resolve.
    """

    kernels: tuple[str | Kernel, ...] = (*RADIAL_KERNELS, L1_KERNEL)
    inputs: tuple[str, ...] = INPUT_SCALINGS
    multiples: tuple[float, ...] | None = None
    machine: RecursiveFeatureMachine | None = field(default_factory=RecursiveFeatureMachine)
    averages: bool = True
    fits: int = 16
    precise: bool = True

    def with_names(self, names: Sequence[str] | None) -> Space:
        """Return the space whose kernels have indices in place of names of columns."""
        kernels = (k.with_names(names) if isinstance(k, Kernel) else k for k in self.kernels)
        return replace(self, kernels=tuple(kernels))

    def of_sparse(self) -> Space:
        """Return the space for sparse rows: no maps, which would fill their zeros.

        Raises
        ------
        ValueError
            If no kernel is left.
        """
        names_left = tuple(k for k in self.kernels if as_kernel(k).sparse_ok)
        if not names_left:
            names = ", ".join(map(str, self.kernels))
            raise ValueError(
                f"kernel={names} needs dense rows, but X is sparse: set kernel='auto', or pass "
                "X.toarray() if it fits in memory"
            )
        return replace(self, kernels=names_left, inputs=("standard",), machine=None)

    @property
    def takes_features_as_given(self) -> bool:
        """Whether a kernel has features in its own units, or is no function of their distance.

        No map of the features is then tried, and no metric is learned.
        """
        as_objects = map(as_kernel, self.kernels)
        return any(isinstance(k, Kernel) for k in self.kernels) or not all(
            k.stationary and not k.unscaled_features(1) for k in as_objects
        )

    def without_maps(self) -> Space:
        """Return the space for kernels that take features as given."""
        return replace(self, inputs=("standard",), machine=None)

    def groups(self) -> list[tuple[str | Kernel, ...]]:
        """Return the groups of kernels that share a metric: Euclidean, and l1 distance."""
        radial = tuple(k for k in self.kernels if k != L1_KERNEL)
        l1 = tuple(k for k in self.kernels if k == L1_KERNEL)
        return [group for group in (radial, l1) if group]

    def first(self, kernel: str | Kernel) -> float:
        """Return the first lengthscale to try, as a multiple of the median."""
        usual = 1.0 if isinstance(kernel, Kernel) else FIRST_MULTIPLES.get(kernel, 1.0)
        if self.multiples is None:
            return usual
        return min(self.multiples, key=lambda m: abs(m - usual))

    def beside(self, multiple: float, tried: Sequence[float]) -> list[float]:
        """Return the untried neighbours of a lengthscale, the smaller neighbour first."""
        if self.multiples is None:
            near = [multiple / 2, multiple * 2]
            # The bounds end a walk along which the error falls without end.
            near = [m for m in near if 1 / 32 <= m <= 32]
        else:
            # Given multiples need not be powers of two: their neighbours in order are the steps.
            order = sorted(self.multiples)
            at = order.index(multiple)
            near = [order[i] for i in (at - 1, at + 1) if 0 <= i < len(order)]
        return [m for m in near if m not in tried]


def as_kernel(kernel: str | Kernel) -> Kernel:
    """Return the kernel with a name, or the object itself."""
    return kernel if isinstance(kernel, Kernel) else kernels.make(kernel)
