"""Pictures of the page, by matplotlib: functions of the axes and of the measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay, PredictionErrorDisplay

from ..plots import ImportanceDisplay, ReliabilityDisplay
from .drawing import (
    MARKED,
    OTHERS,
    OURS,
    few_ticks,
    legend_above,
    readable,
    room_for_labels,
    short,
)  # fmt: skip
from .studies import SPECTRUM_PENALTIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .class_curves import GroupErrors
    from .dependence import Dependence
    from .explained_rows import ExplainedRow
    from .measurements import Measurements
else:
    Axes = Dependence = ExplainedRow = GroupErrors = Measurements = Any

FEW_POINTS = 3000
"""Most rows drawn as points; more rows are drawn at random."""

LEAST_OF_GROUP = 20
"""Least rows of a median, if the table has as many."""

LABELLED_CLASSES = 12
"""Most classes whose confusion matrix has labels and numbers."""

BOX_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Levels of the quantiles of the residuals of a group."""


def errors(ax: Axes, study: Measurements) -> None:
    """Draw an error bar chart of the contenders; the model comes first."""
    contenders = study.contenders
    colors = [OURS] + [OTHERS] * (len(contenders) - 1)
    bars = ax.barh(list(contenders), list(contenders.values()), color=colors)
    ax.bar_label(bars, [readable(value) for value in contenders.values()], padding=3)
    # The first bar of `barh` is at the bottom, but the model comes first.
    ax.invert_yaxis()
    room_for_labels(ax, 0.0, max(contenders.values()))
    ax.set_xlabel(f"{study.title} (less is better)")
    few_ticks(ax)


def parity(ax: Axes, study: Measurements) -> None:
    """Draw true values against predictions."""
    _prediction_errors(ax, study, "actual_vs_predicted")
    ax.set(xlabel="prediction", ylabel="truth", aspect="auto")


def residuals(ax: Axes, study: Measurements) -> None:
    """Draw residuals against predictions, with the medians of at most ten groups."""
    _prediction_errors(ax, study, "residual_vs_predicted")
    predicted, residual = study.answers.predicted, study.residuals
    groups = min(10, len(residual) // LEAST_OF_GROUP)
    parts = np.array_split(np.argsort(predicted, kind="stable"), max(groups, 1))
    middle = [(np.median(predicted[part]), np.median(residual[part])) for part in parts]
    ax.plot(*np.transpose(middle), color=MARKED, marker="o", markersize=3, label="median")
    ax.set(xlabel="prediction", ylabel="truth - prediction")
    legend_above(ax)


def _prediction_errors(ax: Axes, study: Measurements, kind: str) -> None:
    """Draw rows as points; thousands of vector points would make the page large and slow."""
    from matplotlib.ticker import AutoLocator

    size, alpha = (5, 0.35) if len(study.answers.y) > 500 else (14, 0.7)
    dots = {"s": size, "alpha": alpha, "color": OURS, "linewidths": 0, "rasterized": True}
    PredictionErrorDisplay.from_predictions(
        study.answers.y, study.answers.predicted, kind=kind, ax=ax, random_state=0,
        subsample=min(FEW_POINTS, len(study.answers.y)), scatter_kwargs=dots,
        line_kwargs={"color": OTHERS, "linestyle": "-", "linewidth": 1, "alpha": 1},
    )  # fmt: skip
    # The ticks of scikit-learn are at the ends of the line, which are no round numbers.
    ax.xaxis.set_major_locator(AutoLocator())
    ax.yaxis.set_major_locator(AutoLocator())
    few_ticks(ax)


def histogram(ax: Axes, study: Measurements) -> None:
    """Draw a histogram of the residuals."""
    residual = study.residuals
    # A few outliers would squeeze all other residuals into one bar.
    low, high = np.quantile(residual, [0.01, 0.99])
    bins = int(np.clip(2 * len(residual) ** 0.5, 10, 50))
    ax.hist(residual.clip(low, high), bins=bins, color=OURS)
    ax.set(xlabel="truth - prediction (outer bars include values beyond)", ylabel="rows")
    few_ticks(ax)


def confusion(ax: Axes, study: Measurements) -> None:
    """Draw the confusion matrix, as shares of each true class."""
    is_labelled = len(study.answers.classes) <= LABELLED_CLASSES
    ConfusionMatrixDisplay.from_predictions(
        study.answers.y, study.answers.predicted, labels=list(study.answers.classes),
        normalize="true", values_format=".2f", include_values=is_labelled,
        xticks_rotation=45 if is_labelled else 0, cmap="Blues", im_kw={"vmin": 0, "vmax": 1},
        colorbar=False, ax=ax,
    )  # fmt: skip
    ax.set(xlabel="predicted", ylabel="true")
    if not is_labelled:
        ax.set(xticks=[], yticks=[])


def reliability(ax: Axes, study: Measurements) -> None:
    """Draw the reliability diagram."""
    what, curve = study.answers.reliability()
    ReliabilityDisplay(curve.probability, curve.share, curve.rows, what).plot(ax, color=OURS)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))  # whole markers at the ends


