"""`gramian export`: write a model for other runtimes."""

from __future__ import annotations

from pathlib import Path

from ...export import to_onnx
from ..outputs.files import check_outputs
from ..outputs.report import Report


def export(model: Path, out: Path) -> Report:
    """Write a model in the format of ONNX, and return its inputs and outputs."""
    if out.suffix != ".onnx":
        raise ValueError(f"TARGET must be a file that ends in .onnx, not {out}")
    check_outputs({"out": out}, [model])
    try:
        graph = to_onnx(model, out).graph
    except ImportError as error:  # an extra that is not installed
        raise ValueError(str(error)) from error
    return {
        "model": out,
        "file_bytes": out.stat().st_size,
        "inputs": [value.name for value in graph.input],
        "outputs": [value.name for value in graph.output],
    }
