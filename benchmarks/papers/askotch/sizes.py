"""ASkotch against PCG on eight sets, and on 10^8 generated rows."""

from __future__ import annotations

import math

from ...full.full_generated import BLOCK, TITLE
from ...full.full_sets import METHODS, RESIDUAL, SECONDS
from ...lib.results import Row
from ..item import Outcome, Scale, judge_cause, judged
from ..plot import Panel, Plot
from ..stored import stored_rows

PRECONDITIONERS = ("PCG, Cholesky", "PCG, Nystrom")
"""The two of the paper."""

OF_SETS = "benchmark `full_sets`"


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


def faster(found: dict[str, dict[str, float]], rivals: tuple[str, ...]) -> list[str]:
    """Return the sets on which ASkotch is faster than all rivals."""
    return [
        name for name, of in found.items() if of["ASkotch"] < min(of[rival] for rival in rivals)
    ]


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
        f"GPU, 8 CPU s a method, rank 100; order: {', '.join(METHODS)}; - not reached"
    )


def eight_sets(scale: Scale) -> Outcome:
    """Section 6: seconds to the least test error of all methods on eight sets."""
    found = seconds_of_methods("to the least error")
    wins = faster(found, PRECONDITIONERS)
    return judged(
        f"ASkotch is first on {len(wins)} of {len(found)} sets; CPU s to within 1 % of the least "
        f"test error: {describe(found)}",
        len(wins) > len(found) / 2,
        scale_of_sets(),
        f"{scale_of_sets()}. With so few rows PCG makes many iterations in this time, see the "
        "next item",
        Plot(
            "section 6", "Test error by CPU seconds of ASkotch, Skotch and PCG on eight sets",
            error_panels(),
        ),
    )  # fmt: skip


def small_residuals(scale: Scale) -> Outcome:
    """The cause of other results: seconds to a residual, and iterations that PCG makes."""
    goal = f"to residual {RESIDUAL:g}"
    found = seconds_of_methods(goal)
    wins = faster(found, PRECONDITIONERS)
    made = {
        row["set"]: row["iterations"]
        for row in stored_rows("full_sets", SECONDS, method="PCG, Nystrom")
    }
    return judge_cause(
        f"CPU s to a residual of {RESIDUAL:g}: {describe(found)}; ASkotch is first on "
        f"{len(wins)}; iterations of PCG, Nystrom in 8 s: "
        + ", ".join(f"{name} {count}" for name, count in made.items()),
        min(made.values()) < 20 < max(made.values()),
        scale_of_sets(),
        "PCG makes as many iterations on all sets",
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
        "momentum gains nothing on most sets",
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
