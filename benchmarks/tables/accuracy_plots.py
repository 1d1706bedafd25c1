"""Plots of `accuracy`: the critical-difference diagram, and error against seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..lib import plots
from .accuracy_contenders import OURS
from .accuracy_report import SIGNIFICANCE, Grid, Ranks

OUR_COLOR, OTHER_COLOR = "#a6192e", "#444444"


WRITTEN = {
    "gramian default": "gramian, one fit",
    "gramian cv 10 s": "gramian, search of 10 s",
    "gramian cv 60 s": "gramian, search of 60 s",
    "lightgbm": "LightGBM",
    "lightgbm_1000": "LightGBM, 1,000 trees",
    "hist_gradient_boosting": "HistGradientBoosting",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
    "xrfm": "xRFM",
}
"""How contenders are called in pictures, where their own name would puzzle a reader."""
BESIDE = {"hist_gradient_boosting": (6, -11), "xrfm": (6, -11), "catboost": (-6, 3)}
"""Where names stand, in points from their dot, that others would cover otherwise."""


def color(contender: str) -> str:
    return OUR_COLOR if contender in OURS else OTHER_COLOR


def critical_difference(ranks: Ranks, path: Path) -> None:
    """Draw mean ranks on a line; bars join contenders that cannot be told apart."""
    order = np.argsort(ranks.mean)
    k, left = len(order), (len(order) + 1) // 2
    figure, axis = plots.subplots(1, 1, width=7.5, height=1.5 + 0.2 * left)
    axis.set_axis_off()
    axis.set(xlim=(0.2, k + 0.8), ylim=(-1.2 - left, 2.4))
    axis.plot([1, k], [0, 0], color="black", linewidth=1)
    for place in range(1, k + 1):
        axis.plot([place, place], [0, 0.15], color="black", linewidth=1)
        axis.text(place, 0.3, str(place), ha="center", fontsize=8)
    for at, j in enumerate(order):
        depth = -1.2 - (at if at < left else k - 1 - at)
        _name(axis, ranks.contenders[j], float(ranks.mean[j]), depth, at < left, k)
    for height, (first, last) in enumerate(ranks.groups()):
        ends = ranks.mean[order[first]] - 0.05, ranks.mean[order[last]] + 0.05
        axis.plot(ends, [-0.25 - 0.22 * height] * 2, color="black", linewidth=3, alpha=0.8)
    axis.plot([1, 1 + ranks.critical], [1.6, 1.6], color="black", linewidth=1.5)
    axis.text(
        1, 1.85, f"critical difference {ranks.critical:.2f} ({SIGNIFICANCE:.0%}, "
        f"{ranks.sets} sets)", fontsize=8,
    )  # fmt: skip
    plots.save(figure, path)


def _name(axis: Any, name: str, rank: float, depth: float, left: bool, k: int) -> None:
    end = 0.7 if left else k + 0.3
    style = {"color": color(name), "linewidth": 0.8}
    axis.plot([rank, rank, end], [0, depth, depth], **style)
    text = f"{WRITTEN.get(name, name)} ({rank:.2f})"
    side = {"ha": "right" if left else "left", "va": "center", "fontsize": 8}
    axis.annotate(
        text, (end, depth), xytext=(-4 if left else 4, 0), textcoords="offset points",
        color=color(name), annotation_clip=False, **side,
    )  # fmt: skip


def error_by_seconds(grid: Grid, path: Path) -> None:
    """Draw geometric means over the sets that all have fitted: error over the best, CPU seconds."""
    whole = np.isfinite(grid.error).all(axis=1)
    if not whole.any():
        return
    ratio = grid.error[whole] / grid.error[whole].min(axis=1, keepdims=True)
    error, seconds = (np.exp(np.log(part).mean(axis=0)) for part in (ratio, grid.seconds[whole]))
    figure, axis = plots.subplots(1, 1, width=5.5, height=3.6)
    for j, name in enumerate(grid.contenders):
        axis.plot(seconds[j], error[j], "o", color=color(name), markersize=5)
        beside = BESIDE.get(name, (6, 3))
        axis.annotate(
            WRITTEN.get(name, name), (seconds[j], error[j]), xytext=beside,
            textcoords="offset points", fontsize=8, color=color(name),
            ha="left" if beside[0] > 0 else "right",
        )  # fmt: skip
    axis.set_xscale("log")
    axis.margins(x=0.35, y=0.12)
    axis.set(xlabel="CPU seconds of the fit", ylabel="error / least error of all")
    axis.set_title(f"geometric means over {int(whole.sum())} sets")
    plots.few_along_x(axis)
    plots.save(figure, path)
