"""Mean and scale against NumPy in float64, where one pass could go wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from close import assert_close

from gramian import _arrays as xp
from gramian.data import Standardizer, as_rows
from gramian.data.rows import transform

Tol = Callable[[np.dtype, float], float]
N = 331


def uneven(kind: type) -> np.ndarray:
    """Columns far from zero, tiny, huge, skewed: all of different scale."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 5)) * [1.0, 1e-12, 1e12, 3.0, 1.0] + [0.0, 1e-12, 5.0, 1e4, -1e3]
    x[:, 4] = np.exp(3 * x[:, 4] / 1e3)
    return x.astype(kind)


@pytest.mark.parametrize("size", [1, 7, 64, N, 10 * N, None])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_one_pass_equals_two(kind: type, size: int | None, tol: Tol) -> None:
    x = uneven(kind)
    found, wide = Standardizer.fit(as_rows(x), size), x.astype(np.float64)
    factor = 10 * N
    # an error in the mean counts in units of the spread plus the rounding of the mean itself
    unit = wide.std(axis=0) + np.abs(wide.mean(axis=0))
    np.testing.assert_array_less(
        np.abs(found.mean - wide.mean(axis=0)) / unit, tol(np.float64, factor)
    )
    np.testing.assert_allclose(found.scale, wide.std(axis=0), rtol=tol(np.float64, factor))
    assert found.constant == ()


def test_a_mean_far_from_zero_costs_no_digits() -> None:
    """The textbook formula E[x²] - E[x]² gives noise here."""
    x = 1e9 + np.tile([[0.0], [1.0]], (500, 1))
    assert Standardizer.fit(as_rows(x), 7).scale.item() == pytest.approx(0.5, rel=1e-12)


def test_standardised_rows_have_mean_0_and_spread_1(dtype: np.dtype, tol: Tol) -> None:
    x = xp.cast(uneven(np.float64), dtype)
    rows = Standardizer.fit(as_rows(x)).apply(as_rows(x))
    z = rows.take(np.arange(N))
    assert z.dtype == dtype
    # the mean itself is rounded, and that counts in units of the spread
    rounding = np.abs(xp.to_float64(x).mean(axis=0) / xp.to_float64(x).std(axis=0)).max().item()
    atol = tol(dtype, N) + tol(np.float64, rounding)
    assert np.abs(xp.to_float64(z).mean(axis=0)).max() <= atol
    spread = xp.to_float64(z).std(axis=0)
    assert_close(spread, np.ones(5), rtol=tol(dtype, N), atol=0)


def test_float32_rows_keep_their_digits() -> None:
    """x - mean is exact up to the last rounding, though the mean is no float32 number."""
    x = (1e6 + np.random.default_rng(0).normal(size=(N, 1))).astype(np.float32)
    standard = Standardizer.fit(as_rows(x))
    z = xp.to_float64(standard.apply(as_rows(x)).take(np.arange(N)))
    wide = x.astype(np.float64)
    expected = (wide - wide.mean()) / wide.std()
    np.testing.assert_allclose(z, expected, rtol=0, atol=4 * np.finfo(np.float32).eps * 4)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e30, 16777217.0])
def test_constant_columns_become_zero(kind: type, value: float) -> None:
    x = np.full((N, 2), value, kind)
    x[:, 0] = np.arange(N)
    standard = Standardizer.fit(as_rows(x), 10)
    assert standard.constant == (1,)
    assert standard.scale[1] == 1
    assert (standard.apply(as_rows(x)).take(np.arange(N))[:, 1] == 0).all()


def test_rounding_noise_counts_as_constant() -> None:
    x = np.full((N, 1), 0.1) + np.tile([[0.0], [2e-17]], (N, 1))[:N]
    assert len(np.unique(x)) == 2
    assert Standardizer.fit(as_rows(x)).constant == (0,)


def test_a_tiny_but_real_spread_does_not() -> None:
    x = np.linspace(0, 1e-30, N)[:, None].astype(np.float32)
    standard = Standardizer.fit(as_rows(x))
    assert standard.constant == ()
    assert standard.scale.item() == pytest.approx(x.astype(float).std(), rel=1e-9)


def test_one_row() -> None:
    standard = Standardizer.fit(as_rows(np.array([[3.0, 4.0]])))
    assert standard.constant == (0, 1)
    assert standard.mean.tolist() == [3, 4]


def test_sparse_rows_are_scaled_by_their_root_mean_square() -> None:
    dense = np.random.default_rng(0).normal(size=(N, 6)).astype(np.float32)
    dense[dense < 0.5] = 0
    dense[:, 2] = 0
    x = scipy.sparse.csr_array(dense)
    for size in (1, 50, 1000):
        standard = Standardizer.fit(as_rows(x), size)
        expected = np.sqrt((dense.astype(np.float64) ** 2).mean(axis=0))
        expected[2] = 1
        assert not standard.mean.any()
        assert standard.constant == (2,)
        np.testing.assert_allclose(standard.scale, expected, rtol=1e-12)
    z = standard.apply(as_rows(x)).take(np.arange(N))
    assert xp.is_sparse(z)
    np.testing.assert_allclose(xp.to_dense(z), dense / expected, rtol=1e-6)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_bad_entries_are_found_on_the_way(as_sparse: bool) -> None:
    x = np.ones((N, 3))
    x[200, 2], x[300, 0] = np.nan, np.inf
    data: Any = scipy.sparse.csr_array(x) if as_sparse else x
    with pytest.raises(ValueError, match=r"1 NaN and 1 inf.*row 200, column 2"):
        Standardizer.fit(as_rows(data), 50)


def test_numbers_whose_squares_overflow() -> None:
    with pytest.raises(ValueError, match="column 1 has numbers so large"):
        Standardizer.fit(as_rows(np.array([[1.0, -1e200], [2.0, 1e200]])))


def test_the_source_does_not_matter(tmp_path: Path) -> None:
    x = uneven(np.float32)
    pq.write_table(pa.table({str(j): x[:, j] for j in range(5)}), tmp_path / "x.parquet", 50)
    one, two = (
        Standardizer.fit(as_rows(x), 40),
        Standardizer.fit(as_rows(tmp_path / "x.parquet"), 40),
    )
    assert np.array_equal(one.mean, two.mean)
    assert np.array_equal(one.scale, two.scale)


def test_saved_and_back_through_json() -> None:
    x = uneven(np.float64)
    x[:, 0] = 1
    standard = Standardizer.fit(as_rows(x))
    back = Standardizer.from_dict(json.loads(json.dumps(standard.to_dict())))
    assert np.array_equal(back.mean, standard.mean)
    assert np.array_equal(back.scale, standard.scale)
    assert back.constant == standard.constant == (0,)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_workers_standardise_a_large_block_to_the_same_bits(
    threads: int, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = uneven(kind)
    rows = Standardizer.fit(as_rows(x)).apply(as_rows(x))
    ((_, expected),) = rows.blocks(N)
    monkeypatch.setattr(transform, "PART_NUMBERS", 40)
    monkeypatch.setattr(transform, "default_threads", lambda: threads)
    ((_, found),) = rows.blocks(N)
    np.testing.assert_array_equal(found, expected)
