"""One rule for paths and frames: the same table gives the same predictions either way."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from plain import PLAIN

from gramian import KernelRidge, KernelRidgeClassifier
from gramian.data import ParquetRows, convert

ROWS = 60
RNG = np.random.default_rng(0)
X = RNG.uniform(0, 100, ROWS).round(2)
WHOLE = RNG.integers(1000, 9_000_000, ROWS)
DAYS = pd.Timestamp("1969-01-01") + pd.to_timedelta(RNG.integers(0, 1400, ROWS), "D")
TOWNS = RNG.choice(["Oslo", "Bergen", "Moss"], ROWS).tolist()
FLAGS = RNG.random(ROWS) < 0.6


def some_missing(texts: list[str], gap: str) -> list[str]:
    """Return texts with a gap in every seventh row."""
    return [gap if i % 7 == 3 else text for i, text in enumerate(texts)]


def column(form: str, values: Any) -> list[str]:
    return [form.format(value) for value in values]


TABLES = {
    "numbers": column("{}", X),
    "whole numbers": column("{}", WHOLE),
    "numbers and empty": some_missing(column("{}", X), ""),
    "numbers and NA": some_missing(column("{}", X), "NA"),
    "numbers and n.d.": some_missing(column("{}", X), "n.d."),
    "numbers and a dash": some_missing(column("{}", X), "-"),
    "one odd number": ["unknown", *column("{}", X[1:])],
    "exponents": column("{:.3e}", X),
    "spaces before numbers": column("  {}", X),
    "spaces after numbers": column("{} ", X),
    "dollars": column('"${:,}.50"', WHOLE),
    "thousands": column('"{:,}"', WHOLE),
    "percent": column("{}%", X),
    "units": column("{} kg", X),
    "iso days": [d.strftime("%Y-%m-%d") for d in DAYS],
    "iso times": [d.strftime("%Y-%m-%d %H:%M:%S") for d in DAYS],
    "days in words": [d.strftime("%d-%b-%Y") for d in DAYS],
    "days by months": [d.strftime("%m/%d/%Y") for d in DAYS],
    "days and empty": some_missing([d.strftime("%Y-%m-%d") for d in DAYS], ""),
    "clocks": [f"{i % 24:02d}:{i % 60:02d}" for i in range(ROWS)],
    "levels": TOWNS,
    "spaces before levels": [f" {town}" if i % 3 else town for i, town in enumerate(TOWNS)],
    "levels and empty": some_missing(TOWNS, ""),
    "levels and NA": some_missing(TOWNS, "NA"),
    "levels and None": some_missing(TOWNS, "None"),
    "levels and ?": some_missing(TOWNS, "?"),
    "many levels": [f"L{i % 25}" for i in range(ROWS)],
    "true and false": [str(flag).lower() for flag in FLAGS],
    "True and False": [str(flag) for flag in FLAGS],
    "yes and no": ["yes" if flag else "no" for flag in FLAGS],
    "Y and N with gaps": some_missing(["Y" if flag else "N" for flag in FLAGS], ""),
    "0 and 1": [str(int(flag)) for flag in FLAGS],
    "identifiers": [f"id-{i}" for i in range(ROWS)],
}
READERS = [pd.read_csv, pl.read_csv]


def write_table(path: Path, values: list[str]) -> Path:
    y = (X / 10 + np.arange(ROWS) % 3).round(3)
    lines = [f"{v},{z},{t}" for v, z, t in zip(values, np.arange(ROWS) % 11, y, strict=True)]
    path.write_text("v,z,y\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("reader", READERS, ids=["pandas", "polars"])
@pytest.mark.parametrize("name", TABLES)
def test_a_path_and_its_frame_give_the_same_predictions(
    name: str, reader: Callable[..., Any], tmp_path: Path
) -> None:
    path = write_table(tmp_path / "t.csv", TABLES[name])
    forms = path, reader(path)
    answers = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for fitted, predicted in itertools.product(forms, forms):
            model = KernelRidge(**PLAIN, random_state=0).fit(fitted, "y")
            answers.append(model.predict(predicted))
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], rtol=1e-6, atol=1e-8)


def test_a_frame_reports_odd_values_by_its_own_rows(tmp_path: Path) -> None:
    frame = pd.read_csv(write_table(tmp_path / "t.csv", TABLES["one odd number"]))
    sentence = (
        r"'v' holds numbers but for 1 value of 60: 'unknown' in row 0 \(the first row is row 0\)"
    )
    with pytest.warns(UserWarning, match=sentence):
        KernelRidge(**PLAIN, random_state=0).fit(frame, "y")


def test_numbers_that_are_text_in_a_frame_stay_text() -> None:
    frame = pd.DataFrame({"zip": [str(100 + i % 5) for i in range(ROWS)], "x": X, "y": X / 10})
    with pytest.warns(UserWarning, match="columns of numbers that are text stay text: zip;"):
        model = KernelRidge(**PLAIN, random_state=0).fit(frame, "y")
    assert model.model_.encoding.feature_names[:2] == ("zip=100", "zip=101")


SPELLINGS = [
    ("Yes", "No"), ("yes", "no"), ("YES", "NO"), ("Y", "N"), ("T", "F"), ("true", "false"),
    ("True", "False"), ("TRUE", "FALSE"), ("1", "0"), ("01", "02"), ("a", "b"),
]  # fmt: skip


def labels_table(path: Path, spelling: tuple[str, str]) -> Path:
    labels = [spelling[int(v < 50)] for v in X]
    path.write_text("x,t\n" + "\n".join(f"{v},{t}" for v, t in zip(X, labels, strict=True)) + "\n")
    return path


@pytest.mark.parametrize("reader", READERS, ids=["pandas", "polars"])
@pytest.mark.parametrize("spelling", SPELLINGS, ids="/".join)
def test_labels_come_back_as_they_were_written(
    spelling: tuple[str, str], reader: Callable[..., Any], tmp_path: Path
) -> None:
    path = labels_table(tmp_path / "t.csv", spelling)
    frame = reader(path)
    model = KernelRidgeClassifier(**PLAIN, random_state=0).fit(path, "t")
    if spelling[0].lower() == "true":  # booleans, as in the frames of pandas
        assert model.classes_.tolist() == [False, True]
    else:
        assert sorted(map(str, model.classes_)) == sorted(spelling)
        assert set(map(str, model.predict(frame))) == set(spelling)
    expected = model.score(path)
    assert model.score(frame) == model.score(frame, frame["t"]) == expected > 0.8
    from_frame = KernelRidgeClassifier(**PLAIN, random_state=0).fit(frame, "t")
    assert from_frame.score(path) == from_frame.score(frame) == expected


def test_spellings_of_one_label_are_united_with_a_warning(tmp_path: Path) -> None:
    labels = ["Yes" if v < 50 else "no" for v in X]
    labels[:2] = ["YES" if label == "Yes" else "No" for label in labels[:2]]
    path = tmp_path / "t.csv"
    path.write_text("x,t\n" + "\n".join(f"{v},{t}" for v, t in zip(X, labels, strict=True)) + "\n")
    with pytest.warns(UserWarning, match=r"several spellings of a label: .*most frequent one"):
        model = KernelRidgeClassifier(**PLAIN, random_state=0).fit(path, "t")
    assert model.classes_.tolist() == ["Yes", "no"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("spelling", [("Y", "N"), ("Yes", "No"), ("True", "False")], ids="/".join)
def test_conversion_keeps_labels_as_they_are_written(
    spelling: tuple[str, str], form: str, tmp_path: Path
) -> None:
    path = labels_table(tmp_path / "t.csv", spelling)
    convert(path, tmp_path / f"new.{form}")
    read = pd.read_csv if form == "csv" else pd.read_parquet
    expected = pd.read_csv(path)["t"]
    assert read(tmp_path / f"new.{form}")["t"].tolist() == expected.tolist()
    if form == "csv":
        assert spelling[0] in (tmp_path / "new.csv").read_text()


def test_a_fit_decodes_the_rows_of_a_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check for missing values is the first pass, which stores the decoded rows."""
    rows = RNG.normal(size=(300, 3)).astype(np.float32)
    path = tmp_path / "rows.parquet"
    pd.DataFrame(rows, columns=["a", "b", "c"]).to_parquet(path, row_group_size=100)
    monkeypatch.setattr("gramian.data.rows.cache._room", lambda: 1 << 30)
    passes, assemble = [], ParquetRows._assemble
    monkeypatch.setattr(
        ParquetRows, "_assemble", lambda self, size: passes.append(size) or assemble(self, size)
    )
    settings = {"lengthscale": 1.0, "penalty": 1e-3, "landmarks": 20, "solver": "falkon"}
    from_file, from_memory = (
        KernelRidge("gaussian", **settings, random_state=0).fit(source, rows[:, 0] ** 2)
        for source in (ParquetRows(path), rows)
    )
    assert len(passes) == 1
    expected = from_memory.model_.predict(rows)
    np.testing.assert_allclose(from_file.model_.predict(rows), expected, atol=1e-4)
