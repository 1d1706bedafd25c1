"""Functions of arrays: the same results from NumPy as from torch."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp

FLOATS = ("float32", "float64")


def arrays(dtype: str) -> SimpleNamespace:
    """Return arrays with the values that the functions need, the same in each call."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 7, 5))
    square = rng.standard_normal((6, 6))
    floats = {
        "x": x,
        "y": y,
        "v": x[:, 0],
        "ties": np.array([2.0, -1.0, 2.0, 0.0, -1.0, 0.5]),
        "positive": np.abs(x) + 0.1,
        "share": 1 / (1 + np.exp(y)),
        "far": np.array([-800.0, -30.0, -1e-20, 0.0, 1e-20, 40.0, 800.0]),
        "bad": np.array([1.0, np.nan, np.inf, -np.inf, 0.0]),
        "half": np.array([-2.5, -0.5, 0.5, 1.5]),
        "definite": square + square.T + np.diag(20.0 * np.arange(1, 7)),
        "b": rng.standard_normal((6, 3)),
        "stack": rng.standard_normal((2, 3, 4)),
    }
    whole = {
        "index": np.array([4, 0, 4, 2]),
        "rows": np.array([[0, 2, 1], [3, 1, 0]] * 3 + [[4, 2, 3]]),
        "counts": np.array([3, 0, 1, 3, 7]),
        "repeats": np.array([1, 0, 2, 3, 1, 0, 2]),
    }
    return SimpleNamespace(
        **{name: value.astype(dtype) for name, value in floats.items()}, **whole, mask=x > 0
    )


CREATED = {
    "arange": lambda a: (xp.arange(5, like=a.x), xp.arange(1, 9, 3, dtype=xp.float32, like=a.x)),
    "array": lambda a: xp.array([[1.0, 2.0]], a.x.dtype, like=a.x),
    "asarray": lambda a: (xp.asarray(a.x), xp.asarray(a.x, xp.float64)),
    "empty": lambda a: xp.fill_(xp.empty((2, 3), like=a.x), 0),
    "empty_like": lambda a: (
        xp.fill_(xp.empty_like(a.x), 0),
        xp.fill_(xp.empty_like(a.x, xp.int64), 0),
    ),
    "eye": lambda a: xp.eye(3, like=a.x),
    "full": lambda a: (
        xp.full(3, 2.5, a.x.dtype, like=a.x),
        xp.full((2, 2), 1, xp.int64, like=a.x),
    ),
    "full_like": lambda a: xp.full_like(a.x, 3),
    "ones": lambda a: xp.ones((2, 3), like=a.x),
    "ones_like": lambda a: (xp.ones_like(a.x), xp.ones_like(a.x, xp.bool)),
    "zeros": lambda a: (xp.zeros(4, like=a.x), xp.zeros((2, 1), xp.bool, like=a.x)),
    "zeros_like": lambda a: (xp.zeros_like(a.x), xp.zeros_like(a.x, dtype=xp.int32)),
}

