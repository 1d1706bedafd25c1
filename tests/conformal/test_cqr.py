"""Conformalised quantile regression: its definition, coverage, levels and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gramian
from gramian import KernelRidge, KernelRidgeClassifier
from gramian.conformal import CalibratedPart, ConformalQuantiles
from gramian.conformal.held_out import hold_out

PLAIN = {
    "kernel": "matern32", "lengthscale": "median", "penalty": 1e-3, "standardize": True,
    "landmarks": 40, "random_state": 0,
}  # fmt: skip


def noisy(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose noise is skewed, and ten times as large on one side."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    noise = np.where(X[:, 0] > 0, 0.5, 0.05) * rng.exponential(size=n)
    return X, np.sin(3 * X[:, 0]) + noise


X, Y = noisy(500)
NEW, TRUTH = noisy(2000, 1)


@pytest.fixture(scope="module")
def model() -> KernelRidge:
    return KernelRidge(**PLAIN, conformal="cqr").fit(X, Y)


class Value:
    """A function of one value for each row."""

    def __init__(self, value: float) -> None:
        self.value = value

    def predict(self, rows, **settings):
        return np.full((len(rows), 1), self.value, dtype=np.float64)


def of_values(low: float, high: float, scores: list[float], level: float) -> np.ndarray:
    column = np.array(scores, dtype=np.float64)[:, None]
    part = CalibratedPart(column, {"low": Value(low), "high": Value(high)})
    return ConformalQuantiles().intervals([part], Value(0.0), range(2), level, {})[0, 0]


def test_ends_are_moved_by_the_quantile_of_scores():
    np.testing.assert_allclose(of_values(1, 3, [-0.5, 0.25, 0.5], 0.5), [0.75, 3.25])
    np.testing.assert_allclose(of_values(1, 3, [-0.5, 0.25, 0.5], 0.25), [1.5, 2.5])
    np.testing.assert_array_equal(of_values(1, 3, [-0.5, 0.25, 0.5], 0.9), [-np.inf, np.inf])


def test_crossed_ends_are_a_point_and_crossed_quantiles_change_places():
    np.testing.assert_allclose(of_values(1, 3, [-1.5, 0.25], 0.3), [2, 2])
    np.testing.assert_allclose(of_values(3, 1, [0.5, 0.5], 0.3), [0.5, 3.5])


def test_scores_are_of_held_out_rows(model):
    """The larger distance out of the quantiles; negative within."""
    held = hold_out(500, model._draws())[1]
    (part,) = model.model_.conformal.parts
    low, high = (part.functions[name].predict(X[held])[:, 0] for name in ("low", "high"))
    expected = np.sort(np.maximum(low - Y[held], Y[held] - high))
    np.testing.assert_allclose(part.scores[:, 0], expected, rtol=1e-9)
    k = math.ceil(101 * 0.8) - 1
    low, high = (part.functions[name].predict(NEW)[:, 0] for name in ("low", "high"))
    ends = np.column_stack([low - expected[k], high + expected[k]])
    crossed = ends[:, 0] > ends[:, 1]
    ends[crossed] = ends[crossed].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_interval(NEW, 0.8), ends, rtol=1e-9)


def test_held_out_rows_do_not_change_the_quantiles(model):
    far = Y.copy()
    far[hold_out(500, model._draws())[1]] += 1e3
    other = KernelRidge(**PLAIN, conformal="cqr").fit(X, far)
    for name in ("low", "high"):
        one, two = (
            est.model_.conformal.parts[0].functions[name].predict(NEW) for est in (model, other)
        )
        assert np.array_equal(one, two)


def test_quantiles_are_below_and_above_a_share_of_the_targets(model):
    (part,) = model.model_.conformal.parts
    for name, share in (("low", 0.05), ("high", 0.95)):
        below = part.functions[name].predict(NEW)[:, 0] > TRUTH
        assert below.mean() == pytest.approx(share, abs=0.04)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
def test_coverage_of_levels(model, level):
    low, high = model.predict_interval(NEW, level).T
    inside = ((low <= TRUTH) & (high >= TRUTH)).mean()
    assert inside == pytest.approx(level, abs=3 * math.sqrt(level * (1 - level) / 100) + 0.01)


def test_intervals_are_skewed_as_the_noise(model):
    low, high = model.predict_interval(NEW).T
    loud, middle = NEW[:, 0] > 0, np.sin(3 * NEW[:, 0])
    assert (high - middle)[loud].mean() > 4 * (middle - low)[loud].mean()


def test_quantiles_have_the_level_of_the_method():
    est = KernelRidge(**PLAIN, conformal=ConformalQuantiles(0.5)).fit(X, Y)
    below = est.model_.conformal.parts[0].functions["low"].predict(NEW)[:, 0] > TRUTH
    assert below.mean() == pytest.approx(0.25, abs=0.05)


def test_a_file_keeps_level_and_quantiles(tmp_path):
    est = KernelRidge(**PLAIN, conformal=ConformalQuantiles(0.5)).fit(X, np.column_stack([Y, -Y]))
    est.save(tmp_path / "m")
    loaded = gramian.load(tmp_path / "m")
    assert loaded.model_.conformal.method == ConformalQuantiles(0.5)
    np.testing.assert_array_equal(loaded.predict_interval(NEW), est.predict_interval(NEW))
    assert loaded.predict_interval(NEW).shape == (2000, 2, 2)


@pytest.mark.parametrize(
    "settings",
    [
        {"landmarks": None}, {"landmarks": "bless_r"}, {"landmarks": None, "cells": 150},
        {"loss": "huber"}, {"penalty": 0, "solver": "eigenpro3", "early_stopping": True},
    ],
    ids=["all rows", "selector", "cells", "huber", "stopped"],
)  # fmt: skip
def test_every_fit_has_quantiles(settings):
    est = KernelRidge(**(PLAIN | settings), conformal="cqr").fit(X, Y)
    low, high = est.predict_interval(NEW).T
    if settings.get("landmarks", 40) is None:  # sqrt(400) log(400) rows
        functions = est.model_.conformal.parts[0].functions
        assert [len(functions[name].centers) for name in ("low", "high")] == [120, 120]
    assert 0.82 < ((low <= TRUTH) & (high >= TRUTH)).mean() < 0.98


def test_classes_have_none():
    with pytest.raises(ValueError, match=r"conformal='cqr' makes no sets of classes; choose"):
        KernelRidgeClassifier(**PLAIN, conformal="cqr").fit(X, Y > 0)


@pytest.mark.parametrize("level", [0, 1, "0.9"])
def test_levels_are_shares(level):
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        ConformalQuantiles(level)
