"""What every row source must do, whatever it wraps: a new one is tested by a line in `SOURCES`,
and a new table format by being registered."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from gramian import _arrays as xp
from gramian.data import (
    Cast,
    Complement,
    ParquetLists,
    ParquetRows,
    RowSource,
    Select,
    Standardized,
    Subset,
    Sum,
    as_rows,
    open_rows,
    write_table,
)
from gramian.data.formats import WritableFormat, formats

N, D = 23, 3
NAMES = ("a", "b", "c")


def numbers() -> np.ndarray:
    """Integers from 0 to 120, a third of them zero: exact in every type that is tested."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 121, (N, D)) * rng.integers(0, 3, (N, D)).clip(0, 1)


X = numbers()


def memmap(tmp: Path) -> np.ndarray:
    np.save(tmp / "x.npy", X.astype(np.float32))
    return np.load(tmp / "x.npy", mmap_mode="r")


def npy_path(tmp: Path) -> Path:
    memmap(tmp)
    return tmp / "x.npy"


def tensor(x: np.ndarray, dtype: str) -> Any:
    torch = pytest.importorskip("torch")
    return torch.tensor(x, dtype=getattr(torch, dtype))


def frozen() -> np.ndarray:
    x = X.astype(np.float32)
    x.flags.writeable = False
    return x


def unaligned() -> np.ndarray:
    raw = np.zeros(N * D * 8 + 1, np.uint8)[1:]
    x = raw.view(np.float64).reshape(N, D)
    x[:] = X
    return x


def strided() -> np.ndarray:
    x = np.zeros((2 * N, 3 * D), np.float32)
    x[::2, ::3] = X
    return x[::2, ::3]


def table(*kinds: Any) -> pa.Table:
    columns = [pa.array(column).cast(kind) for column, kind in zip(X.T, kinds, strict=True)]
    return pa.table(dict(zip(NAMES, columns, strict=True)))


def encoded() -> pa.Table:
    plain = table(pa.float32(), pa.int8(), pa.int16())
    return plain.set_column(2, "c", plain["c"].dictionary_encode())


def chunked() -> pa.Table:
    whole = table(pa.int8(), pa.float32(), pa.uint8())
    return pa.concat_tables([whole.slice(0, 5), whole.slice(5, 0), whole.slice(5)])


def one_file(tmp: Path, size: int = 7) -> Path:
    path = tmp / "x.parquet"
    pq.write_table(table(pa.float32(), pa.int16(), pa.float32()), path, row_group_size=size)
    return path


def directory(tmp: Path) -> Path:
    whole, folder = table(pa.float32(), pa.float32(), pa.float32()), tmp / "set"
    folder.mkdir()
    for name, part in (("b", whole.slice(6)), ("a", whole.slice(0, 6)), ("aa", whole.slice(6, 0))):
        pq.write_table(part, folder / f"{name}.parquet", row_group_size=5)
    (folder / "_notes.txt").write_text("not a table")
    return folder


def frame(**kinds: str) -> pd.DataFrame:
    return pd.DataFrame({n: pd.array(X[:, j], dtype=kinds[n]) for j, n in enumerate(NAMES)})


def sparse(format: str, dtype: Any) -> Any:
    return scipy.sparse.csr_array(X.astype(dtype)).asformat(format)


def untidy_csr() -> Any:
    """Unsorted indices, and each entry stored as two halves."""
    coo = scipy.sparse.coo_array(X / 2.0)
    order = np.argsort(-coo.col, kind="stable")
    order = order[np.argsort(coo.row[order], kind="stable")]
    twice = np.repeat(order, 2)
    indptr = np.concatenate([[0], np.cumsum(2 * np.bincount(coo.row, minlength=N))])
    return scipy.sparse.csr_array((coo.data[twice], coo.col[twice], indptr), shape=(N, D))


def standardized(x: Any) -> RowSource:
    mean, scale = np.zeros(D, np.float64), np.full((D,), 0.5, dtype=np.float64)
    return Standardized(as_rows(x), mean, scale)


def lists(tmp: Path, kind: pa.DataType) -> Path:
    path = tmp / "lists.parquet"
    column = pa.array(X.tolist(), pa.list_(pa.int16())).cast(kind)
    pq.write_table(pa.table({"x": column, "y": np.arange(N)}), path, row_group_size=7)
    return path


