"""Features are made normal by their quantiles, whatever they are, and the map comes back whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
import torch
from torch import Tensor

from gramian.data import QuantileMap, as_rows

N = 600


@pytest.fixture
def X(rng) -> Tensor:
    """Normal, heavy-tailed, two values, one value, and zero in half of the rows."""
    x = torch.randn(N, 5, generator=rng, dtype=torch.float64)
    x[:, 1] = torch.tan(1.5 * torch.tanh(x[:, 1]))
    x[:, 2] = (x[:, 2] > 1).double() * 7
    x[:, 3] = 3.0
    x[:, 4] = x[:, 4].clamp(min=0)
    return x


def mapped(X: Tensor, rng: torch.Generator, new: Tensor | None = None) -> Tensor:
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
        torch.testing.assert_close(z.mean(0), torch.zeros(3).double(), atol=1e-12, rtol=0)
        torch.testing.assert_close(z.std(0, correction=0), torch.ones(3).double())

    def test_two_values_pass_and_one_becomes_zero(self, X, rng):
        new = X + torch.tensor([0.0, 0.0, 1.5, 2.0, 0.0])
        z = mapped(X, rng, new)
        assert torch.equal(z[:, 2], new[:, 2])
        assert torch.equal(z[:, 3], torch.zeros(N).double())

    def test_only_the_order_of_numbers_matters(self, X, rng):
        squeezed = torch.sign(X) * X.abs().sqrt()
        columns = [0, 1, 4]
        torch.testing.assert_close(
            mapped(squeezed[:, columns], rng), mapped(X[:, columns], rng), rtol=0, atol=0.05
        )

    def test_it_ends_where_the_training_rows_end(self, X, rng):
        far = torch.full((1, 5), 1e9).double()
        most, new = mapped(X, rng).amax(0), mapped(X, rng, torch.cat([far, -far]))
        torch.testing.assert_close(new[0, [0, 1]], most[[0, 1]])
        assert bool((new[:, [0, 1, 4]].abs() < 6).all())

    def test_type_and_blocks_do_not_matter(self, X, dtype, rng):
        rows = QuantileMap.fit(as_rows(X), rng=rng).apply(as_rows(X.to(dtype)))
        assert rows.dtype == dtype
        parts = torch.cat([block for _, block in rows.blocks(7)])
        assert parts.dtype == dtype
        assert torch.equal(parts, rows.take(torch.arange(N)))
        near = mapped(X, rng).to(dtype)
        torch.testing.assert_close(parts[:, [0, 2, 3]], near[:, [0, 2, 3]], atol=1e-4, rtol=0)

    def test_many_rows_are_sampled(self, rng):
        x = torch.rand(50_000, 1, generator=rng)
        z = mapped(x, rng)
        expected = torch.special.ndtri(x.double()).clamp(-3, 3)
        torch.testing.assert_close(z.double(), expected, atol=0.1, rtol=0)
        again = QuantileMap.fit(x, rng=torch.Generator().manual_seed(7))
        same = QuantileMap.fit(as_rows(x), rng=torch.Generator().manual_seed(7))
        assert torch.equal(again.quantiles, same.quantiles)
        assert not torch.equal(again.quantiles, QuantileMap.fit(x, rng=rng).quantiles)

    def test_one_row(self, rng):
        assert torch.equal(mapped(torch.ones(1, 2), rng), torch.zeros(1, 2))

    def test_equal_numbers_of_nearly_all_rows(self, rng):
        x = torch.zeros(5000, 1)
        x[:2, 0] = torch.tensor([1.0, 2.0])
        assert bool(mapped(x, rng).isfinite().all())

    def test_the_rows_are_not_changed(self, X, rng):
        before = X.clone()
        mapped(X, rng)
        QuantileMap.fit(X, rng=rng).slopes(X)
        assert torch.equal(X, before)

    def test_sparse_rows_are_refused(self, X, rng):
        sparse = as_rows(scipy.sparse.csr_array(X.numpy()))
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
        torch.testing.assert_close(found.slopes(near), change / (2 * step), rtol=1e-4, atol=1e-6)

    def test_zero_beyond_the_last_quantile(self, X, rng):
        slopes = QuantileMap.fit(X, rng=rng).slopes(torch.full((1, 5), 1e9).double())
        assert torch.equal(slopes, torch.tensor([[0.0, 0.0, 1.0, 0.0, 0.0]]).double())

    def test_they_are_finite_whatever_the_numbers(self, rng):
        x = torch.zeros(53, 1, dtype=torch.float64)
        x[50:, 0] = torch.tensor([5e-324, 1e-323, 1.0], dtype=torch.float64)
        assert bool(QuantileMap.fit(x, rng=rng).slopes(x).isfinite().all())


class TestParts:
    def test_it_comes_back(self, X, rng):
        found = QuantileMap.fit(X, rng=rng)
        again = QuantileMap.from_parts(found.to_dict(), found.tensors())
        assert torch.equal(again.scores(X), found.scores(X))
        assert torch.equal(again.slopes(X), found.slopes(X))

    def test_one_that_maps_nothing_comes_back(self, rng):
        found = QuantileMap.fit(torch.tensor([[0.0, 1.0], [0.0, 2.0]]), rng=rng)
        again = QuantileMap.from_parts(found.to_dict(), found.tensors())
        assert torch.equal(again.scores(torch.ones(1, 2)), torch.tensor([[0.0, 1.0]]))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"columns": torch.tensor([0, 1, 5])}, "columns .* must increase, from 0 to below 5"),
            ({"columns": torch.tensor([1, 0, 4])}, "columns .* must increase, from 0 to below 5"),
            ({"columns": torch.ones(3)}, "columns .* must be whole numbers"),
            ({"constant": torch.tensor([1])}, "has a feature twice"),
            ({"mean": torch.ones(2).double()}, "mean .* has shape"),
            ({"scale": torch.zeros(3).double()}, "scales must be positive"),
            ({"scale": torch.ones(3)}, "scale .* has shape"),
            ({"mean": torch.full((3,), np.nan).double()}, "mean .* not finite"),
            ({"quantiles": torch.arange(12.0).double().reshape(3, 4).flip(1)}, "not decrease"),
            ({"quantiles": torch.zeros(3, 1).double()}, "too few quantiles"),
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
    rng = torch.Generator().manual_seed(0)
    X = torch.rand(20_000, 700, generator=rng)
    X[:, 0] = 0.0
    X[777, 0], X[778, 0] = 1.0, 2.0  # between the rows that are sorted
    X[:, 1] = 3.0
    found = QuantileMap.fit(X, rng=rng)
    assert found.constant.tolist() == [1]
    assert found.columns.tolist() == list(range(2, 700))
    scores = found.scores(X[:, :])
    assert torch.equal(scores[:, 0], X[:, 0])
    assert bool(((scores[:, 2:].std(dim=0) - 1).abs() < 0.1).all())
