"""The recipe for a table format in CONTRIBUTING.md: all of gramian takes its one file."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow.parquet as pq
import pytest
from plain import PLAIN

from gramian import KernelRidge
from gramian.data import as_rows, formats, read_targets

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture
def jsonl(monkeypatch):
    """Run the recipe as the module that it is to become, and forget the format afterwards."""
    text = CONTRIBUTING.read_text("utf-8").partition("### A table format")[2]
    code = re.search(r"^```python\n(.*?)^```$", text, re.M | re.S)[1]
    registry = formats.formats
    monkeypatch.setattr(registry, "_classes", dict(registry._classes))
    module = ModuleType(f"{formats.__name__}.rowl")
    module.__package__ = formats.__name__
    exec(compile(code, "row_lines.py", "exec"), module.__dict__)
    assert type(formats.format_of("x.rowl")) is module.RowLines


@pytest.fixture
def tables(jsonl, report, train, fresh):
    """Give two tables, and the same as JSON lines, which `convert` writes."""
    lines = [path.with_suffix(".rowl") for path in (train, fresh)]
    for source, target in zip((train, fresh), lines, strict=True):
        rows = report("convert", source, target, "--dtype", "float64")["rows"]
        assert target.read_text().count("\n") == rows == pq.read_metadata(source).num_rows
    return train, fresh, *lines


def test_convert_and_back(tables, report, tmp_path):
    train, _, lines, _ = tables
    report("convert", lines, tmp_path / "back.parquet", "--dtype", "float64")
    assert pq.read_table(tmp_path / "back.parquet").equals(pq.read_table(train))


def test_fit_predict_and_evaluate(tables, fit, report, tmp_path):
    said, predicted = [], []
    for data, new in (tables[:2], tables[2:]):
        model = fit(data, "--landmarks", 20, "--validation", new, name=f"{data.suffix}.model")
        said.append(report("evaluate", model, new))
        out = tmp_path / f"predictions{data.suffix}"
        assert report("predict", model, new, "--out", out)["rows"] == 17
        predicted.append(read_targets(out, "prediction"))
        assert report("plan", data, "--target", "y")["features"] == 3
    np.testing.assert_allclose(predicted[1], predicted[0], rtol=1e-9)
    assert said[1]["rmse"] == pytest.approx(said[0]["rmse"], rel=1e-9)


def test_columns_targets_and_landmarks(tables, tmp_path):
    train, _, lines, _ = tables
    y = read_targets(lines, "y")
    np.testing.assert_array_equal(y, read_targets(train, "y"))
    rows = as_rows(lines, columns=["c", "a"])
    assert rows.feature_names == ("c", "a")
    points = np.asarray(pq.read_table(train).select(["c", "a"]))[:9]
    formats.format_to_write("p.rowl").write(
        tmp_path / "points.rowl", {"c": points[:, 0], "a": points[:, 1]}
    )
    ridge = KernelRidge(landmarks=str(tmp_path / "points.rowl"), standardize=False, **PLAIN).fit(
        rows, y
    )
    centers = ridge.model_.centers.take(np.arange(9))
    np.testing.assert_array_equal(centers, points)


def test_errors_and_info_name_it(jsonl, error, report, train, tmp_path):
    assert ".rowl" in report("info")["formats"]
    said = error("convert", train, tmp_path / "x.xls")
    assert ".rowl" in said.partition("expected a name ending in")[2]