def sparse_lists(tmp: Path, kind: pa.DataType) -> Path:
    """Of each row the numbers that are not zero, and their columns from the last one on."""
    path, columns = tmp / "sparse.parquet", [np.flatnonzero(row)[::-1] for row in X]
    values = [row[at] for row, at in zip(X, columns, strict=True)]
    table = pa.table({"v": pa.array(values, pa.list_(kind)), "i": columns})
    pq.write_table(table, path, row_group_size=7)
    return path


def padded_parquet(tmp: Path) -> Path:
    columns = {name: pa.array(padded()[:, j]) for j, name in enumerate(NAMES)}
    pq.write_table(pa.table(columns), tmp / "padded.parquet", row_group_size=7)
    return tmp / "padded.parquet"


def padded() -> np.ndarray:
    """The rows with four more among them, whose numbers are EXTRA."""
    return np.insert(X.astype(np.float32), [0, 4, 4, N], 121, axis=0)


EXTRA = np.array([0, 5, 6, N + 3])
EVERY = np.arange(N)
F32, F64 = np.float32, np.float64

# name: (how to make it, the type it delivers, whether it knows names)
SOURCES: dict[str, tuple[Callable[[Path], Any], np.dtype, bool]] = {
    "float32": (lambda tmp: X.astype(np.float32), F32, False),
    "float64": (lambda tmp: X.astype(np.float64), F64, False),
    "float16": (lambda tmp: X.astype(np.float16), F32, False),
    "bool-like int8": (lambda tmp: X.astype(np.int8), F32, False),
    "uint16": (lambda tmp: X.astype(np.uint16), F32, False),
    "int32": (lambda tmp: X.astype(np.int32), F64, False),
    "uint64": (lambda tmp: X.astype(np.uint64), F64, False),
    "Fortran": (lambda tmp: np.asfortranarray(X.astype(np.float32)), F32, False),
    "negative strides": (
        lambda tmp: X[::-1, ::-1].astype(np.float32).copy()[::-1, ::-1],
        F32,
        False,
    ),
    "strided": (lambda tmp: strided(), F32, False),
    "big-endian": (lambda tmp: X.astype(">f4"), F32, False),
    "big-endian int": (lambda tmp: X.astype(">i8"), F64, False),
    "read-only": (lambda tmp: frozen(), F32, False),
    "unaligned": (lambda tmp: unaligned(), F64, False),
    "broadcast": (lambda tmp: np.broadcast_to(X.astype(np.float32), (1, N, D))[0], F32, False),
    "memmap": (memmap, F32, False),
    "npy path": (npy_path, F32, False),
    "list": (lambda tmp: X.astype(float).tolist(), F64, False),
    "torch float32": (lambda tmp: tensor(X, "float32"), F32, False),
    "torch transposed": (lambda tmp: tensor(X.T.copy(), "float64").T, F64, False),
    "torch gradient": (lambda tmp: tensor(X, "float32").requires_grad_(), F32, False),
    "torch bfloat16": (lambda tmp: tensor(X, "bfloat16"), F32, False),
    "torch int64": (lambda tmp: tensor(X, "int64"), F64, False),
    "pandas mixed": (lambda tmp: frame(a="float32", b="int8", c="uint16"), F32, True),
    "pandas nullable": (lambda tmp: frame(a="Int16", b="Int64", c="Float32"), F64, True),
    "pandas arrow": (lambda tmp: frame(a="int8[pyarrow]", b="float", c="float32"), F64, True),
    "pandas of array": (lambda tmp: pd.DataFrame(X.astype(np.float32)), F32, False),
    "pandas names": (lambda tmp: pd.DataFrame(X.astype(np.float64), columns=NAMES), F64, True),
    "pandas index": (lambda tmp: frame(a="int8", b="int8", c="int8")[::-1][::-1], F32, True),
    "arrow chunked": (lambda tmp: chunked(), F32, True),
    "arrow batch": (lambda tmp: chunked().combine_chunks().to_batches()[0], F32, True),
    "arrow decimal": (lambda tmp: table(pa.decimal128(25, 2), pa.int8(), pa.int8()), F64, True),
    "arrow dictionary": (lambda tmp: encoded(), F32, True),
    "csr uint8": (lambda tmp: sparse("csr", np.uint8), F32, False),
    "csr float64": (lambda tmp: sparse("csr", np.float64), F64, False),
    "csc": (lambda tmp: sparse("csc", np.float32), F32, False),
    "coo matrix": (lambda tmp: scipy.sparse.coo_matrix(X.astype(np.float32)), F32, False),
    "untidy csr": (lambda tmp: untidy_csr(), F64, False),
    "parquet": (one_file, F32, True),
    "parquet path as text": (lambda tmp: str(one_file(tmp)), F32, True),
    "parquet one group": (lambda tmp: one_file(tmp, 1000), F32, True),
    "parquet directory": (directory, F32, True),
    "parquet not ahead": (lambda tmp: ParquetRows(one_file(tmp), read_ahead=False), F32, True),
    "lists": (lambda tmp: ParquetLists(lists(tmp, pa.list_(pa.float32())), "x"), F32, False),
    "fixed lists": (
        lambda tmp: ParquetLists(lists(tmp, pa.list_(pa.float64(), D)), "x"),
        F64,
        False,
    ),
    "large lists": (
        lambda tmp: ParquetLists(lists(tmp, pa.large_list(pa.uint8())), "x"),
        F32,
        False,
    ),
    "sparse lists": (
        lambda tmp: ParquetLists(sparse_lists(tmp, pa.uint8()), "v", "i", features=D),
        F32,
        False,
    ),
    "sparse lists of float64": (
        lambda tmp: ParquetLists(sparse_lists(tmp, pa.float64()), "v", "i", features=D),
        F64,
        False,
    ),
    "cast": (lambda tmp: Cast(as_rows(X.astype(np.float64)), F32), F32, False),
    "cast parquet": (lambda tmp: Cast(as_rows(one_file(tmp)), F64), F64, True),
    "cast sparse": (lambda tmp: Cast(as_rows(sparse("csr", np.uint8)), F64), F64, False),
    "subset": (
        lambda tmp: Subset(as_rows(X[::-1].astype(np.float32)), xp.flip(EVERY, 0)),
        F32,
        False,
    ),
    "subset parquet": (lambda tmp: Subset(as_rows(one_file(tmp)), EVERY), F32, True),
    "subset sparse": (lambda tmp: Subset(as_rows(sparse("csr", np.uint8)), EVERY), F32, False),
    "complement": (lambda tmp: Complement(as_rows(padded()), EXTRA), F32, False),
    "complement parquet": (lambda tmp: Complement(as_rows(padded_parquet(tmp)), EXTRA), F32, True),
    "complement sparse": (
        lambda tmp: Complement(as_rows(scipy.sparse.csr_array(padded())), EXTRA),
        F32,
        False,
    ),
    "complement nothing": (
        lambda tmp: Complement(as_rows(X.astype(np.int8)), EXTRA[:0]),
        F32,
        False,
    ),
    "select": (
        lambda tmp: Select(as_rows(X[:, [2, 0, 1]].astype(np.float32)), [1, 2, 0]),
        F32,
        False,
    ),
    "standardized": (lambda tmp: standardized(X.astype(np.float32) / 2), F32, False),
    "standardized sparse": (lambda tmp: standardized(sparse("csr", np.float64) / 2), F64, False),
}