ELEMENTWISE = {
    "abs": lambda a: xp.abs(a.x),
    "add": lambda a: (xp.add(a.x, a.y), xp.add(a.x, a.y, out=xp.copy(a.x))),
    "asin": lambda a: xp.asin(a.share),
    "cos": lambda a: (xp.cos(a.x), xp.cos(a.x, out=xp.copy(a.x))),
    "deg2rad": lambda a: xp.deg2rad(a.far),
    "exp": lambda a: (xp.exp(a.x), xp.exp(a.far), xp.exp(a.bad)),
    "expm1": lambda a: xp.expm1(a.far[1:]),
    "floor": lambda a: xp.floor(a.half),
    "isfinite": lambda a: xp.isfinite(a.bad),
    "isnan": lambda a: xp.isnan(a.bad),
    "lerp": lambda a: (xp.lerp(a.x, a.y, 0.25), xp.lerp(a.x, a.y, 0.75), xp.lerp(a.x, a.y, 1.0)),
    "log": lambda a: (xp.log(a.positive), xp.log(a.bad)),
    "log1p": lambda a: xp.log1p(a.positive),
    "log2": lambda a: xp.log2(a.positive),
    "logit": lambda a: xp.logit(a.share),
    "logsigmoid": lambda a: (xp.logsigmoid(a.far), xp.logsigmoid(a.x)),
    "maximum": lambda a: (xp.maximum(a.x, a.y), xp.maximum(a.bad, a.bad)),
    "minimum": lambda a: (xp.minimum(a.x, a.y), xp.minimum(a.bad, a.bad)),
    "negative": lambda a: xp.negative(a.x),
    "power": lambda a: (
        *(xp.power(a.x, degree) for degree in range(9)),
        xp.power(a.x, 6, out=xp.copy(a.x)),
    ),
    "reciprocal": lambda a: (xp.reciprocal(a.x), xp.reciprocal(a.bad)),
    "rsqrt": lambda a: (xp.rsqrt(a.positive), xp.rsqrt(a.bad)),
    "sigmoid": lambda a: (xp.sigmoid(a.x), xp.sigmoid(a.far)),
    "sign": lambda a: xp.sign(a.x),
    "sin": lambda a: xp.sin(a.x),
    "softplus": lambda a: (xp.softplus(a.x), xp.softplus(a.far)),
    "sqrt": lambda a: (xp.sqrt(a.positive), xp.sqrt(a.x)),
    "square": lambda a: xp.square(a.x),
    "subtract": lambda a: (xp.subtract(a.x, a.y), xp.subtract(a.x, a.y, out=xp.copy(a.x))),
    "where": lambda a: (xp.where(a.mask, a.x, a.y), xp.where(a.mask, a.x, 0.0)),
}

FACTORS = {
    "cholesky": lambda a: xp.cholesky(a.definite),
    "cholesky_ex": lambda a: (
        xp.triu(xp.cholesky_ex(a.definite)[0]),
        xp.cholesky_ex(-a.definite)[1],
    ),
    "eigh": lambda a: (xp.eigh(a.definite)[0], xp.abs(xp.eigh(a.definite, "U")[1])),
    "eigvalsh": lambda a: xp.eigvalsh(a.definite),
    "qr": lambda a: (xp.abs(xp.qr(a.b)[0]), xp.abs(xp.qr(a.b)[1]), xp.abs(xp.qr(a.b, "r")[1])),
    "solve_triangular": lambda a: (
        xp.solve_triangular(xp.triu(a.definite), a.b, upper=True),
        xp.solve_triangular(a.definite, a.b, upper=False),
        xp.solve_triangular(a.definite, a.b.T, upper=True, left=False),
        xp.solve_triangular(xp.eye(6, like=a.b) + a.definite, a.b, upper=True, unitriangular=True),
    ),
}

ORDERED = {
    "argsort": lambda a: (xp.argsort(a.ties), xp.argsort(a.ties, descending=True)),
    "array_equal": lambda a: (xp.array_equal(a.x, xp.copy(a.x)), xp.array_equal(a.x, a.y)),
    "bincount": lambda a: (xp.bincount(a.counts), xp.bincount(a.counts, minlength=12)),
    "diff": lambda a: (xp.diff(a.x), xp.diff(a.x, axis=0)),
    "find_insertions": lambda a: (
        xp.find_insertions(xp.sort(a.ties), a.ties),
        xp.find_insertions(xp.sort(a.ties), a.ties, right=True),
    ),
    "flatnonzero": lambda a: xp.flatnonzero(a.ties > 0),
    "isin": lambda a: xp.isin(a.counts, a.index),
    "kth_smallest": lambda a: (xp.kth_smallest(a.v, 3), xp.kth_smallest(a.x, 1, 0)),
    "max_with_index": lambda a: xp.max_with_index(a.x, 0),
    "median": lambda a: (xp.median(a.ties), xp.median(a.x), xp.median(a.bad)),
    "min_with_index": lambda a: xp.min_with_index(a.x, 1),
    "nonzero": lambda a: xp.nonzero(a.mask),
    "quantile": lambda a: xp.quantile(a.v, 0.3),
    "sort": lambda a: (xp.sort(a.ties), xp.sort(a.x, 0, descending=True)),
    "sort_with_order": lambda a: (
        *xp.sort_with_order(a.ties),
        *xp.sort_with_order(a.ties, descending=True),
    ),
    "topk": lambda a: (
        *xp.topk(a.v, 3),
        *xp.topk(a.x, 2, 1, largest=False),
        *xp.topk(a.x, 5, 1),
        *xp.topk(a.v, 7),
    ),
    "unique": lambda a: (
        xp.unique(a.ties),
        *xp.unique(a.counts, return_inverse=True, return_counts=True),
        *xp.unique(a.x[a.index], 0, return_inverse=True),
    ),
}

