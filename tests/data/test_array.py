"""Views where views are possible, and no warnings about read-only memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tensors import as_tensor

from gramian import KernelRidge
from gramian.data import as_rows

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_blocks_of_a_native_array_are_views(kind: type) -> None:
    x = RNG.normal(size=(9, 4)).astype(kind)
    for part, block in as_rows(x).blocks(4):
        assert block.ctypes.data == x[part].ctypes.data


def test_blocks_of_a_read_only_memmap_are_views_and_leave_it_read_only(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", RNG.normal(size=(9, 4)))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    for part, block in as_rows(x).blocks(4):
        assert block.ctypes.data == x[part].ctypes.data
        assert not block.flags.writeable
    assert not x.flags.writeable


def replaced(path: Path) -> None:
    np.save(path.with_name("new.npy"), np.zeros((3, 4)))
    os.replace(path.with_name("new.npy"), path)


CHANGED_NAMES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "moved": lambda path: path.rename(path.with_name("moved.npy")),
    "replaced": replaced,
    "with its folder": lambda path: path.parent.rename(path.parent.with_name("moved")),
}


@pytest.mark.parametrize("first", ["map", "rows"])
@pytest.mark.parametrize("change", CHANGED_NAMES)
def test_a_map_stays_valid_without_the_name_of_its_file(
    change: str, first: str, tmp_path: Path
) -> None:
    x, path = RNG.normal(size=(9, 4)), tmp_path / "folder" / "x.npy"
    path.parent.mkdir()
    np.save(path, x)
    mapped = np.load(path, mmap_mode="r")
    rows = as_rows(mapped) if first == "rows" else None
    CHANGED_NAMES[change](path)
    rows = as_rows(mapped) if rows is None else rows
    if change == "replaced":
        os.utime(path, (1, 1))  # of a file that is not the one of the map
    for part, block in rows.blocks(4):
        np.testing.assert_array_equal(block, x[part])
    np.testing.assert_array_equal(rows.take(np.array([8, 0])), x[[8, 0]])


def test_a_mapped_file_that_is_written_in_place_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, RNG.normal(size=(9, 4)))
    rows = as_rows(np.load(path, mmap_mode="r")[:, :2])
    with path.open("ab") as file:
        file.write(bytes(32))
    with pytest.raises(ValueError, match=r"x\.npy has changed since it was opened: it had 416 byt"):
        rows.take(np.array([0]))


def test_blocks_of_a_tensor_are_views() -> None:
    x = RNG.standard_normal((9, 4)).astype(np.float32)
    for part, block in as_rows(as_tensor(x).requires_grad_()).blocks(4):
        assert isinstance(block, np.ndarray)
        assert block.ctypes.data == x[part].ctypes.data


class Exchanged:
    """An array of a library that NumPy knows by DLPack alone."""

    def __init__(self, x: np.ndarray) -> None:
        self.x = x

    def __dlpack__(self, **options: object) -> object:
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


def test_blocks_of_an_array_by_dlpack_are_views() -> None:
    x = RNG.normal(size=(9, 4))
    for part, block in as_rows(Exchanged(x)).blocks(4):
        assert block.ctypes.data == x[part].ctypes.data


def test_a_fit_to_an_array_by_dlpack() -> None:
    x = RNG.normal(size=(50, 4))
    settings = {"lengthscale": 1.0, "penalty": 1e-3}
    found = KernelRidge("gaussian", **settings).fit(Exchanged(x), x[:, 0])
    expected = KernelRidge("gaussian", **settings).fit(x, x[:, 0])
    np.testing.assert_array_equal(found.predict(Exchanged(x)), expected.predict(x))


def test_a_frame_around_an_array_is_not_copied() -> None:
    x = RNG.normal(size=(9, 4))
    for part, block in as_rows(pd.DataFrame(x, copy=False)).blocks(4):
        assert block.ctypes.data == x[part].ctypes.data


def test_a_block_outlives_its_source() -> None:
    x = RNG.normal(size=(1000, 50))
    x.flags.writeable = False
    expected = x.copy()
    _, block = next(as_rows(x).blocks(1000))
    del x
    RNG.normal(size=(1000, 50))  # would reuse the memory, had it been freed
    np.testing.assert_array_equal(block, expected)


def test_the_array_is_not_changed() -> None:
    x = RNG.integers(0, 9, (50, 3)).astype(">i2")[::-2]
    before = x.copy()
    list(as_rows(x).blocks(7))
    as_rows(x).take(np.array([1, 1]))
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("columns", [[2], [2, 0], ["1", "3"], [3, 2, 1, 0]])
def test_columns_by_number(columns: list[int | str]) -> None:
    x = RNG.normal(size=(9, 4))
    rows = as_rows(x, columns=columns)
    expected = x[:, [int(c) for c in columns]]
    assert rows.shape == expected.shape
    assert np.array_equal(rows.take(np.arange(9)), expected)
    assert np.array_equal(rows.map(lambda block: block, size=4), expected)


@pytest.mark.parametrize("columns", [[4], [-1], ["a"], [0, 0], []])
def test_columns_that_are_not_there(columns: list[int | str]) -> None:
    with pytest.raises(ValueError, match="column"):
        as_rows(np.zeros((2, 4)), columns=columns)
