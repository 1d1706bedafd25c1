"""Matrices of rows with themselves: each pair evaluated once, and the same as block by block."""

from __future__ import annotations

import pytest
import torch

from gramian.engines import choose_engine
from gramian.kernels import Gaussian, L1Laplacian, Laplacian
from gramian.operators import KernelOperator, mirrored, streaming

KERNELS = [Gaussian(2.0), Laplacian(3.0), L1Laplacian(4.0)]


@pytest.mark.parametrize("engine", ["torch", "auto"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [1, 30, 61])
def test_entries_are_those_of_blocks(engine, kernel, dtype, n, monkeypatch):
    X = torch.randn(n, 5, dtype=dtype, generator=torch.Generator().manual_seed(0))
    plain = KernelOperator(kernel, X, X, engine).dense()
    monkeypatch.setattr(mirrored, "STRIP_COLUMNS", 20)
    monkeypatch.setattr(streaming, "MANY_FEATURES", 1)
    K = KernelOperator(kernel, X, X, engine)
    found = K.dense()
    assert torch.equal(found, found.t())
    assert torch.equal(found.diagonal(), kernel.diag(X))
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-5 if dtype == torch.float32 else 1e-12)
    assert K.meter.evaluations == mirrored.evaluations(n)


@pytest.mark.parametrize("n", [1, 2000, 2001, 9000])
def test_about_half_of_the_pairs_are_evaluated(n):
    pairs = mirrored.evaluations(n)
    assert n * (n + 1) // 2 <= pairs <= n * n
    assert pairs <= n * n / 2 + n * mirrored.STRIP_COLUMNS / 2 + n


def test_few_features_and_other_columns_are_not_mirrored(monkeypatch):
    X = torch.randn(40, 300, generator=torch.Generator().manual_seed(0))
    engine = choose_engine("auto", dtype=X.dtype)
    for rows, cols, pairs in (
        (X, X, 40 * 40), (X, X[:30].clone(), 40 * 30), (X[:, :9].contiguous(),) * 2 + (40 * 40,),
    ):  # fmt: skip
        K = KernelOperator(Gaussian(9.0), rows, cols, engine)
        monkeypatch.setattr(mirrored, "STRIP_COLUMNS", 10)
        K.dense()
        same = rows is cols and rows.shape[1] >= 256
        assert K.meter.evaluations == (mirrored.evaluations(40) if same else pairs)
