"""Synonyms: names of parameters in other libraries, and the conversion of their values."""

from __future__ import annotations

from collections.abc import Collection

from .._messages.checks import did_you_mean

PENALTY_NOTE = "penalty = alpha / n, with n rows"
PER_ROW = "per row: divide the penalty of a sum of squares by the number of rows"
CENTERS_NOTE = "the number of centers"
LENGTHSCALE_NOTE = "a number in the units of the features"
ITERATIONS_NOTE = "the largest number of iterations"
TOLERANCE_NOTE = "the estimated error of the predictions at which to stop"

FOREIGN_PARAMETERS: dict[str, tuple[str, str]] = {
    "gamma": ("lengthscale", "lengthscale = (2 * gamma) ** -0.5 for the gaussian kernel"),
    "length_scale": ("lengthscale", LENGTHSCALE_NOTE),
    "bandwidth": ("lengthscale", LENGTHSCALE_NOTE),
    "sigma": ("lengthscale", LENGTHSCALE_NOTE),
    "alpha": ("penalty", PENALTY_NOTE),
    "lambda": ("penalty", PER_ROW),
    "lambda_": ("penalty", PER_ROW),
    "reg": ("penalty", PER_ROW),
    "regularization": ("penalty", PER_ROW),
    "ridge": ("penalty", PER_ROW),
    "C": ("penalty", "penalty = 1 / (2 * n * C), with n rows"),
    "n_components": ("landmarks", CENTERS_NOTE),
    "n_landmarks": ("landmarks", CENTERS_NOTE),
    "num_landmarks": ("landmarks", CENTERS_NOTE),
    "n_centers": ("landmarks", CENTERS_NOTE),
    "centers": ("landmarks", CENTERS_NOTE),
    "M": ("landmarks", CENTERS_NOTE),
    "m": ("landmarks", CENTERS_NOTE),
    "maxiter": ("max_iter", ITERATIONS_NOTE),
    "n_iter": ("max_iter", ITERATIONS_NOTE),
    "iterations": ("max_iter", ITERATIONS_NOTE),
    "epochs": ("max_iter", ITERATIONS_NOTE),
    "tolerance": ("tol", TOLERANCE_NOTE),
    "eps": ("tol", TOLERANCE_NOTE),
    "seed": ("random_state", ""),
    "random_seed": ("random_state", ""),
    "device": ("engine", "such as torch:cuda"),
    "backend": ("engine", "such as torch:cuda"),
    "max_memory": ("memory_limit", "such as 500MB"),
}
"""Parameter, and its formula or unit, by its name in other libraries."""


PARAMETERS_WITHOUT_COUNTERPART: dict[str, str] = {
    "monotonic_cst": "predictions of kernels cannot be constrained to increase or decrease; check "
    "them with gramian.explain.partial_dependence, or use HistGradientBoostingRegressor",
    "monotone_constraints": "predictions of kernels cannot be constrained to increase or decrease; "
    "check them with gramian.explain.partial_dependence, or use LightGBM",
    "n_jobs": "a fit uses all threads of the machine; limit them with OMP_NUM_THREADS=1, or with "
    "threadpoolctl.threadpool_limits(1)",
    "refit": "a search always fits its best model to all rows",
}
"""Advice by the names of parameters of other libraries that have no counterpart."""


def ours(name: str) -> tuple[str, str]:
    """Return the parameter and formula of a name in other libraries; empty if unknown."""
    # The exact name comes first, because "C" is known in upper case only.
    return FOREIGN_PARAMETERS.get(name) or FOREIGN_PARAMETERS.get(name.lower()) or ("", "")


def meant_by(name: str, parameters: Collection[str]) -> str:
    """Return the end of an error about an unknown parameter: a similar or equivalent parameter.

    - `name`: unknown name.
    - `parameters`: existing parameters.
    """
    if name in PARAMETERS_WITHOUT_COUNTERPART and name not in parameters:
        return f"; {PARAMETERS_WITHOUT_COUNTERPART[name]}"
    parameter, formula = ours(name)
    if parameter not in parameters:
        return did_you_mean(name, parameters)
    return f"; use {parameter}" + (f": {formula}" if formula else "")
