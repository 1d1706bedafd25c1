"""`predict --keep`: columns of the input, of any type, beside the predictions."""

from __future__ import annotations

import csv
import datetime

import numpy as np
import pytest

from gramian.data import as_table


@pytest.fixture
def data(save):
    """Give a table with an identifier and days."""
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=i) for i in range(17)]
    return save("fresh.csv.parquet", n=17, seed=1, id=[f"h{i}" for i in range(17)], day=days)


@pytest.mark.parametrize("form", ["csv", "tsv", "csv.gz", "parquet", "feather"])
def test_columns_are_copied(report, fit, train, data, tmp_path, form):
    model, out = fit(train, "--landmarks", 20), tmp_path / f"out.{form}"
    report("predict", model, data, "--out", tmp_path / "alone.npy")
    assert report("predict", model, data, "--keep", "id, day", "--out", out)["rows"] == 17
    table = as_table(out)
    assert table.names == ("id", "day", "prediction")
    assert table.column("id").to_pylist() == [f"h{i}" for i in range(17)]
    assert table.column("day").to_pylist()[16] == datetime.date(2020, 1, 17)
    expected = np.load(tmp_path / "alone.npy")
    np.testing.assert_array_equal(table.column("prediction").to_numpy(), expected)


def test_columns_that_cannot_be_kept(error, fit, train, data, save, tmp_path):
    model, before = fit(train, "--landmarks", 20), set(tmp_path.iterdir())
    out = ("--out", tmp_path / "out.csv")
    assert "has no column ib" in error("predict", model, data, "--keep", "ib", *out)
    said = error("predict", model, data, "--keep", "id", "--out", tmp_path / "out.npy")
    assert "keeps no names and no text" in said
    assert set(tmp_path.iterdir()) == before
    clash = save("clash.parquet", n=17, prediction=np.ones(17))
    said = error("predict", model, clash, "--keep", "prediction", *out)
    assert "two columns named prediction" in said


def test_an_output_in_a_subfolder_of_the_data(error, fit, train, data, tmp_path):
    folder = tmp_path / "set" / "year=2020"
    folder.mkdir(parents=True)
    data.rename(folder / "0.parquet")
    model = fit(train, "--landmarks", 20)
    for inside in (folder / "1.parquet", tmp_path / "set" / "new" / "1.parquet"):
        said = error("predict", model, tmp_path / "set", "--out", inside)
        assert "would become a part of the input data" in said


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "-1.5", "+2", "a=1", "", None]


@pytest.mark.parametrize("escaped", [False, True])
def test_formulas_are_texts_where_that_is_asked_for(escaped, report, fit, train, save, tmp_path):
    model = fit(train)
    data = save("x.parquet", n=10, **{"=id": FORMULAS, "b": np.arange(-5.0, 5.0)})
    out, more = tmp_path / "p.csv", ["--escape-formulas"] if escaped else []
    report("predict", model, data, "--keep", "=id,b", *more, "--out", out)
    with out.open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    quote = "'" if escaped else ""
    assert names == [f"{quote}=id", "b", "prediction"]
    dangerous = FORMULAS[:5]
    assert [row[0] for row in rows] == [quote + text for text in dangerous] + [
        "-1.5", "+2", "a=1", "", "",
    ]  # fmt: skip
    assert [float(row[1]) for row in rows] == list(range(-5, 5))


def test_formulas_in_labels(report, error, save, tmp_path):
    data = save("x.parquet", n=60, y=np.where(np.arange(60) % 2 == 0, "=1+1", "-1"))
    model, out = tmp_path / "m.model", tmp_path / "p.csv"
    report("fit", data, "--target", "y", "--landmarks", 20, "--out", model)
    report("predict", model, data, "--escape-formulas", "--out", out)
    assert set(out.read_text().split()) == {'"prediction"', '"\'=1+1"', '"-1"'}
    said = error("predict", model, data, "--escape-formulas", "--out", tmp_path / "p.parquet")
    assert "--escape-formulas requires --out to be a text file" in said
