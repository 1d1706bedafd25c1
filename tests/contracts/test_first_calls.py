"""Shapes are checked in the first calls of functions and dataclasses, and not in later ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import first_calls
import jaxtyping
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import Float, TypeCheckError

from gramian.kernels import Gaussian
from gramian.landmarks import Landmarks

WRONG = np.zeros(3, np.float32)


def checked() -> Callable[[np.ndarray], int]:
    @jaxtyping.jaxtyped(typechecker=beartype)
    def width(x: Float[np.ndarray, "n d"]) -> int:
        return x.shape[-1]

    return width


def test_first_calls_are_checked_and_others_are_not():
    width = checked()
    for _ in range(first_calls.FIRST):
        with pytest.raises(TypeCheckError, match="width"):
            width(WRONG)
    assert width(WRONG) == 3
    assert checked()(WRONG) == 3  # made anew, but the same function


@pytest.mark.parametrize("case", range(3))
def test_each_case_checks_first_calls_again(case):
    width = checked()
    for _ in range(first_calls.FIRST):
        with pytest.raises(TypeCheckError, match="width"):
            width(WRONG)


@jaxtyping.jaxtyped(typechecker=beartype)
@dataclass
class One:
    x: Float[np.ndarray, "n d"]


@jaxtyping.jaxtyped(typechecker=beartype)
@dataclass
class Other:
    x: Float[np.ndarray, "n d"]


def test_dataclasses_that_read_alike_are_counted_apart():
    for kind in (One, Other):
        for _ in range(first_calls.FIRST):
            with pytest.raises(TypeCheckError, match=kind.__name__):
                kind(WRONG)
        kind(WRONG)


def test_what_is_in_the_package_is_checked():
    with pytest.raises(TypeCheckError, match="points"):
        Landmarks(WRONG, WRONG)
    with pytest.raises(TypeCheckError, match="resolve"):
        Gaussian("median").resolve(WRONG)


def test_functions_that_one_line_makes_share_what_checks_them_and_nothing_else():
    def adding(k: int) -> Callable[[np.ndarray], np.ndarray]:
        @jaxtyping.jaxtyped(typechecker=beartype)
        def add(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
            return x + k if k < 2 else add_one(x) + k - 1

        return add

    add_one, add_two = adding(1), adding(2)
    assert add_two(np.zeros((1, 1), np.float32)) == 2.0  # and one call inside the other
    with pytest.raises(TypeCheckError, match="add"):
        add_one(WRONG)
