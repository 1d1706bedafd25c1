"""Functions of arrays: what they return of NumPy is what they return of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gramian import _arrays as xp

R = np.random.default_rng(0)
A, B = R.standard_normal((7, 5)), R.standard_normal((7, 5))
S = A.T @ A + np.eye(5)
T = np.tril(S)
V = np.array([3.0, 1.0, 2.0, 1.0, 5.0, 2.0])
PLACES = np.array([2, 0, 2, 5])

CASES: dict[str, Callable[..., Any]] = {
    "zeros_like": lambda a: xp.zeros_like(a), "ones": lambda a: xp.ones((2, 3), like=a),
    "full_like": lambda a: xp.full_like(a, 2.5), "eye": lambda a: xp.eye(3, like=a),
    "arange": lambda a: xp.arange(2, 9, 3, like=a), "concat": lambda a: xp.concat([a, a], axis=1),
    "stack": lambda a: xp.stack([a, a], axis=1), "flip": lambda a: xp.flip(a, 1),
    "split": lambda a: xp.split(a, 3)[2], "split sizes": lambda a: xp.split(a, [2, 4, 1])[1],
    "array_split": lambda a: xp.array_split(a, 3)[0], "chunk": lambda a: xp.chunk(a, 3)[-1],
    "expand": lambda a: xp.expand(a[:, :1], (-1, 4)), "swapaxes": lambda a: xp.swapaxes(a, 0, 1),
    "transpose": lambda a: xp.transpose(a, (1, 0)), "triu": lambda a: xp.triu(a, 1),
    "tril": lambda a: xp.tril(a, -1), "triu_": lambda a: xp.triu_(xp.copy(a)),
    "diag_embed": lambda a: xp.diag_embed(a, -1), "repeat": lambda a: xp.repeat(a[:, 0], 3),
    "take_columns": lambda a: xp.take_columns(a, [2, 0]), "diff": lambda a: xp.diff(a, axis=0),
    "sum_float64": lambda a: xp.sum_float64(a, axis=0), "std": lambda a: xp.std(a, axis=0),
    "norm": lambda a: xp.norm(a, axis=1, keepdims=True), "norm of all": lambda a: xp.norm(a),
    "max": lambda a: xp.max(a, axis=1), "min of all": lambda a: xp.min(a),
    "max_with_index": lambda a: xp.max_with_index(a, 1)[1],
    "min_with_index": lambda a: xp.min_with_index(a, 0)[0],
    "sort": lambda a: xp.sort(a, axis=0, descending=True),
    "sort_with_order": lambda a: xp.sort_with_order(a, 1)[1],
    "topk": lambda a: xp.topk(a, 3, axis=1)[1], "median": lambda a: xp.median(a[:6]),
    "kth_smallest": lambda a: xp.kth_smallest(a, 2, axis=0),
    "quantile": lambda a: xp.quantile(a, 0.3),
    "softmax": lambda a: xp.softmax(a, 1), "log_softmax": lambda a: xp.log_softmax(a, 1),
    "logsumexp": lambda a: xp.logsumexp(a, 1), "softplus": lambda a: xp.softplus(a),
    "logsigmoid": lambda a: xp.logsigmoid(40 * a), "sigmoid": lambda a: xp.sigmoid(a),
    "rsqrt": lambda a: xp.rsqrt(a**2), "log1p": lambda a: xp.log1p(a**2),
    "clip_": lambda a: xp.clip_(xp.copy(a), -0.5, 0.5), "exp_": lambda a: xp.exp_(xp.copy(a)),
    "fill_where": lambda a: xp.fill_where(a, a > 0, 9.0),
    "where": lambda a: xp.where(a > 0, a, 1.0),
    "cdist": lambda a: xp.cdist(a[:3], a), "pdist": lambda a: xp.pdist(a),
    "zero_nans": lambda a: xp.zero_nans(xp.fill_where(a, a > 0, xp.nan)),
    "isfinite": lambda a: xp.isfinite(xp.reciprocal(a - a[0])),
    "nonzero": lambda a: xp.nonzero(a > 0)[1],
    "flatnonzero": lambda a: xp.flatnonzero(a[:, 0] > 0), "diagonal": lambda a: xp.diagonal(a, 1),
    "size": lambda a: xp.size(a), "cast": lambda a: xp.cast(a, xp.float32),
    "norm of float32": lambda a: xp.norm(xp.cast(a, xp.float32), dtype=xp.float64),
}  # fmt: skip

PAIRS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "addmm": (lambda c, a, b: xp.addmm(c, a, b, beta=0.5, alpha=-2), (S, A.T, B)),
    "addmm_": (lambda c, a, b: xp.addmm_(xp.copy(c), a, b, alpha=-2), (S, A.T, B)),
    "addcmul_": (lambda x, y: xp.addcmul_(xp.copy(x), x, y, value=0.5), (A, B)),
    "add_": (lambda x, y: xp.add_(xp.copy(x), y, alpha=3), (A, B)),
    "subtract_": (lambda x, y: xp.subtract_(xp.copy(x), y), (A, B)),
    "lerp": (lambda x, y: xp.lerp(x, y, 0.3), (A, B)),
    "lerp_": (lambda x, y: xp.lerp_(xp.copy(x), y, 0.3), (A, B)),
    "maximum": (xp.maximum, (A, B)), "power": (lambda x: xp.power(x**2, 0.3), (A,)),
    "add_at": (lambda v, i: xp.add_at(xp.copy(v), i, v[:4], alpha=2), (V, PLACES)),
    "minimum_at": (lambda v, i: xp.minimum_at(xp.copy(v), i, v[:4]), (V, PLACES)),
    "bincount": (lambda i: xp.bincount(i, minlength=8), (PLACES,)),
    "unique": (lambda v: xp.unique(v, return_counts=True)[1], (V,)),
    "isin": (lambda v: xp.isin(v, v[:2]), (V,)),
    "find_insertions": (lambda v, i: xp.find_insertions(xp.sort(v), v, right=True), (V, PLACES)),
    "take_along": (lambda a, i: xp.take_along(a, i[None], 0), (A, np.array([1, 0, 6, 2, 2]))),
    "argsort": (lambda v: xp.argsort(v, descending=True), (V,)),
    "triangle": (lambda t, b: xp.solve_triangular(t, b.T, upper=False), (T, B)),
    "triangle, right": (lambda t, b: xp.solve_triangular(t.T, b, upper=True, left=False), (T, B)),
    "cholesky": (xp.cholesky, (S,)), "cholesky_ex": (lambda s: xp.cholesky_ex(s)[0], (S,)),
    "bad pivot": (lambda s: xp.cholesky_ex(s - 3 * xp.eye(5, like=s))[1], (S,)),
    "eigvalsh": (xp.eigvalsh, (S,)), "svd": (lambda a: xp.svd(a)[1], (A,)),
    "qr": (lambda a: xp.qr(a)[0] @ xp.qr(a)[1], (A,)),
    "einsum": (lambda a, b: xp.einsum("ij,ij->i", a, b), (A, B)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*CASES, *PAIRS])
def test_both_libraries_give_the_same(name, dtype):
    torch = pytest.importorskip("torch")
    function, arrays = (CASES[name], (A,)) if name in CASES else PAIRS[name]
    arrays = [a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays]
    ours = function(*arrays)
    theirs = function(*(torch.from_numpy(a.copy()) for a in arrays))
    assert xp.is_tensor(theirs) or np.ndim(theirs) == 0
    found = np.asarray(xp.to_host(theirs))
    if xp.is_tensor(theirs):
        assert np.asarray(ours).dtype == found.dtype
    tolerance = 5e-5 if dtype == np.float32 or "float32" in name else 1e-12
    np.testing.assert_allclose(ours, found, rtol=tolerance, atol=tolerance)


def test_devices_and_the_host():
    torch = pytest.importorskip("torch")
    there = torch.ones(3, dtype=torch.float64)
    assert xp.is_host(xp.device_of(A))
    assert xp.is_host("cpu")
    assert not xp.is_host(xp.device_of(there))  # the CPU of torch is not the host
    assert isinstance(xp.to_host(there), np.ndarray)
    assert xp.is_tensor(xp.to_device(A, there.device))
    assert xp.is_tensor(xp.zeros(3, like=there))
    assert xp.is_tensor(xp.asarray(there))
    assert isinstance(xp.to_device(there, "cpu"), np.ndarray)
    assert xp.dtype_of(there) == xp.float64
    half = torch.ones(2, dtype=torch.bfloat16)
    assert xp.to_host(half).dtype == np.float32


def test_infinity_is_a_result_without_a_warning():
    zero = np.zeros(2)
    assert np.isinf(xp.reciprocal(zero)).all()
    assert np.isinf(xp.log(zero)).all()
    assert np.isnan(xp.sqrt(zero - 1)).all()
