"""The parameters of a fit that chooses nothing by itself, for tests of something else."""

from __future__ import annotations

from typing import Any

PLAIN: dict[str, Any] = {"kernel": "gaussian", "lengthscale": "median", "penalty": 1e-6}
"""What tests of solvers, landmarks, files and memory give, so that they stay fast."""

PLAIN_OPTIONS = ("--kernel", "gaussian", "--lengthscale", "median", "--penalty", 1e-6)
"""The same for the command line."""
