"""Search: a kernel, its inputs, metric, lengthscale and penalty, in the order that is cheap.

    screen    all kernels and inputs, on some thousand rows with some hundred landmarks
    metric    the recursive feature machine, once for kernels of each distance
    kernel    other kernels with the metric that was found
    fit       all rows as centers: each penalty of a path at once; lengthscales by walking
    landmarks all rows, with as many landmarks as there is time for, where a fit has none
    average   weights of the fits, on held-out rows

What is chosen with landmarks is what does not depend on their number: inputs, metric and kernel.
Lengthscale and penalty are chosen by fits with all rows as centers, as few landmarks prefer wide
kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .all_rows.fits import average, fits
from .findings import Findings
from .recipe import Trial
from .samples.screen import metrics, screen


@dataclass(eq=False)
class Search(Findings):
    """A search, and what it has found so far; attributes are those of `Findings`."""

    def steps(self) -> Iterator[Trial]:
        """Go through the steps, and yield each trial; whoever stops has the best until then."""
        yield from self.sampled_steps()
        yield from self.whole_steps()

    def whole_steps(self) -> Iterator[Trial]:
        """Go through the steps with all rows of the material."""
        yield from fits(self)
        yield from average(self)

    def sampled_steps(self) -> Iterator[Trial]:
        """Go through the steps on samples only: what follows is on other rows."""
        yield from screen(self)
        yield from metrics(self)