def roc(ax: Axes, study: Measurements) -> None:
    """Draw the ROC curve of each class against the rest."""
    ax.plot([0, 1], [0, 1], color=OTHERS, linewidth=1)
    for curve in study.class_curves:
        ax.plot(*curve.roc, label=f"{curve.label}: area {curve.area:.3f}")
    ax.set(xlabel="share of the other rows above the threshold", ylabel="share of the class")
    legend_above(ax)


def precision_recall(ax: Axes, study: Measurements) -> None:
    """Draw precision by recall of each class, and the share of the class as a line."""
    for curve in study.class_curves:
        (line,) = ax.plot(
            *curve.precision_recall, label=f"{curve.label}: mean {curve.average_precision:.3f}"
        )
        ax.axhline(curve.share, color=line.get_color(), linestyle=":", linewidth=1)
    ax.set(xlabel="recall", ylabel="precision", ylim=(0, 1.05))
    legend_above(ax)


def lift(ax: Axes, study: Measurements) -> None:
    """Draw the share of each class among the likeliest rows, over its share in all rows."""
    ax.axhline(1, color=OTHERS, linewidth=1)
    for curve in study.class_curves:
        ax.plot(*curve.lift, label=curve.label)
    ax.set(xlabel="share of rows, the likeliest first", ylabel="lift", xlim=(0, 1))
    ax.set_ylim(bottom=0)
    legend_above(ax)


def group_errors(ax: Axes, study: Measurements, group: GroupErrors) -> None:
    """Draw the residuals, or the shares of wrong labels, of each group."""
    labels = [
        f"{short(name)} ({rows:,})" for name, rows in zip(group.names, group.rows, strict=True)
    ]
    if study.classes:
        ax.barh(range(len(labels)), group.values, color=OURS)
        ax.axvline(study.errors[study.metric], color=MARKED, linewidth=1)
        ax.set_xlabel(f"{study.title}\n(line: all rows)")
    else:
        ax.axvline(0, color=OTHERS, linewidth=1)
        for place, index in enumerate(group.indices):
            low, first, middle, third, high = np.quantile(study.residuals[index], BOX_LEVELS)
            ax.hlines(place, low, high, color=OURS, linewidth=1)
            ax.hlines(place, first, third, color=OURS, linewidth=7)
            ax.plot(middle, place, "|", color="white", markersize=7)
        ax.set_xlabel("truth - prediction\n(bar: 50 % of rows, line: 90 %)")
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    few_ticks(ax)


def intervals(ax: Axes, study: Measurements) -> None:
    """Draw the intervals of up to 100 rows, sorted by their middle, with the true values."""
    y, ends = study.answers.y, study.ends
    assert ends is not None  # checked by the template
    index = np.unique(np.linspace(0, len(y) - 1, min(len(y), 100)).astype(int))
    index = index[np.argsort(ends[index].sum(axis=1), kind="stable")]
    (low, high), truth = ends[index].T, y[index]
    inside, at = (low <= truth) & (truth <= high), np.arange(len(index))
    ax.vlines(at, low, high, color=OTHERS, linewidth=1.5)
    ax.scatter(at[inside], truth[inside], s=9, color=OURS, zorder=3, label="truth, inside")
    ax.scatter(at[~inside], truth[~inside], s=16, color=MARKED, zorder=3, label="outside")
    ax.set(xlabel=f"{len(index)} rows, by the middle of their interval", xticks=[])
    legend_above(ax)


def importances(ax: Axes, study: Measurements) -> None:
    """Draw the largest importances."""
    shares: Mapping[str, float] = study.importances or {}
    names = tuple(short(name) for name in shares)
    ImportanceDisplay(np.array(list(shares.values())), names).plot(ax, color=OURS)
    ax.set_xlabel("share in the variation")
    few_ticks(ax)


