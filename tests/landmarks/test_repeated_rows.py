"""Equal rows are one landmark at most: drawn as one, with the weight of all of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from close import assert_close

from gramian import _arrays as xp
from gramian import kernels, landmarks
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.landmarks import Landmarks
from gramian.landmarks.leverage.candidates import Candidates, group_keys, row_keys
from gramian.landmarks.leverage.scores import Dictionary
from gramian.operators import KernelOperator

WEIGHTED = ["bless", "bless_r", "exact_rls", "recursive_rls", "squeak", "two_pass", "uniform"]
DISTINCT, N = 60, 400


def points(n: int, d: int = 2) -> np.ndarray:
    return 2 * RandomStream(0).standard_normal((n, d), np.float64)


def repeated(n: int = N, distinct: int = DISTINCT) -> np.ndarray:
    """Rows of which the first is a third of all and others are there once to some times."""
    rng = RandomStream(1)
    others = xp.cast(np.square(rng.random(n - distinct, np.float32)) * distinct, np.int64)
    others[: n // 3] = 0
    which = np.concatenate([np.arange(distinct), others])
    return points(distinct)[which[rng.permutation(n)]]


def operator(X, kernel: kernels.Kernel | None = None) -> KernelOperator:
    rows = as_rows(X)
    return KernelOperator(kernel or kernels.Gaussian(1.0), rows, rows)


def select(K: KernelOperator, name: str, seed: int = 0, **settings) -> Landmarks:
    return landmarks.make(name, **settings).select(K, rng=RandomStream(seed))


@pytest.mark.parametrize("name", landmarks.names())
@pytest.mark.parametrize("kernel", [kernels.Gaussian(1.0), kernels.Linear()], ids=["full", "rank"])
@pytest.mark.parametrize("m", [1, 20, DISTINCT - 1, DISTINCT + 9])
def test_as_many_as_asked_for_while_there_are_distinct_rows(name, kernel, m):
    chosen = select(operator(repeated(), kernel), name, m=m)
    assert len(np.unique(chosen.points, axis=0)) == len(chosen.points) == min(m, DISTINCT)
    assert bool((chosen.weight > 0).all())


@pytest.mark.parametrize("name", [*WEIGHTED, "rpcholesky"])
@pytest.mark.parametrize("m", [DISTINCT + 1, N])  # with 60, "uniform" stops before it met all rows
def test_all_distinct_rows_weigh_what_they_stand_for(name, m):
    X = repeated()
    chosen = select(operator(X), name, m=m)
    count = (X[:, None] == chosen.points).all(axis=2).sum(axis=0)
    assert_close(chosen.weight, xp.to_float64(count) * (DISTINCT / N), rtol=1e-9, atol=0)
    if name in WEIGHTED:
        assert chosen.coverage == pytest.approx(1)


@pytest.mark.parametrize(
    "name",
    [
        name if name == "recursive_rls" else pytest.param(name, marks=pytest.mark.slow)
        for name in WEIGHTED
    ],
)
@pytest.mark.parametrize(
    "settings",
    [{"m": 9}, pytest.param({"penalty": 0.1}, marks=pytest.mark.slow)],
    ids=["m", "penalty"],
)
def test_weights_are_unbiased(name, settings):
    X = repeated(90, 25)
    K = operator(X)
    norms, sums = np.square(X).sum(axis=1) + 1, []
    for seed in range(150):
        J = Dictionary.of(select(K, name, seed, **settings), len(X))
        sums.append((norms[J.index] / J.copies).sum())
    found, expected = np.stack(sums), float(norms.sum())
    error = 4.5 * float(found.std()) / 150**0.5 + 1e-9 * expected
    assert abs(float(found.mean()) - expected) <= error


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bless_r", "exact_rls", "two_pass"])
def test_equal_rows_are_drawn_by_the_sum_of_their_scores(name):
    # far apart, with a penalty so small that any number of equal rows have one in sum
    X = xp.to_float64(
        np.concatenate([np.zeros((30, 1), np.float32), 100.0 * np.arange(1, 11)[:, None]])
    )
    K, counts = operator(X), np.zeros(len(X), np.float32)
    for seed in range(120):
        counts[select(K, name, seed, penalty=1e-3, oversampling=0.3).index] += 1
    assert int((counts[:30] > 0).sum()) == 1
    assert 14 <= int(counts[:30].sum()) <= 59  # 36 expected
    assert bool((counts[30:] >= 14).all())
    assert bool((counts[30:] <= 59).all())


class TestKeys:
    def keys(self, X) -> np.ndarray:
        return row_keys(as_rows(X))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("d", [1, 2, 5])
    def test_equal_rows_and_no_others_have_equal_keys(self, dtype, d):
        grid = (
            np.stack(
                np.meshgrid(
                    *[np.arange(-4.0, 4.0, 0.5, dtype=np.float32)] * min(d, 3), indexing="ij"
                ),
                axis=-1,
            )
            .reshape(-1, 1)
            .reshape(-1, min(d, 3))
        )
        X = xp.cast(np.pad(grid, ((0, 0), (0, d - grid.shape[1])), constant_values=1.0), dtype)
        assert len(np.unique(self.keys(X))) == len(X)
        twice = self.keys(np.concatenate([X, xp.flip(X, 0)]))
        assert np.array_equal(twice[: len(X)], xp.flip(twice[len(X) :], 0))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_rows_of_zeros_and_ones(self, dtype):
        bits = xp.cast(
            np.stack(
                np.meshgrid(*[np.array([0.0, 1.0], dtype=np.float32)] * 15, indexing="ij"), axis=-1
            ).reshape(-1, 15),
            dtype,
        )
        assert len(np.unique(self.keys(bits))) == 2**15

    def test_where_a_number_stands_matters(self):
        assert len(np.unique(self.keys(np.eye(40, dtype=np.float32)))) == 40

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_zeros_are_equal_whatever_their_sign_and_stored_or_not(self, dtype):
        X = np.array([[0.0, 1.0, 0.0], [-0.0, 1.0, -0.0]], dtype)
        assert len(np.unique(self.keys(X))) == 1
        stored = scipy.sparse.csr_array(
            (np.array([0.0, 1.0, 1.0], dtype), ([0, 0, 1], [0, 1, 1])), shape=(2, 3)
        )
        assert stored.nnz == 3
        assert len(np.unique(self.keys(stored))) == 1

    def test_sparse_rows(self):
        X = scipy.sparse.csr_array(np.eye(40, dtype=np.float32)[np.arange(80) % 40])
        assert np.array_equal(self.keys(X)[:40], self.keys(X)[40:])
        assert len(np.unique(self.keys(X))) == 40

    def test_blocks_do_not_matter(self):
        X = points(3000, 90)  # more numbers than a block holds
        assert np.array_equal(self.keys(X), np.concatenate([self.keys(X[:7]), self.keys(X[7:])]))


def test_group_keys():
    keys = np.array([5, -3, 5, 5, 8, -3])
    first, group = group_keys(keys)
    assert first.tolist() == [0, 1, 4]
    assert group.tolist() == [0, 1, 0, 0, 2, 1]


def test_candidates_add_up_what_they_are_given():
    X = points(3)[np.array([0, 1, 0, 2, 1])]
    found = Candidates.of(
        operator(X), np.array([1, 2, 4]), xp.to_float64(np.array([2.0, 1, 3], dtype=np.float32))
    )
    assert found.index.tolist() == [1, 2]
    assert found.times.tolist() == [5, 1]
