"""`gramian explain`: its numbers are those of `shapley_values` and `nearest_rows`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import gramian as library
from gramian.explain import nearest_rows, shapley_values

RNG = np.random.default_rng(0)


def made_table(labels=False):
    x = RNG.normal(size=(120, 3))
    y = np.sin(x[:, 0]) + x[:, 1]
    columns = dict(zip("abc", x.T, strict=True))
    columns["y"] = np.where(y > 0, "high", "low") if labels else y
    return pd.DataFrame(columns)


@pytest.fixture(params=[False, True], ids=["numbers", "classes"])
def files(request, tmp_path):
    table, model = made_table(request.param), tmp_path / "m.model"
    kind = library.KernelRidgeClassifier if request.param else library.KernelRidge
    kind("gaussian", lengthscale=2.0, penalty=1e-3).fit(table, "y").save(model)
    train, row = tmp_path / "train.parquet", tmp_path / "row.csv"
    table.to_parquet(train)
    table[:1].to_csv(row, index=False)
    return model, table, train, row


def test_contributions_of_a_table_are_written(files, report, tmp_path):
    model, table, train, _row = files
    out = tmp_path / "out.parquet"
    found = report("explain", model, train, "--train", train, "--out", out)
    expected = shapley_values(model, table, background=table)
    written = pq.read_table(out).to_pandas()
    assert list(written) == ["base_value", *(f"contribution_{name}" for name in "abc")]
    np.testing.assert_allclose(written.to_numpy()[:, 1:], expected.values, atol=1e-10)
    np.testing.assert_allclose(written["base_value"], expected.base_values)
    assert (found["rows"], found["exact"]) == (120, True)
    sizes = dict(zip("abc", abs(expected.values).mean(axis=0), strict=True))
    assert found["mean_sizes"] == pytest.approx(sizes)
    assert list(found["mean_sizes"]) == sorted(sizes, key=lambda name: -sizes[name])


def test_a_row_is_shown(files, report):
    model, table, train, row = files
    found = report("explain", model, row, "--train", train)
    expected = shapley_values(model, table[:1], background=table)
    values = {line["column"]: line[expected.output_names[0]] for line in found["contributions"]}
    assert values == pytest.approx(dict(zip("abc", expected.values[0], strict=True)))
    nearest = nearest_rows(model, table[:1], table)
    assert [line["row"] for line in found["nearest"]] == nearest.index[0].tolist()
    assert [line["y"] for line in found["nearest"]] == table["y"][nearest.index[0]].tolist()


def test_probabilities_have_a_column_for_each_class(files, report, tmp_path):
    model, _table, train, row = files
    out = tmp_path / "out.csv"
    report("explain", model, row, "--train", train, "--output", "prediction", "--out", out)
    names = list(pd.read_csv(out))
    is_classifier = library.load(model).model_.classes is not None
    assert ("contribution_a_high" in names) == is_classifier
    assert ("contribution_a" in names) != is_classifier


def test_errors_name_the_option(files, gramian):
    model, _table, _train, row = files
    done = gramian("explain", model, row, "--output", "log")
    assert done.code == 2
    assert "--output must be 'raw' or 'prediction', not 'log'" in done.err
    if library.load(model).model_.classes is not None:
        done = gramian("explain", model, row, "--output", "prediction")
        assert "--train must be a table" in done.err


def test_card_is_printed(files, gramian):
    done = gramian("info", files[0], "--card")
    assert done.code == 0, done.err
    assert "# m.model" in done.out
    assert "--card requires a model" in gramian("info", "--card").err


def test_export_writes_the_model(files, report, gramian, tmp_path):
    pytest.importorskip("onnx")
    found = report("export", files[0], tmp_path / "m.onnx")
    assert found["inputs"] == ["X"]
    assert found["file_bytes"] == (tmp_path / "m.onnx").stat().st_size
    assert "ends in .onnx" in gramian("export", files[0], tmp_path / "m.pb").err
