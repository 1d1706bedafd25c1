"""Space: what a search may choose among."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..kernels.base import kernels
from ..metric import RecursiveFeatureMachine
from .recipe import L1, MULTIPLES, RADIAL

INPUTS = ("standard", "quantile", "common")
"""Each feature by its deviation, or by its quantiles; or one scale for all."""


@dataclass(frozen=True)
class Space:
    """Kernels, inputs, lengthscales and metrics that are tried.

    Attributes
    ----------
    kernels : tuple of str
    inputs : tuple of str
    multiples : tuple of float, or None
        Lengthscales in medians; None: those around the default of each kernel, as far as the error
        falls.
    machine : RecursiveFeatureMachine or None
        What learns metrics; None: none is learned.
    averages : bool
        Whether the mean of several fits may be the result.
    fits : int
        Fits with all rows as centers, at most.
    precise : bool
        Whether penalties are tried that only products in float64 can tell.
    """

    kernels: tuple[str, ...] = (*RADIAL, L1)
    inputs: tuple[str, ...] = INPUTS
    multiples: tuple[float, ...] | None = None
    machine: RecursiveFeatureMachine | None = field(default_factory=RecursiveFeatureMachine)
    averages: bool = True
    fits: int = 16
    precise: bool = True

    def of_sparse(self) -> Space:
        """Return the space for sparse rows: no maps, which would fill their zeros.

        Raises
        ------
        ValueError
            If no kernel is left.
        """
        left = tuple(name for name in self.kernels if kernels.make(name).sparse_ok)
        if not left:
            names = ", ".join(self.kernels)
            raise ValueError(
                f"kernel={names} needs dense rows, these are sparse: give kernel='auto', or "
                "X.toarray() if it fits in memory"
            )
        return replace(self, kernels=left, inputs=("standard",), machine=None)

    def groups(self) -> list[tuple[str, ...]]:
        """Return the kernels that share metrics: of the Euclidean distance, and of the l1."""
        radial = tuple(k for k in self.kernels if k != L1)
        l1 = tuple(k for k in self.kernels if k == L1)
        return [group for group in (radial, l1) if group]

    def first(self, kernel: str) -> float:
        """Return the lengthscale, in medians, to begin with."""
        usual = MULTIPLES.get(kernel, 1.0)
        if self.multiples is None:
            return usual
        return min(self.multiples, key=lambda m: abs(m - usual))

    def beside(self, multiple: float, tried: Sequence[float]) -> list[float]:
        """Return the neighbours of a lengthscale that were not tried, the smaller one first."""
        if self.multiples is None:
            near = [multiple / 2, multiple * 2]
            near = [m for m in near if 1 / 32 <= m <= 32]
        else:
            order = sorted(self.multiples)
            at = order.index(multiple)
            near = [order[i] for i in (at - 1, at + 1) if 0 <= i < len(order)]
        return [m for m in near if m not in tried]
