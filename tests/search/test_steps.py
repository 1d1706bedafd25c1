"""Steps of a search: computed once, and read from a journal after a kill."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian._sparse import of_scipy
from gramian.data import LinearMap
from gramian.kernels import Gaussian
from gramian.operators import CostMeter
from gramian.search import Recipe
from gramian.search.cells.cell_fit import CellFit
from gramian.search.steps import Steps, pack, unpack


class Memory:
    """A journal in memory."""

    def __init__(self) -> None:
        self.parts: dict[int, Any] = {}
        self.damaged: list[int] = []

    def part(self, number):
        return self.parts.get(number)

    def append(self, number, facts, tensors):
        self.parts[number] = facts, {name: xp.copy(tensor) for name, tensor in tensors.items()}

    def warn_of_damage(self, number):
        self.damaged.append(number)


class Search:
    """Three steps, of random numbers, of which the last depends on the time."""

    def __init__(self, store, monkeypatch, now=0.0) -> None:
        self.now, self.computed = now, []
        monkeypatch.setattr("time.monotonic", self.tick)
        self.steps, self.meter = Steps(), CostMeter()
        self.rng = RandomStream(3)
        self.steps.keep(store, started=now, rng=self.rng, meter=self.meter)

    def tick(self):
        self.now += 1.0
        return self.now

    def draw(self, name):
        self.computed.append(name)
        self.now += 10.0
        self.meter.evaluations += 7
        return self.rng.random(3, np.float32)

    def run(self, until=3):
        found = [self.steps.run("a", lambda: self.draw("a")), self.steps.read_clock()]
        for name in ("b", "c")[: until - 1]:
            found.append(self.steps.run(name, lambda name=name: self.draw(name)))
            found.append(self.steps.read_clock())
        return found


def same(one, other):
    return all(
        np.array_equal(a, b) if isinstance(a, np.ndarray) else a == pytest.approx(b)
        for a, b in zip(one, other, strict=True)
    )


def test_a_search_repeats_results_times_and_counts(monkeypatch):
    store = Memory()
    whole = Search(store, monkeypatch)
    expected = whole.run()
    again = Search(store, monkeypatch, now=0.0)
    assert same(again.run()[:5], expected[:5])
    assert again.computed == []
    assert again.meter.evaluations == whole.meter.evaluations == 21
    assert np.array_equal(again.rng.state(), whole.rng.state())


def test_a_search_resumes_after_the_last_step_with_the_time_so_far(monkeypatch):
    expected = Search(Memory(), monkeypatch).run()
    store = Memory()
    Search(store, monkeypatch).run(until=2)
    resumed = Search(store, monkeypatch, now=5000.0)
    started, found = resumed.now, resumed.run()
    assert resumed.computed == ["c"]
    assert all(np.array_equal(found[i], expected[i]) for i in (0, 2, 4))
    assert found[1] - started == pytest.approx(expected[1])
    assert found[5] - started == pytest.approx(expected[5], abs=8)  # ticks; the pause is no part


def test_a_damaged_step_is_computed_again_and_those_after_it_hold(monkeypatch):
    store = Memory()
    expected = Search(store, monkeypatch).run()
    del store.parts[1]
    again = Search(store, monkeypatch)
    found = again.run()
    assert again.computed == ["b"]
    assert all(np.array_equal(found[i], expected[i]) for i in (0, 2, 4))


def test_steps_after_another_result_are_computed_again(monkeypatch):
    store = Memory()
    Search(store, monkeypatch).run()
    del store.parts[1]
    again = Search(store, monkeypatch)
    real = again.draw
    again.draw = lambda name: real(name) + (name == "b")
    again.run()
    assert again.computed == ["b", "c"]


@pytest.mark.parametrize(
    "change",
    [
        {"result": {"class": "Nothing", "fields": {}}},
        {"result": {"tensor": "9"}},
        {"result": {"class": "Recipe", "fields": {"x": 1}}},
        {"ended": None},
        {"evaluations": "x"},
        {"step": "z"},
        {"before": "z"},
    ],
)
def test_forged_steps_are_computed_again(monkeypatch, change):
    store = Memory()
    expected = Search(store, monkeypatch).run()
    facts, tensors = store.parts[2]
    store.parts[2] = facts | change, tensors
    again = Search(store, monkeypatch)
    assert np.array_equal(again.run()[4], expected[4])
    assert again.computed == ["c"]


def test_steps_that_do_not_depend_on_each_other(monkeypatch):
    store = Memory()

    def run(until):
        search = Search(store, monkeypatch)
        asked = []

        def compute(numbers):
            asked.extend(numbers)
            return ((np.full((2,), float(number)), 5) for number in numbers)

        first = search.steps.run("a", lambda: search.draw("a"))
        found = []
        for each in search.steps.run_each("cell", 4, compute, search.meter):
            found.append(each)
            if len(found) == until:
                return asked, found, None, 0
        last = search.steps.run("b", lambda: search.draw("b"))
        return asked, [first, *found], last, search.meter.evaluations

    run(2)
    asked, found, last, evaluations = run(5)
    assert asked == [2, 3]
    assert [float(each[0]) for each in found[1:]] == [0, 1, 2, 3]
    assert evaluations == 34
    again = run(5)
    assert again[0] == []
    assert np.array_equal(again[2], last)
    del store.parts[2]  # one of the four
    again = run(5)
    assert again[0] == [1]
    assert np.array_equal(again[2], last)
    assert again[3] == 34


def test_an_end_keeps_what_follows_out_of_the_journal(monkeypatch):
    store = Memory()
    search = Search(store, monkeypatch)
    search.run(until=2)
    search.steps.end()
    search.steps.run("c", lambda: search.draw("c"))
    assert sorted(store.parts) == [0, 1]


def test_without_a_journal_all_steps_are_computed():
    meter = CostMeter()
    plain = Steps()
    assert plain.run("a", lambda: object()) is not None  # of any type
    assert list(plain.run_each("b", 2, lambda numbers: ((n, 3) for n in numbers), meter)) == [0, 1]
    assert meter.evaluations == 6


def test_a_copy_for_another_process_has_no_journal(monkeypatch):
    search = Search(Memory(), monkeypatch)
    search.run()
    copy = pickle.loads(pickle.dumps(search.steps))
    assert not copy.are_kept


@pytest.mark.parametrize(
    "value",
    [
        None,
        math.inf,
        (1, (2.5, "a"), [True]),
        Recipe("gaussian", rounds=2, learner="matern32"),
        Gaussian(0.25),
        LinearMap(scales=[1.0, 2.0]),
    ],
)
def test_values_come_back(value):
    tensors: dict[str, np.ndarray] = {}
    found = unpack(pack(value, tensors), tensors)
    assert type(found) is type(value)
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    "tensor",
    [
        np.arange(6.0, dtype=np.float32).reshape(2, 3),
        np.arange(6.0, dtype=np.float32).reshape(2, 3).T,
        np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)[:, 1],
    ],
    ids=["rows", "columns", "part"],
)
def test_tensors_keep_their_layout(tensor):
    tensors: dict[str, np.ndarray] = {}
    fit = unpack(pack(CellFit(tensor, tensor, 0.5), tensors), tensors)
    assert np.array_equal(fit.coef, tensor)
    assert fit.coef.strides == tensor.strides


def test_sparse_centers_come_back():
    tensors: dict[str, np.ndarray] = {}
    rows = of_scipy(scipy.sparse.random_array((5, 4), density=0.5, format="csr", rng=0))
    (found,) = unpack(pack((rows,), tensors), tensors)
    assert np.array_equal(xp.to_dense(found), xp.to_dense(rows))


def test_other_values_are_refused():
    with pytest.raises(TypeError, match="cannot store a set"):
        pack({1}, {})
