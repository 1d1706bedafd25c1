"""Relative residual of a model on its training rows, to check that it solves its equations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.encoding.columns.target_means import TargetMeans
from ..fitting.inputs.targets import class_codes, target_tensor
from ..model import KernelPart, Model
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
    reason = _reason_unknown(model, part, train, penalty)
    if reason is not None:
        return Certificate(None, f"not measured: {reason}")
    assert penalty is not None  # checked by `_reason_unknown`
    rows = part.prepare_rows(train.rows)
    if model.classes is None:
        targets = target_tensor(train.y, rows.dtype)
    else:
        targets = class_codes(train.y, np.asarray(model.classes), rows.dtype)
    return Certificate(residual(part, rows, targets, penalty, memory))


def _reason_unknown(
    model: Model, part: KernelPart, train: Truth, penalty: float | None
) -> str | None:
    """Return why the equations of a fit cannot be recomputed from its model; None if they can."""
    learned, n = model.info.get("rows"), len(train.y)
    columns = () if model.encoding is None else model.encoding.columns
    means = any(isinstance(column, TargetMeans) for column in columns)
    # The first reason that applies is shown. A loss without a link, such as Huber, is visible only
    # in the solver.
    reasons = {
        "the model is an average of several": len(model.parts) > 1,
        "the model has cells": part.cells is not None,
        "its loss is not squared": part.link is not None or model.info.get("solver") == "newton",
        "the model file does not record the penalty": penalty is None,
        "the model does not record its number of training rows": learned is None,
        f"the model was fitted to {learned or 0:,} rows, but the table has {n:,}": learned != n,
        "category means of the target came from other folds in the training": means,
        "it would take too long": n * len(part.centers) > MOST_ENTRIES,
    }
    return next((reason for reason, applies in reasons.items() if applies), None)
