"""Columns of a table by name: several targets, weights, groups, and rows without a target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from plain import PLAIN
from sklearn.model_selection import GroupKFold, PredefinedSplit, TimeSeriesSplit

from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeCV
from gramian.data import as_table
from gramian.data.tables.list_columns import FilteredTable

RNG = np.random.default_rng(0)
N = 120
FRAME = pd.DataFrame(
    {
        "size": RNG.normal(size=N),
        "town": RNG.choice(["Aachen", "Bonn"], N),
        "w": RNG.integers(0, 3, N),
        "y": RNG.normal(size=N),
    }
)
FEATURES = ["size", "town"]
HOLED = FRAME.assign(y=FRAME["y"].where(np.arange(N) % 5 > 0))
COMPLETE = HOLED.dropna().reset_index(drop=True)


def regressor(**settings: Any) -> KernelRidge:
    return KernelRidge(**(PLAIN | {"penalty": 1e-2, "random_state": 0} | settings))


def save(frame: pd.DataFrame, folder: Path, form: str) -> Path:
    path = folder / f"table.{form}"
    frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path, index=False)
    return path


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_weights_by_name_are_those_of_values(form: str, tmp_path: Path) -> None:
    table = FRAME if form == "frame" else save(FRAME, tmp_path, form)
    found = regressor().fit(table, "y", sample_weight="w")
    expected = regressor().fit(FRAME.drop(columns="w"), "y", sample_weight=FRAME["w"])
    assert found.feature_names_in_.tolist() == FEATURES
    np.testing.assert_allclose(found.predict(FRAME), expected.predict(FRAME), rtol=1e-9)
    score = expected.score(FRAME, sample_weight=FRAME["w"])
    assert found.score(table, sample_weight="w") == pytest.approx(score, rel=1e-9)
    assert found.score(table) != pytest.approx(score)


def test_weights_of_numbers_with_values_beside() -> None:
    found = regressor().fit(FRAME[["size", "w"]], FRAME["y"], sample_weight="w")
    expected = regressor().fit(FRAME[["size"]], FRAME["y"], sample_weight=FRAME["w"])
    np.testing.assert_allclose(
        found.predict(FRAME[["size"]]), expected.predict(FRAME[["size"]]), rtol=1e-9
    )


def test_weights_of_a_classifier_by_name() -> None:
    frame = FRAME.assign(y=FRAME["y"] > 0)
    found = KernelRidgeClassifier(**PLAIN, random_state=0).fit(frame, "y", sample_weight="w")
    expected = KernelRidgeClassifier(**PLAIN, random_state=0).fit(
        frame.drop(columns="w"), "y", sample_weight=frame["w"]
    )
    np.testing.assert_allclose(
        found.decision_function(frame), expected.decision_function(frame), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ("q", "has no column q"),
        ("town", "the weight 'town' must hold numbers, but holds string"),
        ("gaps", r"the weight 'gaps' is missing in 2 rows, the first of them row 3 "),
        ("y", "Negative values in data passed to `sample_weight`"),
    ],
)
def test_columns_that_are_no_weights(weight: str, words: str) -> None:
    gaps = FRAME["w"].astype(float).where(~FRAME.index.isin([3, 7]))
    frame = FRAME.assign(gaps=gaps, t=FRAME["y"] + 1)
    with pytest.raises((ValueError, TypeError), match=words):
        regressor().fit(frame, "t", sample_weight=weight)


@pytest.mark.parametrize("form", ["frame", "csv"])
def test_several_targets_in_a_list(form: str, tmp_path: Path) -> None:
    both = FRAME.drop(columns="w").assign(z=FRAME["y"] ** 2)
    table = both if form == "frame" else save(both, tmp_path, form)
    est = regressor().fit(table, ["y", "z"])
    assert est.feature_names_in_.tolist() == FEATURES
    assert est.model_.target == ("y", "z")
    expected = regressor().fit(both[FEATURES], both[["y", "z"]].to_numpy())
    np.testing.assert_allclose(est.predict(both), expected.predict(both), rtol=1e-9)
    assert est.score(table, ["y", "z"]) == est.score(table)


def test_a_list_of_labels_is_no_list_of_names() -> None:
    labels = ["left" if v < 0 else "right" for v in FRAME["size"]]
    est = KernelRidgeClassifier(**PLAIN, random_state=0).fit(FRAME[FEATURES], labels)
    assert est.classes_.tolist() == ["left", "right"]


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_rows_without_a_target_are_left_out_where_that_is_wanted(form: str, tmp_path: Path) -> None:
    table = HOLED if form == "frame" else save(HOLED, tmp_path, form)
    with pytest.raises(ValueError, match=r"target 'y' is missing.*drop_missing_target=True"):
        regressor().fit(table, "y")
    with pytest.warns(UserWarning, match=r": 24 of 120 rows without a target are left out"):
        found = regressor().fit(table, "y", sample_weight="w", drop_missing_target=True)
    expected = regressor().fit(COMPLETE, "y", sample_weight="w")
    np.testing.assert_allclose(found.predict(FRAME), expected.predict(FRAME), rtol=1e-9)


def test_weights_of_all_rows_where_some_are_left_out() -> None:
    with pytest.warns(UserWarning, match="without a target"):
        found = regressor().fit(
            HOLED.drop(columns="w"), "y", sample_weight=HOLED["w"], drop_missing_target=True
        )
    expected = regressor().fit(COMPLETE, "y", sample_weight="w")
    np.testing.assert_allclose(found.predict(FRAME), expected.predict(FRAME), rtol=1e-9)


def test_labels_that_are_missing_are_no_class() -> None:
    labels = np.where(np.arange(N) % 7 == 0, None, np.where(FRAME["size"] > 0, "Yes", "No"))
    with pytest.warns(UserWarning, match=r"18 of 120 rows without a target"):
        est = KernelRidgeClassifier(**PLAIN, random_state=0).fit(
            FRAME.assign(y=labels), "y", drop_missing_target=True
        )
    assert est.classes_.tolist() == ["No", "Yes"]


def test_groups_by_name_make_the_folds_of_a_search() -> None:
    frame = FRAME[["size"]].assign(y=2 * FRAME["size"] + 0.1 * FRAME["y"], g=np.arange(N) // 10)
    settings = {"cv": GroupKFold(4), "budget": 1_000_000, "random_state": 0}
    found = KernelRidgeCV(**settings).fit(frame, "y", groups="g")
    pairs = list(GroupKFold(4).split(frame, groups=frame["g"]))
    expected = KernelRidgeCV(**settings | {"cv": pairs}).fit(frame, "y", columns=["size"])
    assert found.feature_names_in_.tolist() == ["size"]
    assert found.best_score_ == expected.best_score_
    values = KernelRidgeCV(**settings).fit(frame[["size"]], frame["y"], groups=frame["g"])
    assert values.best_score_ == pytest.approx(found.best_score_, rel=1e-6)


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_groups_and_order_by_name_need_no_splitter(form: str, tmp_path: Path) -> None:
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.permutation(N), "D")
    frame = FRAME[["size"]].assign(y=2 * FRAME["size"] + 0.1 * FRAME["y"], g=RNG.integers(0, 9, N))
    frame["day"] = days.astype("datetime64[us]")
    table = frame if form == "frame" else save(frame, tmp_path, form)
    settings: dict[str, Any] = {"budget": 1_000_000, "random_state": 0}
    found = KernelRidgeCV(**settings).fit(table, "y", groups="g")
    pairs = list(GroupKFold(5).split(frame, groups=frame["g"]))
    expected = KernelRidgeCV(cv=pairs, **settings).fit(table, "y", columns=["size", "day"])
    assert found.feature_names_in_.tolist() == ["size", "day"]
    assert found.best_score_ == expected.best_score_
    place = np.argsort(frame["day"].to_numpy())
    pairs = [(place[a], place[b]) for a, b in TimeSeriesSplit(3).split(frame)]
    found = KernelRidgeCV(cv=3, **settings).fit(table, "y", order="day")
    expected = KernelRidgeCV(cv=pairs, **settings).fit(table, "y")
    assert found.feature_names_in_.tolist() == ["size", "g", "day"]
    assert found.best_score_ == expected.best_score_


@pytest.mark.parametrize("values", [(0, 1, 2), (-1, 3, 7), ("a", "b", "-1")])
@pytest.mark.parametrize("form", ["frame", "csv", "values"])
def test_folds_by_name_are_those_of_predefined_split(
    values: tuple[Any, ...], form: str, tmp_path: Path
) -> None:
    frame = FRAME[["size"]].assign(y=2 * FRAME["size"] + 0.1 * FRAME["y"])
    fold = np.array(values)[np.arange(N) * 7 % 3]
    table: Any = frame.assign(fold=fold)
    if form == "csv":
        table = save(table, tmp_path, form)
    codes = {value: i for i, value in enumerate(v for v in values if str(v) != "-1")}
    pairs = list(PredefinedSplit([codes.get(value, -1) for value in fold.tolist()]).split())
    settings: dict[str, Any] = {"budget": 1_000_000, "random_state": 0}
    expected = KernelRidgeCV(cv=pairs, **settings).fit(frame, "y")
    if form == "values":
        found = KernelRidgeCV(**settings).fit(frame, "y", folds=fold)
    else:
        found = KernelRidgeCV(**settings).fit(table, "y", folds="fold")
    assert found.feature_names_in_.tolist() == ["size"]
    assert found.best_score_ == pytest.approx(expected.best_score_, rel=1e-9)


def test_groups_beside_rows_without_a_target() -> None:
    groups = np.arange(N) // 10
    settings: dict[str, Any] = {"budget": 1_000_000, "random_state": 0}
    with pytest.warns(UserWarning, match="without a target"):
        found = KernelRidgeCV(**settings).fit(
            HOLED[["size", "y"]], "y", groups=groups, drop_missing_target=True
        )
    stays = HOLED["y"].notna().to_numpy()
    expected = KernelRidgeCV(**settings).fit(COMPLETE[["size", "y"]], "y", groups=groups[stays])
    assert found.best_score_ == expected.best_score_


@pytest.mark.parametrize(
    ("settings", "roles", "words"),
    [
        ({"cv": [([0], [1])]}, {"groups": "town"}, "cv must be None, a number or a splitter"),
        ({"cv": GroupKFold(2), "test_fraction": 0.2}, {"groups": "town"}, "with test_fraction"),
        ({}, {"groups": "town", "order": "w"}, "groups and order cannot be combined"),
        ({}, {"folds": "town", "order": "w"}, "order and folds cannot be combined"),
        ({"cv": 3}, {"folds": "town"}, "folds defines the folds: leave cv out"),
        ({}, {"groups": "one"}, "at least two different values"),
        ({}, {"folds": "one"}, "folds must have at least two different values"),
        ({}, {"groups": "holed"}, r"the groups 'holed' is missing in 1 rows, .* row 3"),
        ({}, {"order": [1, 2]}, "order must have one value for each of 120 rows"),
        ({}, {"order": "q"}, "no column q"),
    ],
)
def test_columns_that_make_no_folds(
    settings: dict[str, Any], roles: dict[str, Any], words: str
) -> None:
    frame = FRAME.assign(one=1, holed=np.where(np.arange(N) == 3, np.nan, 1.0))
    with pytest.raises(ValueError, match=words):
        KernelRidgeCV(budget=1_000_000, **settings).fit(frame, "y", **roles)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_filtered_batches_have_the_size_that_was_asked_for(size: int) -> None:
    table = as_table(FRAME)
    is_kept = np.arange(N) % 3 > 0
    filtered = FilteredTable(table, is_kept)
    batches = list(filtered.batches(["size"], size))
    assert {batch.num_rows for batch in batches[:-1]} <= {size}
    values = np.concatenate([batch.column(0).to_numpy() for batch in batches])
    np.testing.assert_array_equal(values, FRAME["size"][is_kept])
    taken = filtered.take(["size"], np.array([5, 0])).column(0).to_numpy()
    np.testing.assert_array_equal(taken, FRAME["size"][is_kept].to_numpy()[[5, 0]])
