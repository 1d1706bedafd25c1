"""A small cluster beside two large ones is hit by ten landmarks, which uniform ones seldom do."""

from __future__ import annotations

import numpy as np
import pytest

from gramian import _arrays as xp
from gramian import kernels, landmarks
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.landmarks import RecursiveRLS, Selector
from gramian.landmarks.leverage.sampling import systematic
from gramian.operators import KernelOperator

SIZES = (20, 1000, 980)
SEEDS = 40


def clusters() -> tuple[np.ndarray, np.ndarray]:
    rng = RandomStream(0)
    corners = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]], dtype=np.float64)
    label = np.repeat(np.arange(3), np.array(SIZES))
    label = label[rng.permutation(len(label))]
    noise = rng.standard_normal((len(label), 2), np.float64)
    return corners[label] + 0.05 * noise, label


def hits(selector: Selector) -> float:
    X, label = clusters()
    rows = as_rows(X)
    K = KernelOperator(kernels.Gaussian(1.0), rows, rows)
    found = [selector.select(K, rng=RandomStream(seed)) for seed in range(SEEDS)]
    return sum(len(np.unique(label[chosen.index])) == 3 for chosen in found) / SEEDS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bless", "bless_r", "recursive_rls", "rpcholesky", "squeak"])
def test_every_cluster_is_hit(name):
    assert hits(landmarks.make(name, m=10)) > 0.9


@pytest.mark.slow
def test_every_cluster_is_hit_by_accelerated_recursion():
    assert hits(RecursiveRLS(10, accelerated=True)) > 0.9


def test_uniform_landmarks_miss_the_small_one():
    assert hits(landmarks.Uniform(10)) < 0.4


def test_rows_of_one_probability_are_drawn_as_often_as_they_should_be():
    p = xp.to_float64(
        np.concatenate(
            [np.full((30,), 0.1, dtype=np.float32), np.full((7000,), 0.001, dtype=np.float32)]
        )
    )
    for seed in range(20):
        drawn = systematic(p, RandomStream(seed))
        assert len(drawn) == 10
        assert int((drawn < 30).sum()) == 3


def test_scores_of_zero_are_never_drawn():
    p = np.array([0.0, 0.5, 0.0, 0.5], dtype=np.float64)
    for seed in range(20):
        assert systematic(p, RandomStream(seed)).tolist() in ([1], [3])
