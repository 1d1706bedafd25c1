"""assert_close: equal types and shapes, and numbers equal to the precision of their type."""

from __future__ import annotations

from typing import Any

import numpy as np

TOLERANCES = {"float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7), "float16": (1e-3, 1e-5)}
"""Relative and absolute tolerance of numbers in each type."""


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    check_dtype: bool = True,
    equal_nan: bool = False,
    msg: str = "",
) -> None:
    """Fail if two arrays differ in shape or type, or by more than the tolerances."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"{actual.shape} is not {expected.shape}; {msg}"
    if check_dtype:
        assert actual.dtype == expected.dtype, f"{actual.dtype} is not {expected.dtype}; {msg}"
    relative, absolute = TOLERANCES.get(expected.dtype.name, (0.0, 0.0))
    np.testing.assert_allclose(
        actual,
        expected,
        rtol=relative if rtol is None else rtol,
        atol=absolute if atol is None else atol,
        equal_nan=equal_nan,
        err_msg=msg,
    )
