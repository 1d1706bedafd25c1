"""`gramian report`: what a model is worth on a table, as one HTML page that needs no network."""

from __future__ import annotations

from .report import report

__all__ = ["report"]
