"""Landmarks: a few rows that represent all of them.

A `Selector` reads the rows of a kernel operator and returns `Landmarks`: points, the weights that
correct uneven sampling, and row numbers. Pass one to an estimator, ``landmarks=Uniform(1000)``, or
only a number. To add one: one file with a registered `Selector`, one import line here.
"""

from __future__ import annotations

from typing import Any

from ._selecting import Level, landmarks_of
from .base import Landmarks, Selector, selectors
from .bless import Bless, PathSelector
from .bless_r import BlessR
from .exact_rls import ExactRLS
from .kmeans import KMeans
from .recursive_rls import RecursiveRLS
from .rpcholesky import RPCholesky
from .squeak import Squeak
from .two_pass import TwoPass
from .uniform import Uniform


def make(name: str, **parameters: Any) -> Selector:
    """Return the selector called `name`; `names` lists them."""
    return selectors.make(name, **parameters)


def names() -> list[str]:
    """Return the names of all selectors."""
    return sorted(selectors)


__all__ = [
    "Bless",
    "BlessR",
    "ExactRLS",
    "KMeans",
    "Landmarks",
    "Level",
    "PathSelector",
    "RPCholesky",
    "RecursiveRLS",
    "Selector",
    "Squeak",
    "TwoPass",
    "Uniform",
    "landmarks_of",
    "make",
    "names",
]
