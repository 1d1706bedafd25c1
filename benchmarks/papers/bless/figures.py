"""BLESS (Rudi, Calandriello, Carratino, Rosasco 2018): figures 1 to 5, theorem 1."""

from __future__ import annotations

import numpy as np

from ...landmarks import scores
from ..item import Outcome, Scale, judge_cause, judged
from ..plot import Panel, Plot, line
from ..stored import sample_rows, stored_row, stored_rows

OF_FALKON = "benchmark `falkon_bless`: magic, skin, adult_a9a in place of SUSY; M = 579 to 690"


def figure_1(scale: Scale) -> Outcome:
    """Ratio of approximate to exact scores: mean and quantiles."""
    if scale.quick:
        X, *_, name = sample_rows(scale, "nycflights", 1000)
        K = scores.operator(X)
        exact, _ = scores.truth(K, exact=True)
        (method,) = (m for m in scores.METHODS if m.paper == "BLESS")
        rows = [scores.measured(K, method, 0, exact, 3, len(X))]
        where = f"{name}, n = {len(X):,}, three seeds"
    else:
        rows = [
            row for row in stored_rows("leverage", "Accuracy, n = 70,000") if row.get("paper: mean")
        ]
        where = "benchmark `leverage`: nycflights, n = 70,000, penalty 1e-5"
    ratios = {row["method"]: (row["mean"], row["5 %"], row["95 %"]) for row in rows}
    shown = ", ".join(f"{k} {a:.2f} ({b:.2f} to {c:.2f})" for k, (a, b, c) in ratios.items())
    mean, low, high = ratios["BLESS"]
    return judged(
        shown,
        0.9 <= mean <= 1.2 and low >= 0.57 and high <= 2.03,
        where,
        "the quantiles are wider than the paper's",
        accuracy_plot("figure 1", ratios),
    )


def accuracy_plot(figure: str, ratios: dict[str, tuple[float, float, float]]) -> Plot:
    """Return the picture of means and quantiles, with the paper's."""
    ours = {k: [(0, low), (0, mean), (0, high)] for k, (mean, low, high) in ratios.items()}
    paper: dict[str, list[tuple[float, float]]] = {}
    for name in ratios:
        mean, quantiles, _ = scores.PAPER[name]
        low, high = (float(value) for value in quantiles.split(" / "))
        paper[name] = [(0, low), (0, float(mean)), (0, high)]
    label = "ratio to exact scores"
    return Plot(
        figure,
        "Means and 5 % to 95 % quantiles of approximate over exact scores, ours and the paper's",
        [
            Panel(label, "", ours, "ours", ranges=True),
            Panel(label, "", paper, "paper", ranges=True),
        ],
    )


def other_size(scale: Scale) -> Outcome:
    """Figure 1 at a smaller n, with all oversamplings of the benchmark."""
    rows = stored_rows("leverage", "Accuracy, n = 20,000")
    ratios = {
        row["method"]: (row["mean"], row["5 %"], row["95 %"])
        for row in rows
        if row.get("paper: mean")
    }
    few = {row["oversampling"]: row for row in rows if row["method"] == "BLESS"}
    shown = ", ".join(f"{k} {a:.2f} ({b:.2f} to {c:.2f})" for k, (a, b, c) in ratios.items())
    mean, low, high = ratios["BLESS"]
    return judged(
        f"{shown}; BLESS with oversampling 3: {few[3.0]['mean']:.2f} ({few[3.0]['5 %']:.2f} to "
        f"{few[3.0]['95 %']:.2f})",
        0.9 <= mean <= 1.2 and low >= 0.57 and high <= 2.03,
        "benchmark `leverage`: nycflights, n = 20,000, penalty 1e-5; uniform columns are as good "
        "where scores are this flat",
        "the quantiles are wider than the paper's",
        accuracy_plot("figure 1 n 20000", ratios),
    )


def figure_2(scale: Scale) -> Outcome:
    growth = {
        name: float(stored_row("leverage", "Growth with n", selector=name)["exponent of CPU"])
        for name in ("bless", "bless_r", "squeak", "recursive_rls")
    }
    shown = ", ".join(f"{name} n^{exponent:.2f}" for name, exponent in growth.items())
    return judged(
        f"seconds grow as {shown}",
        max(growth["bless"], growth["bless_r"]) < 0.2,
        "benchmark `leverage`: beijing_pm25, n = 10,000 to 305,880, penalty 1e-3",
        "seconds grow with n",
        seconds_plot(),
    )


def seconds_plot() -> Plot:
    """Return the picture of seconds against n."""
    lines = {}
    for name in ("bless", "bless_r", "squeak", "recursive_rls"):
        rows = stored_rows("leverage", "Time against n", selector=name)
        lines[name] = line([row["n"] for row in rows], [row["CPU"] for row in rows])
    alt = "CPU seconds of four selectors against n"
    return Plot("figure 2", alt, [Panel("rows n", "CPU seconds", lines, log="xy")])


