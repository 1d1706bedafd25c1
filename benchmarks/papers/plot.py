"""Plots of the papers' figures, drawn from the numbers that a record keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.ticker import LogFormatter, LogLocator, NullFormatter

from ..lib import plots
from ..lib.results import Row

MOST_POINTS = 60
"""Points of a line that a record keeps."""

ALONE, SIDE_BY_SIDE = (4.2, 3.1), (3.5, 2.7)
"""Inches of a picture, and of each of several, two of which fit next to each other on a page."""

MOST_NAMES = 6
"""Most lines whose names are next to them."""

MOST_TICKS = 6
"""Most ticks at the points themselves along a logarithmic axis."""

COLORS = (
    "#0072b2", "#d55e00", "#009e73", "#7f7f7f", "#cc79a7", "#e69f00", "#56b4e9", "#222222",
    "#8c6bb1", "#a6192e", "#b8860b",
)  # fmt: skip

FEW_DECADES = 100
"""Ratio of the ends of a logarithmic axis below which ticks between powers of ten have labels."""

Line = list[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes
    ----------
    x, y : str
        Labels of the axes.
    lines : dict of str to list of pairs
        Points by name. A name that ends in "(dotted)" has no markers.
    title : str
    log : str
        "x", "y" or "xy" for logarithmic axes.
    ranges : bool
        Whether each line has three points: a low, a middle and a high value, drawn as an interval.
    """

    x: str
    y: str
    lines: dict[str, Line]
    title: str = ""
    log: str = ""
    ranges: bool = False


@dataclass(frozen=True)
class Plot:
    """A picture in the manner of a figure.

    Attributes
    ----------
    figure : str
        Number of the figure, such as "figure 1"; the name of the file follows from it.
    alt : str
        Text in place of the picture.
    panels : list of Panel
    """

    figure: str
    alt: str
    panels: list[Panel]

    def record(self, paper: str, item: str) -> Row:
        """Return the row of results from which `draw` makes the picture."""
        file = f"{paper}_{self.figure.replace(' ', '_')}.svg"
        panels = [asdict(panel) for panel in self.panels]
        for panel in panels:
            panel["lines"] = {name: thin_points(line) for name, line in panel["lines"].items()}
        return {"item": item, "file": file, "alt": self.alt, "panels": panels}


def line(x: Iterable[float], y: Iterable[float]) -> Line:
    """Return the points of two sequences of numbers."""
    return [(float(a), float(b)) for a, b in zip(x, y, strict=True)]


def thin_points(points: Sequence[tuple[float, float]]) -> list[list[float]]:
    """Return at most `MOST_POINTS` of the points, the last one too, with four digits."""
    step = -(-len(points) // MOST_POINTS)
    chosen = [*points[:-1:step], points[-1]] if points else []
    return [[float(f"{value:.4g}") for value in point] for point in chosen]


def pictures(record: Row) -> list[tuple[str, str]]:
    """Return the file of each panel and its text: a small screen shows one below the other."""
    panels = record["panels"]
    if len(panels) == 1:
        return [(record["file"], record["alt"])]
    stem = record["file"].removesuffix(".svg")
    return [
        (f"{stem}_{number}.svg", f"{record['alt']}: {panel['title'] or panel['y']}")
        for number, panel in enumerate(panels, 1)
    ]


def draw(record: Row, folder: Path) -> None:
    """Write the picture of each panel of a record; equal records give equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    size = ALONE if len(record["panels"]) == 1 else SIDE_BY_SIDE
    for (file, _), panel in zip(pictures(record), record["panels"], strict=True):
        figure, axis = plots.subplots(1, 1, width=size[0], height=size[1])
        # Text stays text, and names of parts do not depend on chance.
        mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": file})
        draw_panel(axis, panel)
        figure.savefig(folder / file, metadata={"Date": None})
        plots.plt.close(figure)


def draw_panel(axis: Any, panel: Row) -> None:
    """Draw the lines, or the ranges, of a panel."""
    colors, markers = COLORS, list(plots.MARKERS.values())
    names = list(panel["lines"])
    for i, name in enumerate(names):
        x, y = zip(*panel["lines"][name], strict=True) if panel["lines"][name] else ((), ())
        style = {"color": colors[i % len(colors)], "linewidth": 1.4}
        if panel["ranges"]:
            axis.plot([y[0], y[-1]], [i, i], **style)
            axis.plot([y[1]], [i], "o", **style)
        elif name.endswith("(dotted)"):
            axis.plot(x, y, linestyle=":", label=name.removesuffix(" (dotted)"), **style)
        else:
            many = len(x) > 12
            axis.plot(x, y, marker=None if many else markers[i % len(markers)], markersize=4,
                      label=name, **style)  # fmt: skip
    if panel["ranges"]:
        axis.set_yticks(range(len(names)), names)
    set_scales(axis, panel)
    axis.set(title=panel["title"], xlabel=panel["x"], ylabel=panel["y"])
    if not panel["ranges"] and (len(names) > 1 or names[0]):
        # Many names would cover the lines.
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.27), "ncols": 2}
        axis.legend(fontsize=7, **(below if len(names) > MOST_NAMES else {}))


def set_scales(axis: Any, panel: Row) -> None:
    """Set logarithmic scales, with few plain numbers."""
    if "y" in panel["log"]:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))
    if "x" in panel["log"]:
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter(NullFormatter())
        low, high = axis.get_xlim()
        if high < FEW_DECADES * low:
            # One or two powers of ten do not show the scale.
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_locator(LogLocator(subs=(2, 5)))
            axis.xaxis.set_minor_formatter("{x:g}")
        ticks = sorted({point[0] for line in panel["lines"].values() for point in line})
        if len(ticks) <= MOST_TICKS:
            axis.set_xticks(ticks, [describe_tick(tick) for tick in ticks])
            axis.xaxis.set_minor_formatter(NullFormatter())


def describe_tick(tick: float) -> str:
    """Return a number in few characters."""
    if tick >= 1e6:
        return f"{tick:.0e}".replace("e+0", "e")
    return f"{tick:,.0f}" if tick >= 100 else f"{tick:.3g}"
