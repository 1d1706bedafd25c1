"""Encodings in files: the same after they are read back; damaged ones are refused."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import MemoryTable, Table
from gramian.data.encoding import Encoding, FittedEncoding, load_encoding, save_encoding

N = 400


def every_kind() -> Table:
    r = np.random.default_rng(0)
    days = [dt.datetime(2020, 1, 1) + dt.timedelta(hours=int(k)) for k in r.integers(0, 9999, N)]
    return MemoryTable(
        pa.table(
            {
                "x": pa.array([None if k % 7 == 0 else k / 3 for k in range(N)], pa.float64()),
                "yes": r.random(N) < 0.5,
                "few": [["é", "", None][k] for k in r.integers(0, 3, N)],
                "many": [None if k == 0 else f"t{k}" for k in r.integers(0, 50, N)],
                "size": pa.DictionaryArray.from_arrays(
                    pa.array(r.integers(0, 3, N), pa.int8()), ["S", "M", "L"], ordered=True
                ),
                "day": days,
                "at": pa.array(days, pa.timestamp("us", "Europe/Berlin")),
                "time": pa.array(r.integers(0, 86400, N).astype(np.int32), pa.time32("s")),
                "same": ["q"] * N,
            }
        )
    )


def encoding(**settings: Any) -> Encoding:
    y = np.random.default_rng(1).normal(size=(N, 2))
    rng = RandomStream(0)
    settings = {"max_levels": 20, **settings}
    return FittedEncoding.fit(every_kind(), None, y, rng=rng, **settings).encoding


@pytest.mark.parametrize("max_levels", [20, 200])
@pytest.mark.parametrize("numbers", ["standard", "quantile", "raw"])
def test_what_was_saved_is_read(tmp_path: Path, numbers: str, max_levels: int) -> None:
    before = encoding(numbers=numbers, max_levels=max_levels)
    save_encoding(tmp_path / "e", before, {"for": "a test"})
    after, about = load_encoding(tmp_path / "e")
    assert about == {"for": "a test"}
    assert after.feature_names == before.feature_names
    assert after.describe() == before.describe()
    index = np.arange(N)
    assert np.array_equal(
        after.rows(every_kind()).take(index), before.rows(every_kind()).take(index)
    )


def test_levels_of_dates_are_saved(tmp_path: Path) -> None:
    whole = encoding()
    day = whole.columns[KINDS["day"]]
    before = dataclasses.replace(
        whole, columns=(dataclasses.replace(day, levels=("weekday", "month", "hour")),)
    )
    save_encoding(tmp_path / "e", before, {})
    after, _ = load_encoding(tmp_path / "e")
    assert after.feature_names == before.feature_names
    assert sum("=" in name for name in after.feature_names) == 7 + 12 + 24
    rows = [encoding.rows(every_kind()).take(np.arange(N)) for encoding in (before, after)]
    assert np.array_equal(*rows)
    # Each row has one weekday, one month and one hour.
    assert (rows[0][:, -43:].sum(axis=1) == 3).all()


def test_an_encoding_without_tensors(tmp_path: Path) -> None:
    table = MemoryTable(pa.table({"x": [1, 2]}))
    plain = FittedEncoding.fit(table, None, None, rng=RandomStream(0)).encoding
    assert plain.tensors() == {}
    save_encoding(tmp_path / "e", plain, {})
    assert load_encoding(tmp_path / "e")[0].plain


KINDS = {"x": 0, "yes": 1, "few": 2, "many": 3, "size": 4, "day": 5, "at": 6, "time": 7, "same": 8}


def put(name: str, key: str, value: Any) -> Callable[[dict, dict], None]:
    def change(fields: dict, tensors: dict) -> None:
        fields["columns"][KINDS[name]][key] = value

    return change


def tensor(name: str, key: str, change: Callable[[np.ndarray], Any]) -> Callable:
    def apply(fields: dict, tensors: dict) -> None:
        where = f"{KINDS[name]}.{key}"
        tensors[where] = change(xp.copy(tensors[where]))

    return apply


def to(place: Any, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def change(tensor: np.ndarray) -> np.ndarray:
        tensor[place] = value
        return tensor

    return change


DAMAGE: dict[str, Callable[[dict, dict], Any]] = {
    "no columns": lambda f, t: f.pop("columns"),
    "more": lambda f, t: f.update(more=1),
    "dtype": lambda f, t: f.update(dtype="float16"),
    "columns": lambda f, t: f.update(columns={}),
    "a column that is none": lambda f, t: f["columns"].append(3),
    "a column twice": lambda f, t: f["columns"].append(dict(f["columns"][1])),
    "nothing": lambda f, t: (f.update(columns=f["columns"][-1:]), t.clear()),
    "code": put("x", "code", "magic"),
    "name": put("x", "name", 3),
    "field missing": lambda f, t: f["columns"][0].pop("mean"),
    "field unknown": put("x", "more", 1),
    "numbers": put("x", "numbers", "log"),
    "quantiles missing": lambda f, t: t.pop("0.quantiles"),
    "mean": put("x", "mean", "1"),
    "mean of nothing": put("x", "mean", float("nan")),
    "mean too large": put("x", "mean", 10**400),
    "scale": put("x", "scale", 0.0),
    "scale negative": put("x", "scale", -1.0),
    "gaps": put("x", "gaps", -1),
    "gaps of truth": put("yes", "gaps", True),
    "fill": put("yes", "fill", None),
    "levels": put("few", "levels", "é"),
    "levels twice": put("few", "levels", ["a", "a"]),
    "levels of numbers": put("few", "levels", [1, 2]),
    "no levels": lambda f, t: f["columns"][2].update(levels=[], missing=False),
    "missing": put("few", "missing", 1),
    "rare levels twice": put("few", "rare", [1, 1]),
    "rare levels of none": put("few", "rare", [3]),
    "why": put("same", "why", None),
    "mean is one number": put("many", "mean", 1.0),
    "means too few": put("many", "mean", [0.0, 0.0]),
    "scale too long": put("many", "scale", [1.0] * 4),
    "tensor missing": lambda f, t: t.pop("3.means"),
    "tensor unknown": lambda f, t: t.update({"3.more": np.zeros(1, np.float32)}),
    "tensor of no column": lambda f, t: t.update({"77.means": np.zeros(1, np.float32)}),
    "tensor of another type": tensor("many", "means", lambda x: xp.cast(x, np.float32)),
    "tensor of another shape": tensor("many", "means", lambda x: x[:-1]),
    "tensor with NaN": tensor("many", "means", to((0, 0), float("nan"))),
    "counts": tensor("many", "counts", to(0, 0)),
    "ends go back": tensor("many", "ends", to(0, 10**6)),
    "ends negative": tensor("many", "ends", to(0, -1)),
    "ends too short": tensor("many", "ends", lambda x: x[:-1]),
    "texts too long": tensor("many", "texts", lambda x: np.concatenate([x, x[:1]])),
    "texts out of order": tensor("many", "texts", lambda x: xp.flip(x, 0)),
    "texts not UTF-8": tensor("many", "texts", to(0, 255)),
    "quantiles fall": tensor("x", "quantiles", to(0, 1e9)),
    "no quantiles": tensor("x", "quantiles", lambda x: x[:0]),
    "rank levels": put("size", "levels", None),
    "since": put("day", "since", "number"),
    "zone of none": put("day", "zone", "Europe/Berlin"),
    "no zone": put("at", "zone", ""),
    "zone unknown": put("at", "zone", "Mars/Base"),
    "cycles": put("day", "cycles", ["minute"]),
    "cycles of times": put("time", "cycles", ["month"]),
    "levels of dates": put("day", "levels", ["day"]),
    "levels of times": put("time", "levels", ["weekday"]),
    "year of times": lambda f, t: f["columns"][7].update(mean=[0.0, 0.0], scale=[1.0, 1.0]),
    "mean of dates": put("day", "mean", [1.0]),
    "median of dates": put("day", "fill", 1e300),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_parts_are_refused(name: str) -> None:
    whole = encoding(numbers="quantile")
    fields, tensors = json.loads(json.dumps(whole.to_dict())), dict(whole.tensors())
    Encoding.from_parts(copy.deepcopy(fields), tensors)
    DAMAGE[name](fields, tensors)
    with pytest.raises(ValueError, match=r"encoding|date|quantiles|time zone|utf-8"):
        Encoding.from_parts(fields, tensors)


@pytest.mark.parametrize("fields", [None, [], 3, {}, {"dtype": "float32", "columns": []}])
def test_what_is_no_encoding(fields: Any) -> None:
    with pytest.raises(ValueError, match="an encoding"):
        Encoding.from_parts(fields, {})


def test_every_bit_of_a_file_counts(tmp_path: Path) -> None:
    path = tmp_path / "e"
    save_encoding(path, encoding(), {})
    whole = path.read_bytes()
    for at in np.linspace(0, len(whole) - 1, 60).astype(int):
        changed = bytearray(whole)
        changed[at] ^= 4
        path.write_bytes(bytes(changed))
        with pytest.raises(ValueError, match="encoding"):
            load_encoding(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="not an encoding file, or was cut off"):
        load_encoding(path)


def test_files_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="there is no encoding file"):
        load_encoding(tmp_path / "nowhere")
    monkeypatch.setattr("gramian.data.encoding.file.ENCODING_FORMAT", 2)
    save_encoding(tmp_path / "newer", encoding(), {})
    monkeypatch.undo()
    with pytest.raises(
        ValueError, match="has format 2, but this version reads format 1: upgrade gramian"
    ):
        load_encoding(tmp_path / "newer")
    monkeypatch.setattr("gramian.data.encoding.file.ENCODING_KEY", "other")
    save_encoding(tmp_path / "other", encoding(), {})
    monkeypatch.undo()
    with pytest.raises(ValueError, match="is a safetensors file but contains no encoding"):
        load_encoding(tmp_path / "other")
