"""`gramian report`: the performance of a model on a table, as one HTML page without links."""

from __future__ import annotations

from .report import report

__all__ = ["report"]
