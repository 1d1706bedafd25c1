"""Columns of lists of numbers: as many columns of numbers, in fits, predictions and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plain import PLAIN_OPTIONS

from gramian import KernelRidge
from gramian.cli import main
from gramian.data import as_table, convert

N, K = 60, 4
RNG = np.random.default_rng(0)
E = RNG.standard_normal((N, K))
AGE = RNG.uniform(20, 60, N)
Y = np.sin(E[:, 0]) + AGE / 40
NAMES = [f"e[{i}]" for i in range(K)]
KINDS = {
    "list": pa.list_(pa.float64()),
    "large": pa.large_list(pa.float64()),
    "fixed": pa.list_(pa.float64(), K),
}


def lists(kind: str = "list") -> pa.Table:
    return pa.table({"age": AGE, "e": pa.array(E.tolist(), KINDS[kind]), "y": Y})


def flat() -> pa.Table:
    return pa.table({"age": AGE, **dict(zip(NAMES, E.T, strict=True)), "y": Y})


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_columns_of_numbers(kind, tmp_path: Path):
    pq.write_table(lists(kind), tmp_path / "x.parquet", row_group_size=7)
    for given in (lists(kind), tmp_path / "x.parquet", pl.from_arrow(lists(kind))):
        table = as_table(given)
        assert table.names == ("age", *NAMES, "y")
        read = pa.Table.from_batches(table.batches(["e[2]", "y", "e[0]"], 11))
        assert read.equals(flat().select(["e[2]", "y", "e[0]"]))
        taken = table.take(["e[3]", "age"], np.array([5, 1, 5]))
        assert taken.to_pylist() == flat().select(["e[3]", "age"]).take([5, 1, 5]).to_pylist()


def test_a_fit_is_that_of_the_columns():
    settings = {"penalty": 1e-3, "random_state": 0}
    found = KernelRidge("gaussian", **settings).fit(lists(), "y")
    expected = KernelRidge("gaussian", **settings).fit(flat(), "y")
    np.testing.assert_array_equal(found.predict(lists()), expected.predict(flat()))
    frame = pd.DataFrame({"age": AGE, "e": list(E), "y": Y})
    np.testing.assert_allclose(found.predict(frame), found.predict(lists()))
    some = KernelRidge("gaussian", **settings).fit(lists(), "y", columns=["e"])
    assert some.feature_names_in_.tolist() == NAMES


def test_the_command_line(tmp_path: Path, capsys):
    path, model = tmp_path / "x.parquet", tmp_path / "m"
    pq.write_table(lists(), path)
    said = [*map(str, PLAIN_OPTIONS), "--penalty", "1e-3", "--out", str(model)]
    assert main(["fit", str(path), "--target", "y", "--drop", "age", *said]) == 0
    assert main(["predict", str(model), str(path), "--out", str(tmp_path / "p.parquet")]) == 0
    predicted = pq.read_table(tmp_path / "p.parquet")["prediction"].to_numpy()
    est = KernelRidge("gaussian", lengthscale="median", penalty=1e-3)
    fit = est.fit(lists(), "y", columns=["e"])
    np.testing.assert_allclose(predicted, fit.predict(lists()), rtol=1e-4)
    convert(path, tmp_path / "flat.parquet")
    assert pq.read_table(tmp_path / "flat.parquet").equals(flat())


def test_what_is_missing():
    column = pa.array([[1.0, 2.0], None, [None, 4.0]])
    table = as_table(pa.table({"e": column}))
    (batch,) = table.batches(["e[0]", "e[1]"], 9)
    assert batch.to_pydict() == {"e[0]": [1.0, None, None], "e[1]": [2.0, None, 4.0]}


def test_lists_of_several_lengths():
    table = pa.table({"words": [[1, 2], [3]], "y": [0.5, 1.5]})
    assert as_table(table).names == ("words[0]", "words[1]", "y")
    with pytest.raises(ValueError, match=r"'words' has lists of 1 numbers, but 2 in the first row"):
        KernelRidge().fit(table, "y")


@pytest.mark.parametrize("values", [[["a"], ["b"]], [None, [1.0]], [[], [1.0]]])
def test_lists_that_are_no_columns_of_numbers(values):
    table = pa.table({"x": values, "y": [0.5, 1.5]})
    assert as_table(table).names == ("x", "y")
    with pytest.raises(TypeError, match=r"cannot be encoded as numbers: x \(list<"):
        KernelRidge().fit(table, "y")
