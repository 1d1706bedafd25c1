"""`gramian info`: describe a model, or the installation and the machine."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from itertools import accumulate
from pathlib import Path
from typing import Any

from ... import __version__, conformal, kernels, landmarks, solvers
from ..._parallel.machine import machine_memory
from ..._parallel.workers import default_threads
from ...data.formats import endings
from ...engines import compiled_tiles
from ...engines._devices import count_devices
from ...engines.choose import has_fused_tiles
from ...model import load_model
from ...report.description import describe_model
from ..outputs.report import Report

SHOWN_NAMES = 10
"""Names of a list that are shown, and columns that have a line of their own."""

SHOWN_LETTERS = 100
"""Letters of these names, beyond the first one."""


def info(model: Path | None, is_short: bool = False) -> Report:
    """Describe a model, or this installation and machine.

    If `is_short`, long lists end after some names, and many columns are grouped by encoding.
    """
    if model is None:
        return _describe_installation()
    about = describe_model(load_model(model))
    columns = about["columns"]
    if is_short:
        about = {name: _shorten(value) for name, value in about.items()}
        if columns is not None and len(columns) > SHOWN_NAMES:
            about["columns"] = _group_columns(columns)
    return {"model": model, "file_bytes": model.stat().st_size, **about}


def _shorten(value: Any) -> Any:
    """Return a value, or nested values, with the first names of long lists."""
    if isinstance(value, Mapping):
        return {name: _shorten(inner) for name, inner in value.items()}
    is_list = isinstance(value, list | tuple) and not any(isinstance(x, Mapping) for x in value)
    if not is_list or len(value) <= SHOWN_NAMES:
        return value
    lengths = accumulate(len(str(name)) for name in value[:SHOWN_NAMES])
    count = max(1, sum(length <= SHOWN_LETTERS for length in lengths))
    return [*value[:count], f"... ({len(value):,}; --all shows all)"]


def _group_columns(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the names of columns by their encoding, the most frequent first."""
    names: dict[str, list[str]] = {}
    for name, text in columns.items():
        names.setdefault(text, []).append(name)
    frequent_first = sorted(names.items(), key=lambda group: -len(group[1]))
    shown = {
        f"({len(group):,}) {text}": ", ".join(map(str, _shorten(group)))
        for text, group in frequent_first[:SHOWN_NAMES]
    }
    more_count = sum(len(group) for _, group in frequent_first[SHOWN_NAMES:])
    return shown | ({"others": f"{more_count:,}; --all shows all"} if more_count else {})


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
