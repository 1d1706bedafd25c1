"""What list columns of Parquet files are refused for, and a fit with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from gramian import KernelRidge
from gramian import _arrays as xp
from gramian.data import ParquetLists


def written(tmp_path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([[1.0, 2.0], [3.0]], r"a list of 1 numbers in 'x' from row 0 on, but 2 in the first row"),
        ([[1.0, 2.0], None], "missing lists or numbers in 'x'"),
        ([[1.0, 2.0], [3.0, None]], "missing lists or numbers in 'x'"),
    ],
)
def test_lists_that_are_no_rows(column, message, tmp_path):
    rows = ParquetLists(written(tmp_path, x=column), "x")
    with pytest.raises(ValueError, match=message):
        next(rows.blocks(5))


@pytest.mark.parametrize(
    ("columns", "more", "error", "message"),
    [
        ({"x": [1.0]}, {}, TypeError, "'x' of .* must hold lists, got double"),
        ({"x": [["a"]]}, {}, TypeError, "lists of column 'x' must hold numbers, got string"),
        ({"y": [[1.0]]}, {}, ValueError, r"no column 'x'; it has \['y'\]"),
        ({"x": [[1.0]]}, {"features": 3}, ValueError, "sparse rows need both indices and features"),
        (
            {"x": [[1.0]], "i": [[1.0]]},
            {"indices": "i", "features": 3},
            TypeError,
            "lists of column 'i' must hold integers, got double",
        ),
    ],
)
def test_columns_that_hold_no_rows(columns, more, error, message, tmp_path):
    with pytest.raises(error, match=message):
        ParquetLists(written(tmp_path, **columns), "x", **more)


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([[0, 3]], "an index outside 0 .. 2 from row 0 on; increase features"),
        ([[-1, 0]], "an index outside"),
        ([[1]], "lists of different lengths"),
    ],
)
def test_indices_that_do_not_fit(indices, message, tmp_path):
    path = written(tmp_path, x=[[1.0, 2.0]], i=indices)
    with pytest.raises(ValueError, match=message):
        next(ParquetLists(path, "x", "i", features=3).blocks(1))


def test_a_row_without_entries_and_indices_that_are_repeated(tmp_path):
    path = written(tmp_path, x=[[], [1.0, 2.0]], i=[[], [1, 1]])
    (_, block), *_ = ParquetLists(path, "x", "i", features=3).blocks(2)
    assert xp.to_dense(block).tolist() == [[0.0, 0.0, 0.0], [0.0, 3.0, 0.0]]


@pytest.mark.parametrize("wide", [False, True])
def test_a_fit_is_that_of_rows_in_memory(wide, tmp_path):
    rng = np.random.default_rng(0)
    d = 10**8 if wide else 30
    index = rng.integers(0, 30, (200, 5))
    values = rng.normal(size=(200, 5))
    start = np.arange(0, 1001, 5)
    X = scipy.sparse.csr_array((values.ravel(), index.ravel(), start), shape=(200, d))
    y = X @ np.r_[rng.normal(size=30), np.zeros(d - 30)] if not wide else values.sum(axis=1)
    path = written(tmp_path, x=values.tolist(), i=index.tolist())
    rows = ParquetLists(path, "x", "i", features=d)
    assert rows.width == (16 if wide else d)
    settings = {"lengthscale": 1.0, "landmarks": 40, "penalty": 1e-3, "random_state": 0}
    found = KernelRidge("linear", **settings).fit(rows, y)
    expected = KernelRidge("linear", **settings).fit(X, y)
    np.testing.assert_allclose(found.predict(rows), expected.predict(X), atol=1e-5)
    assert xp.is_sparse(next(rows.blocks(3))[1])
