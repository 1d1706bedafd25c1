"""Compiled exponentials, logarithms and angles: their digits, and where NumPy is asked instead."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gramian import _arrays as xp
from gramian._arrays import elementwise
from gramian._arrays.elementwise import load_compiled
from gramian.engines import compiled_tiles

pytestmark = pytest.mark.skipif(not compiled_tiles(), reason="compiled tiles are not installed")

ISAS = compiled_tiles()

FUNCTIONS = {
    "exp": (np.exp, [(-87, 87), (-1e-3, 1e-3), (-700, 700)]),
    "log1p": (np.log1p, [(0, 1), (0, 1e-6), (0, 1e30)]),
    "asin": (np.arcsin, [(-1, 1), (0.49, 0.51), (-1e-5, 1e-5), (0.999, 1)]),
    "cos": (np.cos, [(-7, 7), (-1e6, 1e6), (1.57, 1.572)]),
    "sin": (np.sin, [(-7, 7), (-1e6, 1e6), (3.14, 3.142)]),
}

SPECIAL = (
    *(0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, -1e-310, 1.0, -1.0, 1.5, -1.5, 1e30, -1e30),
    *(87.5, -87.5, 89.0, -104.0, 708.5, -708.5, 710.0, -746.0, 2e6, -2e6),
)
"""Numbers at the ends of what vectors compute, and beyond them."""

UNITS = 4
"""Most units in the last place by which a result is wrong."""


def kinds(name: str) -> list[str]:
    return [dtype.name for dtype in elementwise.COMPILED_TYPES[name]]


CASES = [(isa, name, kind) for isa in ISAS for name in FUNCTIONS for kind in kinds(name)]


def mapped(isa: str, name: str, x: np.ndarray) -> np.ndarray:
    out = np.full_like(x, -7.0)
    load_compiled().map_(isa, name, x, out)
    return out


@pytest.mark.parametrize(("isa", "name", "kind"), CASES)
def test_digits(isa, name, kind):
    reference, ranges = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    for low, high in ranges:
        if kind == "float32" and name == "exp" and high > 87:
            continue
        x = rng.uniform(low, high, 20_001).astype(kind)
        exact = reference(x.astype(np.longdouble))
        unit = np.spacing(np.abs(exact.astype(kind))).astype(np.longdouble)
        assert (np.abs(mapped(isa, name, x) - exact) <= UNITS * unit).all(), (low, high)


@pytest.mark.parametrize(("isa", "name", "kind"), CASES)
def test_special_numbers_are_those_of_numpy(isa, name, kind):
    """Whatever their place in a vector, and next to usual numbers."""
    reference = FUNCTIONS[name][0]
    for special in SPECIAL:
        for n in (1, 16, 19):
            x = np.full(n, 0.5, kind)
            with np.errstate(all="ignore"):
                x[n // 2] = special
                expected = reference(x)
            found = mapped(isa, name, x)
            assert np.array_equal(np.isnan(found), np.isnan(expected)), special
            usual = np.isfinite(expected)
            assert np.array_equal(found[~usual], expected[~usual], equal_nan=True), special
            eps = UNITS * np.finfo(kind).eps
            np.testing.assert_allclose(found[usual], expected[usual], rtol=eps, atol=1e-307)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (5, 3), (0, 4), (4, 0), (3, 33)])
def test_parts_of_matrices_and_changes_in_place(isa, shape):
    wide = np.random.default_rng(0).uniform(-1, 1, (*shape[:-1], shape[-1] + 3))
    before, part = wide.copy(), wide[..., 1 : shape[-1] + 1]
    out = np.full((*shape[:-1], shape[-1] + 2), -7.0)
    load_compiled().map_(isa, "exp", part, out[..., : shape[-1]])
    np.testing.assert_allclose(out[..., : shape[-1]], np.exp(part), rtol=1e-15)
    assert (out[..., shape[-1] :] == -7.0).all()
    assert np.array_equal(wide, before)
    load_compiled().map_(isa, "exp", part, part)
    assert np.array_equal(part, out[..., : shape[-1]])
    part[...] = before[..., 1 : shape[-1] + 1]
    assert np.array_equal(wide, before)


@pytest.mark.parametrize(
    ("x", "out", "message"),
    [
        (np.zeros(4), np.zeros(5), "of the shape and dtype of x"),
        (np.zeros((2, 3)), np.zeros((3, 2)), "of the shape and dtype of x"),
        (np.zeros(4), np.zeros(4, np.float32), "of the shape and dtype of x"),
        (np.zeros(4, np.int64), np.zeros(4, np.int64), "float64, or float32"),
        (np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), "a vector or a matrix"),
        (np.zeros((4, 3)).T, np.zeros((3, 4)), "neighbours in memory"),
        (np.zeros(4), np.zeros(8)[::2], "neighbours in memory"),
    ],
)
def test_other_arrays_are_refused(x, out, message):
    with pytest.raises(ValueError, match=message):
        load_compiled().map_("best", "exp", x, out)


def test_other_functions_are_refused():
    x = np.zeros(4)
    with pytest.raises(ValueError, match="no function called 'tan'"):
        load_compiled().map_("best", "tan", x, x)
    with pytest.raises(ValueError, match="but for cos and sin"):
        load_compiled().map_("best", "cos", x.astype(np.float32), x.astype(np.float32))
    x.flags.writeable = False
    with pytest.raises(TypeError):
        load_compiled().map_("best", "exp", np.ones(4), x)


class TestChoice:
    """Compiled functions compute large arrays that are stored by rows; NumPy computes the rest."""

    @pytest.fixture
    def calls(self, monkeypatch) -> list[str]:
        """Return the names of the compiled functions that are called."""
        names = []

        class Counting:
            @staticmethod
            def map_(isa, name, x, out):
                names.append(name)
                load_compiled().map_(isa, name, x, out)

        monkeypatch.setattr(elementwise, "load_compiled", lambda: Counting)
        return names

    @pytest.mark.parametrize(
        ("name", "kind"), [(name, k) for name in FUNCTIONS for k in kinds(name)]
    )
    def test_large_arrays_are_compiled(self, name, kind, calls):
        x = np.random.default_rng(0).random((70, 60)).astype(kind)
        kept, expected = x.copy(), FUNCTIONS[name][0](x)
        for view in (x, x[:, 1:], x[::2], x.reshape(-1)):
            result = getattr(xp, name)(view)
            assert result.dtype == kind
            eps = UNITS * np.finfo(kind).eps
            np.testing.assert_allclose(result, FUNCTIONS[name][0](view), rtol=eps)
        assert calls == [name] * 4
        assert np.array_equal(x, kept)
        assert getattr(xp, name)(x, out=x) is x
        np.testing.assert_allclose(x, expected, rtol=UNITS * np.finfo(kind).eps)
        assert len(calls) == 5

    def test_other_arrays_are_for_numpy(self, calls):
        x = np.random.default_rng(0).random((70, 60))
        others = [x[:3], x.T, x[:, ::2], x.reshape(7, 10, 60), x[0, 0], x.astype(np.float16)]
        others.append(x.astype(x.dtype.newbyteorder()))
        for name, view in itertools.product(("exp", "sin"), others):
            reference = FUNCTIONS[name][0]
            assert np.array_equal(getattr(xp, name)(view), reference(view))
        for out in (np.empty((60, 70)).T, np.empty((70, 60), np.float32)):
            if out.dtype == x.dtype:
                assert np.array_equal(xp.exp(x, out=out), np.exp(x))
        xp.cos(x.astype(np.float32)), xp.sqrt(x), xp.expm1(x)
        assert calls == []

    def test_numpy_computes_without_compiled_code(self, monkeypatch):
        monkeypatch.setattr(elementwise, "load_compiled", lambda: None)
        x = np.random.default_rng(0).random((70, 60))
        assert np.array_equal(xp.exp(x), np.exp(x))
