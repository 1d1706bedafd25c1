"""Names of the metrics that solvers add to a state: the columns of a history."""

from __future__ import annotations

from typing import Final

RESIDUAL_KEY: Final = "rel_residual"
"""Norm of the residual over the norm of the right-hand side, largest over the targets."""

PREDICTION_ERROR: Final = "prediction_error"
"""Estimated error of the predictions on the rows, relative to the exact solution of the problem.

The root mean square of the error over the standard deviation of the target (over the root mean
square of a constant target), largest over the targets.
"""

ROUNDING_ERROR: Final = "rounding_error"
"""The part of the prediction error that no iteration reduces, if it is visible."""

BATCH_ERROR: Final = "batch_mse"
"""Mean squared error of the batches since the last state, each before its step."""

PASSES_KEY: Final = "passes"
"""Evaluated kernel entries, in units of all pairs of rows."""

EPOCH_KEY: Final = "epoch"
"""Passes over the rows; fractional if a state ends within one."""

VALID_RMSE: Final = "valid_rmse"
"""Root mean squared error on held-out rows; added by a `Validate`, not by a solver."""

VALID_ERROR: Final = "valid_error"
"""Misclassified share of held-out rows; added by a `Validate` as well."""
