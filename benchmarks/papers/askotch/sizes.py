"""ASkotch against PCG on eight sets, and on 10^8 generated rows."""

from __future__ import annotations

import math

import numpy as np

from ...full.full_generated import BLOCK, TITLE
from ...full.full_sets import METHODS, RESIDUAL, SECONDS
from ...lib.results import Row
from ..item import Outcome, Scale, judge_cause, judged
from ..plot import Panel, Plot
from ..stored import stored_rows

PRECONDITIONERS = ("PCG, Cholesky", "PCG, Nystrom")
"""The two of the paper."""

OF_SETS = "benchmark `full_sets`"
CLEAR = 1.01
"""Ratio of errors from which on one is lower."""

PASSES = (10, 30)


def seconds_of_methods(goal: str) -> dict[str, dict[str, float]]:
    """Return the seconds of each method to a goal by set, infinity if it was not reached."""
    found: dict[str, dict[str, float]] = {}
    for row in stored_rows("full_sets", SECONDS):
        seconds = math.inf if row[goal] == "-" else float(row[goal])
        found.setdefault(row["set"], {})[row["method"]] = seconds
    return found


def describe(found: dict[str, dict[str, float]]) -> str:
    """Return the seconds of each method, in the order of `METHODS`."""
    return "; ".join(
        f"{name} " + ", ".join(f"{of[key]:.1f}".replace("inf", "-") for key in METHODS)
        for name, of in found.items()
    )


def error_panels() -> list[Panel]:
    """Return the test error over the least of a set by CPU seconds."""
    panels = []
    curves = stored_rows("full_sets", "Curves")
    for name in dict.fromkeys(row["set"] for row in curves):
        runs = [row for row in curves if row["set"] == name]
        least = min(point["error"] for run in runs for point in run["curve"])
        lines = {
            run["method"]: [(p["seconds"], p["error"] / least) for p in run["curve"]]
            for run in runs
        }
        panels.append(Panel("CPU seconds", "test RMSE over the least", lines, name, "xy"))
    return panels


def scale_of_sets() -> str:
    rows: dict[str, Row] = {row["set"]: row for row in stored_rows("full_sets", SECONDS)}
    sizes = [row["n"] for row in rows.values()]
    return (
        f"{OF_SETS}: n = {min(sizes):,} to {max(sizes):,} on one core in place of 1e5 to 1e7 on a "
        f"GPU, 8 CPU s a method, rank 100; order: {'; '.join(METHODS)}; - not reached"
    )


def least_errors() -> dict[str, dict[str, float]]:
    """Return the least test error of each method in the same seconds, by set."""
    errors: dict[str, dict[str, float]] = {}
    for row in stored_rows("full_sets", SECONDS):
        errors.setdefault(row["set"], {})[row["method"]] = row["least error"]
    return errors


def eight_sets(scale: Scale) -> Outcome:
    """Section 6: the least test error in equal seconds on eight sets."""
    errors = least_errors()
    over = {
        name: min(of[rival] for rival in PRECONDITIONERS) / of["ASkotch"]
        for name, of in errors.items()
    }
    wins = [name for name, ratio in over.items() if ratio > CLEAR]
    losses = [name for name, ratio in over.items() if ratio < 1 / CLEAR]
    ours = sum(of["PCG, auto"] * CLEAR < of["ASkotch"] for of in errors.values())
    shown = ", ".join(f"{name} {ratio:.3g}" for name, ratio in over.items())
    return judged(
        f"least test RMSE of PCG with Cholesky or Nystrom over ASkotch's: {shown}; ASkotch is 1 % "
        f"lower on {len(wins)} of {len(over)}, higher on {len(losses)}; PCG with our automatic "
        f"preconditioner is lower than ASkotch on {ours}",
        len(wins) > len(over) / 2 and not losses,
        scale_of_sets(),
        scale_of_sets(),
        Plot("section 6", "Test error by CPU seconds of ASkotch, Skotch, PCG", error_panels()),
    )


def small_residuals(scale: Scale) -> Outcome:
    """The other side: seconds to a residual, where PCG makes many iterations."""
    found = seconds_of_methods(f"to residual {RESIDUAL:g}")
    made = {
        row["set"]: row["iterations"]
        for row in stored_rows("full_sets", SECONDS, method="PCG, Cholesky")
    }
    reached = {key: sum(of[key] < math.inf for of in found.values()) for key in METHODS}
    shown = ", ".join(f"{key} {count}" for key, count in reached.items())
    few = [count for name, count in made.items() if found[name]["PCG, Cholesky"] == math.inf]
    many = [count for name, count in made.items() if found[name]["PCG, Cholesky"] < math.inf]
    return judge_cause(
        f"sets with a residual of {RESIDUAL:g} in time: {shown}; CPU s: {describe(found)}; "
        f"iterations of PCG, Cholesky: {', '.join(f'{k} {count}' for k, count in made.items())}",
        bool(many) and min(many) > np.median(few),
        f"{scale_of_sets()}. PCG with the paper's preconditioners reaches it where it makes many "
        "iterations in the time, and is behind ASkotch where it makes few",
        f"{scale_of_sets()}. The number of iterations does not separate these sets",
    )


