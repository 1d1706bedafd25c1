"""The tables of `accuracy`: errors beside each other, shares of wins, ratios, ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..lib.results import Row
from .accuracy_contenders import CONTENDERS, OURS, PEERS
from .accuracy_sets import GROUPS

TIE = 0.01
"""Relative difference of errors below which one seed and one split say nothing."""

SIGNIFICANCE = 0.05
ASKED = {
    "california_housing": (44_400, 10), "pol": (3.70, 10), "kin40k": (0.128, 8),
    "elevators": (0.0890, 8), "beijing_pm25": (28.0, 15), "house_16h": (32_300, 15),
    "higgs_11k": (0.290, 8), "magic": (0.118, 10),
}  # fmt: skip
"""Errors and CPU seconds of the whole fit that were asked for before it was written."""


@dataclass(frozen=True)
class Grid:
    """Errors and CPU seconds, means over seeds, by set and contender.

    An error is infinite where a fit has failed, and nan where it was not tried.
    """

    sets: list[str]
    contenders: list[str]
    error: np.ndarray
    seconds: np.ndarray

    @classmethod
    def of(cls, rows: list[Row], group: str, cap: str, names: Iterable[str] = CONTENDERS) -> Grid:
        """Return the grid of a group, with contenders in the order of these names."""
        rows = [r for r in rows if r["set"] in GROUPS[group] and str(r["cap"]) == cap]
        sets = [name for name in GROUPS[group] if any(r["set"] == name for r in rows)]
        contenders = [name for name in names if any(r["contender"] == name for r in rows)]
        shape = (len(sets), len(contenders))
        error, seconds = np.full(shape, np.nan), np.full(shape, np.nan)
        for i, name in enumerate(sets):
            for j, contender in enumerate(contenders):
                some = [r for r in rows if (r["set"], r["contender"]) == (name, contender)]
                if some:
                    error[i, j] = np.mean([error_of(r) for r in some])
                    seconds[i, j] = np.mean([r.get("cpu_s", np.inf) for r in some])
        return cls(sets, contenders, error, seconds)

    def without(self, *names: str) -> Grid:
        keep = [j for j, name in enumerate(self.contenders) if name not in names]
        contenders = [self.contenders[j] for j in keep]
        return Grid(self.sets, contenders, self.error[:, keep], self.seconds[:, keep])


def error_of(row: Row) -> float:
    """Return the error of a fit; none counts as half a wrong label."""
    return row["error"] or 0.5 / row["test rows"] if "error" in row else np.inf


def side_by_side(grid: Grid) -> list[Row]:
    """Return error and CPU seconds of each contender, a set in each row."""
    rows: list[Row] = []
    for name, errors, seconds in zip(grid.sets, grid.error, grid.seconds, strict=True):
        row: Row = {"set": name}
        for contender, error, second in zip(grid.contenders, errors, seconds, strict=True):
            found = f"{error:.4g} / {second:.3g}" if np.isfinite(error) else "failed"
            row[contender] = "" if np.isnan(error) else found
        rows.append(row)
    return rows


def duels(grid: Grid) -> list[Row]:
    """Compare each of ours with each peer on the sets that both have fitted."""
    rows: list[Row] = []
    for ours in OURS:
        for peer in PEERS:
            if ours in grid.contenders and peer in grid.contenders:
                rows += duel(grid, ours, peer)
    return rows


def duel(grid: Grid, ours: str, peer: str) -> list[Row]:
    a, b = grid.contenders.index(ours), grid.contenders.index(peer)
    both = np.isfinite(grid.error[:, [a, b]]).all(axis=1)
    if not both.any():
        return []
    ratio = grid.error[both, a] / grid.error[both, b]
    worst = int(ratio.argmax())
    seconds = grid.seconds[both]
    return [
        {
            "ours": ours, "peer": peer, "sets": len(ratio),
            "better, %": round(100 * float((ratio < 1).mean())),
            f"better or within {TIE:.0%}, %": round(100 * float((ratio < 1 + TIE).mean())),
            "error ratio, geometric mean": float(np.exp(np.log(ratio).mean())),
            "worst ratio": float(ratio[worst]),
            "there": [s for s, has in zip(grid.sets, both, strict=True) if has][worst],
            "CPU s ratio, geometric mean":
                float(np.exp(np.log(seconds[:, a] / seconds[:, b]).mean())),
        }
    ]  # fmt: skip


@dataclass(frozen=True)
class Ranks:
    """Mean ranks, Friedman's test that all are equal, and Nemenyi's critical difference.

    Demsar, *Statistical comparisons of classifiers over multiple data sets*, JMLR 7 (2006),
    sections 3.2.2 and 3.2.3.
    """

    contenders: list[str]
    mean: np.ndarray
    sets: int
    p: float
    critical: float

    @classmethod
    def of(cls, contenders: list[str], error: np.ndarray) -> Ranks:
        """Rank the columns of each row; who has failed is last."""
        ranks = stats.rankdata(error, axis=1)
        n, k = ranks.shape
        p = float(stats.friedmanchisquare(*ranks.T).pvalue) if k > 2 else float("nan")
        return cls(contenders, ranks.mean(axis=0), n, p, critical_difference(k, n))

    def groups(self) -> list[tuple[int, int]]:
        """Return first and last place, in order of rank, of those that cannot be told apart."""
        mean = np.sort(self.mean)
        ends = [int((mean <= low + self.critical).sum()) - 1 for low in mean]
        wide = [(i, end) for i, end in enumerate(ends) if end > i]
        return [(i, j) for i, j in wide if not any(a < i and j <= b for a, b in wide)]


def critical_difference(k: int, n: int) -> float:
    """Return the difference of mean ranks of k contenders on n sets that is significant."""
    q = stats.studentized_range.ppf(1 - SIGNIFICANCE, k, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(k * (k + 1) / (6 * n)))


def ranked(ranks: Ranks) -> list[Row]:
    """Return contenders in order of their mean rank."""
    order = np.argsort(ranks.mean)
    return [
        {
            "contender": ranks.contenders[j], "mean rank": float(ranks.mean[j]),
            "sets": ranks.sets, "critical difference": ranks.critical, "Friedman p": ranks.p,
        }
        for j in order
    ]  # fmt: skip


def as_asked(grid: Grid) -> list[Row]:
    """Return errors asked for beside errors reached, and the seconds over those of xRFM."""
    rows: list[Row] = []
    for name, (error, seconds) in ASKED.items():
        if name not in grid.sets:
            continue
        found = side_by_side(grid)[grid.sets.index(name)]
        row: Row = {"set": name, "asked for": f"{error:.4g} / {seconds}"}
        shown = (*OURS, "hist_gradient_boosting", "xrfm")
        row |= {who: found[who] for who in shown if who in found}
        at, took = grid.contenders, grid.seconds[grid.sets.index(name)]
        if OURS[1] in at and "xrfm" in at:
            ratio = float(took[at.index(OURS[1])] / took[at.index("xrfm")])
            row |= {f"seconds of {OURS[1]} / xrfm": ratio}
        rows.append(row)
    return rows