SHAPED = {
    "array_split": lambda a: tuple(xp.array_split(a.x, 3)),
    "chunk": lambda a: (*xp.chunk(a.x, 2, 1), *xp.chunk(a.x, 3)),
    "concat": lambda a: (xp.concat([a.x, a.y]), xp.concat([a.x, a.y], axis=1)),
    "contiguous": lambda a: xp.contiguous(a.x.T),
    "copy": lambda a: xp.copy(a.x.T),
    "copy_by_rows": lambda a: xp.copy_by_rows(a.x.T),
    "diag_embed": lambda a: (xp.diag_embed(a.v), xp.diag_embed(a.x, 1), xp.diag_embed(a.x, -2)),
    "diagonal": lambda a: (xp.diagonal(a.definite), xp.diagonal(a.x, -1)),
    "expand": lambda a: (xp.expand(a.v, (3, 7)), xp.expand(a.x[:1], (4, -1)), xp.expand(a.v[0], 2)),
    "flip": lambda a: (xp.flip(a.x, 0), xp.flip(a.x, 1)),
    "put_along": lambda a: xp.put_along(xp.copy(a.x), a.rows, a.y[:, :3], 1),
    "repeat": lambda a: (xp.repeat(a.v, a.repeats), xp.repeat(a.v, 2)),
    "size": lambda a: (xp.size(a.x), xp.size(a.v[0])),
    "split": lambda a: (*xp.split(a.x, 3), *xp.split(a.x, [2, 0, 3], 1), *xp.split(a.v[:0], 4)),
    "stack": lambda a: (xp.stack([a.x, a.y]), xp.stack([a.v[0], a.v[1]]), xp.stack([a.x, a.y], 2)),
    "strides": lambda a: (*xp.strides(a.x), *xp.strides(a.x.T), *xp.strides(a.x[::2, 1:])),
    "swapaxes": lambda a: xp.swapaxes(a.stack, 0, 2),
    "take_along": lambda a: xp.take_along(a.x, a.rows, 1),
    "take_columns": lambda a: xp.take_columns(a.x, [3, 0]),
    "transpose": lambda a: xp.transpose(a.stack, (2, 0, 1)),
    "tril": lambda a: (xp.tril(a.x), xp.tril(a.x, -1)),
    "triu": lambda a: (xp.triu(a.x), xp.triu(a.x, 1)),
    "with_strides": lambda a: xp.with_strides(a.x, (1, 9)),
}

