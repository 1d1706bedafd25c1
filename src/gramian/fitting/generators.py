"""Generators: a random generator for each step of a fit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch


@dataclass(frozen=True)
class Generators:
    """Independent generators, so that the draws of one step do not move those of another.

    Attributes
    ----------
    kernel, landmarks, solver : torch.Generator
        For the sample of the median heuristic, the selector and the solver.
    folds : torch.Generator or None
        For the folds of a path of penalties; None where there is none, as in `go_on`.
    encoding : torch.Generator
        For the folds of the means of levels, and the sample of quantiles.
    """

    kernel: torch.Generator
    landmarks: torch.Generator
    solver: torch.Generator
    folds: torch.Generator | None = None
    encoding: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))

    @classmethod
    def seeded(cls, state: np.random.RandomState, *, folds: bool = True) -> Generators:
        """Return generators with seeds that NumPy's draws, as scikit-learn's users give it."""
        seeds = state.randint(2**31 - 1, size=5)
        kernel, landmarks, solver, chosen, encoding = (
            torch.Generator().manual_seed(int(seed)) for seed in seeds
        )
        return cls(kernel, landmarks, solver, chosen if folds else None, encoding)
