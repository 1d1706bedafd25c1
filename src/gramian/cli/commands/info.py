"""`gramian info`: describe a model, or the installation and the machine."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

from ... import __version__, conformal, kernels, landmarks, solvers
from ...data.formats import endings
from ...engines import compiled_tiles
from ...engines.triton_engine import is_usable
from ...fitting import machine_memory
from ...model import load_model
from ...report.description import describe_model
from ..outputs.report import Report


def info(model: Path | None) -> Report:
    """Describe a model, or this installation and machine."""
    if model is None:
        return _describe_installation()
    loaded = load_model(model)
    return {"model": model, "file_bytes": model.stat().st_size, **describe_model(loaded)}


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
