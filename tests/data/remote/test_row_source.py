"""Rows that are elsewhere: what is sent to them, and what comes back."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from close import assert_close
from remote import Remote, Traffic, delivered

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import (
    ArrayRows,
    BlockReduction,
    Cast,
    Complement,
    LinearMap,
    QuantileMap,
    RemoteDescription,
    RowIndex,
    Select,
    Shifted,
    Standardizer,
    Subset,
    Sum,
    as_rows,
    cast_rows,
    check_finite,
    complement,
    gather_rows,
    refuse_remote,
    select,
    subset,
)
from gramian.data.rows.digest import digest

N, D = 90, 3


@pytest.fixture
def X() -> np.ndarray:
    rng = RandomStream(0)
    return rng.standard_normal((N, D), np.float64) + 3


def all_of(rows: Remote) -> np.ndarray:
    return rows.map(xp.copy, size=7)


class TestVerbs:
    def test_a_fold_is_in_the_order_of_the_rows(self, X):
        y = np.arange(N)
        found = Remote.of(X).fold(Order(), y, size=4)
        expected = as_rows(X).fold(Order(), y, size=N)
        assert np.array_equal(np.concatenate([rows for _, rows, _ in found]), X)
        assert np.array_equal(np.concatenate([numbers for *_, numbers in found]), y)
        assert next(start for start, *_ in found) == 0
        assert np.array_equal(np.concatenate([rows for _, rows, _ in expected]), X)
        starts = [(start, int(numbers[0])) for start, _, numbers in found]
        assert all(start == first for start, first in starts)

    def test_a_sum_does_not_write_to_what_the_function_keeps(self, X):
        buffer = np.zeros(D, np.float64)

        def one(block: np.ndarray) -> np.ndarray:
            return np.sum(block, axis=0, out=buffer)

        total = as_rows(X).fold(Sum(one), size=11)
        assert_close(total, X.sum(axis=0))
        assert_close(Sum(one).merge(xp.copy(X[0]), X[1]), X[0] + X[1])

    def test_numbers_of_rows_are_not_stored(self):
        part = RowIndex(10)[2:7][1:3]
        assert (part.first, len(part), part.shape) == (3, 2, (2,))
        assert xp.to_float64(part) is part
        assert len(pickle.dumps(RowIndex(1 << 40))) < 200

    def test_a_shifted_folding_counts_from_the_first_of_all_rows(self, X):
        found = as_rows(X[40:]).fold(Shifted(Order(), 40), size=20)
        assert [start for start, *_ in found] == [40, 60, 80]

    def test_a_view_is_sent_without_what_is_around_it(self):
        whole = np.zeros(1 << 16, np.float32)
        assert len(pickle.dumps(whole[:4])) < 1000

    def test_what_weighs_more_than_it_says_is_noticed(self):
        with pytest.raises(AssertionError, match="weighs"):
            delivered(partial(max, bytes(1 << 16)), Traffic())

    def test_a_description_has_no_rows(self, X):
        told = RemoteDescription(as_rows(X), 5)
        assert told.shape == (5, D)
        with pytest.raises(RuntimeError, match="only the shape and type of these remote rows"):
            told.take(np.array([0]))
        with pytest.raises(RuntimeError, match="only the shape and type of these remote rows"):
            told.blocks(1)

    def test_remote_rows_never_fit(self, X):
        assert as_rows(X).fits()
        assert as_rows(X).fits(N)
        assert not as_rows(X).fits(N - 1)
        assert not Remote.of(X).fits()
        refuse_remote(as_rows(X), "unused")
        refuse_remote(pd.DataFrame({"remote": [True]}), "unused")  # a column of this name
        with pytest.raises(ValueError, match="leave landmarks out"):
            refuse_remote(Remote.of(X), "leave {landmarks} out")

    def test_a_digest_of_one_part_is_the_digest_of_its_rows(self, X):
        assert digest(Remote.of(X, parts=1)) == digest(as_rows(X))
        assert digest(Remote.of(X, parts=2)) != digest(as_rows(X))


class Order(BlockReduction):
    """The folding that forgets nothing."""

    def __call__(self, start, block, *rowwise):
        return [(start, xp.copy(block), *rowwise)]

    def merge(self, a, b):
        return a + b

    def add(self, total, start, block, *rowwise):
        return total + self(start, block, *rowwise)


class TestWrapping:
    @pytest.mark.parametrize(
        "wrap",
        [
            lambda rows: cast_rows(rows, np.float32),
            lambda rows: select(rows, [2, 0]),
            lambda rows: Standardizer(
                np.ones(D),
                np.full((D,), 2.0),
            ).apply(rows),
            lambda rows: LinearMap(scales=np.arange(float(D))).apply(rows),
            lambda rows: LinearMap(matrix=np.ones((D, 2))).apply(rows),
            lambda rows: subset(rows, np.array([0, 3, 4, 50, N - 1])),
            lambda rows: subset(rows, np.array([N - 1])),
            lambda rows: complement(rows, np.arange(40)),
            lambda rows: complement(rows, np.array([1, 2, 80])),
        ],
    )
    def test_rows_are_changed_where_they_are(self, X, wrap):
        rows = Remote.of(X)
        changed, expected = wrap(rows), wrap(as_rows(X))
        assert changed.remote
        assert (changed.shape, changed.dtype) == (expected.shape, expected.dtype)
        assert np.array_equal(all_of(changed), expected.take(np.arange(len(expected))))
        assert rows.traffic.taken == 0

    def test_quantiles_are_learned_from_rows_that_are_taken(self, X):
        rows = Remote.of(X)
        found = QuantileMap.fit(rows, rng=RandomStream(0))
        assert rows.traffic.taken == N
        expected = found.apply(as_rows(X)).take(np.arange(N))
        assert np.array_equal(all_of(found.apply(rows)), expected)

    @pytest.mark.parametrize(
        "wrap",
        [
            lambda rows: Cast(rows, np.float32),
            lambda rows: Select(rows, [0]),
            lambda rows: Subset(rows, np.array([0])),
            lambda rows: Complement(rows, np.array([0])),
        ],
    )
    def test_no_source_reads_remote_rows_block_by_block(self, X, wrap):
        with pytest.raises(ValueError, match=r"needs local rows, but Remote\(90 x 3"):
            wrap(Remote.of(X))

    def test_some_remote_rows_are_in_their_order(self, X):
        with pytest.raises(ValueError, match="strictly increasing"):
            subset(Remote.of(X), np.array([3, 1]))

    def test_points_that_exceed_the_memory_are_taken_in_parts(self, X):
        index = RandomStream(0).permutation(N)
        assert np.array_equal(gather_rows(Remote.of(X), index, memory_bytes=100), X[index])


class TestPasses:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_moments_are_those_of_all_rows(self, X, weighted):
        weights = np.random.default_rng(0).random(N) + 0.1 if weighted else None
        X[:, 1] = 7
        found = Standardizer.fit(Remote.of(X), 8, weights=weights)
        expected = Standardizer.fit(as_rows(X), 8, weights=weights)
        assert_close(found.mean, expected.mean, rtol=1e-13, atol=0)
        assert_close(found.scale, expected.scale, rtol=1e-13, atol=0)
        assert found.constant == expected.constant == (1,)

    def test_columns_far_from_zero_keep_their_digits(self, X):
        far = X + 1e9
        found, expected = Standardizer.fit(Remote.of(far)), Standardizer.fit(as_rows(far))
        assert_close(found.scale, expected.scale, rtol=1e-9, atol=0)

    def test_what_is_not_finite_is_counted_and_named(self, X):
        X[50, 1], X[70, 2], X[80, 0] = np.nan, np.inf, np.nan
        rows = Remote.of(X, names=("a", "b", "c"))
        for look in (check_finite, Standardizer.fit):
            with pytest.raises(ValueError, match=r"2 NaN and 1 inf.*row 50, column 'b'"):
                look(rows)

    def test_a_copy_of_the_target_is_found(self, X):
        rows = Remote.of(X)
        for look in (check_finite, Standardizer.fit):
            with pytest.raises(ValueError, match="contains the target: column 1"):
                look(rows, targets=X[:, 1])

    @pytest.mark.parametrize("row", [0, 40, N - 1])
    def test_a_column_that_differs_in_one_row_is_no_copy(self, X, row):
        y = X[:, 1].copy()
        y[row] += 1
        check_finite(Remote.of(X), targets=y)

    def test_a_digest_sees_each_entry(self, X):
        other = xp.copy(X)
        other[77, 2] += 1e-9
        assert digest(Remote.of(X)) == digest(Remote.of(X)) != digest(Remote.of(other))
        assert digest(Remote.of(X)) != digest(Remote.of(xp.cast(X, np.float32)))


def test_names_and_types_are_those_of_the_parts():
    rows = Remote([ArrayRows(np.zeros((2, 1), np.float32), feature_names=["a"])])
    assert (rows.feature_names, rows.dtype, rows.shape) == (("a",), np.float32, (2, 1))
