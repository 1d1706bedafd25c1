"""Fitting: from settings and training data to a model, without scikit-learn.

`fit` and `go_on` compute, `plan` and `check_memory` say beforehand what they will need. The
estimators and the command line check what users give, turn it into `FitSettings` and
`TrainingData`, and keep the `Fitted` that comes back.
"""

from __future__ import annotations

from .data import TrainingData
from .divide import holds_out
from .fit import fit
from .fitted import Fitted, InterruptedFit, model_until
from .from_table import table_data
from .generators import Generators
from .go_on import can_go_on, go_on
from .machine import machine_memory
from .plan import check_memory, plan
from .plan_result import Plan
from .settings import FitSettings
from .whole import Divided, Whole, WholeRows, whole_of

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
