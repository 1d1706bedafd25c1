"""The digest of rows depends on their numbers, and on nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from tensors import tensors_of

from gramian import _arrays as xp
from gramian.data import Cast, Select, Subset, as_rows
from gramian.data.rows import base
from gramian.data.rows.digest import digest

X = np.random.default_rng(0).standard_normal((41, 3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_holds_the_rows_does_not_matter(dtype, tmp_path):
    x = X.astype(dtype)
    np.save(tmp_path / "x.npy", x)
    pq.write_table(pa.table({str(j): x[:, j] for j in range(3)}), tmp_path / "x.parquet")
    sources = [
        np.asfortranarray(x),
        np.repeat(x, 2, axis=0)[::2],
        x.astype(x.dtype.newbyteorder()),
        *tensors_of(x, x.T.copy().T),
        pd.DataFrame(x),
        tmp_path / "x.npy",
        tmp_path / "x.parquet",
        Subset(as_rows(np.flip(x, axis=0)), xp.flip(np.arange(41), 0)),
        Select(as_rows(x[:, ::-1]), [2, 1, 0]),
    ]
    expected = digest(as_rows(x))
    assert [digest(as_rows(source)) for source in sources] == [expected] * len(sources)
    assert digest(Cast(as_rows(x), np.float64)) == digest(as_rows(x.astype(np.float64)))


@pytest.mark.parametrize("sparse", [False, True])
def test_the_size_of_blocks_does_not_matter(sparse, monkeypatch):
    x = np.where(abs(X) > 1, X, 0)
    rows = as_rows(scipy.sparse.csr_array(x) if sparse else x)
    expected = digest(rows)
    for numbers in (3, 12, 60):
        monkeypatch.setattr(base.default_block_size, "__defaults__", (numbers,))
        assert digest(rows) == expected


def test_sparse_rows_are_digested_in_one_form():
    x = np.where(abs(X) > 1, X, 0)
    matrix = scipy.sparse.csr_array(x)
    zeros = matrix.copy()
    zeros.data[3] = 0
    without = zeros.copy()
    without.eliminate_zeros()
    assert len(without.data) < len(zeros.data)
    assert digest(as_rows(zeros)) == digest(as_rows(without))
    assert digest(as_rows(matrix.tocoo())) == digest(as_rows(matrix.tocsc()))
    assert digest(as_rows(matrix)) != digest(as_rows(zeros))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("at", [(0, 0), (20, 1), (40, 2)])
def test_any_entry_matters(sparse, at):
    make = scipy.sparse.csr_array if sparse else np.asarray
    changed = X.copy()
    changed[at] = np.nextafter(changed[at], 9)
    assert digest(as_rows(make(changed))) != digest(as_rows(make(X)))


def test_shape_and_type_matter():
    zeros = np.zeros((6, 4))
    others = [np.zeros((4, 6)), np.zeros((6, 4), np.float32), np.zeros((6, 2)), np.zeros((3, 4))]
    assert len({digest(as_rows(x)) for x in (zeros, *others)}) == 5
