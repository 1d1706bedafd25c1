"""Probabilities of classes: closed forms, the power that is fitted, and the file they are in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain import PLAIN
from safetensors.numpy import safe_open

from gramian import AverageModel, KernelModel, KernelRidge, KernelRidgeClassifier
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian._files.tensors import write_tensors
from gramian.fitting.inputs.training_data import class_codes
from gramian.model import Model, Shares, load_model
from gramian.model.uncertainty.probabilities import (
    LEAST_SHARE,
    POWER_RANGE,
    probabilities_from,
    shares_of,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
LABELS = {"two": np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)],
          "three": np.digitize(X[:, 0], [-0.5, 0.5])}  # fmt: skip


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return RandomStream(seed).standard_normal(shape, np.float64)


def codes_of(shares: np.ndarray) -> np.ndarray:
    """Return the values that stand for shares: the inverse of `shares_of`."""
    k = shares.shape[1]
    return 2 * shares[:, 1:] - 1 if k == 2 else (shares - 1 / k) * k / (k - 1)


def log_loss(
    shares: Shares, values: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None
) -> float:
    each = -(shares_of(codes) * shares.log(values)).sum(axis=1)
    return float(np.average(each, weights=weights))


class TestShares:
    def test_of_two_classes(self):
        p = Shares()(np.array([[-0.5], [0.0], [0.8]], dtype=np.float64))
        np.testing.assert_allclose(p, [[0.75, 0.25], [0.5, 0.5], [0.1, 0.9]], atol=1e-12)

    def test_of_three_classes(self):
        f = np.array([[0.7, 0.1, -0.8 + 1e-3], [0.25, 0.25, -0.5]], dtype=np.float64)
        s = np.maximum(f * 2 / 3 + 1 / 3, LEAST_SHARE)
        for power in (1.0, 2.5):
            expected = s**power / (s**power).sum(axis=1, keepdims=True)
            np.testing.assert_allclose(Shares(power)(f), expected, atol=1e-6)

    @pytest.mark.parametrize("k", [2, 3, 7])
    def test_codes_are_shares_of_one_class(self, k):
        codes = class_codes(np.arange(k), np.arange(k), np.float64)
        np.testing.assert_allclose(shares_of(codes), np.eye(k), atol=1e-15)
        p = Shares()(codes)
        least = LEAST_SHARE / (1 + (k - 1) * LEAST_SHARE)
        np.testing.assert_allclose(p[~np.eye(k, dtype=bool)], least, rtol=1e-6)

    @pytest.mark.parametrize("power", [0.25, 1.0, 2.0])
    def test_rows_keep_the_order_of_their_values_beyond_the_ends(self, power):
        f = np.linspace(-2, 2, 1001, dtype=np.float64)[:, None]
        p = Shares(power)(f)[:, 1]
        assert bool((xp.diff(p) > 0).all())
        clipped = shares_of(f).clip(LEAST_SHARE, 1) ** power
        np.testing.assert_allclose(p, clipped[:, 1] / clipped.sum(axis=1), rtol=2e-4)

    @pytest.mark.parametrize("t", [1, 4])
    def test_rows_sum_to_one_and_logarithms_are_theirs(self, t):
        f = normal(200, t)
        f = f if t == 1 else f - f.mean(axis=1, keepdims=True)
        p = Shares(3.3)(xp.cast(f, np.float32))
        assert p.dtype == np.float64
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
        np.testing.assert_allclose(np.exp(Shares(3.3).log(xp.cast(f, np.float32))), p)
        best = xp.cast(f[:, 0] > 0, np.int64) if t == 1 else f.argmax(axis=1)
        assert np.array_equal(p.argmax(axis=1), best)


class TestPower:
    @pytest.mark.parametrize("k", [2, 5])
    @pytest.mark.parametrize("power", [0.5, 1.0, 1.7, 4.0])
    def test_the_one_that_the_truth_has_is_found(self, k, power):
        values = codes_of(0.01 + 0.99 * xp.softmax(normal(4000, k), axis=1))
        truth = codes_of(Shares(power)(values))
        assert Shares.fit(values, truth).power == pytest.approx(power, rel=5e-3)

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("t", [1, 3])
    def test_it_is_no_worse_than_one(self, t, seed):
        values, weights = normal(30, t, seed=seed), np.exp(normal(30, seed=9))
        labels = np.random.default_rng(seed).integers(0, max(2, t), 30)
        codes = class_codes(labels, np.arange(max(2, t)), np.float64)
        found = Shares.fit(values, codes, weights)
        assert POWER_RANGE[0] <= found.power <= POWER_RANGE[1]
        at_one = log_loss(Shares(), values, codes, weights)
        assert log_loss(found, values, codes, weights) <= at_one

    def test_many_right_rows_ask_for_more_than_a_few(self):
        values = np.full((2000, 1), 0.9, dtype=np.float64)
        codes = np.ones_like(values)
        assert 1 < Shares.fit(values[:5], codes[:5]).power < 1.5
        assert Shares.fit(values, codes).power > 3
        assert Shares.fit(values, -codes).power == POWER_RANGE[0]

    def test_weights_are_repeated_rows_of_any_scale(self):
        values, times = normal(20, 3), np.arange(20) % 3 + 1
        codes = class_codes(RNG.integers(0, 3, 20), np.arange(3), np.float64)
        again = [np.repeat(each, times, axis=0) for each in (values, codes)]
        expected = Shares.fit(*again).power
        for scale in (1.0, 1e-6, 1e6):
            found = Shares.fit(values, codes, scale * xp.to_float64(times)).power
            assert found == pytest.approx(expected, rel=1e-9)

    def test_values_that_are_no_numbers_say_nothing(self):
        values = np.array([[0.9], [np.inf]], dtype=np.float64)
        assert Shares.fit(values, np.ones((2, 1), np.float64)) == Shares(1.0)

    @pytest.mark.parametrize("power", [0.0, -1.0, np.nan, np.inf, "2", True])
    def test_no_power(self, power):
        with pytest.raises(ValueError, match="power must be positive and finite"):
            Shares(power)

    @pytest.mark.parametrize("wrong", [0.0, 0.02])
    def test_certain_and_wrong_rows_raise_the_floor(self, wrong):
        """Half of the rows are near the border and calibrated; of the certain, a few are wrong."""
        rng = np.random.default_rng(0)
        share = np.where(rng.random(4000) < 0.5, rng.uniform(0.2, 0.8, 4000), 0.9995)
        chance = np.where(share > 0.9, 1 - wrong, share)
        values = (2 * share - 1)[:, None]
        codes = np.where(rng.random(4000) < chance, 1.0, -1.0)[:, None]
        found = Shares.fit(values, codes)
        if wrong:
            assert found.least_share > LEAST_SHARE
            assert log_loss(found, values, codes) < 0.99 * log_loss(Shares(), values, codes)
        else:
            assert found.least_share <= LEAST_SHARE

    def test_a_floor_by_chance_is_not_taken(self):
        """The certain rows, one of which is wrong, say too little about the floor."""
        values = np.full((3000, 1), 0.9985, dtype=np.float64)
        codes = np.ones_like(values)
        codes[0] = -1.0
        assert Shares.fit(values, codes).least_share == LEAST_SHARE


def fitted(classes: str = "three", **settings: Any) -> KernelModel:
    est = KernelRidgeClassifier(**(PLAIN | {"penalty": 1e-3, "random_state": 0} | settings))
    return est.fit(X, LABELS[classes]).model_


class TestModel:
    @pytest.mark.parametrize("classes", LABELS)
    def test_without_a_map_the_power_is_one(self, classes):
        model = fitted(classes)
        assert model.probabilities is None
        assert np.array_equal(model.predict_proba(X), Shares()(model.predict(X)))
        sharper = replace(model, probabilities=Shares(2.0))
        assert np.array_equal(sharper.predict_proba(X), Shares(2.0)(model.predict(X)))

    def test_a_regression_has_none(self, tmp_path):
        model = KernelRidge(**PLAIN).fit(X, X[:, 0]).model_
        with pytest.raises(ValueError, match="a regression and has no probabilities; use predict"):
            model.predict_proba(X)
        with pytest.raises(ValueError, match="probabilities require classes, which a regression"):
            replace(model, probabilities=Shares()).save(tmp_path / "m")

    def test_the_file_keeps_every_bit(self, tmp_path):
        model = replace(fitted(), probabilities=Shares(1 / 3 + 1))
        model.save(tmp_path / "m")
        found = load_model(tmp_path / "m")
        assert found.probabilities == Shares(1 / 3 + 1)
        assert np.array_equal(found.predict_proba(X), model.predict_proba(X))

    def test_an_average_shares_it_with_its_members(self, tmp_path):
        one, two = (
            replace(fitted(kernel=name), probabilities=Shares(2.0))
            for name in ("gaussian", "laplacian")
        )
        both = AverageModel((0.5, 0.5), (one, two))
        expected = Shares(2.0)((one.predict(X) + two.predict(X)) / 2)
        np.testing.assert_allclose(both.predict_proba(X), expected)
        both.save(tmp_path / "m")
        found = load_model(tmp_path / "m")
        assert found.probabilities == found.parts[1].probabilities == Shares(2.0)
        with pytest.raises(ValueError, match="the same probabilities"):
            AverageModel((0.5, 0.5), (one, replace(two, probabilities=None)))

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"kind": "shapes", "power": 1.0}, "unknown map to probabilities 'shapes'.*shares"),
            ({"kind": "shares", "power": 0.0}, "power must be positive"),
            ({"kind": "shares", "powers": 1.0}, "unexpected keyword"),
            ({"power": 1.0}, "missing 'kind'"),
        ],
    )
    def test_maps_that_are_none(self, given, said, tmp_path):
        fitted().save(tmp_path / "m")
        rewritten(tmp_path / "m", lambda header: header.update(
            probabilities=given, parts=sorted([*header["parts"], "probabilities"])
        ))  # fmt: skip
        with pytest.raises(ValueError, match=f"damaged gramian model.*{said}"):
            load_model(tmp_path / "m")

    def test_what_is_written_is_read(self):
        assert probabilities_from(Shares(2.5).to_dict()) == Shares(2.5)
        assert Shares(2.5).to_dict() == {"kind": "shares", "power": 2.5, "least_share": 1e-3}
        assert probabilities_from({"kind": "shares", "power": 2.5}) == Shares(2.5)  # older files


def rewritten(path: Path, change: Any) -> None:
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["gramian"])
        tensors = {name: xp.copy(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    change(header)
    write_tensors(path, tensors, {"gramian": json.dumps(header)})


def older(header: dict[str, Any], format: int) -> None:
    """Make the header of an older file: without the entries that it had not."""
    new = {"probabilities": 6, "cells": 5}
    for one in (header, *header.get("members", [])):
        for name in [name for name in one if new.get(name, 0) > format]:
            del one[name]
    header["format"] = format


@pytest.mark.parametrize("format", [4, 5])
@pytest.mark.parametrize("several", [False, True], ids=["one", "average"])
def test_files_of_before_have_the_power_one(format, several, tmp_path):
    model: Model = fitted()
    if several:
        model = AverageModel((0.5, 0.5), (fitted(), fitted(kernel="laplacian")))
    model.save(tmp_path / "m")
    rewritten(tmp_path / "m", lambda header: older(header, format))
    found = load_model(tmp_path / "m")
    assert found.probabilities is None
    assert np.array_equal(found.predict_proba(X), Shares()(model.predict(X)))