SUMS = {
    "addmm": lambda a: (
        xp.addmm(a.definite[:, :3], a.definite, a.b),
        xp.addmm(a.b, a.definite, a.b, beta=0.5, alpha=-1),
    ),
    "aminmax": lambda a: (*xp.aminmax(a.x), *xp.aminmax(a.x, 0)),
    "cdist": lambda a: (xp.cdist(a.x, a.y), xp.cdist(a.x, a.y, p=1.0)),
    "einsum": lambda a: xp.einsum("ij,kj->ik", a.x, a.y),
    "log_softmax": lambda a: xp.log_softmax(a.x, 1),
    "logsumexp": lambda a: (xp.logsumexp(a.x, 1), xp.logsumexp(a.x, 0, keepdims=True)),
    "matmul": lambda a: (xp.matmul(a.x.T, a.y), xp.matmul(a.stack, a.stack.swapaxes(1, 2))),
    "max": lambda a: (xp.max(a.x), xp.max(a.x, 1), xp.max(a.x, 0, keepdims=True), xp.max(a.bad)),
    "min": lambda a: (xp.min(a.x), xp.min(a.x, 1), xp.min(a.x, 0, keepdims=True), xp.min(a.bad)),
    "norm": lambda a: (
        xp.norm(a.x),
        xp.norm(a.x, 0),
        xp.norm(a.x.T, 1, keepdims=True),
        xp.norm(a.stack, -1),
        xp.norm(a.v, 0, dtype=xp.float64),
    ),
    "pdist": lambda a: (xp.pdist(a.x), xp.pdist(a.x, p=1.0)),
    "softmax": lambda a: (xp.softmax(a.x, 1), xp.softmax(a.far, 0)),
    "std": lambda a: (xp.std(a.x), xp.std(a.x, 0)),
    "sum_float64": lambda a: (xp.sum_float64(a.x), xp.sum_float64(a.x, 1)),
}

PLACES = {
    "cast": lambda a: (xp.cast(a.x, xp.float32), xp.cast(a.half, xp.int64)),
    "cast_like": lambda a: (xp.cast_like(a.x, a.x), xp.cast_like(a.x, a.index)),
    "detach": lambda a: xp.detach(a.x),
    "dtype_of": lambda a: xp.dtype_of(a.x).itemsize,
    "is_array": lambda a: (xp.is_array(a.x), xp.is_array([1.0])),
    "is_complex": lambda a: xp.is_complex(a.x),
    "is_contiguous": lambda a: (xp.is_contiguous(a.x), xp.is_contiguous(a.x.T)),
    "is_floating": lambda a: (xp.is_floating(a.x), xp.is_floating(a.index)),
    "to_float64": lambda a: xp.to_float64(a.x),
    "view_as": lambda a: xp.view_as(a.x, xp.int32),
}

CASES = CREATED | ELEMENTWISE | FACTORS | ORDERED | SHAPED | SUMS | PLACES

IN_PLACE = {
    "add_": lambda a: xp.add_(a.x, a.y, alpha=0.5),
    "add_at": lambda a: xp.add_at(a.x, a.index, a.y[:4], alpha=-2),
    "addmm_": lambda a: xp.addmm_(a.b, a.definite, a.y[:6, :3], alpha=2),
    "assign_": lambda a: xp.assign_(a.x, a.y),
    "clip_": lambda a: xp.clip_(xp.clip_(a.x, 0.0, 1.0), max=0.5),
    "divide_": lambda a: xp.divide_(a.x, a.positive),
    "exp_": lambda a: xp.exp_(a.x),
    "fill_": lambda a: xp.fill_(a.x, 3),
    "fill_where_": lambda a: xp.fill_where_(a.x, a.mask, -1.0),
    "minimum_at": lambda a: xp.minimum_at(a.v, a.index, a.y[0, :4]),
    "multiply_": lambda a: xp.multiply_(a.x, a.y),
    "negative_": lambda a: xp.negative_(a.x),
    "sqrt_": lambda a: xp.sqrt_(a.positive),
    "subtract_": lambda a: xp.subtract_(a.x, a.y, alpha=2),
    "triu_": lambda a: xp.triu_(a.definite),
}

APART = (
    *("RandomStream", "as_stream", "CsrArray", "Limits"),
    *("csr", "entries", "indices", "indptr", "is_sparse", "to_dense"),
    *("as_tensor", "device", "device_of", "is_host", "is_tensor", "to_device", "to_host"),
    *("dtype_name", "file_dtype_name", "finfo", "numpy_dtype", "promote_types"),
    *("linspace", "torch_dtype", "triu_indices"),
)
"""Functions without a namesake in torch, or with tests of their own."""


def tensors(a: SimpleNamespace) -> SimpleNamespace:
    """Return the same values as tensors."""
    torch = pytest.importorskip("torch")
    return SimpleNamespace(**{name: torch.from_numpy(value) for name, value in vars(a).items()})