def written(tmp: Path, name: str) -> RowSource:
    """Open a table that the format of that name has written."""
    path = tmp / f"x{formats[name].suffixes[0]}"
    write_table(path, dict(zip(NAMES, X.T.astype(np.float64), strict=True)))
    return open_rows(path)


SOURCES |= {
    f"format {name}": (partial(written, name=name), F64, found.named)
    for name in formats
    if issubclass(found := formats[name], WritableFormat)
}
SIZES = (1, 7, N - 1, N, N + 1, 1000)


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> RowSource:
    return as_rows(SOURCES[request.param][0](tmp_path))


def dense(block: np.ndarray) -> np.ndarray:
    return xp.to_dense(block) if xp.is_sparse(block) else block


def truth(source: RowSource) -> np.ndarray:
    return np.array(X, dtype=source.dtype)


@pytest.mark.parametrize("name", SOURCES)
def test_type_and_names(name: str, tmp_path: Path) -> None:
    make, dtype, named = SOURCES[name]
    rows = as_rows(make(tmp_path))
    assert rows.shape == (N, D)
    assert len(rows) == N
    assert rows.dtype == dtype
    assert rows.feature_names == (NAMES if named else None)
    assert as_rows(rows) is rows
    assert str(N) in repr(rows)


def test_blocks_tile_the_rows(source: RowSource) -> None:
    for size in SIZES:
        check_tiles(source, size)


