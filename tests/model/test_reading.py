"""A model reads new files as the table of its training was read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gramian
from gramian import KernelRidge
from gramian.data import ReadOptions

Write = Callable[..., Path]
AMOUNTS = np.linspace(1000, 9000, 60)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str, encoding: str = "utf-8") -> Path:
        (tmp_path / name).write_bytes(text.encode(encoding))
        return tmp_path / name

    return write


def fitted(path: Path, tmp_path: Path, **read: object) -> KernelRidge:
    """Return a model that was saved and loaded."""
    model = KernelRidge("gaussian", penalty=1e-6).fit(path, "y", read=read or None)
    model.save(tmp_path / "a.model")
    loaded: KernelRidge = gramian.load(tmp_path / "a.model")
    assert loaded.model_.reading == model.model_.reading
    return loaded


def test_thousands_in_a_file_of_one_row(write: Write, tmp_path: Path) -> None:
    rows = "".join(f"{v:,.2f};{v / 1000:.4f}\n" for v in AMOUNTS)
    model = fitted(write("a.csv", "v;y\n" + rows), tmp_path)
    assert model.predict(write("b.csv", "v;k\n1,234;1\n")) == pytest.approx(1.234, abs=0.01)


def test_a_point_for_decimals_makes_commas_groups(write: Write, tmp_path: Path) -> None:
    rows = "".join(f"{v:.2f};{v / 1000:.4f}\n" for v in AMOUNTS)
    model = fitted(write("a.csv", "v;y\n" + rows), tmp_path)
    assert model.predict(write("b.csv", "v;k\n1,234;1\n")) == pytest.approx(1.234, abs=0.01)
    with pytest.raises(ValueError, match=r"'v' was written as 1\.5 in training, .* '1234,5'"):
        model.predict(write("b.csv", "v;k\n1234,5;1\n"))


@pytest.mark.parametrize(("order", "day"), [("%m/%d/%Y", "2021-03-04"), ("%d/%m/%Y", "2021-04-03")])
def test_one_day_in_the_order_of_training(
    write: Write, tmp_path: Path, order: str, day: str
) -> None:
    days = pd.date_range("2021-01-01", periods=200)
    text = pd.DataFrame({"d": days.strftime(order), "y": np.arange(200.0)}).to_csv(index=False)
    model = fitted(write("a.csv", text), tmp_path)
    new = model.predict(write("b.csv", "d\n03/04/2021\n"))
    assert new == pytest.approx((pd.Timestamp(day) - days[0]).days, abs=1)


@pytest.mark.parametrize("texts", [("yes", "no"), ("2021-03-04", "2021-03-05"), ("red", "blue")])
def test_one_row_whose_only_value_is_a_gap(
    write: Write, tmp_path: Path, texts: tuple[str, str]
) -> None:
    """pandas reads a column of gaps as numbers."""
    rows = "".join(f"{texts[i % 2]},{i}.5,{i * i}\n" for i in range(60))
    model = fitted(write("a.csv", "t,x,y\n" + rows), tmp_path)
    path = write("b.csv", "t,x\n,7\n")
    with pytest.warns(UserWarning, match="gaps in columns that had none in training: 't' 1"):
        np.testing.assert_array_equal(model.predict(pd.read_csv(path)), model.predict(path))


def test_numbers_of_a_frame_have_no_percent(write: Write, tmp_path: Path) -> None:
    model = fitted(write("a.csv", "v,y\n" + "".join(f"{i}.5%,{i}\n" for i in range(60))), tmp_path)
    said = r"'v' was written as 1\.5% in training, and has numbers here"
    with pytest.warns(UserWarning, match=said):
        number = model.predict(pd.DataFrame({"v": [7.5]}))
    np.testing.assert_array_equal(number, model.predict(write("b.csv", "v\n7.5%\n")))
    with pytest.raises(ValueError, match=r"'7\.5', which is written as 1\.5; write it as in tr"):
        model.predict(write("b.csv", "v\n7.5\n"))


def test_levels_that_pandas_reads_as_numbers(write: Write, tmp_path: Path) -> None:
    houses = ["12a", "7", "3b", "112", "004", "4"]
    rows = "".join(f"{house},{i}.5\n" for i, house in enumerate(houses * 10))
    model = fitted(write("a.csv", "t,y\n" + rows), tmp_path)
    path = write("b.csv", "t\n7\n112\n")
    for frame in (pd.read_csv(path), pd.DataFrame({"t": [7.0, 112.0]})):
        np.testing.assert_array_equal(model.predict(frame), model.predict(path))
    with pytest.warns(UserWarning, match="gaps in columns that had none in training: 't' 1"):
        assert model.predict(pd.DataFrame({"t": [7.0, np.nan]}))[0] == model.predict(path)[0]
    for number in (4, 8, 7.5):  # 4 may be 004
        with pytest.raises(TypeError, match=r"column .t. holds .* held text or categories"):
            model.predict(pd.DataFrame({"t": [number]}))


def test_an_encoding_of_a_file_of_one_row(write: Write, tmp_path: Path) -> None:
    rows = "".join(f"{t}\t{i}\t{i % 2}\n" for i, t in enumerate(["Тула", "Пермь"] * 30))
    path = write("a.csv", "t\tx\ty\n" + rows, "cp1251")
    with pytest.warns(UserWarning, match="cp1251"):
        model = fitted(path, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = model.predict(write("b.csv", "t\tx\nТула\t2\n", "cp1251"))
        same = model.predict(write("b.csv", "t,x\nТула,2\n"))
    np.testing.assert_array_equal(one, same)


def test_options_are_stored_and_hold_for_frames(write: Write, tmp_path: Path) -> None:
    rows = "".join(
        f"{i % 3}|{-999 if i == 15 else i}|0{i % 7}/03/2021|{i % 3}\n" for i in range(7, 70)
    )
    read = {
        "separator": "|", "header": ["zip", "v", "day", "y"], "missing": ["-999"],
        "date_format": "%d/%m/%Y", "types": {"zip": "category", "day": "ignore"},
    }  # fmt: skip
    model = fitted(write("a.csv", rows), tmp_path, **read)
    assert model.model_.encoding is not None
    assert set(model.model_.encoding.names) == {"zip", "v"}
    path = write("b.csv", "1|10|05/03/2021|1\n2|-999|05/03/2021|2\n")
    frame = pd.DataFrame({"zip": [1, 2], "v": [10, -999], "day": "x"})
    np.testing.assert_array_equal(model.predict(path), model.predict(frame))
    assert model.predict(frame)[0] == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("kind", ["frame", "Parquet", "CSV"])
def test_types_are_alike_in_all_tables(tmp_path: Path, kind: str) -> None:
    frame = pd.DataFrame({"z": [1, 2, 3] * 20, "n": [str(i) for i in range(60)]})
    frame["y"] = (frame["z"] == 2) * 1.0
    table: object = frame
    if kind == "Parquet":
        frame.to_parquet(tmp_path / "a.parquet")
        table = tmp_path / "a.parquet"
    if kind == "CSV":
        frame.to_csv(tmp_path / "a.csv", index=False)
        table = tmp_path / "a.csv"
    read = {"types": {"z": "category", "n": "number"}}
    model = KernelRidge("gaussian", penalty=1e-6).fit(table, "y", read=read)
    encoding = model.model_.encoding
    assert encoding is not None
    assert encoding.describe()["z"].startswith("category of 3 levels")
    assert encoding.describe()["n"].startswith("number")
    new = pd.DataFrame({"z": [2, 1], "n": ["5", "6"]})
    assert model.predict(new) == pytest.approx([1, 0], abs=0.1)


@pytest.mark.parametrize("in_file", [False, True])
def test_a_declared_number_keeps_its_currency(tmp_path: Path, in_file: bool) -> None:
    frame = pd.DataFrame({"t": [f"${x:,.2f}" for x in AMOUNTS], "y": AMOUNTS})
    frame.to_parquet(tmp_path / "a.parquet")
    table: object = tmp_path / "a.parquet" if in_file else frame
    model = KernelRidge("gaussian", penalty=1e-6).fit(table, "y", read={"types": {"t": "number"}})
    model.save(tmp_path / "m")
    assert gramian.load(tmp_path / "m").model_.encoding.readings["t"].mark == ("$", "")


def test_a_type_that_values_contradict() -> None:
    frame = pd.DataFrame({"t": ["a", "b"] * 9, "y": np.arange(18.0)})
    with pytest.raises(ValueError, match=r"column 't' has the type number .* row 0 holds 'a'"):
        KernelRidge().fit(frame, "y", read={"types": {"t": "number"}})


def test_options_of_damaged_files() -> None:
    for damaged in ({"separator": ";;"}, {"strict": True}, [1]):
        with pytest.raises(ValueError, match=r"separator must|must be an object"):
            ReadOptions.from_dict(damaged)


def test_options_for_an_array() -> None:
    with pytest.raises(TypeError, match="read has options for a path or a frame"):
        KernelRidge().fit(np.eye(3), np.arange(3.0), read={"skip": 1})
