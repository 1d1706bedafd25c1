"""RandomStream: its numbers are those of torch's generator, of which files of states are full."""

from __future__ import annotations

import copy
import pickle
import tracemalloc

import numpy as np
import pytest

from gramian import RandomStream
from gramian._arrays import as_stream, random

SEEDS = [0, 1, 2**31 - 1, 2**40 + 17]


def test_recorded_numbers():
    """As version 0.1 drew them, with the generator of torch 2.13."""
    stream = RandomStream(0)
    assert stream.permutation(8).tolist() == [4, 0, 7, 3, 2, 5, 1, 6]
    assert stream.random(2).tolist() == [0.17155810530414428, 0.0584505300016952]
    assert stream.random(2, np.float32).tolist() == [0.40171730518341064, 0.022325754165649414]
    assert stream.integers(10, size=4).tolist() == [9, 8, 6, 6]
    np.testing.assert_allclose(
        stream.standard_normal(2), [-0.625465829322795, 0.4538792286628924], rtol=1e-14
    )


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("seed", SEEDS)
class TestTorch:
    def test_uniform_numbers(self, torch, seed):
        for kind in ("float32", "float64"):
            ours, theirs = RandomStream(seed), torch.Generator().manual_seed(seed)
            for n in (1, 15, 100_000):
                expected = torch.rand(n, generator=theirs, dtype=getattr(torch, kind)).numpy()
                assert np.array_equal(ours.random(n, np.dtype(kind)), expected)

    def test_normal_numbers_to_the_last_bit(self, torch, seed):
        for kind in ("float32", "float64"):
            ours, theirs = RandomStream(seed), torch.Generator().manual_seed(seed)
            eps = float(np.finfo(kind).eps)
            for n in (1, 2, 15, 16, 17, 100_000):
                expected = torch.randn(n, generator=theirs, dtype=getattr(torch, kind)).numpy()
                drawn = ours.standard_normal(n, np.dtype(kind))
                np.testing.assert_allclose(drawn, expected, rtol=8 * eps, atol=8 * eps)

    def test_whole_numbers_and_orders(self, torch, seed):
        ours, theirs = RandomStream(seed), torch.Generator().manual_seed(seed)
        for high in (2, 7, 1000, 2**28 - 1, 2**28, 2**31 - 1, 2**62):
            expected = torch.randint(high, (25_000,), generator=theirs).numpy()
            assert np.array_equal(ours.integers(high, size=25_000), expected)
        for n in (1, 2, 10, 100_000):
            assert np.array_equal(ours.permutation(n), torch.randperm(n, generator=theirs).numpy())

    def test_states_are_exchanged(self, torch, seed):
        ours, theirs = RandomStream(seed), torch.Generator().manual_seed(seed)
        for draws in (0, 1, 623, 1000):
            ours.random(draws, np.float32), torch.rand(draws, generator=theirs)
            assert np.array_equal(ours.state(), theirs.get_state().numpy())
            again, other = RandomStream(5), torch.Generator()
            again.set_state(theirs.get_state())
            other.set_state(torch.from_numpy(ours.state()))
            assert np.array_equal(again.random(9), ours.random(9))
            torch.rand(9, generator=theirs, dtype=torch.float64)


def test_copies_and_pickles_draw_the_same_numbers():
    stream = RandomStream(3)
    stream.standard_normal(3)  # the second of a pair of normal numbers waits
    for again in (copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))):
        assert np.array_equal(again.standard_normal(5), copy.deepcopy(stream).standard_normal(5))


def test_orders_without_compiled_code_are_the_same(monkeypatch):
    expected = RandomStream(4).permutation(1000)
    monkeypatch.setattr(random, "load_compiled", lambda: None)
    assert np.array_equal(RandomStream(4).permutation(1000), expected)
    assert np.array_equal(np.sort(expected), np.arange(1000))


@pytest.mark.parametrize(("n", "size"), [(1, 1), (9, 2), (1000, 1), (1000, 0), (1000, 249)])
def test_sample_is_the_start_of_a_permutation(monkeypatch, n, size):
    """Whichever way it is drawn, with the same state of the stream after it."""
    stream, other = RandomStream(4), RandomStream(4)
    expected = stream.permutation(n)[:size]
    for count in (n, 0):
        monkeypatch.setattr(random, "PERMUTED_COUNT", count)
        drawn = other.sample(n, size)
        assert drawn.dtype == np.int64
        assert np.array_equal(drawn, expected)
        assert np.array_equal(other.state(), stream.state())
        expected = stream.permutation(n)[:size]


def test_sample_of_many_numbers_takes_no_memory_for_each():
    tracemalloc.start()
    try:
        RandomStream(0).sample(3 * random.PERMUTED_COUNT, 1000)
        assert tracemalloc.get_traced_memory()[1] < random.PERMUTED_COUNT
    finally:
        tracemalloc.stop()


def test_positions_have_the_probabilities_of_their_weights():
    stream, weights = RandomStream(0), np.array([0.0, 1.0, 3.0, 0.0])
    drawn = np.bincount([stream.choose(weights) for _ in range(4000)], minlength=4)
    assert drawn[0] == drawn[3] == 0
    assert abs(drawn[2] / 4000 - 0.75) < 5 * (0.75 * 0.25 / 4000) ** 0.5


def test_no_position_of_weight_zero_is_chosen(monkeypatch):
    monkeypatch.setattr(RandomStream, "_uniform", lambda self, size, dtype: np.zeros(size, dtype))
    assert RandomStream(0).choose([0.0, 0.0, 2.0, 1.0]) == 2


def test_other_states_are_refused():
    with pytest.raises(ValueError, match="5056 bytes, not 10"):
        RandomStream(0).set_state(np.zeros(10, np.uint8))


def test_generators_of_other_kinds():
    stream = RandomStream(3)
    assert as_stream(stream) is stream
    assert as_stream(None).seed == 0
    assert as_stream(np.int64(5)).seed == 5
    with pytest.raises(TypeError, match="rng='seed' is no generator; give a seed"):
        as_stream("seed")
