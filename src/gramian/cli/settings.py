"""The settings that the options describe, and what they cannot say whatever the data are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from .. import kernels, solvers
from .._checks import as_bytes, did_you_mean
from ..fitting import FitSettings, Generators
from ..operators import choose_engine
from . import parsing
from .options import FitOptions


def settings_of(options: FitOptions, callbacks: Sequence[Callable[..., Any]] = ()) -> FitSettings:
    """Return the settings that the options describe."""
    return FitSettings(
        kernel=kernels.make(options.kernel, lengthscale=parsing.lengthscale(options.lengthscale)),
        lengthscale="median",
        penalty=parsing.penalty(options.penalty),
        landmarks=parsing.landmarks(options.landmarks),
        standardize="quantile" if options.quantiles else options.standardize,
        standardize_target=options.standardize_target,
        cv=options.cv,
        solver=options.solver,
        max_iter=options.max_iter,
        tol=options.tol,
        engine=options.engine,
        memory_limit=options.memory_limit,
        callbacks=callbacks,
        warm_start=False,
        centers_file=None,
        early_stopping=options.early_stopping,
        validation_fraction=0.1,
        patience=options.patience,
        metric="learned" if options.learn_metric else None,
        time_limit=None if options.time_limit is None else parsing.seconds(options.time_limit),
    )


def generators(options: FitOptions) -> Generators:
    """Return the generators of a fit, as those of an estimator with this ``random_state``."""
    return Generators.seeded(np.random.RandomState(options.seed))


def check(options: FitOptions) -> None:
    """Refuse what cannot be right whatever the data are: before the first pass over them."""
    _check_name("kernel", options.kernel, kernels.names(), kernels.hint(options.kernel))
    names = ("auto", *solvers.names())
    _check_name("solver", options.solver, names, did_you_mean(options.solver, names))
    if options.memory_limit is not None:
        as_bytes(options.memory_limit, "--memory-limit")
    settings_of(options)
    choose_engine(options.engine, dtype=torch.float32)


def _check_name(option: str, given: str, known: Sequence[str], hint: str) -> None:
    if given not in known:
        raise ValueError(f"unknown --{option} {given!r}; known: {', '.join(known)}{hint}")
