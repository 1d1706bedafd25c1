"""Landmarks: a few rows that stand for all of them.

A `Selector` looks at the rows of a kernel operator and returns `Landmarks`: points, the weights
that undo uneven sampling, and row numbers. Give one to an estimator, ``landmarks=Uniform(1000)``,
or just a number. To add one: one file with a registered `Selector`, one import line here.
"""

from __future__ import annotations

from typing import Any

from .base import Landmarks, Selector, Uniform, selectors


def make(name: str, **parameters: Any) -> Selector:
    """Return the selector called `name`: uniform."""
    return selectors.make(name, **parameters)


__all__ = ["Landmarks", "Selector", "Uniform", "make"]
