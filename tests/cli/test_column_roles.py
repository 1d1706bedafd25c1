"""Options that name columns: several targets, weights, and rows without a target."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from gramian import KernelRidge, KernelRidgeCV, load

RNG = np.random.default_rng(0)
N = 90
TABLE = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "b": RNG.normal(size=N),
        "w": RNG.integers(0, 3, N),
    }
)
TABLE["y"] = TABLE["a"] + 0.1 * RNG.normal(size=N)
TABLE["z"] = TABLE["b"] - 0.1 * RNG.normal(size=N)
ONE_FIT = [
    "--kernel",
    "gaussian",
    "--lengthscale",
    "median",
    "--penalty",
    "1e-2",
    "--landmarks",
    "none",
]
PARAMETERS = {"kernel": "gaussian", "lengthscale": "median", "penalty": 1e-2, "landmarks": None}


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "t.csv"
    TABLE.to_csv(path, index=False)
    return path


def test_several_targets(report, data, tmp_path):
    model, out = tmp_path / "m.model", tmp_path / "p.csv"
    said = report(
        "fit", data, "--target", "y", "--target", "z", "--drop", "w", "--out", model, *ONE_FIT
    )
    assert said["target"] == ["y", "z"]
    expected = KernelRidge(**PARAMETERS).fit(data, ["y", "z"], columns=["a", "b"])
    report("predict", model, data, "--out", out)
    found = pd.read_csv(out)
    assert found.columns.tolist() == ["prediction_y", "prediction_z"]
    np.testing.assert_allclose(found.to_numpy(), expected.predict(TABLE), rtol=1e-9)
    errors = report("evaluate", model, data)["targets"]
    for j, name in enumerate(["y", "z"]):
        rmse = np.sqrt(np.mean((TABLE[name] - expected.predict(TABLE)[:, j]) ** 2))
        assert errors[name]["rmse"] == pytest.approx(rmse, rel=1e-9)
    assert list(report("evaluate", model, data, "--target", "z")["targets"]) == ["z"]


def test_several_targets_of_a_search(report, data, tmp_path):
    said = report(
        "fit", data, "--target", "y", "--target", "z", "--drop", "w", "--budget", "1e6",
        "--out", tmp_path / "m.model",
    )  # fmt: skip
    assert said["target"] == ["y", "z"]
    assert load(tmp_path / "m.model").predict(TABLE).shape == (N, 2)


def test_a_target_that_is_named_twice(gramian, data, tmp_path):
    done = gramian("fit", data, "--target", "y", "--target", "y", "--out", tmp_path / "m.model")
    assert done.code != 0
    assert "--target y is given twice; name each column once" in done.err


def test_weights_by_name(report, data, tmp_path):
    report(
        "fit", data, "--target", "y", "--drop", "z", "--weight", "w", "--out",
        tmp_path / "m.model", *ONE_FIT,
    )  # fmt: skip
    expected = KernelRidge(**PARAMETERS).fit(TABLE[["a", "b"]], TABLE["y"], TABLE["w"])
    found = load(tmp_path / "m.model")
    assert found.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_allclose(found.predict(TABLE), expected.predict(TABLE[["a", "b"]]), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "settings", "roles"),
    [
        (("--groups", "w"), {}, {"groups": "w"}),
        (("--groups", "w", "--folds", "2"), {"cv": 2}, {"groups": "w"}),
        (("--order", "b"), {}, {"order": "b"}),
        (("--folds", "4"), {"cv": 4}, {}),
        (("--folds", "w"), {}, {"folds": "w"}),
    ],
)
def test_folds_by_name(report, data, tmp_path, options, settings, roles):
    model = tmp_path / "m.model"
    report(
        "fit", data, "--target", "y", "--drop", "z", "--budget", "1e6", *options, "--out", model
    )  # fmt: skip
    table = TABLE.drop(columns="z")
    expected = KernelRidgeCV(budget=1e6, random_state=0, **settings).fit(table, "y", **roles)
    found = load(model)
    assert found.feature_names_in_.tolist() == expected.feature_names_in_.tolist()
    np.testing.assert_allclose(found.predict(TABLE), expected.predict(TABLE), rtol=1e-6)
    tuned = report("tune", data, "--target", "y", "--drop", "z", "--budget", "1e6", *options)
    assert f"--kernel {found.model_.info['members'][0]['kernel']} " in tuned["command"]
    assert ("--drop w" in tuned["command"]) == ("w" in options)


def test_folds_are_of_a_search(gramian, data, tmp_path):
    for option in ("--groups", "--order", "--folds"):
        value = "2" if option == "--folds" else "w"
        done = gramian("fit", data, "--target", "y", "--kernel", "gaussian", option, value,
                       "--out", tmp_path / "m.model")  # fmt: skip
        assert done.code == 2
        assert f"{option} and --kernel cannot be combined" in done.err


@pytest.mark.parametrize(
    ("weight", "words"), [("q", "no column q"), ("z", "the weights 'z' must be at least 0")]
)
def test_columns_that_are_no_weights(gramian, data, tmp_path, weight, words):
    done = gramian("fit", data, "--target", "y", "--weight", weight, "--out", tmp_path / "m.model")
    assert done.code != 0
    assert words in done.err


def test_rows_without_a_target(gramian, tmp_path):
    holed = TABLE[["a", "b", "y"]].assign(y=TABLE["y"].where(np.arange(N) % 4 > 0))
    data, model = tmp_path / "t.csv", tmp_path / "m.model"
    holed.to_csv(data, index=False)
    done = gramian("fit", data, "--target", "y", "--out", model, *ONE_FIT)
    assert done.code != 0
    assert "leave rows without a target out with --drop-missing-target" in done.err.replace(
        "leave these rows out", "leave rows without a target out"
    )
    done = gramian("fit", data, "--target", "y", "--out", model, "--drop-missing-target", *ONE_FIT)
    assert done.code == 0
    assert "23 of 90 rows without a target are left out" in done.err
    complete = holed.dropna()
    expected = KernelRidge(**PARAMETERS).fit(complete[["a", "b"]], complete["y"])
    np.testing.assert_allclose(
        load(model).predict(TABLE), expected.predict(TABLE[["a", "b"]]), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("gap", "words"),
    [("", "first in row 5 "), ("n.d.", "'n.d.' in row 5;"), ("broken", "'broken' in row 5;")],
)
def test_evaluation_of_rows_without_a_target(gramian, report, data, tmp_path, gap, words):
    model, holed = tmp_path / "m.model", tmp_path / "holed.csv"
    report("fit", data, "--target", "y", "--target", "z", "--drop", "w", "--out", model, *ONE_FIT)
    texts = TABLE.astype({"y": object, "z": object})
    texts.loc[3, "y"], texts.loc[7, "z"] = gap, ""
    texts.to_csv(holed, index=False)
    done = gramian("evaluate", model, holed)
    assert done.code == 2
    assert f"the target 'y' is missing in some rows (empty or null): 1 of 90, {words}" in (
        done.err.replace("first in row 5 (the header line is row 1); '", "'")
    )
    assert "--drop-missing-target" in done.err
    done = gramian("evaluate", model, holed, "--drop-missing-target", "--json")
    assert "2 of 90 rows without a target are left out" in done.err
    complete = TABLE.drop(index=[3, 7])
    predictions = load(model).predict(complete)
    for j, name in enumerate(["y", "z"]):
        rmse = np.sqrt(np.mean((complete[name] - predictions[:, j]) ** 2))
        assert json.loads(done.out)["targets"][name]["rmse"] == pytest.approx(rmse, rel=1e-9)
    one = gramian("evaluate", model, holed, "--target", "z", "--drop-missing-target")
    assert "1 of 90 rows without a target are left out" in one.err


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_evaluation_on_rows_of_the_training_says_so(report, data, tmp_path, form):
    model, same = tmp_path / "m.model", tmp_path / f"same.{form}"
    report("fit", data, "--target", "y", "--out", model, *ONE_FIT)
    read = pd.read_csv(data)
    read.to_csv(same, index=False) if form == "csv" else read.to_parquet(same, index=False)
    assert "rows of the training" in report("evaluate", model, same)["remark"]
    other = tmp_path / "other.csv"
    TABLE.assign(a=TABLE["a"] + 1).to_csv(other, index=False)
    assert "training" not in str(report("evaluate", model, other).get("remark"))


def test_a_search_that_learns_nothing_says_so(gramian, tmp_path):
    noise = pd.DataFrame(np.random.default_rng(1).normal(size=(200, 3)), columns=["a", "b", "y"])
    noise.to_csv(tmp_path / "noise.csv", index=False)
    done = gramian(
        "fit", tmp_path / "noise.csv", "--target", "y", "--budget", "1e7", "--out",
        tmp_path / "m.model",
    )  # fmt: skip
    assert done.code == 0
    assert "nothing was learned" in done.err
