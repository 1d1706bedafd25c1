"""The settings that the options describe, and what they cannot say whatever the data are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch

from .. import kernels, solvers
from .._checks import as_bytes, did_you_mean
from ..fitting import FitSettings, Generators
from ..fitting.loss_settings import SQUARED
from ..fitting.parameters import Inputs
from ..metric import Metric
from ..metric.base import metrics
from ..operators import choose_engine
from ..search import Budget
from . import parsing
from .options import FitOptions


def settings_of(options: FitOptions, callbacks: Sequence[Callable[..., Any]] = ()) -> FitSettings:
    """Return the settings that the options describe."""
    return FitSettings(
        **_kernel(options),
        penalty=_penalty(options),
        landmarks=parsing.landmarks(options.landmarks),
        standardize=_inputs(options),
        standardize_target=options.standardize_target,
        cv=options.cv,
        solver=options.solver,
        max_iter=options.max_iter,
        tol=options.tol if "tol" in options.given else "auto",
        engine=options.engine,
        memory_limit=options.memory_limit,
        callbacks=callbacks,
        warm_start=False,
        centers_file=None,
        early_stopping=options.early_stopping,
        validation_fraction=0.1,
        patience=options.patience,
        metric=_metric(options),
        cells=options.cells,
        loss=parsing.loss(options.loss),
        time_limit=None if options.time_limit is None else parsing.seconds(options.time_limit),
    )


def _inputs(options: FitOptions) -> Inputs:
    """Return what is done to features: unless said, not what the kernel takes as it is given."""
    if options.quantiles:
        return "quantile"
    left = options.kernel in kernels.names() and kernels.make(options.kernel).as_given(1)
    return "auto" if left and "standardize" not in options.given else options.standardize


def _penalty(options: FitOptions) -> float | Literal["auto"]:
    """Return what was given; else of another loss than the square it is chosen."""
    if options.loss != SQUARED and "penalty" not in options.given:
        return "auto"
    return parsing.penalty(options.penalty)


def _kernel(options: FitOptions) -> dict[str, Any]:
    """Return the kernel, or what is to be chosen of it."""
    lengthscale = parsing.lengthscale(options.lengthscale)
    if "auto" in (options.kernel, options.lengthscale):
        return {"kernel": options.kernel, "lengthscale": lengthscale}
    kernel = kernels.make(options.kernel, lengthscale=lengthscale)
    return {"kernel": kernel, "lengthscale": "median"}


def _metric(options: FitOptions) -> Metric | str | None:
    if not options.learn_metric:
        return None
    powers = None if options.metric_power is None else (options.metric_power,)
    asked = {
        "rounds": options.metric_rounds, "powers": powers, "kernel": options.metric_kernel
    }  # fmt: skip
    given = {name: value for name, value in asked.items() if value is not None}
    return metrics.make("learned", **given)


def generators(options: FitOptions) -> Generators:
    """Return the generators of a fit, as those of an estimator with this ``random_state``."""
    return Generators.seeded(np.random.RandomState(options.seed))


def budget(options: FitOptions) -> Budget:
    """Return the budget of a search."""
    return Budget.of(parsing.budget(options.budget))


def check(options: FitOptions) -> None:
    """Refuse what cannot be right whatever the data are: before the first pass over them."""
    if options.kernel == "precomputed":
        raise ValueError(
            "--kernel precomputed takes the matrix of a kernel, and the command line rows of "
            "features: give the matrix to KernelRidge('precomputed') in Python"
        )
    _check_name("kernel", options.kernel, ("auto", *kernels.names()), kernels.hint(options.kernel))
    names = ("auto", *solvers.names())
    if options.metric_kernel is not None:
        known = kernels.names()
        _check_name(
            "metric-kernel", options.metric_kernel, known, kernels.hint(options.metric_kernel)
        )
    _check_name("solver", options.solver, names, did_you_mean(options.solver, names))
    if options.memory_limit is not None:
        as_bytes(options.memory_limit, "--memory-limit")
    settings_of(options)
    budget(options)
    choose_engine(options.engine, dtype=torch.float32)


def _check_name(option: str, given: str, known: Sequence[str], hint: str) -> None:
    if given not in known:
        raise ValueError(f"unknown --{option} {given!r}; known: {', '.join(known)}{hint}")
