"""Options for reading on the command line, and names of columns with commas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gramian import KernelRidge, load
from gramian.cli.options.reading import ReadingOptions, column_names

FIT = ("--kernel", "gaussian", "--lengthscale", "1", "--penalty", "1e-3")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    rows = [f"{i % 3}|{i},25|{i % 28 + 1:02d}/03/2021|none|{i % 3}" for i in range(60)]
    path.write_text("\n".join(["* made by hand", *rows, "* end"]) + "\n")
    return path


OPTIONS = (
    "--separator", "|", "--decimal", ",", "--no-header", "--comment", "*", "--types", "0=category",
    "--types", "3=ignore", "--date-format", "%d/%m/%Y", "--missing", "none",
)  # fmt: skip
READ = {
    "separator": "|", "decimal": ",", "header": False, "comment": "*", "date_format": "%d/%m/%Y",
    "types": {"0": "category", "3": "ignore"}, "missing": ["none"],
}  # fmt: skip


def test_the_same_options_give_the_same_model(gramian: Any, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.model"
    done = gramian("fit", data, "--target", "4", *OPTIONS, *FIT, "--out", out)
    assert done.code == 0, done.err
    model = load(out)
    here = KernelRidge("gaussian", lengthscale=1.0, penalty=1e-3, random_state=0)
    here.fit(data, "4", read=READ)
    assert model.model_.reading == here.model_.reading
    assert model.predict(data).tolist() == here.predict(data).tolist()
    new = tmp_path / "b.txt"
    new.write_text("1|7,25|05/03/2021|none|1\n")
    assert gramian("predict", out, new, "--out", tmp_path / "p.csv").code == 0
    assert pd.read_csv(tmp_path / "p.csv")["prediction"].tolist() == model.predict(new).tolist()
    done = gramian("evaluate", out, data, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["rows"] == 60


def test_options_for_one_file(gramian: Any, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.model"
    gramian("fit", data, "--target", "4", *OPTIONS, *FIT, "--out", out)
    new = tmp_path / "b.txt"
    new.write_text("0;1;2;3;4\n1;7.25;2021-03-05;x;1\n")
    plain = gramian("predict", out, new, "--out", tmp_path / "p.csv")
    assert plain.code == 2
    options = ("--decimal", ".", "--date-format", "ymd", "--skip", "1")
    done = gramian("predict", out, new, "--out", "-", *options)
    assert done.code == 0, done.err
    assert done.out.startswith('"prediction"\n')
    assert float(done.out.splitlines()[1]) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("command", ["plan", "tune"])
def test_other_commands(gramian: Any, data: Path, command: str) -> None:
    more = () if command == "plan" else ("--budget", "1e5")
    done = gramian(command, data, "--target", "4", *OPTIONS, *more)
    assert done.code == 0, done.err
    assert command == "plan" or "--types 0=category --types 3=ignore" in done.out


def test_convert(gramian: Any, data: Path, tmp_path: Path) -> None:
    done = gramian("convert", data, tmp_path / "a.parquet", *OPTIONS)
    assert done.code == 0, done.err
    table = pd.read_parquet(tmp_path / "a.parquet")
    assert table.columns.tolist() == ["0", "1", "2", "4"]
    assert table["1"].tolist() == [i + 0.25 for i in range(60)]


def test_names_with_commas(gramian: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a, b": range(30), 'c "d"': 1.0, "e": range(30), "y": range(30)})
    frame["e"] = frame["e"] % 7
    frame['c "d"'] = frame["e"] * 2
    frame.to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "names.txt").write_text('a, b\nc "d"\n')
    for drop in (("--drop", "a, b", "--drop", 'c "d"'), ("--drop", f"@{tmp_path}/names.txt")):
        out = tmp_path / "a.model"
        done = gramian("fit", tmp_path / "a.csv", "--target", "y", *drop, *FIT, "--out", out)
        assert done.code == 0, done.err
        assert load(out).model_.feature_names == ("e",)
    done = gramian(
        "predict", out, tmp_path / "a.csv", "--keep", "a, b", "--keep", "e,y",
        "--out", tmp_path / "p.csv",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert pd.read_csv(tmp_path / "p.csv").columns.tolist() == ["a, b", "e", "y", "prediction"]


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["a,b"], ("a", "b")),
        (["a", "b, c"], ("a", "b, c")),
        (['"b, c",a'], ("b, c", "a")),
        (["b, c"], ("b, c",)),
        (None, None),
    ],
)
def test_column_names(texts: list[str] | None, names: tuple[str, ...] | None) -> None:
    assert column_names(texts, ["a", "b", "c", "b, c"]) == names


def test_a_name_twice() -> None:
    with pytest.raises(ValueError, match="the column a is named twice in a,b, a"):
        column_names(["a,b", "a"], ["a", "b"])


def test_options_that_contradict() -> None:
    with pytest.raises(ValueError, match="--no-header and --header cannot be combined"):
        _ = ReadingOptions(no_header=True, header="a,b").read
    with pytest.raises(ValueError, match="--types must be a column and its type"):
        _ = ReadingOptions(types=["zip"]).read


def test_refusals_name_the_options(gramian: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n3,4\n5,6\n")
    done = gramian("fit", tmp_path / "a.csv", "--target", "1", "--out", tmp_path / "m")
    assert done.code == 2
    assert "give --no-header to number the columns" in done.err
