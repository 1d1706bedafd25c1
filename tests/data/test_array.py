"""Views where views are possible, and no warnings about read-only memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from gramian.data import as_rows

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_blocks_of_a_native_array_are_views(kind: type) -> None:
    x = RNG.normal(size=(9, 4)).astype(kind)
    for part, block in as_rows(x).blocks(4):
        assert block.data_ptr() == x[part].ctypes.data


def test_blocks_of_a_read_only_memmap_are_views_and_leave_it_read_only(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", RNG.normal(size=(9, 4)))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    for part, block in as_rows(x).blocks(4):
        assert block.data_ptr() == x[part].ctypes.data
    assert not x.flags.writeable


def test_blocks_of_a_tensor_are_views() -> None:
    x = torch.randn(9, 4)
    for part, block in as_rows(x).blocks(4):
        assert block.data_ptr() == x[part].data_ptr()


def test_a_frame_around_an_array_is_not_copied() -> None:
    x = RNG.normal(size=(9, 4))
    for part, block in as_rows(pd.DataFrame(x, copy=False)).blocks(4):
        assert block.data_ptr() == x[part].ctypes.data


def test_a_block_outlives_its_source() -> None:
    x = RNG.normal(size=(1000, 50))
    x.flags.writeable = False
    expected = x.copy()
    _, block = next(as_rows(x).blocks(1000))
    del x
    RNG.normal(size=(1000, 50))  # would reuse the memory, had it been freed
    np.testing.assert_array_equal(block.numpy(), expected)


def test_the_array_is_not_changed() -> None:
    x = RNG.integers(0, 9, (50, 3)).astype(">i2")[::-2]
    before = x.copy()
    list(as_rows(x).blocks(7))
    as_rows(x).take(torch.tensor([1, 1]))
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("columns", [[2], [2, 0], ["1", "3"], [3, 2, 1, 0]])
def test_columns_by_number(columns: list[int | str]) -> None:
    x = RNG.normal(size=(9, 4))
    rows = as_rows(x, columns=columns)
    expected = torch.from_numpy(x[:, [int(c) for c in columns]])
    assert rows.shape == expected.shape
    assert torch.equal(rows.take(torch.arange(9)), expected)
    assert torch.equal(rows.map(lambda block: block, size=4), expected)


@pytest.mark.parametrize("columns", [[4], [-1], ["a"], [0, 0], []])
def test_columns_that_are_not_there(columns: list[int | str]) -> None:
    with pytest.raises(ValueError, match="column"):
        as_rows(np.zeros((2, 4)), columns=columns)
