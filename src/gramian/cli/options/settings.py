"""Settings from options, and checks of options before any data are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import _arrays as xp
from ... import kernels, solvers
from ..._messages.checks import did_you_mean
from ...fitting import FitSettings, Generators
from ...metric import Metric
from ...metric.base import metrics
from ...model.blend.boosting import check_package
from ...operators import choose_engine
from ...search import Budget
from . import parsing
from .options import FitOptions


def settings_of(options: FitOptions) -> FitSettings:
    """Return the settings of the options; the others have the defaults of Python."""
    values = {name: parsing.read(name, value) for name, value in options.parameters.items()}
    return FitSettings(**values, metric=_metric(options))


def _metric(options: FitOptions) -> Metric | str | None:
    if not options.learn_metric:
        return None
    powers = None if options.metric_power is None else (options.metric_power,)
    metric_options = {
        "rounds": options.metric_rounds, "powers": powers, "kernel": options.metric_kernel
    }  # fmt: skip
    set_options = {name: value for name, value in metric_options.items() if value is not None}
    return metrics.make("learned", **set_options)


def generators(options: FitOptions) -> Generators:
    """Return the random generators of an estimator with ``random_state=--seed``."""
    return Generators.from_random_state(np.random.RandomState(options.seed))


def budget(options: FitOptions) -> Budget:
    """Return the budget of a search."""
    return Budget.of(parsing.budget(options.budget))


def check(options: FitOptions) -> None:
    """Raise ValueError for settings that no data allow, before the first pass over the data."""
    if options.metric_kernel is not None:
        hint = kernels.hint(options.metric_kernel)
        _check_name("metric-kernel", options.metric_kernel, kernels.names(), hint)
    settings = settings_of(options)
    kernel, solver = str(settings.kernel), str(settings.solver)
    if kernel == "precomputed":
        raise ValueError(
            "--kernel precomputed requires a kernel matrix, but the command line reads rows of "
            "features; give the matrix to KernelRidge('precomputed') in Python"
        )
    _check_name("kernel", kernel, ("auto", *kernels.names()), kernels.hint(kernel))
    names = ("auto", *solvers.names())
    _check_name("solver", solver, names, did_you_mean(solver, names))
    budget(options)
    check_package(options.blend)
    # Only for its errors, such as a missing GPU: the engine is chosen for the dtype of the data.
    choose_engine(settings.engine, dtype=xp.float32)


def _check_name(option: str, value: str, names: Sequence[str], hint: str) -> None:
    if value not in names:
        raise ValueError(f"unknown --{option} {value!r}; known: {', '.join(names)}{hint}")
