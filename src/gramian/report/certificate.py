"""Relative residual of a model on its training rows, to check that it solves its equations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..explain.nearest import reason_equations_unknown
from ..fitting.inputs.targets import class_codes, target_tensor
from ..model import Model
from ..scoring.truth import Truth
from .studies import residual

MOST_ENTRIES = 2_000_000_000
"""Most kernel entries of a residual: about ten seconds."""


@dataclass(frozen=True)
class Certificate:
    """Relative residual, or the reason why the residual was not computed."""

    residual: float | None
    reason: str | None = None


def certificate(
    model: Model, train: Truth | None, penalty: float | None, memory: int
) -> Certificate:
    """Return the relative residual of a model on its training rows, if `train` holds them.

    - `train`: training table, if the user gave it.
    - `penalty`: penalty of the fit, if it is known.
    - `memory`: bytes for blocks.
    """
    part = model.parts[0]
    if train is None:
        return Certificate(
            None, "give the training table (`--train`, in Python `train=`) to measure it"
        )
    reason = reason_equations_unknown(
        model, part, len(train.y), model.info.get("rows"), penalty, MOST_ENTRIES
    )
    if reason is not None:
        return Certificate(None, f"not measured: {reason}")
    assert penalty is not None  # checked above
    rows = part.prepare_rows(train.rows)
    if model.classes is None:
        targets = target_tensor(train.y, rows.dtype)
    else:
        targets = class_codes(train.y, np.asarray(model.classes), rows.dtype)
    return Certificate(residual(part, rows, targets, penalty, memory))
