"""Matrices of rows with themselves: each pair evaluated once, and the same as block by block."""

from __future__ import annotations

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import Standardizer, as_rows
from gramian.data.rows.transform import Standardized
from gramian.engines import choose_engine, native_engine
from gramian.engines._tiles import sizes
from gramian.kernels import Gaussian, L1Laplacian, Laplacian
from gramian.operators import KernelOperator, budget, mirrored, streaming

KERNELS = [Gaussian(2.0), Laplacian(3.0), L1Laplacian(4.0)]


@pytest.mark.parametrize("engine", ["torch", "auto"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 30, 61])
def test_entries_are_those_of_blocks(engine, kernel, dtype, n, monkeypatch):
    X = RandomStream(0).standard_normal((n, 5), dtype)
    plain = KernelOperator(kernel, X, X, engine).dense()
    monkeypatch.setattr(mirrored, "STRIP_COLUMNS", 20)
    monkeypatch.setattr(streaming, "MANY_FEATURES", 1)
    K = KernelOperator(kernel, X, X, engine)
    found = K.dense()
    assert np.array_equal(found, found.T)
    assert np.array_equal(xp.diagonal(found), kernel.diag(X))
    assert_close(found, plain, rtol=0, atol=1e-5 if dtype == np.float32 else 1e-12)
    assert K.meter.evaluations == mirrored.evaluations(n)


@pytest.mark.parametrize("n", [1, 2000, 2001, 9000])
def test_about_half_of_the_pairs_are_evaluated(n):
    pairs = mirrored.evaluations(n)
    assert n * (n + 1) // 2 <= pairs <= n * n
    assert pairs <= n * n / 2 + n * mirrored.STRIP_COLUMNS / 2 + n


def test_few_features_and_other_columns_are_not_mirrored(monkeypatch):
    X = RandomStream(0).standard_normal((40, 300), np.float32)
    engine = choose_engine("auto", dtype=X.dtype)
    for rows, cols, pairs in (
        (X, X, 40 * 40), (X, xp.copy(X[:30]), 40 * 30), (xp.contiguous(X[:, :9]),) * 2 + (40 * 40,),
    ):  # fmt: skip
        K = KernelOperator(Gaussian(9.0), rows, cols, engine)
        monkeypatch.setattr(mirrored, "STRIP_COLUMNS", 10)
        K.dense()
        same = rows is cols and rows.shape[1] >= 256
        assert K.meter.evaluations == (mirrored.evaluations(40) if same else pairs)


@pytest.mark.parametrize("engine", ["torch", "auto"])
@pytest.mark.parametrize("d", [3, 300])
def test_rows_on_both_sides_are_mapped_once(engine, d, monkeypatch):
    X = 5 + RandomStream(0).standard_normal((70, d), np.float64)
    rows = Standardizer.fit(as_rows(X)).apply(as_rows(X))
    expected = Gaussian(2.0)(*[(X - X.mean(axis=0)) / X.std(axis=0)] * 2)
    change, blocks = Standardized.change, []

    def count_blocks(self: Standardized, block: np.ndarray) -> np.ndarray:
        blocks.append(block)
        return change(self, block)

    monkeypatch.setattr(Standardized, "change", count_blocks)
    assert_close(KernelOperator(Gaussian(2.0), rows, rows, engine).dense(), expected, atol=1e-12)
    assert len(blocks) == 1


def test_a_workspace_reads_the_number_of_threads_once(monkeypatch):
    calls = []

    def count_threads() -> int:
        calls.append(None)
        return 2

    for module in (native_engine, sizes):
        monkeypatch.setattr(module, "default_threads", count_threads)
    choose_engine("auto", dtype=np.dtype(np.float64)).workspace_bytes(100, 4, 1, 8)
    assert len(calls) == 1


@pytest.mark.parametrize("engine", ["torch", "auto"])
def test_the_entries_of_standardised_rows_are_not_copied_block_by_block(engine, monkeypatch):
    X = RandomStream(0).standard_normal((50, 6), np.float32)
    rows = Standardizer.fit(as_rows(X)).apply(as_rows(X))
    sizes_read, blocks = [], Standardized.blocks
    monkeypatch.setattr(
        Standardized, "blocks", lambda self, size: sizes_read.append(size) or blocks(self, size)
    )
    monkeypatch.setattr(budget, "STRIP_BYTES", 4 * 7 * 20)
    ((_, standardized),) = blocks(rows, 50)
    found = KernelOperator(Gaussian(2.0), rows, X[:20], engine).dense()
    assert sizes_read == [50]
    expected = KernelOperator(Gaussian(2.0), standardized, X[:20], engine).dense()
    assert np.array_equal(found, expected)
