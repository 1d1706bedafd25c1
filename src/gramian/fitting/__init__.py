"""Fitting: from settings and training data to a model, without scikit-learn.

`fit` and `partial_fit` compute; `plan` and `check_memory` estimate seconds and memory before. The
estimators and the command line check user input, turn it into `FitSettings` and `TrainingData`, and
keep the resulting `Fitted`.
"""

from __future__ import annotations

from .._parallel.machine import machine_memory
from .fit import fit
from .held_out.divide import holds_out
from .inputs.training_data import TrainingData
from .methods.run import InterruptedFit, interrupted_model
from .partial_fit import partial_fit, supports_partial_fit
from .plans.plan import check_memory, plan
from .plans.result import Plan
from .result import Fitted
from .settings.generators import Generators
from .settings.settings import FitSettings
from .table_data import table_data
from .uncertainty.whole_rows import DividedRows, Whole, WholeRows, whole_of

__all__ = [
    "DividedRows",
    "FitSettings",
    "Fitted",
    "Generators",
    "InterruptedFit",
    "Plan",
    "TrainingData",
    "Whole",
    "WholeRows",
    "check_memory",
    "fit",
    "holds_out",
    "interrupted_model",
    "machine_memory",
    "partial_fit",
    "plan",
    "supports_partial_fit",
    "table_data",
    "whole_of",
]
