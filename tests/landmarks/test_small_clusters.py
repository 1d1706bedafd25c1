"""A small cluster beside two large ones is hit by ten landmarks, which uniform ones seldom do."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gramian import kernels, landmarks
from gramian.data import as_rows
from gramian.landmarks import RecursiveRLS, Selector
from gramian.landmarks.leverage.sampling import systematic
from gramian.operators import KernelOperator

SIZES = (20, 1000, 980)
SEEDS = 40


def clusters() -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    corners = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]], dtype=torch.float64)
    label = torch.repeat_interleave(torch.arange(3), torch.tensor(SIZES))
    label = label[torch.randperm(len(label), generator=rng)]
    noise = torch.randn(len(label), 2, generator=rng, dtype=torch.float64)
    return corners[label] + 0.05 * noise, label


def hits(selector: Selector) -> float:
    X, label = clusters()
    rows = as_rows(X)
    K = KernelOperator(kernels.Gaussian(1.0), rows, rows)
    found = [selector.select(K, rng=torch.Generator().manual_seed(seed)) for seed in range(SEEDS)]
    return sum(len(label[chosen.index].unique()) == 3 for chosen in found) / SEEDS


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
    p = torch.cat([torch.full((30,), 0.1), torch.full((7000,), 0.001)]).double()
    for seed in range(20):
        drawn = systematic(p, torch.Generator().manual_seed(seed))
        assert len(drawn) == 10
        assert int((drawn < 30).sum()) == 3


def test_scores_of_zero_are_never_drawn():
    p = torch.tensor([0.0, 0.5, 0.0, 0.5], dtype=torch.float64)
    for seed in range(20):
        assert systematic(p, torch.Generator().manual_seed(seed)).tolist() in ([1], [3])
