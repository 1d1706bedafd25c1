"""The same table gives the same model, to the last bit, however it is stored and who fits it."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plain import PLAIN, PLAIN_OPTIONS
from sklearn.exceptions import ConvergenceWarning

import gramian
from gramian import (
    KernelModel,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
)
from gramian._parameters.fit_parameters import option_parameters
from gramian.data import sample_path


def houses(n: int) -> pd.DataFrame:
    """Real houses, with what real tables have: gaps, categories, dates, booleans."""
    table = pq.read_table(sample_path("california_housing")).drop_columns("split")
    frame = table.to_pandas().astype(float).head(n)
    rng = np.random.default_rng(0)
    frame["region"] = np.array(["north", "south", "east", "west"])[rng.integers(0, 4, n)]
    frame["street"] = [f"street {i}" for i in rng.integers(0, 50, n)]
    frame["built"] = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 25000, n), "D")
    frame["garden"] = rng.random(n) < 0.3
    frame["stories"] = rng.integers(1, 4, n)
    first = frame.columns[0]
    frame.loc[rng.random(n) < 0.1, first] = np.nan
    return frame


def csv(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_csv(folder / "x.csv", index=False)
    return folder / "x.csv"


def parquet(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_parquet(folder / "x.parquet", row_group_size=97)
    return folder / "x.parquet"


def feather(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_feather(folder / "x.feather")
    return folder / "x.feather"


KINDS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "CSV": csv,
    "Parquet": parquet,
    "Feather": feather,
    "pandas": lambda frame, folder: frame,
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "Arrow": lambda frame, folder: pa.Table.from_pandas(frame),
    "DuckDB": lambda frame, folder: duckdb.from_arrow(pa.Table.from_pandas(frame)),
    "categories": lambda frame, folder: frame.astype({"region": "category"}),
}


def contents(model: KernelModel) -> dict[str, Any]:
    """All that predictions depend on, as bytes and texts."""
    m = len(model.centers)
    found = {
        "kernel": json.dumps(model.kernel.to_dict()),
        "centers": model.centers.take(np.arange(m)).tobytes(),
        "coef": model.coef.tobytes(),
        "names": model.feature_names,
        "classes": model.classes,
        "target": model.target,
        "scales": (str(model.target_shift), str(model.target_scale)),
    }
    if model.standardizer is not None:
        found["standardizer"] = json.dumps(model.standardizer.to_dict())
    if model.encoding is not None:
        found["encoding"] = json.dumps(model.encoding.to_dict())
        tensors = model.encoding.tensors()
        found |= {name: tensor.tobytes() for name, tensor in tensors.items()}
    return found


def gramian_model(path: Path) -> Any:
    """The model of a file, one or an average."""
    return gramian.load(path).model_


def assert_same(one: KernelModel, two: KernelModel) -> None:
    a, b = contents(one), contents(two)
    assert a.keys() == b.keys()
    for name in a:
        assert a[name] == b[name], name


@pytest.mark.parametrize(
    ("n", "columns"),
    [
        (400, None),
        (400, ["MedInc", "HouseAge", "AveRooms"]),
        pytest.param(12_000, None, marks=pytest.mark.slow),
    ],
    ids=["mixed", "numbers", "landmarks"],
)
def test_a_regression(gramian: Any, tmp_path: Path, n: int, columns: list[str] | None) -> None:
    frame = houses(n)
    if columns is not None:
        frame = frame[[*frame.columns[1:4], "target"]]
    settings = {"penalty": 1e-4, "random_state": 0}
    first = KernelRidge(**(PLAIN | settings)).fit(frame, "target").model_
    for kind, make in KINDS.items():
        if columns is not None and kind == "categories":
            continue
        given = make(frame, tmp_path)
        assert_same(KernelRidge(**(PLAIN | settings)).fit(given, "target").model_, first)
        if isinstance(given, Path):
            done = gramian(
                "fit",
                given,
                "--target",
                "target",
                *PLAIN_OPTIONS,
                "--penalty",
                1e-4,
                "--out",
                tmp_path / "m",
            )
            assert done.code == 0, done.err
            assert_same(KernelModel.load(tmp_path / "m"), first)


@pytest.mark.parametrize("target", ["region", "garden"])
def test_classes(gramian: Any, tmp_path: Path, target: str) -> None:
    frame = houses(300)
    first = (
        KernelRidgeClassifier(random_state=0, penalty=1e-4, kernel="gaussian", lengthscale="median")
        .fit(frame, target)
        .model_
    )
    for kind in ("CSV", "Parquet", "polars", "Arrow"):
        given = KINDS[kind](frame, tmp_path)
        found = KernelRidgeClassifier(
            random_state=0, penalty=1e-4, kernel="gaussian", lengthscale="median"
        ).fit(given, target)
        assert_same(found.model_, first)
        if isinstance(given, Path):
            done = gramian(
                "fit",
                given,
                "--target",
                target,
                *PLAIN_OPTIONS,
                "--penalty",
                1e-4,
                "--out",
                tmp_path / "m",
            )
            assert done.code == 0, done.err
            assert_same(KernelModel.load(tmp_path / "m"), first)


@pytest.mark.parametrize(
    ("target", "columns"),
    [
        ("target", None),
        pytest.param("target", ["MedInc", "HouseAge", "AveRooms"], marks=pytest.mark.slow),
        pytest.param("region", None, marks=pytest.mark.slow),
    ],
    ids=["mixed", "numbers", "classes"],
)
@pytest.mark.filterwarnings("ignore:nothing was learned")
def test_a_search(gramian: Any, tmp_path: Path, target: str, columns: list[str] | None) -> None:
    frame = houses(60)
    if columns is not None:
        frame = frame[[*frame.columns[1:4], "target"]]
    cls = KernelRidgeClassifierCV if target == "region" else KernelRidgeCV
    first = cls(random_state=3).fit(frame, target).model_
    done = gramian(
        "fit", csv(frame, tmp_path), "--target", target, "--seed", 3, "--out", tmp_path / "m"
    )
    assert done.code == 0, done.err
    found = gramian_model(tmp_path / "m")
    assert len(found.parts) == len(first.parts)
    assert getattr(found, "weights", None) == getattr(first, "weights", None)
    for one, two in zip(found.parts, first.parts, strict=True):
        assert_same(one, two)
        assert (one.metric is None) == (two.metric is None)
        assert one.metric is None or np.array_equal(one.metric.array, two.metric.array)


GIVEN: dict[str, tuple[Any, ...]] = {
    "kernel": ("matern52",),
    "lengthscale": ("2 median", 1.5),
    "penalty": (1e-3,),
    "landmarks": (20, "bless_r", None),
    "standardize": (False, "quantile"),
    "standardize_target": (False,),
    "cells": (30,),
    "loss": ("huber",),
    "cv": (3,),
    "solver": ("direct", "pcg"),
    "max_iter": (3,),
    "tol": (1e-2,),
    "engine": ("numpy",),
    "memory_limit": ("300MB",),
    "early_stopping": (True,),
    "patience": (2,),
    "time_limit": (1000.0,),
}
"""Values of each parameter that is an option, which `gramian fit` and `KernelRidge` are given."""


@pytest.mark.parametrize("name", [each.name for each in option_parameters()])
def test_every_option_gives_the_model_of_its_parameter(
    gramian: Any, tmp_path: Path, name: str
) -> None:
    frame = houses(80)
    frame = frame[[*frame.columns[1:3], "region", "target"]]
    path = parquet(frame, tmp_path)
    for value in GIVEN[name]:
        words = ["--kernel", "auto"] if name != "kernel" else []  # one fit, without a search
        words.append(f"--{name.replace('_', '-')}")
        if name != "early_stopping":
            words.append("none" if value is None else str(value))
        done = gramian("fit", path, "--target", "target", *words, "--out", tmp_path / "m")
        assert done.code == 0, done.err
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            est = KernelRidge(random_state=0, **{name: value}).fit(path, "target")
        found = gramian_model(tmp_path / "m")
        assert_same(found, est.model_)


@pytest.mark.slow
def test_a_process_that_has_never_seen_the_training_data(tmp_path: Path) -> None:
    frame, new = houses(400), houses(500).tail(100)
    est = KernelRidge(random_state=0, **PLAIN).fit(frame, "target")
    est.save(tmp_path / "model")
    expected = est.predict(new)
    new.drop(columns="target").to_csv(tmp_path / "new.csv", index=False)
    code = (
        "import sys, gramian, numpy as np\n"
        "est = gramian.load(sys.argv[1])\n"
        "np.save(sys.argv[3], est.predict(sys.argv[2]))\n"
    )
    paths = [tmp_path / name for name in ("model", "new.csv", "found.npy")]
    subprocess.run([sys.executable, "-c", code, *map(str, paths)], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), expected)


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    frame = houses(300)
    est = KernelRidge(random_state=0, **PLAIN).fit(frame, "target")
    est.save(tmp_path / "model")
    loaded = gramian.load(tmp_path / "model")
    other = frame[frame.columns[::-1]].assign(more="text")
    for kind in KINDS:
        if kind != "categories":
            given = KINDS[kind](other, tmp_path)
            np.testing.assert_array_equal(loaded.predict(given), est.predict(frame))
            assert loaded.score(given) == est.score(frame) == est.score(frame, frame["target"])
    with pytest.raises(ValueError, match="has no column region"):
        loaded.predict(frame.drop(columns="region"))