def check_tiles(source: RowSource, size: int) -> None:
    stop = 0
    for part, block in source.blocks(size):
        assert part.start == stop
        assert part.step is None
        stop = part.stop
        assert 1 <= len(block) == part.stop - part.start <= size
        assert block.dtype == source.dtype
        assert (xp.is_sparse(block)) == source.sparse
        assert source.sparse or xp.is_contiguous(block)
        assert np.array_equal(dense(block), truth(source)[part])
    assert stop == N


def test_take_is_indexing(source: RowSource) -> None:
    for index in ([0], [N - 1, 0, N - 1, 5, 5, 6], list(range(N))[::-1], [], list(range(N))):
        picked = source.take(np.array(index, dtype=np.int64))
        assert picked.dtype == source.dtype
        assert np.array_equal(dense(picked), truth(source)[index])


def test_take_gives_a_new_tensor(source: RowSource) -> None:
    taken = source.take(np.arange(N))
    (xp.entries(taken) if source.sparse else taken)[...] = 0
    assert np.array_equal(dense(source.take(np.arange(N))), truth(source))


def test_take_refuses_rows_that_are_not_there(source: RowSource) -> None:
    for index in ([N], [-1], [0, N + 5]):
        with pytest.raises(IndexError, match=rf"0 \.\. {N - 1}"):
            source.take(np.array(index))


def test_map_concatenates(source: RowSource) -> None:
    u = np.arange(N, dtype=source.dtype)
    for size in SIZES:
        out = source.map(lambda block, w: dense(block) * w[:, None], u, size=size)
        assert np.array_equal(out, truth(source) * u[:, None])
        flat = source.map(lambda block: xp.to_float64(dense(block).sum(axis=1)), size=size)
        assert flat.dtype == np.float64
        assert np.array_equal(flat, xp.to_float64(truth(source).sum(axis=1)))


def test_sum_adds_up(source: RowSource) -> None:
    u, w = np.arange(N, dtype=source.dtype), np.arange(2 * N, dtype=source.dtype).reshape(N, 2)
    for size in SIZES:
        total = source.fold(
            Sum(lambda block, p, q: dense(block).T @ (p[:, None] * q)), u, w, size=size
        )
        assert np.array_equal(total, truth(source).T @ (u[:, None] * w))  # integers: exact


def test_sum_and_map_bear_a_reused_buffer(source: RowSource) -> None:
    buffer = np.empty((5, D), source.dtype)

    def total(block: np.ndarray) -> np.ndarray:
        return np.sum(dense(block), axis=0, out=buffer[0])

    def copy(block: np.ndarray) -> np.ndarray:
        return xp.assign_(buffer[: len(block)], dense(block))

    assert np.array_equal(source.fold(Sum(total), size=5), truth(source).sum(axis=0))
    assert np.array_equal(source.map(copy, size=5), truth(source))


def test_two_walks_at_once(source: RowSource) -> None:
    for (_, one), (_, two) in zip(source.blocks(3), source.blocks(3), strict=True):
        assert np.array_equal(dense(one), dense(two))


def test_a_walk_may_stop_early(source: RowSource) -> None:
    walk = source.blocks(2)
    next(walk)
    next(walk)
    del walk
    assert np.array_equal(dense(source.take(np.arange(N))), truth(source))


def test_blocks_need_a_row(source: RowSource) -> None:
    for size in (0, -1):
        with pytest.raises(ValueError, match="at least one row"):
            list(source.blocks(size))


def test_copies_and_pickles(source: RowSource) -> None:
    for other in (pickle.loads(pickle.dumps(source)), copy.deepcopy(source)):
        assert other.shape == source.shape
        assert other.feature_names == source.feature_names
        assert np.array_equal(dense(other.take(np.arange(N))), truth(source))