def momentum_on_sets(scale: Scale) -> Outcome:
    """Section C.5 by time: Skotch's residual over ASkotch's after the same seconds."""
    last = {
        (row["set"], row["method"]): float(row["last residual"])
        for row in stored_rows("full_sets", SECONDS)
    }
    ratios = {
        name: last[name, "Skotch"] / last[name, "ASkotch"]
        for name in dict.fromkeys(name for name, _ in last)
    }
    return judged(
        "residual of Skotch over the one of ASkotch after 8 CPU s: "
        + ", ".join(f"{name} {ratio:.2g}" for name, ratio in ratios.items()),
        sum(ratio > 1 for ratio in ratios.values()) > len(ratios) / 2,
        scale_of_sets(),
        "momentum gains nothing on most sets in this time; the next item tests the cause",
    )


def momentum_by_block(scale: Scale) -> Outcome:
    """The cause: blocks that are solved exactly, and few passes, leave momentum little to gain."""
    gains: dict[tuple[str, str], list[float]] = {}
    for name in ("nycflights", "qm9_gap_31k"):
        for blocks in ("rank 100", "exact"):
            curves = {
                row["of"][1].split(",")[0]: row["curve"]
                for row in stored_rows("full_ablations", "Curves", set=name)
                if row["of"][0] == "acceleration" and row["of"][1].endswith(blocks)
            }
            pairs = zip(curves["Skotch"], curves["ASkotch"], strict=True)
            gains[name, blocks] = [
                slow["residual"] / fast["residual"]
                for slow, fast in pairs
                if round(slow["passes"]) in PASSES
            ]
    shown = ", ".join(
        f"{name}, {blocks}: " + " and ".join(f"{gain:.2g}" for gain in of)
        for (name, blocks), of in gains.items()
    )
    ranks = [of for (_, blocks), of in gains.items() if blocks != "exact"]
    exact = [of for (_, blocks), of in gains.items() if blocks == "exact"]
    return judge_cause(
        f"residual of Skotch over ASkotch's after {PASSES[0]} and {PASSES[1]} passes: {shown}",
        min(of[1] for of in ranks) > 1.5 > max(gain for of in exact for gain in of),
        "benchmark `full_ablations`: with the paper's Nystrom blocks momentum gains, and more with "
        "each pass; with exact blocks, as the automatic ones are, it gains at most a fifth",
        "the gain does not depend on the blocks",
    )


def generated_rows(scale: Scale) -> Outcome:
    """Figure 1 at its own size, for some iterations: memory and seconds of 10^8 rows."""
    rows = stored_rows("full_generated", TITLE)
    least, largest = rows[0], rows[-1]
    n, seconds = largest["n"], largest["iteration, CPU s"]
    power = math.log(seconds / least["iteration, CPU s"]) / math.log(n / least["n"])
    days = n / BLOCK * seconds / 86_400
    return judged(
        f"{n:,} generated rows as centers: {largest['MB']:,} MB, {largest['bytes a row']} bytes a "
        f"row; {seconds:.0f} CPU s an iteration of {BLOCK} rows, n^{power:.2f} from "
        f"{least['n']:,} rows on",
        largest["MB"] < 12_000 and power < 1.15,
        f"benchmark `full_generated`: {largest['iterations']} iterations on one core; a pass, "
        f"n / {BLOCK} iterations, was run with {least['n']:,} rows alone (error "
        f"{least['RMSE / deviation']:.2f} of the deviation); with {n:,} it would be {days:,.0f} "
        "days if all iterations took as long; the paper has a GPU",
        "more memory or seconds than in proportion to the rows",
        Plot(
            "figure 1 generated", "CPU seconds of an iteration and memory by generated rows",
            [
                Panel("rows n", "CPU seconds of an iteration",
                      {"": [(r["n"], r["iteration, CPU s"]) for r in rows]}, log="xy"),
                Panel("rows n", "MB",
                      {"peak": [(r["n"], r["MB"]) for r in rows],
                       "targets and coefficients": [(r["n"], r["vectors, MB"]) for r in rows]},
                      log="xy"),
            ],
        ),
    )  # fmt: skip
