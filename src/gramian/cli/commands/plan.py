"""`gramian plan`: cost of a fit before it starts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from ... import fitting
from ...fitting import Plan
from ...fitting.search.plan import SearchPlan, plan_search
from ...fitting.search.settings import SearchSettings
from ..inputs.training import open_training
from ..options.options import FitOptions
from ..options.settings import budget, check, generators, settings_of
from ..outputs.report import Report


def plan(data: Path, options: FitOptions) -> Report:
    """Report memory, kernel evaluations and seconds of a fit, or a search, with these options."""
    check(options)
    training = open_training(data, options)
    prepared = training.prepare(settings_of(options), generators(options))
    rows, targets = prepared.data.rows, training.targets
    if options.of_a_model:
        expected: Plan | SearchPlan = fitting.plan(prepared.settings, rows, targets)
    else:
        search = SearchSettings(
            budget=budget(options),
            engine=prepared.settings.engine,
            memory_limit=prepared.settings.limit,
        )
        expected = plan_search(search, rows, targets)
    n, d = prepared.data.rows.shape
    return {
        "plan": str(expected),
        "rows": n,
        "features": d,
        "method": "one fit" if options.of_a_model else "search",
        **{name: value for name, value in asdict(expected).items() if name != "rows"},
        "columns": prepared.columns,
    }
