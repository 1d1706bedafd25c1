"""Description of a model: its settings, as `gramian info` and the report show them."""

from __future__ import annotations

from typing import Any

from ..data import LinearMap
from ..model import BlendModel, KernelPart, Model
from ..model.importances import largest_importances
from ..scoring.training_digest import DIGEST_KEY


def describe_model(model: Model) -> dict[str, Any]:
    """Return the settings of a model by name, in nested mappings; a missing setting is None."""
    hidden = ("columns", "history", DIGEST_KEY)
    about = {name: value for name, value in model.info.items() if name not in hidden}
    parts = [_about_part(part) for part in model.parts]
    weights = model.shares if len(parts) > 1 else None
    if weights is None:
        (own,) = parts
    else:
        own = {"average": {f"model_{i + 1}": part for i, part in enumerate(parts)}}
    return {
        "weights": weights,
        "blend": describe_blend(model),
        **own,
        "features": model.features,
        "feature_names": model.feature_names,
        "outputs": model.outputs,
        "classes": model.classes,
        "probabilities": None if model.classes is None else model.class_map.to_dict(),
        "standard_deviations": all(part.variance is not None for part in model.parts) or None,
        "intervals": None if model.conformal is None else model.conformal.describe(),
        "importances": largest_importances(model),
        "columns": None if model.encoding is None else model.encoding.describe(),
        "trained": about,
    }


def describe_blend(model: Model) -> dict[str, Any] | None:
    """Return the weights of a blend and the rounds of its trees; None for other models."""
    if not isinstance(model, BlendModel):
        return None
    return {
        "kernel_weight": model.weight,
        "lightgbm_weight": round(1 - model.weight, 2),
        "rounds": sum(model.trees.rounds),
    }


def _about_part(model: KernelPart) -> dict[str, Any]:
    quantiles, metric = model.quantiles, model.metric
    return {
        "kernel": model.kernel.to_dict(),
        "centers": len(model.centers),
        "cells": None if model.cells is None else model.cells.cells.count,
        "standardized": None if model.encoding else model.standardizer is not None,
        "quantiles": None if quantiles is None else f"of {len(quantiles.columns)} features",
        "metric": None if metric is None else _about_metric(metric, model.importances is not None),
    }


def _about_metric(metric: LinearMap, learned: bool) -> str:
    kind = f"{metric.inputs} factors"
    if metric.matrix is not None:
        kind = f"matrix of {metric.inputs} x {metric.outputs}"
    return f"{'learned' if learned else 'given'}: {kind}"
