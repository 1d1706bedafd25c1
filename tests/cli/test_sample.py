"""`gramian sample` and `gramian --version`: the first minutes of a newcomer."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from gramian import __version__
from gramian.data import sample_path


def test_parts_are_the_whole(report, tmp_path):
    rows = {}
    for part in ("all", "train", "test"):
        out = tmp_path / f"{part}.parquet"
        said = report("sample", "energy", out, "--part", part)
        table = pq.read_table(out)
        assert said["rows"] == table.num_rows
        assert said["columns"] == ", ".join(table.column_names)
        assert table.column_names == [*(f"x{j}" for j in range(8)), "target"]
        rows[part] = table.num_rows
    assert rows["all"] == 768 == rows["train"] + rows["test"]
    split = pq.read_table(sample_path("energy"))
    kept = split.filter(split["split"].to_numpy() == 1).drop_columns("split")
    assert pq.read_table(tmp_path / "test.parquet").equals(kept)


def test_a_sample_can_be_fitted(report, gramian, tmp_path):
    report("sample", "energy", tmp_path / "energy.csv", "--part", "train")
    report("convert", tmp_path / "energy.csv", tmp_path / "energy.parquet")
    search = ("--target", "target", "--budget", 300_000)
    done = gramian("fit", tmp_path / "energy.parquet", *search, "--out", tmp_path / "m.model")
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("energie", "x.parquet"), "there is no sample data set 'energie'"),
        (("energy", "x.xyz"), "x.xyz"),
        (("energy", "x.parquet", "--part", "half"), "--part must be all, train or test, not half"),
    ],
)
def test_refusals(error, arguments, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert expected in error("sample", *arguments)
    assert not list(tmp_path.iterdir())


def test_version(gramian):
    done = gramian("--version")
    assert (done.code, done.out) == (0, f"gramian {__version__}\n")
