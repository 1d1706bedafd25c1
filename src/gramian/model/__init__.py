"""Models: predictors of one kernel or the mean of several, blends with trees, and their files."""

from __future__ import annotations

from .average import AverageModel
from .base import KernelPart, Label, Model
from .blend.blend_model import BlendModel
from .blend.trees import Trees
from .cells import CellCenters
from .file.checks import same_encoding
from .importances import sum_by_column
from .kernel_model import KernelModel
from .loading import load_model
from .uncertainty.probabilities import LogOdds, Probabilities, Shares
from .uncertainty.variance import Variance

__all__ = [
    "AverageModel",
    "BlendModel",
    "CellCenters",
    "KernelModel",
    "KernelPart",
    "Label",
    "LogOdds",
    "Model",
    "Probabilities",
    "Shares",
    "Trees",
    "Variance",
    "load_model",
    "same_encoding",
    "sum_by_column",
]
