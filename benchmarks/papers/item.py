"""Item of a paper: a figure, table, theorem or claim, its value there, and how it is measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..lib.results import Row, about
from .plot import Plot

Verdict = Literal[
    "reproduced", "in kind", "not reproduced", "not possible", "explained", "not explained"
]
"""The last two are of items that the paper has not: whether a cause that we tested was found."""


@dataclass(frozen=True)
class Scale:
    """Size of a run.

    Attributes
    ----------
    data : str
        Folder of the data sets; sets that are not in it are replaced by generated rows.
    quick : bool
        Whether a paper takes seconds to a few minutes on one core.
    """

    data: str
    quick: bool

    def size(self, quick: int, full: int) -> int:
        """Return one of two sizes."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Outcome:
    """Result of an item.

    Attributes
    ----------
    ours : str
        Our value, with the scale at which it was measured.
    verdict : str
    why : str
        The cause, unless the item is reproduced.
    plot : Plot, optional
        A picture in the manner of the figure.
    """

    ours: str
    verdict: Verdict
    why: str = ""
    plot: Plot | None = None


@dataclass(frozen=True)
class Item:
    """One line of a paper's page.

    Attributes
    ----------
    name : str
        Number in the paper, such as "figure 1", and what it shows.
    paper : str
        The paper's value.
    measure : callable
    """

    name: str
    paper: str
    measure: Callable[[Scale], Outcome]

    def record(self, paper: str, scale: Scale) -> tuple[Row, Row | None]:
        """Measure the item; return its row, and the record of its plot."""
        start, facts = time.process_time(), about()
        outcome = self.measure(scale)
        row = {
            "paper": paper,
            "item": self.name,
            "value of the paper": self.paper,
            "our value": outcome.ours,
            "verdict": outcome.verdict,
            "why": outcome.why,
            "CPU s": round(time.process_time() - start, 1),
            "measured": f"{facts['machine']}, {facts['date']}, commit {facts['commit']}",
        }
        return row, outcome.plot.record(paper, self.name) if outcome.plot else None


def impossible(why: str) -> Callable[[Scale], Outcome]:
    """Return the measurement of an item whose data or machine is not available."""
    return lambda scale: Outcome("", "not possible", why)


def judged(ours: str, holds: bool, scale: str, failed: str, plot: Plot | None = None) -> Outcome:
    """Return "in kind" at another scale than the paper's, or "not reproduced" with the cause."""
    if holds:
        return Outcome(ours, "in kind", scale, plot)
    return Outcome(ours, "not reproduced", failed, plot)


def judge_cause(
    ours: str, holds: bool, cause: str, failed: str, plot: Plot | None = None
) -> Outcome:
    """Return "explained" if a measurement that the paper has not shows the cause."""
    if holds:
        return Outcome(ours, "explained", cause, plot)
    return Outcome(ours, "not explained", failed, plot)


def proved(ours: str, holds: bool, failed: str, plot: Plot | None = None) -> Outcome:
    """Return "reproduced", or "not reproduced" with the cause."""
    return Outcome(ours, "reproduced" if holds else "not reproduced", "" if holds else failed, plot)
