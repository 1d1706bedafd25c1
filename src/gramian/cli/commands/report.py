"""`gramian report`: write the performance of a model on a table as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...report import write_report
from ..outputs.files import check_outputs
from ..outputs.report import Report


def report(
    model: Path,
    data: Path,
    out: Path,
    train: Path | None,
    read: Mapping[str, Any],
    **settings: Any,
) -> Report:
    """Write the page of a report, and return the scores that it shows."""
    check_outputs({"out": out}, [model, data, *([] if train is None else [train])])
    try:
        return write_report(model, data, out, train=train, read=read, **settings)
    except ImportError as error:  # an extra that is not installed
        raise ValueError(str(error)) from error
