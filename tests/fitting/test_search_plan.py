"""What a search will need, said before: rows, memory, evaluations, seconds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gramian import KernelRidgeClassifierCV, KernelRidgeCV
from gramian.fitting.search.data import MOST_ROWS

X = np.random.default_rng(0).standard_normal((300, 3))
Y = np.sin(X[:, 0])


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramian.fitting.search.plan.ENOUGH_SECONDS", 1e-3)


def rows(n: int, d: int = 3) -> np.ndarray:
    return np.broadcast_to(np.zeros((1, d)), (n, d))


def test_few_rows_are_all_held_out_in_turn():
    plan = KernelRidgeCV().plan(X, Y)
    assert (plan.searched_rows, plan.held_out, plan.all_rows) == (300, 300, 300)
    assert not plan.limited
    assert str(plan).startswith("a search on all rows, 300 of them held out to choose by: ")


def test_of_many_rows_a_sample_is_searched_on():
    few, many = KernelRidgeCV().plan(rows(MOST_ROWS)), KernelRidgeCV().plan(rows(90_000))
    more = KernelRidgeCV().plan(rows(2_000_000))
    assert many.searched_rows == more.searched_rows == few.searched_rows == MOST_ROWS
    assert (few.held_out, many.all_rows, more.all_rows) == (2000, 90_000, 2_000_000)
    cells = more.kernel_evaluations / many.kernel_evaluations
    assert 2 < cells < 1.3 * 2_000_000 / 90_000  # linear in the rows, beside the search
    assert few.memory_bytes < many.memory_bytes < more.memory_bytes
    assert "20,000 random rows, 2,000 of them" in str(many)


def test_what_is_not_tried_is_not_counted():
    every = KernelRidgeCV().plan(rows(5000))
    fewer = KernelRidgeCV("laplacian", metric=None, standardize=True).plan(rows(5000))
    assert fewer.kernel_evaluations < every.kernel_evaluations


@pytest.mark.parametrize(("budget", "limited"), [("2 s", True), ("900 h", False)])
def test_a_budget_of_time(budget, limited):
    free = KernelRidgeCV().plan(rows(20_000))
    plan = KernelRidgeCV(budget=budget).plan(rows(20_000))
    assert plan.limited is limited
    assert str(plan).endswith("the budget") is limited
    assert plan.kernel_evaluations == free.kernel_evaluations
    if limited:
        assert plan.seconds == 2.0


def test_a_budget_of_evaluations():
    plan = KernelRidgeCV(budget=1e6).plan(rows(20_000))
    assert plan.limited
    assert plan.kernel_evaluations == pytest.approx(1e6)


def test_classes_and_tables():
    labels = np.array(["a", "b", "c"])[np.arange(300) % 3]
    frame = pd.DataFrame(X, columns=list("uvw")).assign(city=labels[::-1], label=labels)
    one = KernelRidgeClassifierCV().plan(rows(9000), targets=1)
    three = KernelRidgeClassifierCV().plan(rows(9000), np.arange(9000) % 3)
    assert three.memory_bytes > one.memory_bytes
    plan = KernelRidgeClassifierCV().plan(frame, "label", columns=["u", "city"])
    assert plan.all_rows == 300


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="budget must be a time"):
        KernelRidgeCV(budget="soon").plan(X, Y)


@pytest.mark.slow
def test_it_is_about_what_a_search_takes():
    est = KernelRidgeCV(random_state=0)
    plan = est.plan(X, Y)
    est.fit(X, Y)
    assert plan.kernel_evaluations / 8 < est.kernel_evaluations_ < 8 * plan.kernel_evaluations
