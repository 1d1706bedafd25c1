"""DecodedRows: a file is decoded once, whatever the size of blocks, and to the same bits."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramian import KernelRidge, KernelRidgeClassifier
from gramian import _arrays as xp
from gramian.data import (
    Complement,
    DecodedRows,
    ParquetRows,
    RowSource,
    Subset,
    as_rows,
    decode_rows,
    decoded_bytes,
    write_table,
)
from gramian.data.rows.cache import _is_in_memory

N = 100


class Counted(RowSource):
    """Sequential rows that count the passes over them, and the rows that are taken."""

    random_access = False

    def __init__(self, array: np.ndarray) -> None:
        self._rows = as_rows(array)
        self.shape, self.dtype = self._rows.shape, self._rows.dtype
        self.passes = self.taken = 0

    def blocks(self, size: int) -> Iterator[tuple[slice, np.ndarray]]:
        self.passes += 1
        yield from self._rows.blocks(size)

    def take(self, index: np.ndarray) -> np.ndarray:
        self.taken += 1
        return self._rows.take(index)


def array(d: int = 3, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(d).standard_normal((N, d)).astype(dtype)


def together(rows: RowSource, size: int) -> np.ndarray:
    parts = list(rows.blocks(size))
    starts = [part.start for part, _ in parts]
    assert starts == list(range(0, len(rows), size))
    found: np.ndarray = np.concatenate([block for _, block in parts])
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 3])
def test_the_source_is_read_once(d: int, dtype: Any) -> None:
    given = array(d, dtype)
    source = Counted(given)
    rows = DecodedRows(source)
    assert rows.shape == (N, d)
    for size in (7, 1, 64, N, 3 * N):
        np.testing.assert_array_equal(together(rows, size), given)
        assert rows.dtype == source.dtype
    assert source.passes == 1


@pytest.mark.parametrize("whole", [False, True])
def test_rows_are_taken_from_the_file_once_it_is_there(whole: bool) -> None:
    given = array()
    source = Counted(given)
    rows = DecodedRows(source)
    if whole:
        together(rows, 30)
    index = np.array([99, 0, 5, 5])
    np.testing.assert_array_equal(rows.take(index), given[index])
    assert source.taken == (not whole)
    with pytest.raises(IndexError, match=r"0 \.\. 99"):
        rows.take(np.array([100]))


def test_a_pass_that_is_given_up_keeps_nothing() -> None:
    source = Counted(array())
    rows = DecodedRows(source)
    begun = rows.blocks(10)
    next(begun)
    other = rows.blocks(25)  # two passes at once do not mix
    next(other)
    next(begun)
    del begun, other
    np.testing.assert_array_equal(together(rows, 40), array())
    np.testing.assert_array_equal(together(rows, 40), array())
    assert source.passes == 3


def test_several_threads_read_at_once() -> None:
    rows = DecodedRows(Counted(array()))
    together(rows, 50)
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(lambda size: together(rows, size), [3, 5, 7, 11] * 5):
            np.testing.assert_array_equal(found, array())


def test_without_preadv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "preadv", raising=False)
    rows = DecodedRows(Counted(array()))
    together(rows, 50)
    index = np.array([7, 0, len(rows) - 1])
    np.testing.assert_array_equal(rows.take(index), array()[index])


def test_what_is_written_to_a_block_is_not_in_the_file() -> None:
    rows = DecodedRows(Counted(array()))
    together(rows, 50)
    for _, block in rows.blocks(7):
        xp.fill_(block, 0.0)
    np.testing.assert_array_equal(together(rows, 7), array())


def test_a_full_disk_is_said_and_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Full:
        def __init__(self) -> None:
            self.written = 0

        def write(self, _: np.ndarray) -> None:
            self.written += 1
            if self.written == 3:
                raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gramian.data.rows.cache._File", Full)
    source = Counted(array())
    rows = DecodedRows(source)
    for _ in range(3):
        np.testing.assert_array_equal(together(rows, 10), array())
    assert source.passes == 3
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    said_of_disk = "not cached (No space left on device): each pass decodes Counted(100 x 3"
    assert said_of_disk in said[0]


def test_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Counted(array())
    need = N * 3 * 4
    monkeypatch.setattr("gramian.data.rows.cache._room", lambda: 2 * need)
    assert decoded_bytes(source) == need
    index = np.array([3, 4])
    for wrapped in (Subset(source, index), Complement(source, index)):
        found = decode_rows(wrapped)
        assert decoded_bytes(wrapped) == need
        assert type(found) is type(wrapped)
        assert isinstance(found.rows, DecodedRows)
        assert decoded_bytes(found) == 0  # once is enough
    for other in (as_rows(array()), decode_rows(source)):
        assert decode_rows(other) is other
    monkeypatch.setattr("gramian.data.rows.cache._room", lambda: 2 * need - 1)
    assert decode_rows(source) is source
    assert decoded_bytes(source) == 0


@pytest.mark.parametrize(("kind", "expected"), [("tmpfs", True), ("ramfs", True), ("ext4", False)])
def test_a_folder_in_memory_is_no_disk(kind: str, expected: bool, tmp_path: Path) -> None:
    device = os.stat(tmp_path).st_dev
    mounts = tmp_path / "mountinfo"
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts.write_text(
        "21 1 999:7 / /proc rw shared:2 - tmpfs proc rw\n"
        f"22 1 {number} / / rw,relatime shared:1 - {kind} /dev/root rw\n"
    )
    assert _is_in_memory(tmp_path, mounts) is expected
    assert _is_in_memory(tmp_path, tmp_path / "none") is False


@pytest.mark.parametrize("early_stopping", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "make", [KernelRidge, pytest.param(KernelRidgeClassifier, marks=pytest.mark.slow)]
)
def test_a_fit_reads_a_file_few_times_and_to_the_same_bits(
    make: Any, early_stopping: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(0).standard_normal((3000, 4)).astype(np.float32)
    y = np.sin(X[:, 0]) + X[:, 1] if make is KernelRidge else (X[:, 0] * X[:, 1] > 0).astype(int)
    write_table(tmp_path / "x.parquet", dict(zip("abcd", X.T, strict=True)))
    counts = []
    inner = ParquetRows.blocks

    def counted(self: ParquetRows, size: int) -> Any:
        counts[-1] += 1
        return inner(self, size)

    monkeypatch.setattr(ParquetRows, "blocks", counted)

    def model() -> Any:
        counts.append(0)
        est = make(
            "gaussian",
            lengthscale=2.0,
            penalty=1e-5,
            landmarks=100,
            solver="falkon",
            early_stopping=early_stopping,
            random_state=0,
        )
        return est.fit(ParquetRows(tmp_path / "x.parquet"), y)

    with_file = model()
    plan = with_file.plan(ParquetRows(tmp_path / "x.parquet"))
    assert plan.disk_bytes == X.nbytes
    assert "48 kB of temporary files" in str(plan)
    monkeypatch.setattr("gramian.data.rows.cache._room", lambda: 0)
    without = model()
    assert with_file.n_iter_ == without.n_iter_ > 3
    assert counts[0] <= 5 < counts[1]
    np.testing.assert_array_equal(with_file.model_.coef, without.model_.coef)


def test_losses_read_a_file_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).standard_normal((500, 2)).astype(np.float32)
    source = Counted(X)
    est = KernelRidge(
        "gaussian", lengthscale=2.0, penalty=1e-4, landmarks=30, loss="huber", random_state=0
    )
    with_file = est.fit(source, X[:, 0]).model_.coef
    assert source.passes <= 4
    monkeypatch.setattr("gramian.data.rows.cache._room", lambda: 0)
    source.passes = 0
    np.testing.assert_array_equal(est.fit(source, X[:, 0]).model_.coef, with_file)
    assert source.passes > 10