def figure_3(scale: Scale) -> Outcome:
    decades = {
        (row["set"], row["landmarks"]): row["accuracy: decades"]
        for row in stored_rows("falkon_bless", "Band of penalties", preconditioner="paper")
        if row["iterations"] == 5
    }
    sets = list(dict.fromkeys(name for name, _ in decades))
    shown = ", ".join(
        f"{name} {decades[name, 'uniform']:.1f} and {decades[name, 'bless']:.1f}" for name in sets
    )
    wider = [decades[name, "bless"] > decades[name, "uniform"] + 0.5 for name in sets]
    return judged(
        f"decades of penalties within 95 % of the best accuracy, uniform and BLESS: {shown}",
        sum(wider) >= 2,
        OF_FALKON,
        "wider on magic alone; on adult_a9a both bands are as wide as the penalties tried; on skin "
        "the bands are measured to end at the same penalty, see the next item for the cause",
        error_plot(),
    )


def error_plot() -> Plot:
    """Return the picture of errors after five iterations by penalty."""
    panels = []
    for name in ("magic", "skin", "adult_a9a"):
        rows = stored_rows("falkon_bless", "Error by penalty", set=name)
        lines = {
            key: line(
                [float(row["penalty"]) for row in rows], [row[f"{key}, paper, 5"] for row in rows]
            )
            for key in ("uniform", "bless")
        }
        panels.append(Panel("penalty", "wrong labels, %", lines, name, "xy"))
    return Plot("figure 3", "Test error after five iterations by penalty on three sets", panels)


def lower_ends(scale: Scale) -> Outcome:
    """The cause of figure 3: where the bands end, and the errors at small penalties."""
    texts, held = [], []
    for name in ("magic", "skin"):
        ends = {
            row["landmarks"]: (float(row["error: from"]), row["error: decades"])
            for row in stored_rows("falkon_bless", "Band of penalties", set=name)
            if (row["preconditioner"], row["iterations"]) == ("paper", 5)
        }
        rows = stored_rows("falkon_bless", "Error by penalty", set=name)
        small = [row for row in rows if float(row["penalty"]) <= 1e-7]
        ratio = np.mean([row["uniform, paper, 5"] / row["bless, paper, 5"] for row in small])
        held.append(ratio > 1)
        texts.append(
            f"{name}: errors within 5 % of the best over {ends['uniform'][1]:.1f} and "
            f"{ends['bless'][1]:.1f} decades; below a penalty of 1e-7 uniform landmarks have "
            f"{ratio:.2f} times the error of BLESS"
        )
    return judge_cause(
        "; ".join(texts),
        all(held),
        "benchmark `falkon_bless`: the direction of the paper holds below the optimal penalty; the "
        "width in decades depends on the best error, which is 0.1 % on skin: 95 % of an accuracy "
        "of 99.9 % allows fifty times that error, and so any preconditioner",
        "uniform landmarks are as good at small penalties",
    )


def figure_4(scale: Scale) -> Outcome:
    rows = stored_rows("falkon_bless", "Summary", preconditioner="paper")
    shown = ", ".join(f"{r['set']} {r['bless reaches that AUC']}" for r in rows)
    return judged(
        f"iterations of FALKON-BLESS to the AUC of 20 iterations with uniform landmarks: {shown}",
        all(str(row["bless reaches that AUC"]) in ("1", "2", "3", "4", "5") for row in rows),
        OF_FALKON,
        "2 and 3.3 times fewer on skin and adult_a9a, 4 in the paper; none on magic. The next "
        "items test the causes: preconditioner, landmarks, data",
        auc_plot(),
    )


def auc_plot() -> Plot:
    """Return the picture of AUC by iteration."""
    panels = []
    for name in ("magic", "skin", "adult_a9a"):
        rows = stored_rows("falkon_bless", "Iterations", set=name)
        lines = {
            key: line(
                [row["iteration"] for row in rows],
                [float(row[f"AUC {key}, paper"]) for row in rows],
            )
            for key in ("uniform", "bless", "bless_r")
        }
        panels.append(Panel("iterations", "AUC", lines, name))
    return Plot("figure 4", "AUC by iteration on three sets, uniform landmarks and BLESS", panels)


def automatic_penalty(scale: Scale) -> Outcome:
    """The part of the gap that is ours: uniform landmarks gain from the penalty inside A."""
    rows = {
        row["preconditioner"]: row for row in stored_rows("falkon_bless", "Summary", set="skin")
    }
    shown = "; ".join(
        f"{name}: uniform {row['uniform at 5']:.2f}, BLESS {row['bless at 5']:.2f}"
        for name, row in rows.items()
    )
    paper, ours = (float(rows[name]["uniform at 5"]) for name in ("paper", "auto"))
    return judge_cause(
        f"test error after 5 iterations on skin, percent: {shown}",
        ours < paper / 2,
        f"benchmark `falkon_bless`: with a penalty inside A that is larger where M is small, "
        f"uniform landmarks have {ours / paper:.2f} times the error, which leaves less to gain",
        "uniform landmarks gain nothing from our preconditioner",
    )
