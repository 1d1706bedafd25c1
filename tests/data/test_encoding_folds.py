"""Means of targets: no row sees its own, and shuffled targets gain nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from gramian import KernelRidge
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import MemoryTable
from gramian.data.encoding import FittedEncoding


def fitted(texts: list[str | None], y: np.ndarray, seed: int = 0, **settings) -> FittedEncoding:
    rng = RandomStream(seed)
    # Categories of more levels than the default become columns, which have no folds.
    return FittedEncoding.fit(table(texts), None, y, rng=rng, **{"max_levels": 20, **settings})


def table(texts: list[str | None]) -> MemoryTable:
    return MemoryTable(pa.table({"t": texts}))


def means(fit: FittedEncoding, texts: list[str | None], training: bool) -> np.ndarray:
    """Return the means before they are standardised."""
    rows = (fit.training_rows if training else fit.encoding.rows)(table(texts))
    (column,) = fit.encoding.to_dict()["columns"]
    x = xp.to_float64(rows.take(np.arange(len(rows))))
    measured = x[:, : len(column["mean"])]
    return (measured * column["scale"] + column["mean"])[:, :-1]


def expected(texts: list[str], y: np.ndarray, others: np.ndarray, text: str, a: float) -> float:
    """Return the smoothed mean of a level over some rows, written out."""
    same = others & (np.array(texts) == text)
    return (y[same].sum() + a * y[others].mean()) / (same.sum() + a)


@pytest.mark.parametrize("a", [0.5, 20.0])
def test_means_are_those_of_the_other_folds(a: float) -> None:
    r = np.random.default_rng(0)
    texts = [f"t{k}" for k in r.integers(0, 30, 200)]
    y = r.normal(5, 1, size=200)
    fit = fitted(texts, y, smoothing=a)
    assert fit.folds is not None
    assert np.bincount(fit.folds).tolist() == [40] * 5
    every = np.ones(200, bool)
    inner = [expected(texts, y, fit.folds != fit.folds[i], texts[i], a) for i in range(200)]
    outer = [expected(texts, y, every, texts[i], a) for i in range(200)]
    np.testing.assert_allclose(means(fit, texts, True)[:, 0], inner, rtol=1e-5)
    np.testing.assert_allclose(means(fit, texts, False)[:, 0], outer, rtol=1e-5)


def test_training_features_have_mean_zero_and_scale_one() -> None:
    r = np.random.default_rng(0)
    texts = [f"t{k}" for k in r.geometric(0.05, 3000)]
    rows = fitted(texts, r.normal(size=(3000, 2))).training_rows(table(texts))
    x = xp.to_float64(rows.map(xp.copy, size=1000))[:, :3]
    assert np.abs(x.mean(axis=0)).max() < 1e-6
    assert np.abs(x.std(axis=0) - 1).max() < 1e-6


def test_the_own_target_changes_nothing() -> None:
    r = np.random.default_rng(0)
    texts = [f"t{k}" for k in r.integers(0, 30, 200)]
    y = r.normal(size=200)
    before = means(fitted(texts, y), texts, True)
    y[17] += 1000
    after = means(fitted(texts, y), texts, True)
    assert after[17] == pytest.approx(before[17])
    assert (abs(after - before).ravel() > 1).sum() > 100


def test_held_out_rows_have_the_means_of_all_training_rows() -> None:
    r = np.random.default_rng(0)
    texts = [f"t{k}" for k in r.integers(0, 30, 200)]
    y, keep = r.normal(size=200), np.arange(200) < 150
    fit = fitted(texts, y, keep=keep)
    assert fit.folds is not None
    assert (fit.folds[150:] == -1).all()
    training, new = (means(fit, texts, of) for of in (True, False))
    assert (training[150:] == new[150:]).all()
    assert (training[:150] != new[:150]).all()
    assert means(fit, texts[:1], False)[0, 0] == pytest.approx(
        expected(texts, y, keep, texts[0], 20.0), rel=1e-5
    )


def test_a_level_of_one_row_has_the_mean_of_the_other_folds() -> None:
    texts = [*(f"t{k % 25}" for k in range(100)), "once"]
    y = np.random.default_rng(0).normal(size=101)
    fit = fitted(texts, y)
    assert fit.folds is not None
    assert means(fit, texts, True)[100, 0] == pytest.approx(y[fit.folds != fit.folds[100]].mean())


def test_fewer_rows_than_folds() -> None:
    texts, y = ["a", "b", "a"], np.array([1.0, 2.0, 4.0])
    fit = fitted(texts, y, max_levels=1)
    # each row is a fold of its own
    assert means(fit, texts, True)[:, 0] == pytest.approx([(4 + 60) / 21, 2.5, (1 + 30) / 21])


def test_missing_is_a_level_and_unknown_ones_have_the_overall_mean() -> None:
    r = np.random.default_rng(0)
    texts = [None if k == 0 else f"t{k}" for k in r.integers(0, 30, 400)]
    y = r.normal(size=400) + np.array([9.0 if text is None else 0.0 for text in texts])
    fit = fitted(texts, y)
    of_missing, of_new = means(fit, [None, "new"], False)[:, 0]
    assert of_missing > 3
    assert of_new == pytest.approx(y.mean(), rel=1e-5)
    without_gaps = fitted([text or "t0" for text in texts], y)
    assert means(without_gaps, [None], False)[0, 0] == pytest.approx(y.mean(), rel=1e-5)


def interval(values: list[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of a mean."""
    half = stats.sem(values) * stats.t.ppf(0.975, len(values) - 1)
    return float(np.mean(values) - half), float(np.mean(values) + half)


def gains(seed: int) -> tuple[float, float]:
    """Return what the means of 1,000 levels gain on a shuffled target: in training, on new rows.

    The first is the slope of the target on the feature, times its deviation; the second R2.
    """
    r = np.random.default_rng(seed)
    texts = [f"t{k}" for k in r.integers(0, 1000, 4000)]
    y = r.permutation(np.repeat([0.0, 1.0, 2.0, 7.0], 1000))
    y = (y - y.mean()) / y.std()
    fit = fitted(texts, y, seed, keep=np.arange(4000) < 3000)
    rows = fit.training_rows(table(texts))
    x = xp.to_float64(rows.take(np.arange(4000)))[:, :1]
    model = KernelRidge("gaussian", lengthscale=2.0, penalty=1e-2, landmarks=100, random_state=seed)
    error = y[3000:] - model.fit(x[:3000], y[:3000]).predict(x[3000:])
    return float((x[:3000, 0] * y[:3000]).mean()), 1 - float(np.var(error) / np.var(y[3000:]))


def test_nothing_is_gained_on_shuffled_targets() -> None:
    training, new = zip(*(gains(seed) for seed in range(20)), strict=True)
    low, high = interval(list(training))
    assert low < 0 < high
    low, high = interval(list(new))
    assert low < 0
    assert -0.005 < low < high < 0.005  # in-sample means lose here what they gain in training