def dependence(ax: Axes, study: Measurements, curve: Dependence) -> None:
    """Draw the mean prediction by the values of a column; all columns have the same scale."""
    if curve.is_category:
        places = np.arange(len(curve.values))
        for mean in curve.means.T:
            ax.plot(places, mean, marker="o", markersize=4, linestyle="none")
        names = [short(str(value), 12) for value in curve.values]
        ax.set_xticks(places, names, rotation=30 if max(map(len, names)) * len(names) > 40 else 0)
        ax.set_xlim(-0.5, len(places) - 0.5)
    else:
        ax.plot(curve.values, curve.means)
        # Marks of rows along the lower edge show where the curve is supported by data; as pixels,
        # because thousands of vector marks would make the page large.
        marks = [v for v in curve.row_values if curve.values[0] <= v <= curve.values[-1]]
        ax.plot(
            marks, np.zeros(len(marks)), "|", color=OTHERS, markersize=8, alpha=0.5,
            transform=ax.get_xaxis_transform(), clip_on=False, rasterized=True,
        )  # fmt: skip
        few_ticks(ax)
    if len(study.dependence_names) > 1:
        for line, label in zip(ax.lines, study.dependence_names, strict=False):
            line.set_label(label)
        legend_above(ax)
    low, high = study.dependence_range
    ax.set(
        xlabel=short(curve.label, 40),
        ylabel="mean probability" if study.classes else "mean prediction",
        ylim=(low, high),
    )


def contributions(ax: Axes, study: Measurements, row: ExplainedRow) -> None:
    """Draw the contributions of the columns to the output of a row."""
    values = list(row.contributions.values())
    bars = ax.barh(
        [short(label, 36) for label in row.contributions], values,
        color=[OURS if value >= 0 else MARKED for value in values],
    )  # fmt: skip
    # Right of zero also for negative bars, where they cannot meet the names of the columns.
    for bar, value in zip(bars, values, strict=True):
        place = (max(value, 0.0), bar.get_y() + bar.get_height() / 2)
        ax.annotate(
            readable(value), place, (3, 0), textcoords="offset points", verticalalignment="center"
        )
    ax.axvline(0, color=OTHERS, linewidth=1)
    ax.invert_yaxis()
    room_for_labels(ax, min(values), max(values))
    ax.set_xlabel("contribution")
    few_ticks(ax)


def learning_curve(ax: Axes, study: Measurements) -> None:
    """Draw the error by the number of landmarks, and the errors of the references."""
    curve = study.curve
    ax.plot(curve.landmarks, curve.errors, color=OURS, marker="o", markersize=4)
    references = {"linear ridge": study.linear, "this model": study.own_on_sample}
    for (name, value), style in zip(references.items(), (":", "--"), strict=True):
        ax.axhline(value, color=OTHERS, linestyle=style, label=name)
    ax.set(xscale="log", xlabel="landmarks m", ylabel=study.title)
    ax.set_xticks(curve.landmarks, [str(m) for m in curve.landmarks])
    ax.minorticks_off()
    legend_above(ax)


def effective_dimension(ax: Axes, study: Measurements) -> None:
    """Draw the effective dimension by the penalty."""
    spectrum, penalty = study.spectrum, study.penalty
    ax.loglog(SPECTRUM_PENALTIES, spectrum.effective_dimensions(SPECTRUM_PENALTIES), color=OURS)
    ax.axhline(len(spectrum.eigenvalues), color=OTHERS, linestyle=":", label="rows")
    if penalty is not None:
        at = spectrum.effective_dimension(penalty)
        ax.plot([penalty], [at], "o", color=MARKED, label=f"the model: {at:,.0f}")
    ax.set(xlabel="penalty", ylabel="effective dimension")
    legend_above(ax)


def spectrum(ax: Axes, study: Measurements) -> None:
    """Draw the eigenvalues, and the penalty."""
    eigenvalues, penalty = study.spectrum.eigenvalues, study.penalty
    ax.loglog(1 + np.arange(len(eigenvalues)), eigenvalues, color=OURS)
    if penalty is not None:
        ax.axhline(penalty, color=MARKED, linestyle="--", linewidth=1, label="penalty")
        legend_above(ax)
    ax.set(xlabel="number", ylabel="eigenvalue of K / rows", ylim=(1e-16, 2))
