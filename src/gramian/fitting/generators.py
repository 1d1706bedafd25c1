"""Generators: a random generator for each step of a fit."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch


@dataclass(frozen=True)
class Generators:
    """Independent generators, so that the draws of one step do not move those of another.

    Attributes
    ----------
    kernel, landmarks, solver, folds : torch.Generator
        For the sample of the median heuristic, the selector, the solver and the folds.
    """

    kernel: torch.Generator
    landmarks: torch.Generator
    solver: torch.Generator
    folds: torch.Generator

    @classmethod
    def seeded(cls, state: np.random.RandomState) -> Generators:
        """Return generators with seeds that NumPy's draws, as scikit-learn's users give it."""
        seeds = state.randint(2**31 - 1, size=len(fields(cls)))
        return cls(*(torch.Generator().manual_seed(int(seed)) for seed in seeds))
