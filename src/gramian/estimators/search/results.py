"""Checks of the parameters of a search, and its results: members, ``cv_results_``, history."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..._messages.checks import is_integer
from ...fitting.search.fit import Searched
from ...fitting.settings.checks import is_pairs, is_splitter
from ...kernels import Kernel
from ...kernels import names as names_of_kernels
from ...kernels._lengthscale import medians
from ...kernels.base import kernels
from ...metric import RecursiveFeatureMachine
from ...search import INPUT_SCALINGS, L1_KERNEL, RADIAL_KERNELS, Member, Recipe
from .scoring import Scoring


def parameters(member: Member, *, scaled: bool, coded: bool) -> dict[str, Any]:
    """Return the parameters of a `KernelRidge` that repeats a member without a search.

    If cells flattened the metric by a power, the refit applies the power in each round, with nearly
    the same result.
    """
    recipe = member.recipe
    return {
        **_kernel(recipe),
        "penalty": member.penalty,
        **_maps(recipe, scaled=scaled, coded=coded),
        # A cell is as large as the difference of its starts; ``cells=`` is the largest allowed.
        "landmarks": None if member.all_rows or member.cells else len(member.centers),
        **({} if member.cells is None else {"cells": int(np.diff(member.cells.starts).max())}),
    }


def _kernel(recipe: Recipe) -> dict[str, Any]:
    if isinstance(recipe.kernel, str):
        return {"kernel": recipe.kernel, "lengthscale": f"{recipe.multiple:g} median"}
    return {"kernel": recipe.make_kernel(), "lengthscale": "median"}


STANDARDIZE_OF_INPUTS = {"quantile": "quantile", "common": False}
"""Values of ``standardize`` by inputs; lengthscales in medians absorb a common scale."""


def _maps(recipe: Recipe, *, scaled: bool, coded: bool) -> dict[str, Any]:
    machine = None
    if recipe.rounds:
        # One number of rounds and one power: the refit learns this metric, and compares no others.
        powers = (recipe.power,)
        machine = RecursiveFeatureMachine(recipe.rounds, powers, kernel=str(recipe.learner))
    standardize = STANDARDIZE_OF_INPUTS.get(recipe.inputs, scaled)
    # True is refused if all features keep their units.
    if standardize is True and recipe.make_kernel().unscaled_features(1):
        standardize = "auto"
    # A search always scales numeric targets, `KernelRidge` by default only with the features.
    targets = {} if standardize or coded else {"standardize_target": True}
    return {"standardize": standardize, **targets, "metric": machine}


COMBINED_STEPS = ("average", "blend")
"""Steps whose models are means of several."""

SAMPLED_STEPS = ("screen", "metric", "kernel", "landmarks")
"""Steps on samples, which the squared error compares for any scoring."""

RESULT_COLUMNS = (
    "params", "step", "mean_test_score", "squared_error", "seconds", "elapsed", "evaluations"
)  # fmt: skip


def results(result: Searched, scoring: Scoring, *, scaled: bool, coded: bool) -> dict[str, Any]:
    """Return a row for each recipe and penalty, as scikit-learn's ``cv_results_``.

    With a scoring of its own, a fit has only a row for its best penalty, and samples no score.
    """
    rows: dict[str, list[Any]] = {name: [] for name in RESULT_COLUMNS}
    for trial in result.trials:
        squared = scoring.loss is None or trial.step in SAMPLED_STEPS
        losses = trial.losses if squared else ()
        # A row for each penalty of a path, as a grid search has them; a score of another kind was
        # computed for the best one only.
        for penalty, loss in losses or ((trial.penalty, trial.loss),):
            # A refit to all rows has no held-out rows, and no error.
            if trial.step == "refit":
                continue
            recipe = trial.recipe
            # Samples are compared by squared errors: these give no score of another kind.
            scored = scoring.loss is None or not squared
            score = scoring.score(loss, result.unit) if scored else math.nan
            rows["squared_error"].append(loss * result.unit**2 if squared else math.nan)
            rows["params"].append({
                **_kernel(recipe), "penalty": penalty, **_maps(recipe, scaled=scaled, coded=coded),
            })  # fmt: skip
            rows["step"].append(trial.step)
            rows["mean_test_score"].append(score)
            rows["seconds"].append(trial.seconds)
            rows["elapsed"].append(trial.elapsed)
            rows["evaluations"].append(trial.evaluations)
    table: dict[str, Any] = {
        name: values if name == "params" else np.array(values) for name, values in rows.items()
    }
    # Trials without a score rank last.
    scores = np.nan_to_num(table["mean_test_score"], nan=-np.inf)
    ahead = np.searchsorted(np.sort(-scores), -scores)  # equal scores share the first rank
    table["rank_test_score"] = (1 + ahead).astype(np.int32)
    return table


def best_index(table: dict[str, Any]) -> int:
    """Return the row of the best full fit or mean; without full fits, of the best sample."""
    scores, last = table["mean_test_score"], np.isin(table["step"], ("fit", *COMBINED_STEPS))
    if "cells" in table["step"]:  # other fits have different held-out rows
        last = np.isin(table["step"], ("cells", "blend"))
    if not last.any():
        return int(np.argmin(table["squared_error"]))
    return int(np.argmax(np.where(last, scores, -np.inf)))


def history(result: Searched, scoring: Scoring) -> list[dict[str, Any]]:
    """Return a row for each trial: its parameters, error and gain."""
    rows: list[dict[str, Any]] = []
    # Samples and full fits have different held-out rows: gains compare trials of one kind.
    least_error: dict[bool, float] = {True: math.inf, False: math.inf}
    for trial in result.trials:
        sampled = trial.step in SAMPLED_STEPS
        before = least_error[sampled]
        least_error[sampled] = min(before, trial.loss) if math.isfinite(trial.loss) else before
        squared = scoring.loss is None or sampled
        error = result.unit * math.sqrt(trial.loss) if squared else trial.loss
        gain = 1 - trial.loss / before if 0 < before < math.inf else 0.0
        rows.append({
            "step": trial.step, "what": str(trial.recipe), "penalty": trial.penalty,
            # NaN, as of a fit that failed, is no gain.
            "error": error, "gain": max(gain, 0.0) if gain == gain else 0.0,
            "seconds": trial.seconds, "elapsed": trial.elapsed,
            "kernel_evaluations": trial.evaluations,
        })  # fmt: skip
    return rows


AUTO_VALUE = "auto"


def kernels_of(setting: object) -> tuple[str | Kernel, ...]:
    """Return the names of the kernels to choose among, and kernel objects."""
    if setting is None or (isinstance(setting, str) and setting == AUTO_VALUE):
        return (*RADIAL_KERNELS, L1_KERNEL)
    names = (setting,) if isinstance(setting, str | Kernel) else setting
    if not isinstance(names, Sequence) or not len(names):
        raise ValueError(
            f"kernel must be 'auto', a name, a kernel object or a list of these, not {setting!r}"
        )
    for name in names:
        if not isinstance(name, Kernel) and name not in names_of_kernels():
            raise ValueError(
                f"kernel must be 'auto', kernel objects, or names of kernels: "
                f"{', '.join(names_of_kernels())}, not {name!r}{kernels.hint(str(name))}"
            )
    # A repeated name would only repeat its trials.
    return tuple(dict.fromkeys(names))


def inputs_of(setting: object) -> tuple[str, ...]:
    """Return the names of the inputs to choose among."""
    if isinstance(setting, str) and setting == AUTO_VALUE:
        return INPUT_SCALINGS
    # True and False differ in the scale of the features, which `SearchSettings.standardize` sets.
    if isinstance(setting, bool):
        return ("standard",)
    if isinstance(setting, str) and setting == "quantile":
        return ("quantile",)
    raise ValueError(f"standardize must be 'auto', True, False or 'quantile', not {setting!r}")


def multiples_of(setting: object) -> tuple[float, ...] | None:
    """Return the lengthscales as multiples of the median; None to search for a lengthscale."""
    if setting is None or (isinstance(setting, str) and setting == AUTO_VALUE):
        return None
    values = [setting] if isinstance(setting, str) or not isinstance(setting, Sequence) else setting
    multiples = [medians(value) for value in values]
    if not multiples or any(multiple is None or multiple <= 0 for multiple in multiples):
        raise ValueError(
            "lengthscale must be 'auto', or one or several multiples of the median distance, such "
            f"as ['0.5 median', 'median', '2 median'], not {setting!r}"
        )
    return tuple(sorted({multiple for multiple in multiples if multiple is not None}))


def folds_of(setting: object) -> object:
    """Return the checked ``cv``, with an iterator of pairs as a tuple."""
    # An iterator would be empty in the second of several passes.
    cv = tuple(setting) if isinstance(setting, Iterator) else setting
    if cv is None or is_splitter(cv) or is_pairs(cv) or (is_integer(cv) and cv >= 2):
        return cv
    raise ValueError(
        "cv must be None, a number of folds of at least 2, a splitter such as KFold(5), or a list "
        f"of pairs of training and test row numbers, not {reprlib.repr(cv)}"
    )


def machine_of(setting: object) -> RecursiveFeatureMachine | None:
    """Return the recursive feature machine that learns a metric; None to learn no metric."""
    if setting is None:
        return None
    if isinstance(setting, str) and setting in (AUTO_VALUE, "learned"):
        return RecursiveFeatureMachine()
    if isinstance(setting, RecursiveFeatureMachine):
        return setting
    raise ValueError(
        f"metric must be 'auto', 'learned', None or a RecursiveFeatureMachine, not {setting!r}"
    )


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
