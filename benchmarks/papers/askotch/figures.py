"""ASkotch (Rathore and others 2024): figures 1 to 14, from results of the benchmarks of `full`."""

from __future__ import annotations

from ..item import Outcome, Scale, judge_cause, judged
from ..plot import Panel, Plot
from ..stored import stored_row, stored_rows

ABLATIONS = "benchmark `full_ablations`: nycflights and qm9_gap_31k, 5,000 rows"
FINAL = "residual, 50 passes"


def residuals(question: str, name: str) -> dict[str, float]:
    """Return the residual after 50 passes of each variant on a set."""
    rows = stored_rows("full_ablations", "Summary", question=question, set=name)
    return {row["variant"]: float(row[FINAL]) for row in rows}


def ablation(figure: str, question: str, better: str, worse: str, why: str) -> Outcome:
    """Compare two variants on both sets."""
    pairs = {
        name: residuals(question, name)
        for name in ("nycflights", "qm9_gap_31k")
        if residuals(question, name)
    }
    shown = "; ".join(
        f"{name}: {better} {r[better]:.1e}, {worse} {r[worse]:.1e}" for name, r in pairs.items()
    )
    holds = all(r[better] <= r[worse] for r in pairs.values())
    return judged(
        f"residual after 50 passes, {shown}", holds, ABLATIONS, why, ablation_plot(figure, question)
    )


def ablation_plot(figure: str, question: str, value: str = "residual") -> Plot:
    """Return the picture of residuals of all variants by passes."""
    panels = []
    for name in ("nycflights", "qm9_gap_31k"):
        lines = {
            row["of"][1]: [(point["passes"], point[value]) for point in row["curve"]]
            for row in stored_rows("full_ablations", "Curves", set=name)
            if row["of"][0] == question
        }
        panels.append(Panel("passes", f"relative {value}", lines, name, "y"))
    return Plot(figure, f"Residuals by passes: {question} of ASkotch on two sets", panels)


def gap_by_rank(scale: Scale) -> Outcome:
    """C.5: the gain of momentum shrinks as the rank grows."""
    passes = {
        (row["method"], row["blocks"]): float(row["passes to 1e-06"])
        for row in stored_rows("full_linear", "Linear convergence")
        if row["method"].endswith("fresh")
    }
    hows = [how for method, how in passes if method == "ASkotch, fresh"]
    gains = {how: passes["Skotch, fresh", how] / passes["ASkotch, fresh", how] for how in hows}
    shown = ", ".join(f"{how} {gain:.1f}" for how, gain in gains.items())
    return judged(
        f"passes of Skotch to 1e-6 over ASkotch's: {shown}",
        list(gains.values()) == sorted(gains.values(), reverse=True),
        "benchmark `full_linear`: the synthetic set of C.2.2, fresh blocks",
        "the gain does not shrink",
    )


def linear_convergence(scale: Scale) -> Outcome:
    rows = stored_rows("full_linear", "Linear convergence", blocks="rank 100")
    shown = ", ".join(f"{row['method']} {row['passes to 1e-10']}" for row in rows)
    fresh = stored_row(
        "full_linear", "Linear convergence", blocks="rank 100", method="ASkotch, fresh"
    )
    return judged(
        f"passes to 1e-10 with rank 100: {shown}",
        float(fresh["at the end"]) <= 1e-10,
        "benchmark `full_linear`, 160 passes at most: the others fall as steadily, but more slowly",
        "rounding ends the fall",
        linear_plot(),
    )


def linear_plot() -> Plot:
    """Return the picture of suboptimality by passes, of blocks with rank 100."""
    lines = {
        row["of"][0]: [(point["passes"], point["suboptimality"]) for point in row["curve"]]
        for row in stored_rows("full_linear", "Curves")
        if len(row["of"]) == 2 and row["of"][1] == "rank 100"
    }
    panel = Panel("passes", "relative suboptimality", lines, log="y")
    return Plot("figure 7", "Suboptimality by passes of ASkotch and Skotch, rank 100", [panel])


def fixed_rate(scale: Scale) -> Outcome:
    rows = stored_rows("full_fixed", "Rates", blocks="fixed")
    shown = ", ".join(
        f"{row['solved']}: predicted {row['predicted']}, Skotch {row['Skotch']}" for row in rows
    )
    return judged(
        f"passes for a tenth of the error, {shown}",
        all(float(row["Skotch"]) <= float(row["predicted"]) for row in rows),
        "benchmark `full_fixed`: rates by eigenvalues of the mean projection",
        "slower than the bound",
    )


