"""Fitting: from settings and training data to a model, without scikit-learn.

`fit` and `go_on` compute, `plan` and `check_memory` say beforehand what they will need. The
estimators and the command line check what users give, turn it into `FitSettings` and
`TrainingData`, and keep the `Fitted` that comes back.
"""

from __future__ import annotations

from .fit import fit
from .held_out.divide import holds_out
from .inputs.table import table_data
from .inputs.training_data import TrainingData
from .partial_fit import can_go_on, go_on
from .plans.machine import machine_memory
from .plans.plan import check_memory, plan
from .plans.result import Plan
from .result import Fitted, InterruptedFit, model_until
from .settings.generators import Generators
from .settings.settings import FitSettings
from .uncertainty.whole_rows import Divided, Whole, WholeRows, whole_of

__all__ = [
    "Divided",
    "FitSettings",
    "Fitted",
    "Generators",
    "InterruptedFit",
    "Plan",
    "TrainingData",
    "Whole",
    "WholeRows",
    "can_go_on",
    "check_memory",
    "fit",
    "go_on",
    "holds_out",
    "machine_memory",
    "model_until",
    "plan",
    "table_data",
    "whole_of",
]
