"""Search for kernel, inputs, metric, lengthscale and penalty, cheap steps first.

    screen    all kernels and inputs, on some thousand rows with some hundred landmarks
    metric    the recursive feature machine, once for kernels of each distance
    kernel    other kernels with the learned metric
    fit       all rows as centers: each penalty of a path at once; lengthscales by walking
    landmarks all rows, with the affordable landmarks, if there is no time for a fit
    average   weights of the fits, on held-out rows

The search ends at once where there is nothing to gain: if the recipe of an estimator's defaults is
exact, or if no recipe of the screen predicts held-out rows.

Fits with landmarks choose inputs, metric and kernel, which do not depend on the number of
landmarks. Fits with all rows as centers choose lengthscale and penalty, as few landmarks prefer
wide kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .all_rows.fits import average, fit_final_default, fits
from .recipe import Trial
from .samples.screen import metrics, screen
from .search_state import SearchState


@dataclass(eq=False)
class Search(SearchState):
    """Search by steps, which keeps the fits so far; see `SearchState` for the attributes."""

    def steps(self) -> Iterator[Trial]:
        """Run the steps, and yield each trial; a stopped search keeps its best fit so far."""
        yield from fit_final_default(self)
        if self.fits:
            return
        yield from self.sampled_steps()
        yield from self.whole_steps()

    def whole_steps(self) -> Iterator[Trial]:
        """Run the steps with all rows of the material."""
        if self.is_noise():
            return
        yield from fits(self)
        yield from average(self)

    def sampled_steps(self) -> Iterator[Trial]:
        """Run the steps on samples only."""
        yield from screen(self)
        if not self.is_noise():
            yield from metrics(self)