def against_pcg(scale: Scale) -> Outcome:
    rows = stored_rows("full_krr", "Summary", set="skin")
    errors = {row["method"]: float(row["best"]) for row in rows}
    shown = ", ".join(f"{name} {error:.3g} %" for name, error in errors.items())
    best_pcg = min(error for name, error in errors.items() if name.startswith("PCG"))
    return judged(
        f"wrong labels on skin after 90 CPU s: {shown}",
        errors["ASkotch"] < best_pcg,
        "benchmark `full_krr`: 196,046 rows, equal memory and seconds; SUSY and HIGGS have more",
        "PCG is faster",
        seconds_plot("figure 3", "skin", "wrong labels, %"),
    )


def seconds_plot(figure: str, name: str, label: str) -> Plot:
    """Return the picture of test errors by CPU seconds."""
    lines = {
        row["method"]: [(point["seconds"], point["error"]) for point in row["curve"]]
        for row in stored_rows("full_krr", "Curves", set=name)
    }
    alt = f"Test error by CPU seconds of ASkotch, PCG and FALKON on {name}"
    return Plot(figure, alt, [Panel("CPU seconds", label, lines, name, "xy")])


def against_falkon(scale: Scale) -> Outcome:
    rows = {
        row["method"].split(",")[0]: row
        for row in stored_rows("full_krr", "Summary", set="qm9_gap_31k")
        if not row["method"].startswith("PCG")
    }
    ours, falkon = (float(rows[name]["best"]) for name in ("ASkotch", "FALKON"))
    return judged(
        f"best test RMSE on molecules: ASkotch {ours:.3f}, FALKON {falkon:.3f}",
        ours < falkon,
        "benchmark `full_krr`: qm9_gap_31k, 30,000 rows, equal memory and seconds",
        "FALKON is as accurate",
        seconds_plot("figure 2 gap", "qm9_gap_31k", "test RMSE, eV"),
    )


def half_a_million(scale: Scale) -> Outcome:
    rows = stored_rows("full_memory", "Half a million centers", solver="askotch")
    last = rows[-1]
    return judged(
        f"{last['n']:,} centers: {last['peak RSS, MB']:.0f} MB, RMSE {last['RMSE']:.3f} after "
        f"{last['minutes']} minutes",
        last["peak RSS, MB"] < 1000,
        "benchmark `full_memory`: 5e5 rows on two cores in place of 1e8 on a GPU; FALKON was not "
        "part of it, see the molecules",
        "more memory than planned",
        Plot(
            "figure 1", "Test error by minutes with half a million centers",
            [Panel("minutes", "test RMSE", {"": [(r["minutes"], r["RMSE"]) for r in rows]})],
        ),
    )  # fmt: skip


def number_of_blocks(scale: Scale) -> Outcome:
    seconds = {}
    for name in ("nycflights", "qm9_gap_31k"):
        rows = stored_rows("full_ablations", "Summary", question="blocks", set=name)
        for row in rows:
            if row["variant"].startswith("exact"):
                seconds.setdefault(name, {})[row["variant"].removeprefix("exact, ")] = row
    shown = "; ".join(
        f"{name}: "
        + ", ".join(f"{b} {row['CPU s beside products']:.1f} s" for b, row in of.items())
        for name, of in seconds.items()
    )
    falls = [
        of["b = 250"]["CPU s beside products"] < of["b = 1,000"]["CPU s beside products"]
        for of in seconds.values()
    ]
    return judged(
        f"CPU seconds besides products of 50 passes, equal test RMSE: {shown}",
        all(falls),
        f"{ABLATIONS}; nothing is gained beyond 20 blocks of 250 rows",
        "large blocks are faster",
        ablation_plot("figure 12", "blocks"),
    )


def saga(scale: Scale) -> Outcome:
    rows = stored_rows("large_rivals", "Statistical level")
    pairs: dict[str, dict[str, float]] = {}
    for row in rows:
        pairs.setdefault(row["set"], {})[row["method"]] = float(row["least"])
    ratios = {name: of["SketchySAGA"] / of["FALKON"] for name, of in pairs.items()}
    shown = ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items())
    low, high = (100 * (bound(ratios.values()) - 1) for bound in (min, max))
    return judge_cause(
        f"least test error over FALKON's at equal centers: {shown}",
        low > 0 and high < 2,
        f"benchmark `large_rivals`: within 40 epochs the least error is {low:.1f} to {high:.1f} % "
        "above FALKON's, so that it needs more centers to be below; the next item measures why",
        "at equal centers SketchySAGA is as accurate, or further off",
    )
