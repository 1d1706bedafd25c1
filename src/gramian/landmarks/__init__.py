"""Selection of landmarks, a few rows that represent all rows.

A `Selector` reads the rows of a kernel operator and returns `Landmarks`: points, the weights that
correct uneven sampling, and row numbers. Pass one to an estimator, ``landmarks=Uniform(1000)``, or
only a number. To add one: one file with a registered `Selector`, one import line here.
"""

from __future__ import annotations

from typing import Any

from .base import Landmarks, Selector, selectors
from .kmeans import KMeans
from .leverage.bless import Bless, PathSelector
from .leverage.bless_r import BlessR
from .leverage.exact_rls import ExactRLS
from .leverage.recursive_rls import RecursiveRLS
from .leverage.selecting import Level, landmarks_of
from .leverage.squeak import Squeak
from .leverage.two_pass import TwoPass
from .rpcholesky import RPCholesky
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
