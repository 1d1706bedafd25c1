"""Text about a fitted search: the gain of each step, the model, and the steps left out."""

from __future__ import annotations

import math
from typing import Any

from .results import SAMPLED_STEPS


def summary_of(search: Any) -> str:
    """Return the text of `KernelRidgeSearch.summary` for a fitted search."""
    steps: dict[str, list[dict[str, Any]]] = {}
    for row in search.history_:
        if row["step"] != "refit":
            steps.setdefault(row["step"], []).append(row)
    count = sum(map(len, steps.values()))
    seconds = search.history_[-1]["elapsed"] if search.history_ else 0.0
    lines = [
        f"{type(search).__name__}: {count} fits in {seconds:.1f} s, score "
        f"{search.best_score_:.5g} on held-out rows",
        "",
        f"{'step':<12}{'fits':>5}{'error':>12}{'less':>9}{'until':>9}",
    ]
    least_error: dict[bool, float] = {}
    for step, rows in steps.items():
        is_sampled = step in SAMPLED_STEPS
        step_error = min(
            (row["error"] for row in rows if row["error"] == row["error"]), default=math.inf
        )
        before = least_error.get(is_sampled, math.nan)
        least_error[is_sampled] = min(step_error, before) if before == before else step_error
        less = f"{100 * max(1 - step_error / before, 0):.1f} %" if before > 0 else ""
        until = f"{rows[-1]['elapsed']:.1f} s"
        lines.append(f"{step:<12}{len(rows):>5}{step_error:>12.5g}{less:>9}{until:>9}")
    lines += ["", "model: " + ("a mean of" if len(search.members_) > 1 else "")]
    for weight, values in sorted(search.members_, key=lambda member: -member[0]):
        shown = ", ".join(
            f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in values.items()
            if value is not None
        )
        lines.append(f"  {weight:.2f} x {shown}")
    if search.blend_weight_ < 1:
        lines.append(f"  and boosted trees, with a weight of {1 - search.blend_weight_:.2f}")
    left_out = ", ".join(search.left_out_)
    lines.append(
        f"left out, because the budget ended: {left_out}" if left_out else "left out: nothing"
    )
    return "\n".join(lines)
