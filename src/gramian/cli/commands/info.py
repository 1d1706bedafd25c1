"""`gramian info`: describe a model, or the installation and the machine."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

from ... import __version__, conformal, kernels, landmarks, solvers
from ...data import LinearMap
from ...data.formats import endings
from ...engines import compiled_tiles
from ...engines.triton_engine import is_usable
from ...fitting import machine_memory
from ...model import KernelPart, load_model
from ..inputs.training_digest import DIGEST_KEY
from ..outputs.importances import importances
from ..outputs.report import Report


def info(model: Path | None) -> Report:
    """Describe a model, or this installation and machine."""
    return _describe_installation() if model is None else _about_model(model)


def _describe_installation() -> Report:
    tiles, cards = compiled_tiles(), range(torch.cuda.device_count())
    devices = [str(i) for i in cards]
    if len(devices) > 1:
        devices.append(",".join(devices))  # rows divided among all of them
    cuda = [f"torch:cuda:{device}" for device in devices]
    if is_usable():
        cuda = [*(f"triton:cuda:{device}" for device in devices), *cuda]
    return {
        "version": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "engines": [*(["native"] if tiles else []), "torch:cpu", *cuda],
        "compiled_tiles": tiles or "not installed: no C++ compiler was found, or GRAMIAN_NATIVE=0",
        "threads": torch.get_num_threads(),
        "memory_bytes": machine_memory(),
        "formats": endings(),
        "kernels": kernels.names(),
        "landmarks": landmarks.names(),
        "solvers": solvers.names(),
        "conformal": conformal.names(),
    }


def _about_model(path: Path) -> Report:
    model = load_model(path)
    hidden = ("columns", DIGEST_KEY)
    about = {name: value for name, value in model.info.items() if name not in hidden}
    parts = [_about_part(part) for part in model.parts]
    weights = getattr(model, "weights", None)
    if weights is None:
        (own,) = parts
    else:
        own = {"average": {f"model_{i + 1}": part for i, part in enumerate(parts)}}
    return {
        "model": path,
        "file_bytes": path.stat().st_size,
        "weights": weights,
        **own,
        "features": model.features,
        "feature_names": model.feature_names,
        "outputs": model.outputs,
        "classes": model.classes,
        "probabilities": None if model.classes is None else model.class_map.to_dict(),
        "standard_deviations": all(part.variance is not None for part in model.parts) or None,
        "intervals": None if model.conformal is None else model.conformal.describe(),
        "importances": importances(model),
        "columns": None if model.encoding is None else model.encoding.describe(),
        "trained": about,
    }


def _about_part(model: KernelPart) -> Report:
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