def results(found: Any) -> list[Any]:
    """Return the results of a function on the host."""
    return [xp.to_host(part) for part in (found if isinstance(found, tuple | list) else [found])]


def assert_same(ours: Any, theirs: Any, dtype: str) -> None:
    """Fail if results of NumPy and torch differ by more than rounding."""
    eps = 20 * xp.finfo(dtype).eps
    for own, other in zip(results(ours), results(theirs), strict=True):
        assert_close(own, other, rtol=eps, atol=eps, equal_nan=True)


def test_every_function_has_a_case():
    functions = {
        name
        for name, value in vars(xp).items()
        if callable(value) and not name.startswith("_") and not isinstance(value, np.dtype)
    }
    functions -= {"Array", "DType", "Device", "Bool", "Float", "Int", "Num", "Shaped"}
    assert functions == {*CASES, *IN_PLACE, *APART}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", CASES)
def test_numpy_and_torch_give_the_same(name, dtype):
    assert_same(CASES[name](arrays(dtype)), CASES[name](tensors(arrays(dtype))), dtype)


@pytest.mark.parametrize("name", CASES)
def test_arguments_stay(name):
    a, before = arrays("float64"), arrays("float64")
    CASES[name](a)
    for kind, value in vars(before).items():
        assert np.array_equal(getattr(a, kind), value, equal_nan=value.dtype.kind == "f"), kind


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", IN_PLACE)
def test_changes_in_place(name, dtype):
    """The result is the argument that changed, and all changes are those of torch."""
    a, before = arrays(dtype), arrays(dtype)
    found = IN_PLACE[name](a)
    changed = [
        value
        for kind, value in vars(a).items()
        if not np.array_equal(value, getattr(before, kind), equal_nan=kind == "bad")
    ]
    assert len(changed) == 1
    assert found is changed[0]
    b = tensors(arrays(dtype))
    IN_PLACE[name](b)
    assert_same(tuple(vars(a).values()), tuple(vars(b).values()), dtype)


def test_functions_are_documented():
    for name in {*CASES, *IN_PLACE}:
        assert inspect.getdoc(getattr(xp, name))


def test_norm_sums_in_float64():
    x = np.full((1 << 21, 2), 0.1, np.float32)
    exact = np.full(2, float(x[0, 0]) * 2**10.5, np.float32)
    assert_close(xp.norm(x, 0), exact, rtol=1e-7)
    assert_close(xp.norm(x.T, 1), exact, rtol=1e-7)


def test_add_at_adds_each_of_equal_rows():
    index, values = np.array([1, 1, 0, 1]), np.arange(8.0).reshape(4, 2)
    expected = np.array([[4.0, 5.0], [8.0, 11.0], [0.0, 0.0]])
    by_rows, by_columns = np.zeros((3, 2)), np.zeros((2, 3)).T
    for x in (by_rows, by_columns):
        assert np.array_equal(xp.add_at(x, index, values), expected)
    assert np.array_equal(xp.add_at(np.zeros(3), index, values[:, 0]), expected[:, 0])


@pytest.mark.parametrize("largest", [True, False])
def test_topk_chooses_and_sorts(largest):
    x = np.random.default_rng(0).permutation(np.arange(9000.0)).reshape(3, 3000)
    for k in (0, 1, 7, 3000):
        values, positions = xp.topk(x, k, 1, largest=largest)
        assert np.array_equal(values, xp.sort(x, 1, descending=largest)[:, :k])
        assert np.array_equal(np.take_along_axis(x, positions, 1), values)


def test_lerp_ends_are_exact():
    start, end = np.array([1e16, 1.0]), np.array([1.0, 1e16])
    assert np.array_equal(xp.lerp(start, end, 0.0), start)
    assert np.array_equal(xp.lerp(start, end, 1.0), end)


@pytest.mark.parametrize("degree", [1, 2, 3, 6, 7])
def test_power_writes_to_its_argument(degree):
    x = np.random.default_rng(0).standard_normal(9)
    expected = x**degree
    assert xp.power(x, degree, out=x) is x
    assert_close(x, expected)
