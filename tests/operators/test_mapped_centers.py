"""Centers beyond the memory budget: in a file that is mapped, with the same results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plain import PLAIN
from safetensors.numpy import load_file

from gramian import KernelRidge, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian._files.tensors import write_tensors
from gramian.data import ArrayRows, as_rows, gather_rows, scratch, store_rows
from gramian.data.formats import memory_map as mapped
from gramian.fitting.plans import memory
from gramian.landmarks import KMeans, Uniform
from gramian.model import KernelModel
from gramian.operators import KernelOperator, TiledEngine
from gramian.problems import NystromProblem
from gramian.solvers import EigenPro3, SketchySAGA, State, max_iterations, solve

N, M, D = 40, 24, 400
TINY = M * D * 8 - 1
"""Bytes that hold all but one number of the centers."""

RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = np.sin(2 * X[:, :1])


def is_mapped(points: np.ndarray) -> bool:
    """Whether the memory of a tensor is that of a file."""
    at = points.ctypes.data
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, *_, inode = line.split(maxsplit=5)[:5]
        first, last = (int(x, 16) for x in span.split("-"))
        if first <= at < last:
            return inode != "0"
    return False


def operator(memory_bytes: int, dtype=np.float64) -> KernelOperator:
    rows = as_rows(xp.cast(X, dtype))
    engine = TiledEngine(tile_bytes=1 << 10, threads=1)
    return KernelOperator(kernels.Gaussian(20.0), rows, rows, engine, memory_bytes)


@pytest.mark.parametrize("sequential", [False, True])
def test_rows_are_gathered_in_the_order_asked_for(tmp_path, sequential):
    rows = as_rows(X)
    if sequential:
        columns = {str(j): X[:, j] for j in range(D)}
        pq.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=70)
        rows = as_rows(tmp_path / "x.parquet")
    index = RandomStream(0).permutation(N)[:M]
    held, at = (gather_rows(rows, index, size) for size in (TINY + 1, TINY))
    assert np.array_equal(held, at)
    assert np.array_equal(at, X[index])
    if sys.platform == "linux":
        assert [is_mapped(held), is_mapped(at)] == [False, True]


def test_sparse_rows_become_dense_if_asked_for():
    import scipy.sparse

    dense = np.where(abs(X) > 1, X, 0)
    rows = as_rows(scipy.sparse.csr_array(dense))
    assert xp.is_sparse(gather_rows(rows, np.arange(M), 1))
    assert np.array_equal(gather_rows(rows, np.arange(M), 1, dense=True), dense[:M])


def test_no_file_is_left_and_a_full_disk_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = scratch((M, D), np.float32, 0)
    kept[:] = 1.0
    assert os.listdir(tmp_path) == []  # it never had a name
    assert float(kept.sum()) == M * D

    def full(size: int) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mapped, "bytes", full, raising=False)
    with pytest.raises(OSError, match=r"No space left on device; set TMPDIR"):
        scratch((M, D), np.float32, 0)


def test_a_file_that_was_named_stays(tmp_path):
    path = tmp_path / "centers.npy"
    first = store_rows(as_rows(X[:M]), path)
    second = store_rows(as_rows(X[M:]), path)
    assert np.array_equal(first, X[:M])  # who maps the old file keeps it
    assert np.array_equal(second, np.load(path))
    assert os.listdir(tmp_path) == ["centers.npy"]
    third = store_rows(as_rows(X[:M]), tmp_path / "OTHER.NPY")
    assert np.array_equal(third, first)
    with pytest.raises(ValueError, match=r"in a \.npy file can be stored, got"):
        store_rows(as_rows(X), tmp_path / "centers.bin")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("same", [False, True])
def test_a_matrix_and_a_product_without_all_columns_in_memory(dtype, same):
    large, small = operator(1 << 30, dtype), operator(200_000, dtype)
    assert not small._budget(1).holds(N)
    if not same:
        large, small = (K.against(K.rows.take(np.arange(0, N, 2))) for K in (large, small))
    eps = xp.finfo(dtype).eps
    assert np.allclose(large.dense(), small.dense(), atol=40 * eps)
    v = xp.cast(Y, dtype)
    w = np.linspace(0, 2, N, dtype=np.float64)
    expected = large.normal(None, w, v)
    assert np.allclose(small.normal(None, w, v), expected, atol=N * eps * float(np.abs(v).max()))
    if same:
        assert np.array_equal(xp.diagonal(small.dense()), np.ones(N, dtype))


@pytest.mark.parametrize(
    "selector", [Uniform(M), KMeans(M, iterations=1)], ids=["uniform", "kmeans"]
)
def test_selectors_give_mapped_points(selector):
    held, at = (
        selector.select(operator(size), rng=RandomStream(0)).points for size in (1 << 30, TINY)
    )
    assert held.shape == at.shape
    if isinstance(selector, Uniform):  # k-means starts from as many rows as fit
        assert np.array_equal(held, at)
    if sys.platform == "linux":
        assert [is_mapped(held), is_mapped(at)] == [False, True]


@pytest.mark.parametrize(
    "solver",
    [
        EigenPro3(projection="exact", batch=20, subsample=20, rank=2),
        pytest.param(
            EigenPro3(projection="delayed", batch=20, subsample=20, rank=2, delay=2),
            marks=pytest.mark.slow,
        ),
        SketchySAGA(batch=20, rank=5, damping=0.1, ridge="rows"),
    ],
    ids=["exact", "delayed", "saga"],
)
def test_the_same_coefficients_as_in_memory(solver):
    """The budget holds neither the centers of a product nor the temporary ones."""
    coefs = []
    for size in (1 << 30, TINY):
        K = operator(size)
        problem = NystromProblem.at(K, np.arange(M), Y, 1e-4)
        if size == TINY and sys.platform == "linux":
            assert is_mapped(next(problem.K.cols.blocks(M))[1])
            assert not problem.K._budget(1).holds(M)
        start = State(0, np.full((M, 1), 0.01, dtype=np.float64))
        found = solve(problem, solver, stop=[max_iterations(1)], state=start)
        coefs.append(found.state.coef)
    assert np.allclose(*coefs, rtol=1e-8, atol=1e-10)


def estimator(**settings):
    how = {"lengthscale": 20.0, "penalty": 1e-4, "solver": "eigenpro3", "max_iter": 2}
    return KernelRidge(
        **(PLAIN | how | {"landmarks": M, "standardize": False, "random_state": 0} | settings)
    )


def test_an_estimator_keeps_them_where_it_is_told(tmp_path):
    path = tmp_path / "centers.npy"
    est = estimator(centers_file=path).fit(X, Y[:, 0])
    plain = estimator().fit(X, Y[:, 0])
    assert np.array_equal(est.dual_coef_, plain.dual_coef_)
    assert np.array_equal(np.load(path), X[est.landmark_index_])
    for given in (path, str(path), np.load(path)):
        again = estimator(landmarks=given).fit(X, Y[:, 0])
        assert np.allclose(again.dual_coef_, est.dual_coef_, rtol=1e-12)
    est.set_params(warm_start=True).fit(X, Y[:, 0])  # reads the file that it replaces
    assert np.array_equal(np.load(path), X[est.landmark_index_])
    with pytest.raises(ValueError, match="leave centers_file out"):
        estimator(landmarks=None, solver="pcg", centers_file=path).fit(X, Y[:, 0])


def test_landmarks_from_a_file_are_looked_at(tmp_path):
    bad = X[:M].copy()
    bad[3, 2] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    with pytest.raises(ValueError, match="landmarks contains 1 NaN"):
        estimator(landmarks=tmp_path / "bad.npy").fit(X, Y[:, 0])
    with pytest.raises(FileNotFoundError, match=r"no\.npy"):
        estimator(landmarks=tmp_path / "no.npy").fit(X, Y[:, 0])


def test_a_plan_counts_centers_that_are_in_memory_only():
    solver = EigenPro3(rank=5)
    size = memory.FitSize(10_000_000, 1000, 1, 1_000_000, 4, full=False)
    in_memory, without = (memory.dense_bytes(solver, size, mapped) for mapped in (False, True))
    assert in_memory - without == 2 * 4 * 10**9
    assert memory.divide_memory(1 << 40, solver, size)[0] == in_memory
    dense, blocks = memory.divide_memory(3 << 30, solver, size)
    assert dense == without
    assert dense + blocks <= 3 << 30
    assert size.m * size.d * size.itemsize > blocks  # so that they are mapped
    with pytest.raises(ValueError, match="1,000,000 landmarks need"):
        memory.divide_memory(3 << 29, solver, replace(size, t=100))


SCRIPT = """
import json, pathlib, sys
import numpy as np
from gramian.data import ArrayRows, scratch
from gramian.kernels import Gaussian
from gramian.model import KernelModel

