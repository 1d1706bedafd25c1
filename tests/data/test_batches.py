"""Batches: each row once per epoch, the same again, from any source; and augmentation."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import Batches, as_rows, crop_flip, mixup, noise

N, D = 103, 3


@pytest.fixture
def X(rng):
    return rng.standard_normal((N, D), np.float64)


def sequential(X, folder):
    table = pa.table({f"x{j}": X[:, j] for j in range(D)})
    pq.write_table(table, folder / "x.parquet", row_group_size=17)
    return as_rows(folder / "x.parquet")


def listed(batches, epoch, *part):
    return [(index.tolist(), rows) for index, rows in batches.epoch(epoch, *part)]


@pytest.mark.parametrize("memory", [10, 2000, 1 << 20])
@pytest.mark.parametrize("source", ["memory", "parquet"])
def test_each_row_once_with_its_own_number(X, source, memory, tmp_path):
    rows = as_rows(X) if source == "memory" else sequential(X, tmp_path)
    batches = Batches(rows, 10, seed=3, memory_bytes=memory)
    for epoch in range(2):
        found = listed(batches, epoch)
        assert len(found) == len(batches)
        assert sorted(i for index, _ in found for i in index) == list(range(N))
        for index, part in found:
            assert np.array_equal(part, X[index])
            assert len(index) <= 10


@pytest.mark.parametrize("memory", [10, 2000, 1 << 20])
def test_starting_at_a_position(X, memory, tmp_path):
    for rows in (as_rows(X), sequential(X, tmp_path)):
        batches = Batches(rows, 10, seed=3, memory_bytes=memory)
        whole = [index for index, _ in listed(batches, 1)]
        assert [index for index, _ in listed(batches, 1, 4)] == whole[4:]
        assert [index for index, _ in listed(batches, 1, 2, 7)] == whole[2:7]


def test_seeds_and_epochs_differ(X):
    rows = as_rows(X)
    orders = [
        [index for index, _ in listed(Batches(rows, 10, seed), epoch)]
        for seed, epoch in ((0, 0), (0, 1), (1, 0), (0, 0))
    ]
    assert orders[0] == orders[3]
    assert orders[0] != orders[1] != orders[2] != orders[0]


def test_a_sequential_source_that_fits_gives_the_batches_of_random_access(X, tmp_path):
    one = listed(Batches(as_rows(X), 10, seed=5), 0)
    two = listed(Batches(sequential(X, tmp_path), 10, seed=5), 0)
    assert [index for index, _ in one] == [index for index, _ in two]


def test_noise_has_its_deviation(dtype, rng):
    x, y = np.zeros((2000, 4), dtype), np.ones((2000, 1), np.float32)
    changed, same = noise(0.5)(x, y, rng)
    assert changed.dtype == dtype
    assert float(changed.std()) == pytest.approx(0.5, rel=0.05)
    assert same is y
    assert not x.any()


def test_mixup_mixes_targets_as_rows(dtype, rng):
    x = rng.standard_normal((50, 4), dtype)
    changed, target = mixup(1.0)(x, 2 * x[:, :1], rng)
    assert_close(target, 2 * changed[:, :1])
    assert not np.array_equal(changed, x)
    assert float(changed.max()) <= float(x.max())


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 5)])
def test_crops_are_windows_of_the_padded_image(shape, rng):
    size = math.prod(shape)
    x = 1 + np.arange(2 * size, dtype=np.float64).reshape(2, size)
    y = np.zeros((2, 1), np.float32)
    assert np.array_equal(crop_flip(shape, pad=0, flip=False)(x, y, rng)[0], x)
    seen = set()
    for _ in range(60):
        changed, _ = crop_flip(shape, pad=1)(x, y, rng)
        image, padded = (
            changed[1].reshape(-1, 4, 5),
            np.pad(x[1].reshape(-1, 4, 5), ((0, 0), (1, 1), (1, 1))),
        )
        windows = {
            (i, j, flip): xp.flip(window, -1) if flip else window
            for i in range(3)
            for j in range(3)
            for flip in (False, True)
            for window in [padded[:, i : i + 4, j : j + 5]]
        }
        same = [key for key, window in windows.items() if np.array_equal(window, image)]
        assert len(same) == 1
        seen.add(same[0])
    assert len(seen) > 10


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: noise(-1), "sigma must be finite and at least 0, not -1"),
        (lambda: mixup(0), "alpha must be positive and finite, not 0"),
        (lambda: crop_flip((3,)), r"shape must be \(height, width\) or"),
        (lambda: crop_flip((3, 3), pad=-1), "pad must be at least 0"),
        (
            lambda: crop_flip((3, 3))(
                np.zeros((1, 8), np.float32), np.zeros((1, 1), np.float32), RandomStream(0)
            ),
            r"images of shape \(3, 3\) have 9 features, but the rows have 8",
        ),
    ],
)
def test_settings_that_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()
