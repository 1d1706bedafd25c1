"""Style of the pictures of a report, and their encoding as SVG images in its HTML page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any

OURS, OTHERS, MARKED = "#1f6f8b", "#9aa5ad", "#c8553d"

PICTURE_WIDTH = 3.9
"""Inches of all pictures: texts have the same size in each, also on the screen of a phone."""

LEGEND_CHARACTERS = 50
"""Characters of a row of a legend, with its lines."""

PICTURE_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "gramian",  # the same picture has the same bytes
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": "cycler('color', ['1f6f8b', 'c8553d', '8a6fae', '6b8e3d', 'b5893b'])",
}


def as_image(draw: Callable[[Axes], object], height: float) -> str:
    """Return a picture as the address of an image that contains its SVG.

    - `draw`: draws on its argument, the axes.
    - `height`: inches.
    """
    # Optional, and imported only to draw: other commands work without it. `Figure` instead of
    # pyplot, which keeps each figure and may need a display.
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(PICTURE_STYLE):
        figure = Figure(figsize=(PICTURE_WIDTH, height), layout="constrained")
        ax = figure.subplots()
        draw(ax)
        _group_digits(ax)
        written = io.BytesIO()
        # Without dates and versions, the same report has the same bytes.
        nobody = {"Date": None, "Creator": None, "Type": None, "Format": None}
        figure.savefig(written, format="svg", dpi=150, metadata=nobody)
    return f"data:image/svg+xml;base64,{base64.b64encode(written.getvalue()).decode()}"


def _group_digits(ax: Axes) -> None:
    """Write large numbers of the axes as `readable` does: 500,000."""
    from matplotlib.ticker import FuncFormatter, ScalarFormatter

    for axis in (ax.xaxis, ax.yaxis):
        largest = max(map(abs, axis.get_majorticklocs()), default=0)
        is_large = 1e4 <= largest < 1e9
        if is_large and isinstance(axis.get_major_formatter(), ScalarFormatter):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def readable(value: float) -> str:
    """Format a number with about five digits, and commas for thousands: 54,311 and 0.78465."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.5g}"


def few_ticks(ax: Axes) -> None:
    """Leave room between the numbers of the x axis."""
    dates: Any = import_module("matplotlib.dates")
    locator = ax.xaxis.get_major_locator()
    if isinstance(locator, dates.AutoDateLocator):
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    else:
        ax.locator_params(axis="x", nbins=4)


def legend_above(ax: Axes) -> None:
    """Draw the legend above the picture, where it covers nothing; long names below each other."""
    labels = ax.get_legend_handles_labels()[1]
    columns = len(labels) if sum(len(label) + 6 for label in labels) < LEGEND_CHARACTERS else 1
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, frameon=False)


def room_for_labels(ax: Axes, low: float, high: float) -> None:
    """Leave room right of horizontal bars from `low` to `high` for their labels."""
    low, high = min(low, 0.0), max(high, 0.0)
    span = high - low or 1.0
    ax.set_xlim(low - 0.03 * span, high + (0.3 if high > 0.3 * span else 0.5) * span)


def short(text: str, most: int = 24) -> str:
    """Return a text of at most `most` characters, which leaves room for the picture."""
    # Matplotlib reads formulas between dollars.
    return (text if len(text) <= most else f"{text[: most - 3]}...").replace("$", r"\$")
