"""Features are made normal by their quantiles, whatever they are, and the map comes back whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import scipy.special
import scipy.stats
from close import assert_close

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import QuantileMap, as_rows
from gramian.data.maps import quantiles
from gramian.operators import compiled_tiles

N = 600


@pytest.fixture
def X(rng) -> np.ndarray:
    """Normal, heavy-tailed, two values, one value, and zero in half of the rows."""
    x = rng.standard_normal((N, 5), np.float64)
    x[:, 1] = np.tan(1.5 * np.tanh(x[:, 1]))
    x[:, 2] = xp.to_float64(x[:, 2] > 1) * 7
    x[:, 3] = 3.0
    x[:, 4] = x[:, 4].clip(min=0)
    return x


def mapped(X: np.ndarray, rng: RandomStream, new: np.ndarray | None = None) -> np.ndarray:
    rows = QuantileMap.fit(as_rows(X), rng=rng).apply(as_rows(X if new is None else new))
    return next(rows.blocks(len(rows)))[1]


class TestMap:
    def test_scores_are_normal(self, X, rng):
        z = mapped(X, rng)
        expected = scipy.stats.norm.ppf((scipy.stats.rankdata(X[:, 1]) - 0.5) / N)
        inner = np.abs(expected) < 2  # beyond, scores end at 3
        np.testing.assert_allclose(z[inner, 1], (expected / expected.std())[inner], atol=0.05)

    def test_mean_and_deviation(self, X, rng):
        z = mapped(X, rng)[:, [0, 1, 4]]
        assert_close(z.mean(0), np.zeros(3), atol=1e-12, rtol=0)
        assert_close(z.std(axis=0), np.ones(3))

    def test_two_values_pass_and_one_becomes_zero(self, X, rng):
        new = X + np.array([0.0, 0.0, 1.5, 2.0, 0.0], dtype=np.float32)
        z = mapped(X, rng, new)
        assert np.array_equal(z[:, 2], new[:, 2])
        assert np.array_equal(z[:, 3], np.zeros(N))

    def test_only_the_order_of_numbers_matters(self, X, rng):
        squeezed = np.sign(X) * np.sqrt(np.abs(X))
        columns = [0, 1, 4]
        assert_close(
            mapped(squeezed[:, columns], rng), mapped(X[:, columns], rng), rtol=0, atol=0.05
        )

    def test_it_ends_where_the_training_rows_end(self, X, rng):
        far = np.full((1, 5), 1e9)
        most, new = xp.max(mapped(X, rng), 0), mapped(X, rng, np.concatenate([far, -far]))
        assert_close(new[0, [0, 1]], most[[0, 1]])
        assert bool((np.abs(new[:, [0, 1, 4]]) < 6).all())

    def test_type_and_blocks_do_not_matter(self, X, dtype, rng):
        rows = QuantileMap.fit(as_rows(X), rng=rng).apply(as_rows(xp.cast(X, dtype)))
        assert rows.dtype == dtype
        parts = np.concatenate([block for _, block in rows.blocks(7)])
        assert parts.dtype == dtype
        assert np.array_equal(parts, rows.take(np.arange(N)))
        near = xp.cast(mapped(X, rng), dtype)
        assert_close(parts[:, [0, 2, 3]], near[:, [0, 2, 3]], atol=1e-4, rtol=0)

    def test_many_rows_are_sampled(self, rng):
        x = rng.random((50_000, 1), np.float32)
        z = mapped(x, rng)
        expected = scipy.special.ndtri(xp.to_float64(x)).clip(-3, 3)
        assert_close(xp.to_float64(z), expected, atol=0.1, rtol=0)
        again = QuantileMap.fit(x, rng=RandomStream(7))
        same = QuantileMap.fit(as_rows(x), rng=RandomStream(7))
        assert np.array_equal(again.quantiles, same.quantiles)
        assert not np.array_equal(again.quantiles, QuantileMap.fit(x, rng=rng).quantiles)

    def test_one_row(self, rng):
        assert np.array_equal(
            mapped(np.ones((1, 2), np.float32), rng), np.zeros((1, 2), np.float32)
        )

    def test_equal_numbers_of_nearly_all_rows(self, rng):
        x = np.zeros((5000, 1), np.float32)
        x[:2, 0] = np.array([1.0, 2.0], dtype=np.float32)
        assert bool(np.isfinite(mapped(x, rng)).all())

    def test_the_rows_are_not_changed(self, X, rng):
        before = xp.copy(X)
        mapped(X, rng)
        QuantileMap.fit(X, rng=rng).slopes(X)
        assert np.array_equal(X, before)

    def test_sparse_rows_are_refused(self, X, rng):
        sparse = as_rows(scipy.sparse.csr_array(X))
        with pytest.raises(ValueError, match=r"would fill the zeros of sparse rows; set"):
            QuantileMap.fit(sparse, rng=rng)
        with pytest.raises(ValueError, match="would fill the zeros of sparse rows"):
            QuantileMap.fit(X, rng=rng).apply(sparse)

    def test_other_features_are_refused(self, X, rng):
        with pytest.raises(ValueError, match="4 features, but the quantile map takes 5"):
            QuantileMap.fit(X, rng=rng).apply(as_rows(X[:, :4]))


class TestSlopes:
    def test_they_are_those_of_the_map(self, X, rng):
        found = QuantileMap.fit(X[:100], rng=rng)
        step = 1e-7
        near = X[100:] + 1e-4  # no quantile within the step
        change = found.scores(near + step) - found.scores(near - step)
        assert_close(found.slopes(near), change / (2 * step), rtol=1e-4, atol=1e-6)

    def test_zero_beyond_the_last_quantile(self, X, rng):
        slopes = QuantileMap.fit(X, rng=rng).slopes(np.full((1, 5), 1e9))
        assert np.array_equal(
            slopes, xp.to_float64(np.array([[0.0, 0.0, 1.0, 0.0, 0.0]], dtype=np.float32))
        )

    def test_they_are_finite_whatever_the_numbers(self, rng):
        x = np.zeros((53, 1), np.float64)
        x[50:, 0] = np.array([5e-324, 1e-323, 1.0], dtype=np.float64)
        assert bool(np.isfinite(QuantileMap.fit(x, rng=rng).slopes(x)).all())


class TestParts:
    def test_it_comes_back(self, X, rng):
        found = QuantileMap.fit(X, rng=rng)
        again = QuantileMap.from_parts(found.to_dict(), found.tensors())
        assert np.array_equal(again.scores(X), found.scores(X))
        assert np.array_equal(again.slopes(X), found.slopes(X))

    def test_one_that_maps_nothing_comes_back(self, rng):
        found = QuantileMap.fit(np.array([[0.0, 1.0], [0.0, 2.0]], dtype=np.float32), rng=rng)
        again = QuantileMap.from_parts(found.to_dict(), found.tensors())
        assert np.array_equal(
            again.scores(np.ones((1, 2), np.float32)), np.array([[0.0, 1.0]], dtype=np.float32)
        )

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"columns": np.array([0, 1, 5])}, "columns .* must increase, from 0 to below 5"),
            ({"columns": np.array([1, 0, 4])}, "columns .* must increase, from 0 to below 5"),
            ({"columns": np.ones(3, np.float32)}, "columns .* must be whole numbers"),
            ({"constant": np.array([1])}, "has a feature twice"),
            ({"mean": np.ones(2)}, "mean .* has shape"),
            ({"scale": np.zeros(3)}, "scales must be positive"),
            ({"scale": np.ones(3, np.float32)}, "scale .* has shape"),
            ({"mean": np.full((3,), np.nan)}, "mean .* not finite"),
            (
                {"quantiles": xp.flip(np.arange(12.0).reshape(3, 4), 1)},
                "not decrease",
            ),
            ({"quantiles": np.zeros((3, 1))}, "too few quantiles"),
        ],
    )
    def test_damage_is_refused(self, change, message, X, rng):
        found = replace(QuantileMap.fit(X, rng=rng))
        with pytest.raises(ValueError, match=message):
            QuantileMap.from_parts(found.to_dict(), found.tensors() | change)

    @pytest.mark.parametrize("fields", [None, {}, {"features": "5"}, {"features": 5, "more": 1}])
    def test_other_fields_are_refused(self, fields, X, rng):
        with pytest.raises(ValueError, match="lacks a part, or has an unknown one"):
            QuantileMap.from_parts(fields, QuantileMap.fit(X, rng=rng).tensors())


@pytest.mark.slow
def test_of_many_features_fewer_rows_are_sorted_and_none_is_lost():
    """A feature that varies in rare rows only is not taken for a constant."""
    rng = RandomStream(0)
    X = rng.random((20_000, 700), np.float32)
    X[:, 0] = 0.0
    X[777, 0], X[778, 0] = 1.0, 2.0  # between the rows that are sorted
    X[:, 1] = 3.0
    found = QuantileMap.fit(X, rng=rng)
    assert found.constant.tolist() == [1]
    assert found.columns.tolist() == list(range(2, 700))
    scores = found.scores(X[:, :])
    assert np.array_equal(scores[:, 0], X[:, 0])
    assert bool((np.abs(scores[:, 2:].std(axis=0) - 1) < 0.1).all())


@pytest.mark.skipif(not compiled_tiles(), reason="the compiled module is not installed")
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_compiled_shares_are_those_of_numpy(monkeypatch):
    rng = np.random.default_rng(0)
    sorted_numbers = np.sort(rng.standard_normal((8, 50)), axis=1)
    sorted_numbers[1] = np.round(sorted_numbers[1])  # equal ones
    sorted_numbers[2, :40] = 0.0
    sorted_numbers[3] *= 5e-324 * 2**20  # apart by the least numbers: slopes overflow
    sorted_numbers[4] *= 1e308
    sorted_numbers[5] = 1.0
    sorted_numbers[6, -20:] = sorted_numbers[6, -1]
    x = np.concatenate(
        [
            sorted_numbers.T,
            (sorted_numbers[:, 1:] / 2 + sorted_numbers[:, :-1] / 2).T,
            rng.standard_normal((200, 8)),
            np.array([[0.0], [-0.0], [np.nan], [np.inf], [-np.inf], [1e300]]) + np.zeros(8),
        ]
    )
    for count in (1, 2, 3, 50):
        table = np.ascontiguousarray(sorted_numbers[:, :count])
        compiled = quantiles.normal_scores(x, table)
        with monkeypatch.context() as patch:
            patch.setattr(quantiles, "load_compiled", lambda: None)
            plain = quantiles.normal_scores(x, table)
        rows = np.isfinite(x).all(axis=1) if count == 1 else slice(None)  # where a lone one is NaN
        assert np.array_equal(compiled[rows], plain[rows], equal_nan=True)
        assert np.array_equal(
            quantiles.normal_scores(x[:, 2], table[2]), compiled[:, 2], equal_nan=True
        )
