"""Types of parameters: each public estimator and function can be asked for them."""

from __future__ import annotations

import typing

import numpy as np
import pytest

from gramian import estimators

PUBLIC = sorted(name for name in estimators.__all__ if name != "Plan")


@pytest.mark.parametrize("name", PUBLIC)
def test_they_can_be_looked_up(name: str) -> None:
    public = getattr(estimators, name)
    hints = typing.get_type_hints(public.__init__ if isinstance(public, type) else public)
    expected = {"load": "path", "TableEncoder": "max_levels", "Grid": "mean"}.get(name, "kernel")
    assert expected in hints


@pytest.mark.parametrize("name", [name for name in PUBLIC if name[0].isupper()])
def test_estimators_are_compared_by_identity(name: str) -> None:
    kind = getattr(estimators, name)
    arguments = {"Grid": ((), np.zeros(2))}.get(name, ())  # a result, which has no defaults
    a, b = kind(*arguments), kind(*arguments)
    assert a != b
    assert len({a, b}) == 2
