"""Tridiagonal form of a symmetric matrix: systems with many shifts against dense solves."""

from __future__ import annotations

import numpy as np
import pytest
from close import assert_close

from gramian import _linalg as la
from gramian._arrays import RandomStream


def symmetric(n: int, rank: int | None = None) -> np.ndarray:
    factor = RandomStream(0).standard_normal((n, rank or n + 2), np.float64)
    return factor @ factor.T


@pytest.mark.parametrize("n", [2, 3, 40])
@pytest.mark.parametrize("t", [1, 3])
def test_each_shift_is_a_dense_solve(n: int, t: int) -> None:
    A, b = symmetric(n), RandomStream(1).standard_normal((n, t), np.float64)
    form = la.TridiagonalForm.build(la.by_columns(A.copy()))
    shifts = [10.0, 1.0, 0.0]
    solutions = form.solve(shifts, b)
    assert len(solutions) == len(shifts)
    for shift, x in zip(shifts, solutions, strict=True):
        assert x.flags.c_contiguous
        assert_close((A + shift * np.eye(n)) @ x, b, rtol=0, atol=1e-9)


def test_solutions_end_where_the_matrix_is_not_definite() -> None:
    A, b = symmetric(20, rank=5), np.ones((20, 1))
    form = la.TridiagonalForm.build(la.by_columns(A - np.eye(20)))
    assert len(form.solve([3.0, 2.0, 0.5, 2.0], b)) == 2
    assert form.solve([0.5], b) == []


def test_entries_that_are_not_finite_have_no_solution() -> None:
    A = symmetric(5)
    A[3, 1] = A[1, 3] = np.nan
    assert la.TridiagonalForm.build(la.by_columns(A)).solve([1.0], np.ones((5, 1))) == []
