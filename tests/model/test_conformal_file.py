"""Calibrations in model files: files of format 7, and damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

import gramian
from gramian import KernelRidge, KernelRidgeClassifier
from gramian import _arrays as xp
from gramian._files.tensors import write_tensors

PLAIN = {"kernel": "matern32", "lengthscale": "median", "penalty": 1e-2, "random_state": 0}
RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(-1, 1, (200, 2)), RNG.uniform(-1, 1, (50, 2))
Y = np.sin(3 * X[:, 0]) + (0.1 + (X[:, 1] > 0)) * RNG.normal(size=200)


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["gramian"])
        return header, {name: xp.copy(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118


def write(path: Path, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    entries = {name for name in header["parts"] if not name.startswith("conformal.")}
    names = [name for name in tensors if name.startswith("conformal.")]
    header["parts"] = sorted([*entries, *names])
    write_tensors(path, tensors, {"gramian": json.dumps(header)})


def as_format_7(path: Path) -> None:
    """Write a file as it was: a list of parts, of "values" and "spread", without a method."""
    header, tensors = read(path)
    parts = []
    for part in header["conformal"]["parts"]:
        values, spread = part.get("values"), part.get("spread")
        old: dict[str, Any] = {"values": None, "spread": None, "like": None}
        if values is not None:
            old["values"] = {"weights": values["weights"], "members": values["members"]}
        if spread is not None:
            old |= {"spread": spread["members"][0], "like": spread["centers_of"][0]}
        parts.append(old)
    header |= {"conformal": parts, "format": 7}
    renamed = {name.replace(".spread.0.", ".spread."): tensor for name, tensor in tensors.items()}
    write(path, header, renamed)


@pytest.mark.parametrize("method", ["split", "cv+", None])
@pytest.mark.parametrize("landmarks", [None, 20])
def test_intervals_of_format_7_are_read(method, landmarks, tmp_path):
    est = KernelRidge(**PLAIN, conformal=method, landmarks=landmarks).fit(X, Y)
    ends = est.predict_interval(NEW, 0.8)
    assert any("spread" in part.functions for part in est.model_.conformal.parts)
    est.save(tmp_path / "m")
    as_format_7(tmp_path / "m")
    loaded = gramian.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_interval(NEW, 0.8), ends)
    assert loaded.model_.conformal.describe() == est.model_.conformal.describe()


@pytest.mark.parametrize("method", ["split", "cv+", None])
def test_sets_of_format_7_are_read(method, tmp_path):
    est = KernelRidgeClassifier(**PLAIN, conformal=method).fit(X, np.digitize(Y, [-0.5, 0.5]))
    sets = est.predict_set(NEW, 0.8)
    est.save(tmp_path / "m")
    as_format_7(tmp_path / "m")
    np.testing.assert_array_equal(gramian.load(tmp_path / "m").predict_set(NEW, 0.8), sets)


def test_a_loaded_model_is_saved_with_its_centers_once(tmp_path):
    KernelRidge(**PLAIN, conformal="cqr", landmarks=20).fit(X, Y).save(tmp_path / "m")
    gramian.load(tmp_path / "m").save(tmp_path / "again")
    assert set(read(tmp_path / "again")[1]) == set(read(tmp_path / "m")[1])


class TestDamage:
    @pytest.fixture
    def path(self, tmp_path) -> Path:
        Z = np.column_stack([X, X[:, 1] > 0])
        KernelRidge(**PLAIN, conformal="split", conformal_groups=2).fit(Z, Y).save(tmp_path / "m")
        return tmp_path / "m"

    @pytest.mark.parametrize(
        "name", ["conformal.0.more", "conformal.more", "conformal.0.spread.1.coef"]
    )
    def test_tensors_that_are_unknown(self, path, name):
        header, tensors = read(path)
        write(path, header, tensors | {name: tensors["coef"]})
        with pytest.raises(ValueError, match="damaged gramian model: it has the unknown tensors"):
            gramian.load(path)

    @pytest.mark.parametrize("name", ["conformal.0.scores", "conformal.0.groups"])
    def test_tensors_that_are_missing(self, path, name):
        header, tensors = read(path)
        del tensors[name]
        write(path, header, tensors)
        with pytest.raises(ValueError, match=r"missing 'scores'|each score .* has a group"):
            gramian.load(path)

    def test_a_method_that_is_unknown(self, path):
        header, tensors = read(path)
        header["conformal"]["method"] = {"name": "jackknife"}
        write(path, header, tensors)
        with pytest.raises(ValueError, match="unknown conformal method 'jackknife'; known: cqr, "):
            gramian.load(path)
