"""Seconds and kernel evaluations of every selector against n, at a fixed penalty."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gramian._arrays import RandomStream
from gramian.landmarks import (
    Bless,
    BlessR,
    ExactRLS,
    KMeans,
    RecursiveRLS,
    RPCholesky,
    Selector,
    Squeak,
    TwoPass,
)

from ..lib import plots
from ..lib.results import ROOT, Row
from ..lib.tables import Tables
from ..lib.timing import clock
from .scores import operator, subsample

SET = "beijing_pm25"
PENALTY = 1e-3
SIZES = (1000, 3000, 10_000, 30_000, 100_000, 400_000)
REPEATS = 5
CAP = 120
FLAT_FROM = round(10 / PENALTY)
LARGEST = {"exact_rls": 10_000}
SELECTORS: dict[str, Callable[[int], Selector]] = {
    "bless": lambda _: Bless(penalty=PENALTY),
    "bless_r": lambda _: BlessR(penalty=PENALTY),
    "two_pass": lambda _: TwoPass(penalty=PENALTY),
    "recursive_rls": lambda _: RecursiveRLS(penalty=PENALTY),
    "recursive_rls, accelerated": lambda m: RecursiveRLS(m, accelerated=True),
    "squeak": lambda _: Squeak(penalty=PENALTY),
    "rpcholesky": RPCholesky,
    "kmeans": KMeans,
    "exact_rls": lambda _: ExactRLS(penalty=PENALTY),
}


def measure(tables: Tables, title: str, slopes: str, X: np.ndarray, most: int | None) -> None:
    for name, make in SELECTORS.items():
        for n in sorted({min(size, len(X), most or len(X)) for size in SIZES}):
            if tables.has(title, selector=name, n=n) or n > LARGEST.get(name, n):
                continue
            if predicted(of(tables[title], name), n) > CAP:
                break
            m = next((row["landmarks"] for row in tables[title] if row["n"] == n), 1)
            tables.add(title, timed(name, make(m), subsample(X, n)))
    tables.replace(slopes, [growth(name, of(tables[title], name)) for name in SELECTORS])


def timed(name: str, selector: Selector, X: np.ndarray) -> Row:
    repeats = REPEATS if name.startswith("bless") else 1
    cpu, evaluations, sizes = [], [], []
    for seed in range(repeats):
        K = operator(X)
        with clock() as seconds:
            chosen = selector.select(K, rng=RandomStream(seed))
        cpu.append(seconds.cpu)
        evaluations.append(K.meter.evaluations)
        sizes.append(len(chosen.weight))
    row: Row = {"selector": name, "n": len(X), "landmarks": int(np.median(sizes))}
    return row | {
        "CPU": float(np.median(cpu)),
        "evaluations, 10^6": float(np.median(evaluations)) / 1e6,
    }


def of(rows: list[Row], name: str) -> list[Row]:
    return [row for row in rows if row["selector"] == name]


def predicted(rows: list[Row], n: int) -> float:
    """Return the seconds for n if they grow as from the last but one size to the last."""
    if len(rows) < 2:
        return 0.0
    a, b = rows[-2:]
    return b["CPU"] * (n / b["n"]) ** slope([a, b], "CPU")


def slope(rows: list[Row], what: str) -> float:
    x, y = (np.log([row[key] for row in rows]) for key in ("n", what))
    return float(np.polyfit(x, y, 1)[0])


def growth(name: str, rows: list[Row]) -> Row:
    large = [row for row in rows if row["n"] >= FLAT_FROM]
    if len(large) < 2:
        whole = {"exponent of CPU": slope(rows[-2:], "CPU")} if len(rows) > 1 else {}
        return {"selector": name, "n": f"{rows[0]['n']:,} to {rows[-1]['n']:,}"} | whole
    first, last = large[0], large[-1]
    return {
        "selector": name,
        "n": f"{first['n']:,} to {last['n']:,}",
        "exponent of CPU": slope(large, "CPU"),
        "ratio of CPU": last["CPU"] / first["CPU"],
        "exponent of evaluations": slope(large, "evaluations, 10^6"),
        "ratio of evaluations": last["evaluations, 10^6"] / first["evaluations, 10^6"],
    }


def plot(rows: list[Row], path: Path = ROOT / "docs" / "plots" / "leverage_time.png") -> None:
    figure, (left, right) = plots.subplots(1, 2, width=9.6, height=4.2)
    for axis, key, label in (
        (left, "CPU", "CPU seconds"),
        (right, "evaluations, 10^6", "kernel evaluations, millions"),
    ):
        ends = []
        for name in SELECTORS:
            of_name = of(rows, name)
            x, y = [row["n"] for row in of_name], [row[key] for row in of_name]
            style = plots.STYLES[name]
            axis.loglog(x, y, **style)
            ends.append((x[-1], y[-1], plots.LABELS[name], style["color"]))
        axis.set(xlabel="rows n", ylabel=label)
        axis.axvline(FLAT_FROM, color="0.8", linewidth=1, zorder=0)
        plots.label_ends(axis, ends)
    left.set_title(f"Selecting at penalty {PENALTY:g}, {SET}, one core")
    right.set_title("the same, in kernel evaluations")
    plots.save(figure, path)