def anonymous():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024

KernelModel(Gaussian(1.0), np.ones((2, 2), "f4"), np.ones((2, 1), "f4")).save(sys.argv[1])
KernelModel.load(sys.argv[1]).predict(np.ones((3, 2), "f4"))
base = anonymous()
points = scratch((100_000, 200), np.dtype("f4"), 0)
points[:] = 1.0
model = KernelModel(Gaussian(1.0), points, np.ones((100_000, 1), "f4"))
model.save(sys.argv[1])
model = KernelModel.load(sys.argv[1])
print(json.dumps([anonymous() - base, list(model.centers.shape)]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads its memory from /proc")
def test_a_saved_model_is_streamed_from_and_to_its_file(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "model")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    grown, shape = json.loads(done.stdout)
    assert shape == [100_000, 200]
    assert grown < 20 << 20  # of 80 MB


def test_saved_files_are_those_of_the_library(tmp_path):
    kinds = (np.float64, np.bool_, np.float32, np.uint8, np.int64, np.int32)
    parts = {kind.__name__: (np.arange(7) % 2).astype(kind) for kind in kinds}
    parts |= {"scalar": np.array(2.0, dtype=np.float32), "empty": np.empty((0, 3), np.float32)}
    write_tensors(tmp_path / "all", parts, {"a": "b"})
    found = load_file(tmp_path / "all")
    assert set(found) == set(parts)
    assert all(np.array_equal(found[name], part) for name, part in parts.items())
    model = KernelModel(kernels.Gaussian(1.0), ArrayRows(X[:M, ::2]), Y[:M])
    model.save(tmp_path / "model")
    read = load_file(tmp_path / "model")
    assert np.array_equal(read["centers"], X[:M, ::2].copy())
    assert np.array_equal(read["coef"], model.coef)
    again = KernelModel.load(tmp_path / "model")
    assert np.array_equal(again.predict(X[:, ::2]), model.predict(X[:, ::2]))
