"""Choices of a kernel, its lengthscale and a penalty: what is tried, and how it is compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..kernels import Kernel, medians
from .held_values import HeldValues

GAIN = 2e-3
"""Share of the loss that a further lengthscale has to gain."""

STEP = 2.0
"""Ratio of lengthscales that are tried one after the other."""

FARTHEST = 32.0
"""Lengthscales are at most so many times as large or small as the one tried first."""


@dataclass(frozen=True)
class Scored:
    """A kernel at its best penalty.

    Attributes
    ----------
    kernel : Kernel
        Its lengthscale may be a multiple of the median.
    penalty : float
        Per row of the fit.
    loss : float
        Mean squared error on rows that the fit did not see.
    inputs : str, default="standard"
        Or "quantile": of rows that were made normal by their quantiles.
    falling : bool, default=False
        Whether the smallest penalty of all was the best one, by far.
    held : HeldValues, optional
        Its predictions of these rows, of the targets that are compared.
    """

    kernel: Kernel
    penalty: float
    loss: float
    inputs: str = "standard"
    falling: bool = False
    held: HeldValues | None = None


@runtime_checkable
class Comparison(Protocol):
    """A comparison of kernels: in a moment to screen them, and by fits like the last one."""

    def screen(self, kernel: Kernel) -> Scored:
        """Return the best penalty of a kernel, on a sample."""

    def __call__(self, kernel: Kernel, near: Scored | None = None) -> Scored:
        """Return the best penalty of a kernel, with as many centers as the fit will have.

        `near` is that of the next lengthscale: penalties far from it may be left out.
        """

    def beyond(self, scored: Scored) -> Scored:
        """Return the better one of this penalty and smaller ones, which cost more."""

    def of_all_targets(self, scored: Scored) -> HeldValues | None:
        """Return its predictions of the rows that kernels are compared on; None if it failed."""


UNKNOWN = 1e-6
"""The penalty of a kernel whose matrix could not be computed: the fit then says why."""


def failed(kernel: Kernel) -> Scored:
    """Return the score of a kernel whose matrix overflows, or is not definite."""
    return Scored(kernel, UNKNOWN, math.inf)


def best_of(kernels: Sequence[Kernel], by: Sequence[Comparison]) -> tuple[Kernel, Comparison]:
    """Return the kernel of the smallest loss, and the inputs with which it has that."""
    if len(kernels) == len(by) == 1:
        return kernels[0], by[0]
    tried = [(each.screen(kernel).loss, kernel, each) for each in by for kernel in kernels]
    _, kernel, each = min(tried, key=lambda one: one[0])
    return kernel, each


def walk(kernel: Kernel, score: Comparison, *, moves: bool = True) -> Scored:
    """Return the best lengthscale: smaller ones as long as the loss falls, or else larger ones.

    Parameters
    ----------
    kernel : Kernel
        The first that is tried.
    score : Comparison
    moves : bool, default=True
        Whether other lengthscales may be tried.
    """
    best = score(kernel)
    if not (moves and best.loss > 0):
        return best
    for step in (1 / STEP, STEP):
        first, factor = best, step
        while 1 / FARTHEST <= factor <= FARTHEST:
            found = score(times(kernel, factor), best)
            if not found.loss < (1 - GAIN) * best.loss:
                break
            best, factor = found, factor * step
        if best is not first:
            break
    return best


def times(kernel: Kernel, factor: float) -> Kernel:
    """Return a kernel whose lengthscale is a text, that many times as large."""
    found = medians(kernel.lengthscale)  # type: ignore[attr-defined]
    if found is None:
        raise ValueError(f"{kernel!r} has a lengthscale of its own")
    return kernel.set_params(lengthscale=f"{found * factor!r} median")
