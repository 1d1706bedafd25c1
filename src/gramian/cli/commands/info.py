"""`gramian info`: describe a model, or the installation and the machine."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

import typer

from ... import __version__, conformal, kernels, landmarks, solvers
from ..._messages.display import escape_controls
from ..._parallel.machine import machine_memory
from ..._parallel.workers import default_threads
from ...data.formats import endings
from ...engines import compiled_tiles
from ...engines._devices import count_devices
from ...engines.choose import has_fused_tiles
from ...model import load_model
from ...report.description import describe_model, model_card
from ..outputs.report import SHOWN_NAMES, Report, group_columns, shorten


def info(model: Path | None, is_short: bool = False) -> Report:
    """Describe a model, or this installation and machine.

    If `is_short`, long lists end after some names, and many columns are grouped by encoding.
    """
    if model is None:
        return _describe_installation()
    about = describe_model(load_model(model))
    columns = about["columns"]
    if is_short:
        about = {name: shorten(value) for name, value in about.items()}
        if columns is not None and len(columns) > SHOWN_NAMES:
            about["columns"] = group_columns(columns)
    return {"model": model, "file_bytes": model.stat().st_size, **about}


def show_card(model: Path | None) -> None:
    """Print the model card of a model."""
    if model is None:
        raise ValueError("--card requires a model: gramian info MODEL --card")
    typer.echo(escape_controls(model_card(model, model.name)), nl=False)


def _version_of(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _describe_installation() -> Report:
    tiles, cards = compiled_tiles(), range(count_devices())
    devices = [str(i) for i in cards]
    if len(devices) > 1:
        devices.append(",".join(devices))  # rows divided among all of them
    cuda = [f"torch:cuda:{device}" for device in devices]
    if has_fused_tiles():
        cuda = [*(f"triton:cuda:{device}" for device in devices), *cuda]
    return {
        "version": __version__,
        "python": platform.python_version(),
        "torch": _version_of("torch"),
        "engines": [*(["native"] if tiles else []), "numpy", *cuda],
        "compiled_tiles": tiles or "not installed: no C++ compiler was found, or GRAMIAN_NATIVE=0",
        "threads": default_threads(),
        "memory_bytes": machine_memory(),
        "formats": endings(),
        "kernels": kernels.names(),
        "landmarks": landmarks.names(),
        "solvers": solvers.names(),
        "conformal": conformal.names(),
    }
