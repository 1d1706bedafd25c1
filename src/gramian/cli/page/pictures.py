"""Pictures of the page: inline SVG without links."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import confusion_matrix

from ...plots import ImportanceDisplay, ReliabilityDisplay
from ...scoring.predictions import Predictions
from .html import readable
from .studies import SPECTRUM_PENALTIES, LearningCurve, Spectrum

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any

OURS, OTHERS = "#1f6f8b", "#9aa5ad"

FEW_POINTS = 3000
"""Most rows drawn as points; more rows are thinned evenly."""

LEAST_OF_GROUP = 20
"""Least rows of a median, if the table has as many."""

PICTURE_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "gramian",  # the same picture has the same bytes
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw_picture(draw: Callable[[Axes], object], width: float = 4.4, height: float = 3.3) -> str:
    """Return a picture as inline SVG.

    Parameters
    ----------
    draw : callable
        Draws on its argument, the axes.
    width, height : float
        Size in inches.
    """
    # Optional, and imported only to draw: other commands work without it. `Figure` instead of
    # pyplot, which keeps each figure and may need a display.
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(PICTURE_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.subplots())
        written = io.StringIO()
        # Without dates and versions, the same report has the same bytes.
        nobody = {"Date": None, "Creator": None, "Type": None, "Format": None}
        figure.savefig(written, format="svg", dpi=150, metadata=nobody)
    return _inline(written.getvalue())


def _inline(svg: str) -> str:
    """Return the bare svg element, without file declarations and clashing ids."""
    # 1. No XML declaration or namespaces, which inline SVG does not have.
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    # 2. No metadata, and no ids of groups and paths, which repeat from picture to picture. Ids of
    # clip paths stay, because `url(#...)` refers to them; they are digests.
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    return re.sub(r'(<g|<path) id="[a-zA-Z_.]+_?\d+"', r"\1", svg)


def errors(ax: Axes, beside: Mapping[str, float], what: str) -> None:
    """Draw an error bar chart of the contenders; the model comes first."""
    colors = [OURS] + [OTHERS] * (len(beside) - 1)
    bars = ax.barh(range(len(beside)), list(beside.values()), color=colors)
    ax.bar_label(bars, [readable(value) for value in beside.values()], padding=3)
    ax.set_yticks(range(len(beside)), list(beside))
    # The first bar of `barh` is at the bottom, but the model comes first.
    ax.invert_yaxis()
    ax.margins(x=0.15)
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel(f"{what} (less is better)")


def parity(ax: Axes, answers: Predictions) -> None:
    """Draw predictions against true values."""
    index = _sample_index(len(answers.y))
    y, predicted = answers.y[index], answers.predicted[index]
    ends = [min(y.min(), predicted.min()), max(y.max(), predicted.max())]
    ax.plot(ends, ends, color=OTHERS, linewidth=1)
    ax.scatter(y, predicted, **_dots(len(index)))
    ax.set(xlabel="truth", ylabel="prediction")
    ax.locator_params(axis="x", nbins=5)


def residuals(ax: Axes, answers: Predictions) -> None:
    """Draw residuals against predictions, with the medians of at most ten groups."""
    residual = answers.y - answers.predicted
    index = _sample_index(len(residual))
    ax.axhline(0, color=OTHERS, linewidth=1)
    ax.scatter(answers.predicted[index], residual[index], **_dots(len(index)))
    groups = min(10, len(residual) // LEAST_OF_GROUP)
    parts = np.array_split(np.argsort(answers.predicted, kind="stable"), max(groups, 1))
    middle = [(np.median(answers.predicted[part]), np.median(residual[part])) for part in parts]
    ax.plot(*np.transpose(middle), color="#c8553d", marker="o", markersize=3, label="median")
    ax.set(xlabel="prediction", ylabel="truth - prediction")
    ax.locator_params(axis="x", nbins=5)
    _legend_above(ax)


def histogram(ax: Axes, answers: Predictions) -> None:
    """Draw a histogram of the residuals."""
    residual = answers.y - answers.predicted
    # A few outliers would squeeze all other residuals into one bar.
    low, high = np.quantile(residual, [0.01, 0.99])
    bins = int(np.clip(2 * len(residual) ** 0.5, 10, 50))
    ax.hist(residual.clip(low, high), bins=bins, color=OURS)
    ax.set(xlabel="truth - prediction (outer bars include values beyond)", ylabel="rows")
    ax.locator_params(axis="x", nbins=5)


def confusion(ax: Axes, answers: Predictions) -> None:
    """Draw the confusion matrix."""
    labels = list(answers.classes)
    counts = confusion_matrix(answers.y, answers.predicted, labels=labels)
    # A class without rows has shares of 0, not 0 / 0.
    shares = counts / counts.sum(axis=1, keepdims=True).clip(min=1)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    if len(labels) <= 12:
        ax.set_xticks(range(len(labels)), [str(label) for label in labels], rotation=45)
        ax.set_yticks(range(len(labels)), [str(label) for label in labels])
        for (i, j), count in np.ndenumerate(counts):
            color = "white" if shares[i, j] > 0.5 else "black"
            ax.text(j, i, f"{count:,.0f}", ha="center", va="center", fontsize=8, color=color)
    ax.set(xlabel="predicted", ylabel="true")


def reliability(ax: Axes, answers: Predictions) -> None:
    """Draw the reliability diagram."""
    if answers.chances is not None:
        ReliabilityDisplay.from_predictions(
            answers.y, answers.chances, classes=answers.classes, ax=ax, color=OURS
        )


def intervals(ax: Axes, y: np.ndarray, ends: np.ndarray) -> None:
    """Draw the intervals of up to 100 rows, sorted by their middle, with the true values."""
    index = np.unique(np.linspace(0, len(y) - 1, min(len(y), 100)).astype(int))
    low, high, truth = ends[index, 0], ends[index, 1], y[index]
    order = np.argsort(low + high, kind="stable")
    low, high, truth = low[order], high[order], truth[order]
    inside, at = (low <= truth) & (truth <= high), np.arange(len(order))
    ax.vlines(at, low, high, color=OTHERS, linewidth=1.5)
    ax.scatter(at[inside], truth[inside], s=9, color=OURS, zorder=3, label="truth, inside")
    ax.scatter(at[~inside], truth[~inside], s=16, color="#c8553d", zorder=3, label="outside")
    ax.set(xlabel=f"{len(order)} rows, by the middle of their interval", xticks=[])
    _legend_above(ax)


def importances(ax: Axes, shares: Mapping[str, float]) -> None:
    """Draw the largest importances."""
    values = np.array(list(shares.values()))
    ImportanceDisplay(values, tuple(shares)).plot(ax, color=OURS)


def learning_curve(ax: Axes, curve: LearningCurve, what: str, others: Mapping[str, float]) -> None:
    """Draw the error by the number of landmarks, and the errors of the references."""
    ax.plot(curve.landmarks, curve.errors, color=OURS, marker="o", markersize=4)
    for (name, value), style in zip(others.items(), (":", "--", "-."), strict=False):
        ax.axhline(value, color=OTHERS, linestyle=style, label=name)
    ax.set(xscale="log", xlabel="landmarks m", ylabel=what)
    ax.set_xticks(curve.landmarks, [str(m) for m in curve.landmarks])
    ax.minorticks_off()
    _legend_above(ax)


def effective_dimension(ax: Axes, spectrum: Spectrum, penalty: float | None) -> None:
    """Draw the effective dimension by the penalty."""
    ax.loglog(SPECTRUM_PENALTIES, spectrum.effective_dimensions(SPECTRUM_PENALTIES), color=OURS)
    ax.axhline(len(spectrum.eigenvalues), color=OTHERS, linestyle=":", label="rows")
    if penalty is not None:
        at = spectrum.effective_dimension(penalty)
        ax.plot([penalty], [at], "o", color="#c8553d", label=f"the model: {at:,.0f}")
    ax.set(xlabel="penalty", ylabel="effective dimension")
    _legend_above(ax)


def spectrum_of(ax: Axes, spectrum: Spectrum, penalty: float | None) -> None:
    """Draw the eigenvalues, and the penalty."""
    ax.loglog(1 + np.arange(len(spectrum.eigenvalues)), spectrum.eigenvalues, color=OURS)
    if penalty is not None:
        ax.axhline(penalty, color="#c8553d", linestyle="--", linewidth=1, label="penalty")
        _legend_above(ax)
    ax.set(xlabel="number", ylabel="eigenvalue of K / rows", ylim=(1e-16, 2))


def _legend_above(ax: Axes) -> None:
    """Draw the legend above the picture, where it covers nothing."""
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False)


def _dots(n: int) -> dict[str, Any]:
    """Return the style of n points; many points are small and pale."""
    size, alpha = (5, 0.35) if n > 500 else (14, 0.7)
    # Thousands of vector points would make the page large and slow; lines and text stay vectors.
    return {"s": size, "alpha": alpha, "color": OURS, "linewidths": 0, "rasterized": True}


def _sample_index(n: int) -> np.ndarray:
    """Return up to `FEW_POINTS` evenly spaced row numbers."""
    return np.unique(np.linspace(0, n - 1, min(n, FEW_POINTS)).astype(int))
