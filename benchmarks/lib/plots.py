"""The look of the plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogFormatter, NullFormatter

COLORS = {
    "uniform": "#7f7f7f",
    "rff": "#b8860b",
    "bless": "#0072b2",
    "bless_r": "#56b4e9",
    "recursive_rls": "#d55e00",
    "recursive_rls, accelerated": "#e69f00",
    "squeak": "#cc79a7",
    "two_pass": "#8c6bb1",
    "rpcholesky": "#009e73",
    "kmeans": "#a6192e",
    "exact_rls": "#222222",
}
"""Of Okabe and Ito where they suffice: also to be told apart by the color-blind."""

LABELS = {
    "uniform": "uniform",
    "rff": "random Fourier",
    "bless": "BLESS",
    "bless_r": "BLESS-R",
    "recursive_rls": "recursive RLS",
    "recursive_rls, accelerated": "accelerated RLS",
    "squeak": "SQUEAK",
    "two_pass": "two-pass",
    "rpcholesky": "RPCholesky",
    "kmeans": "k-means",
    "exact_rls": "exact scores",
}
MARKERS = dict(zip(COLORS, "oXsDv^P<d*p", strict=True))
STYLES: dict[str, dict[str, Any]] = {
    name: {"color": color, "marker": MARKERS[name], "markersize": 4.5, "linewidth": 1.5}
    for name, color in COLORS.items()
}
PLAIN = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.92",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "figure.dpi": 150,
}


def subplots(rows: int, columns: int, *, width: float, height: float) -> Any:
    mpl.use("Agg")
    mpl.rcParams.update(PLAIN)
    return plt.subplots(rows, columns, figsize=(width, height), layout="constrained")


def plain_numbers(axis: Any) -> None:
    """Write the numbers of a log-log plot without powers, few along x."""
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))
    few_along_x(axis)


def few_along_x(axis: Any) -> None:
    """Write powers of ten only along a logarithmic x."""
    axis.xaxis.set_minor_formatter(NullFormatter())


def label_ends(axis: Any, ends: list[tuple[float, float, str, str]], gap: float = 0.045) -> None:
    """Write a name at the end of each line of a log-log plot, moved apart where they collide.

    `gap` is the least distance, as a share of the axis.
    """
    axis.margins(x=0.02)
    low, high = (np.log(limit) for limit in axis.get_ylim())
    right = max(x for x, *_ in ends)
    inside = [end for end in ends if end[0] < right / 3]
    outside = sorted((end for end in ends if end not in inside), key=lambda end: end[1])
    heights = apart([float((np.log(y) - low) / (high - low)) for _, y, *_ in outside], gap)
    text: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8, "annotation_clip": False}
    for height, (_, _, name, color) in zip(heights, outside, strict=True):
        at = (right, float(np.exp(low + height * (high - low))))
        axis.annotate(name, at, xytext=(6, 0), va="center", color=color, **text)
    for x, y, name, color in inside:
        axis.annotate(name, (x, y), xytext=(0, 6), ha="right", color=color, **text)


def apart(heights: list[float], gap: float) -> list[float]:
    """Return increasing heights moved up, then down from the top, until they are `gap` apart."""
    placed = list(heights)
    for i in range(1, len(placed)):
        placed[i] = max(placed[i], placed[i - 1] + gap)
    ceiling = 1.0
    for i in range(len(placed) - 1, -1, -1):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - gap
    return placed


def save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
