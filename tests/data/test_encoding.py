"""Encodings: what becomes of each kind of column, however the table is stored."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import MemoryTable, Standardizer, TableRows, as_rows, as_table, sample_path
from gramian.data.encoding import EncodedRows, FittedEncoding


def seeded(seed: int = 0) -> RandomStream:
    return RandomStream(seed)


def fitted(columns: dict[str, Any], targets: Any = None, **settings: Any) -> FittedEncoding:
    return FittedEncoding.fit(
        MemoryTable(pa.table(columns)), None, targets, rng=seeded(), **settings
    )


def encoded(fit: FittedEncoding, columns: dict[str, Any]) -> np.ndarray:
    rows = fit.encoding.rows(MemoryTable(pa.table(columns)))
    return next(rows.blocks(len(rows)))[1]


def described(columns: dict[str, Any], targets: Any = None, **settings: Any) -> dict[str, str]:
    return fitted(columns, targets, **settings).encoding.describe()


# ---- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["california_housing", "energy"])
def test_numbers_without_gaps_are_those_of_the_standardizer(name: str) -> None:
    path = sample_path(name)
    encoding = FittedEncoding.fit(as_table(path), None, None, rng=seeded()).encoding
    expected = Standardizer.fit(as_rows(path))
    assert encoding.plain
    found = encoding.standardizer()
    assert found is not None
    assert np.array_equal(found.mean, expected.mean)
    assert np.array_equal(found.scale, expected.scale)


def test_more_rows_than_a_batch_are_those_of_the_standardizer_too() -> None:
    x = np.random.default_rng(0).normal(1e6, 1, size=(600_000, 3))
    table = pa.table(list(x.T), names=["a", "b", "c"])
    found = FittedEncoding.fit(MemoryTable(table), None, None, rng=seeded()).encoding.standardizer()
    expected = Standardizer.fit(TableRows(table))
    assert found is not None
    assert np.array_equal(found.mean, expected.mean)
    assert np.array_equal(found.scale, expected.scale)


def test_gaps_become_the_median_and_are_marked() -> None:
    fit = fitted({"x": [1.0, None, 2.0, 9.0, math.nan, 4.0]})
    filled = np.array([1, 3, 2, 9, 3, 4.0])
    x = encoded(fit, {"x": [1.0, None, 2.0, 9.0, math.nan, 4.0]})
    np.testing.assert_allclose(x[:, 0], (filled - filled.mean()) / filled.std(), rtol=1e-14)
    assert x[:, 1].tolist() == [0, 1, 0, 0, 1, 0]
    assert fit.encoding.feature_names == ("x", "x missing")
    assert not fit.encoding.plain
    assert fit.encoding.describe() == {
        "x": "number, standardised; 2 missing filled with the median 3, and marked"
    }


def test_a_column_whose_numbers_begin_late_keeps_its_digits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gramian.data.encoding.learn.BATCH_NUMBERS", 64)
    late = np.where(np.arange(1000) < 500, np.nan, 1e9 + np.arange(1000) % 2)
    fit = fitted({"x": late, "z": np.arange(1000) % 3})
    x = encoded(fit, {"x": late, "z": np.arange(1000) % 3})
    assert np.std(x[:, 0]) == pytest.approx(1)
    assert np.mean(x[:, 0]) == pytest.approx(0, abs=1e-6)


def test_quantiles_make_numbers_normal_to_three_deviations() -> None:
    x = np.exp(3 * np.random.default_rng(0).normal(size=5000))
    fit = fitted({"x": x}, numbers="quantile")
    z = encoded(fit, {"x": [*x, 1e9, -5.0]})[:, 0]
    assert np.std(z[:5000]) == pytest.approx(1, abs=1e-9)
    assert np.mean(z[:5000]) == pytest.approx(0, abs=1e-9)
    order = np.argsort(x)
    assert (np.diff(z[:5000][order]) >= 0).all()
    assert z[5000] == z.max() < 3.2
    assert z[5001] == z.min() > -3.2
    assert abs(((z[:5000] ** 4).mean()) - 3) < 0.2  # the kurtosis of a normal


def test_equal_numbers_have_the_score_of_their_middle() -> None:
    fit = fitted({"x": [0.0] * 25 + [1.0] * 50 + [2.0] * 25}, numbers="quantile")
    low, middle, high = encoded(fit, {"x": [0.0, 1.0, 2.0]})[:, 0]
    assert middle == pytest.approx(0, abs=1e-9)
    assert high == pytest.approx(-low)


def test_raw_numbers_stay_and_gaps_are_filled() -> None:
    fit = fitted({"x": [1.0, None, 3.0], "c": [7, 7, 7]}, numbers="raw")
    assert encoded(fit, {"x": [5.0, None], "c": [7, 8]}).tolist() == [[5, 0, 7], [2, 1, 8]]
    plain = fitted({"x": [1.0, 3.0]}, numbers="raw").encoding
    assert plain.plain
    assert plain.standardizer() is None


def test_only_plain_encodings_are_standardizers() -> None:
    with pytest.raises(ValueError, match="only an encoding of numbers without gaps"):
        fitted({"x": [True, False]}).encoding.standardizer()


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.uint64(), pa.decimal128(30, 2)])
def test_numbers_of_any_width(kind: pa.DataType) -> None:
    fit = fitted({"x": pa.array([1, 2, 3], pa.float64())})
    assert (
        encoded(fit, {"x": pa.array([1, 2, 3]).cast(kind)}) == encoded(fit, {"x": [1, 2, 3]})
    ).all()


def test_the_type_of_rows_is_that_which_numbers_need() -> None:
    small = fitted({"x": np.arange(3, dtype=np.int16), "t": ["a", "b", "a"]})
    assert small.encoding.dtype == np.float32
    assert encoded(small, {"x": [0, 1], "t": ["a", "b"]}).dtype == np.float32
    assert fitted({"x": np.arange(3)}).encoding.dtype == np.float64
    assert fitted({"t": ["a", "b"]}).encoding.dtype == np.float32


def test_huge_integers_that_doubles_do_not_tell_apart_are_left_out() -> None:
    with pytest.warns(UserWarning, match="column 'x' holds whole numbers beyond"):
        said = described({"x": [2**60, 2**60 + 1, 2**60 + 2], "y": [1, 2, 3]})
    assert said["x"] == "left out: one number in all training rows"


@pytest.mark.parametrize("rows", [300, 30])
def test_medians_and_quantiles_of_a_sample(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample is drawn among the rows that count, and none of them twice."""
    monkeypatch.setattr("gramian.data.encoding.learn.SAMPLE_ROWS", rows)
    monkeypatch.setattr("gramian.data.encoding.learn.BATCH_NUMBERS", 64)
    x = np.where(np.arange(1000) % 3 == 0, -1.0, np.arange(1000.0))
    table = MemoryTable(pa.table({"x": x}))
    keep = np.arange(1000) % 3 != 0
    fit = FittedEncoding.fit(table, None, None, rng=seeded(), keep=keep, numbers="quantile")
    quantiles = fit.encoding.tensors()["0.quantiles"]
    assert len(quantiles) == rows
    assert set(quantiles.round(6)) <= set(x[keep])
    assert (np.diff(quantiles) > 0).all()
    assert np.median(quantiles) == pytest.approx(500, abs=200)


@pytest.mark.parametrize(("size", "rows"), [(None, 1000), (8 * 300, 300), (1, 1), (1 << 40, 900)])
def test_bytes_of_the_sample(size: int | None, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if rows == 900:  # its own most holds, however much it may take
        monkeypatch.setattr("gramian.data.encoding.learn.SAMPLE_BYTES", 8 * rows)
    table = MemoryTable(pa.table({"x": np.arange(1000.0)}))
    fit = FittedEncoding.fit(table, None, None, rng=seeded(), numbers="quantile", sample_bytes=size)
    assert len(fit.encoding.tensors()["0.quantiles"]) == rows


def test_folds_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramian.data.encoding.learn.EXACT_FOLDS", 100)
    texts = [f"t{k % 30}" for k in range(1000)]
    fit = fitted({"t": texts}, np.arange(1000.0), keep=np.arange(1000) > 0, max_levels=20)
    assert fit.folds is not None
    assert fit.folds[0] == -1
    assert (np.bincount(fit.folds[1:], minlength=5) > 150).all()


# ---- other kinds --------------------------------------------------------------------------------


def test_booleans() -> None:
    fit = fitted({"b": [True, None, True, False]})
    assert encoded(fit, {"b": [False, True, None]}).tolist() == [[0, 0], [1, 0], [1, 1]]
    assert described({"b": [True, False]}) == {"b": "boolean, 0 or 1"}


def test_few_levels_have_a_column_each() -> None:
    fit = fitted({"t": ["b", "a", "?", "b"]})
    assert fit.encoding.feature_names == ("t=?", "t=a", "t=b")
    assert encoded(fit, {"t": ["a", "?", "new", "b"]}).tolist() == [
        [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1],
    ]  # fmt: skip


@pytest.mark.parametrize("gap", ["", "NA", "None", "<NA>"])
def test_texts_that_pandas_reads_as_missing_are_missing_levels(gap: str) -> None:
    fit = fitted({"t": ["b", "a", gap, "b"]})
    assert fit.encoding.feature_names == ("t=a", "t=b", "t missing")
    assert encoded(fit, {"t": [gap, "nan", None]}).tolist() == [[0, 0, 1]] * 3


def test_missing_is_a_level_if_training_had_it() -> None:
    fit = fitted({"t": ["b", None, "a"]})
    assert fit.encoding.feature_names == ("t=a", "t=b", "t missing")
    assert encoded(fit, {"t": ["z", None]}).tolist() == [[0, 0, 0], [0, 0, 1]]
    assert "one of them for missing values" in fit.encoding.describe()["t"]


def test_many_levels_become_means_and_log_counts() -> None:
    texts = [f"t{i % 21}" for i in range(63)]
    y = np.arange(63) % 21.0
    fit = fitted({"t": texts}, y, max_levels=20)
    assert fit.encoding.feature_names == ("t (mean)", "t (log count)")
    new = encoded(fit, {"t": ["t0", "t20", "never"]})
    smooth = (3 * np.array([0, 20]) + 20 * 10) / 23
    assert new[1, 0] - new[0, 0] == pytest.approx((smooth[1] - smooth[0]) / (new_scale(fit)))
    assert new[2, 0] == pytest.approx((new[0, 0] + new[1, 0]) / 2)
    # Training rows have two others of their level each, and all have a feature of 0.
    assert new[:, 1] == pytest.approx([math.log(4 / 3), math.log(4 / 3), -math.log(3)])
    assert fit.encoding.describe()["t"] == "category of 21 levels: target means and log count"
    assert described({"t": texts}, max_levels=20)["t"] == "category of 21 levels: log count"


def test_an_unknown_level_looks_like_a_level_of_one_training_row() -> None:
    """Otherwise a column of names moves new rows far from all training rows."""
    rng = np.random.default_rng(0)
    texts = [*(f"single {i}" for i in range(280)), *(f"pair {i}" for i in range(10))]
    texts += texts[-10:]
    y = rng.standard_normal(300)
    fit = fitted({"t": texts}, y)
    training = fit.training_rows(MemoryTable(pa.table({"t": texts}))).take(np.arange(300))
    unknown = encoded(fit, {"t": ["never"]})[0]
    assert training[:280, 1] == pytest.approx(unknown[1], abs=1e-6)
    assert np.ptp(training[:, 1]) > 1
    assert abs(unknown[0] - training[:280, 0].mean()) < 0.2


@pytest.mark.parametrize("levels", [20, 21, 199, 200, 201])
def test_levels_have_columns_up_to_two_hundred(levels: int) -> None:
    """Two levels are of fewer than three rows, and share a column beyond 20 levels."""
    texts = [None, *(f"t{i:03}" for i in range(levels - 1))] * 3
    del texts[1:3]
    fit = fitted({"t": texts}, np.arange(len(texts)) % 7.0)
    if levels > 200:
        assert fit.encoding.feature_names == ("t (mean)", "t (log count)")
        return
    names = fit.encoding.feature_names
    rows = encoded(fit, {"t": ["t000", "t001", "t002", None, "never"]})
    if levels == 20:
        assert names[0] == "t=t000"
        assert names[-1] == "t missing"
        expected = [0, 1, 2, 19]
    else:
        assert names[0] == "t=t002"
        assert names[-2:] == ("t missing", "t (rare)")
        expected = [len(names) - 1, len(names) - 1, 0, len(names) - 2]
        assert "one for 2 rare levels" in fit.encoding.describe()["t"]
    assert len(names) == levels - (levels > 20)
    assert rows.argmax(axis=1)[:4].tolist() == expected
    assert rows.sum(axis=1).tolist() == [1, 1, 1, 1, 0]
    assert fit.encoding.categories == ((0, 0, len(names)),)


def test_levels_that_are_mostly_rare_become_means() -> None:
    texts = [f"t{i // 2}" for i in range(100)]
    fit = fitted({"t": texts}, np.arange(100.0))
    assert fit.encoding.feature_names == ("t (mean)", "t (log count)")


def new_scale(fit: FittedEncoding) -> float:
    return float(fit.encoding.to_dict()["columns"][0]["scale"][0])


def test_several_targets_have_a_mean_each() -> None:
    texts = [f"t{i % 30}" for i in range(90)]
    fit = fitted({"t": texts}, np.random.default_rng(0).normal(size=(90, 2)), max_levels=20)
    assert fit.encoding.feature_names == ("t (mean 1)", "t (mean 2)", "t (log count)")


def test_ordered_categories_become_ranks() -> None:
    sizes = pd.Categorical(["S", "L", "M", "S"], ["XS", "S", "M", "L"], ordered=True)
    fit = fitted({"s": pa.array(sizes)})
    x = encoded(fit, {"s": ["XS", "S", "M", "L"]})[:, 0]
    np.testing.assert_allclose(np.diff(x), 1 / np.std([1, 3, 2, 1]))
    assert fit.encoding.describe() == {"s": "ordered category of 4 levels: rank, standardised"}
    with pytest.raises(ValueError, match="column 's' is 'XXL' in row 1; a level that training"):
        encoded(fit, {"s": ["S", "XXL"]})


def test_ordered_categories_of_several_orders() -> None:
    parts = [
        pa.DictionaryArray.from_arrays([0, 1], levels, ordered=True)
        for levels in (["a", "b"], ["b", "a"])
    ]
    table = MemoryTable(pa.table({"s": pa.chunked_array(parts), "x": [1, 2, 3, 4]}))
    table.batches = lambda names, size: iter(  # type: ignore[method-assign]
        pa.record_batch([p, pa.array([1, 2])], names=["s", "x"]) for p in parts
    )
    with pytest.raises(ValueError, match="the order of the categories of column 's' differs"):
        FittedEncoding.fit(table, None, None, rng=seeded())


DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=k) for k in range(0, 800, 7)]


def test_dates_become_elapsed_time_year_and_cycles() -> None:
    fit = fitted({"d": DAYS})
    assert fit.encoding.describe() == {"d": "date: elapsed, year, month and day as cycles"}
    assert fit.encoding.feature_names == (
        "d (elapsed)", "d (year)", "d (month sin)", "d (month cos)", "d (day sin)", "d (day cos)",
    )  # fmt: skip
    row = encoded(fit, {"d": [dt.date(2021, 4, 1)]})[0]
    assert row[2:] == pytest.approx([1, 0, 0, 1], abs=1e-6)


@pytest.mark.parametrize(
    ("matters", "cycles"),
    [
        (lambda d: 0.0, ""),
        (lambda d: np.cos(d.month / 2), ", month as a cycle"),
        (lambda d: d.weekday() == 6, ", weekday as a cycle, levels of weekday"),
        (lambda d: np.cos(d.day / 5) + np.cos(d.hour / 4), ", day and hour as cycles"),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_cycles_are_those_that_predict_held_out_rows(
    matters: Callable[[dt.datetime], float], cycles: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    hours = rng.integers(8760, size=900).tolist()
    days = [dt.datetime(2021, 1, 1) + dt.timedelta(hours=hour) for hour in hours]
    y = np.array([matters(day) for day in days]) + 0.5 * rng.normal(size=900) + 1e6
    fit = fitted({"d": days}, y)
    assert fit.encoding.describe() == {"d": "date: elapsed" + cycles}
    # Of few rows, and of targets that do not vary, all cycles are kept.
    for targets, rows in ((y, 60), (np.ones(900), 900)):
        fit = fitted({"d": days[:rows]}, targets[:rows])
        assert fit.encoding.describe()["d"].endswith("month, day, weekday and hour as cycles")


HOURS = [dt.datetime(2020, 1, 1) + dt.timedelta(hours=k) for k in range(3 * 366 * 24)]


@pytest.mark.parametrize("seed", range(3))
def test_a_cycle_is_kept_if_it_helps_together_with_another_column(seed: int) -> None:
    rng = np.random.default_rng(seed)
    days = [HOURS[k] for k in rng.integers(len(HOURS), size=600)]
    x = rng.normal(size=600)
    wave = np.array([np.sin(day.hour / 12 * np.pi) for day in days])
    noise = 0.3 * rng.normal(size=600)
    # The mean over x is the same at any hour, so that the hour alone predicts nothing.
    kept = described({"d": days, "x": x}, np.sign(x) * wave + noise)["d"]
    assert kept == "date: elapsed, year, hour as a cycle"
    assert "hour" not in described({"d": days, "x": x}, x + noise)["d"]


@pytest.mark.parametrize("seed", range(3))
def test_weekdays_become_levels_if_they_differ_from_their_neighbours(seed: int) -> None:
    rng = np.random.default_rng(seed)
    days = [HOURS[24 * k].date() for k in rng.integers(1000, size=800)]
    y = np.array([[0, 2, 0, 2, 0, 2, 2][day.weekday()] for day in days]) + rng.normal(size=800)
    fit = fitted({"d": days}, y)
    assert fit.encoding.describe()["d"].endswith("weekday as a cycle, levels of weekday")
    assert [name for name in fit.encoding.feature_names if "=" in name] == [
        f"d (weekday={day})" for day in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    ]
    row = encoded(fit, {"d": [dt.date(2023, 1, 7)]})[0]  # a Saturday
    assert row[-7:].tolist() == [0, 0, 0, 0, 0, 1, 0]
    # A wave is as well predicted by its cycle.
    wave = np.array([np.sin(day.weekday() * 2 * np.pi / 7) for day in days])
    assert "levels" not in described({"d": days}, wave + rng.normal(size=800))["d"]


def test_elapsed_time_gets_a_lengthscale_of_its_own() -> None:
    rng = np.random.default_rng(0)
    at = rng.integers(len(HOURS), size=600)
    days, x = [HOURS[k] for k in at], rng.normal(size=(600, 2))
    fast = np.sin(at / len(HOURS) * 12 * np.pi)
    columns = {"d": days, "x": x[:, 0], "z": x[:, 1]}
    spread = [
        float(encoded(fitted(columns, y), columns)[:, 0].std())
        for y in (x.sum(axis=1), fast + x.sum(axis=1) / 4)
    ]
    assert spread == pytest.approx([1.0, 16.0], rel=1e-3)


def test_the_same_dates_in_any_type() -> None:
    fit = fitted({"d": DAYS})
    expected = encoded(fit, {"d": DAYS})
    for kind in (pa.date64(), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ms")):
        assert (encoded(fit, {"d": pa.array(DAYS).cast(kind)}) == expected).all()
        assert (encoded(fitted({"d": pa.array(DAYS).cast(kind)}), {"d": DAYS}) == expected).all()


def test_clocks_of_a_time_zone() -> None:
    zone = pa.timestamp("s", "Asia/Tokyo")  # nine hours before UTC
    times = pa.array([dt.datetime(2020, 1, 1) + dt.timedelta(hours=k) for k in range(24)], zone)
    fit = fitted({"t": times})
    assert fit.encoding.describe()["t"].startswith("date in Asia/Tokyo: elapsed, ")
    names = fit.encoding.feature_names
    assert "t (hour sin)" in names
    local_midnight = pa.array([dt.datetime(2020, 1, 1, 15)], pa.timestamp("us", "UTC"))
    row = dict(zip(names, encoded(fit, {"t": local_midnight})[0], strict=True))
    assert (row["t (hour sin)"], row["t (hour cos)"]) == pytest.approx((0, 1), abs=1e-6)
    with pytest.raises(
        TypeError, match=r"column 't' holds timestamp.*but held times with a time zone"
    ):
        encoded(fit, {"t": pa.array([dt.datetime(2020, 1, 1)])})


def test_gaps_in_dates() -> None:
    fit = fitted({"d": [*DAYS, None]})
    x = encoded(fit, {"d": [None, DAYS[len(DAYS) // 2]]})
    assert (x[0, :-1] == x[1, :-1]).all()
    assert x[:, -1].tolist() == [1, 0]
    assert "missing filled with the median 2021-02-03" in fit.encoding.describe()["d"]


def test_times_of_day_and_durations() -> None:
    times = pa.array([0, 6 * 3600, 12 * 3600], pa.time32("s"))
    fit = fitted({"t": times, "u": pa.array([1, 2, 3], pa.duration("s"))})
    assert fit.encoding.describe() == {
        "t": "time of day: elapsed, hour as a cycle", "u": "duration: elapsed"
    }  # fmt: skip
    x = encoded(fit, {"t": times, "u": pa.array([3000, 2000, 1000], pa.duration("ms"))})
    assert x[:, 1] == pytest.approx([0, 1, 0], abs=1e-6)
    assert x[:, 3] == pytest.approx([1.2247449, 0, -1.2247449])


def test_columns_that_say_nothing_are_left_out() -> None:
    said = described(
        {
            "x": [1, 2], "none": pa.nulls(2), "gap": pa.array([None, None], pa.float64()),
            "text": pa.array([None, None], pa.string()), "one": ["a", "a"], "two": [5, 5],
            "yes": [True, True], "no": pa.array([None, None], pa.bool_()),
            "day": [dt.date(2020, 1, 1)] * 2, "dusk": pa.array([None, None], pa.date32()),
            "rank": pa.DictionaryArray.from_arrays([0, 0], ["a", "b"], ordered=True),
            "unranked": pa.DictionaryArray.from_arrays(
                pa.array([None, None], pa.int8()), ["a"], ordered=True),
        }
    )  # fmt: skip
    assert said.pop("x") == "number, standardised"
    empty = {"none", "gap", "text", "no", "dusk", "unranked"}
    for name, why in said.items():
        expected = "no value in the training rows" if name in empty else "one (value|number) in all"
        assert re.match(f"left out: {expected}", why), name
    fit = fitted({"x": [1, 2], "one": ["a", "a"]})
    assert encoded(fit, {"x": [1]}).shape == (1, 1)


def test_nothing_is_left() -> None:
    with pytest.raises(ValueError, match=r"no column to learn from: a \(left out: one number in"):
        fitted({"a": [1, 1], "b": ["q", "q"]})


def test_one_row_has_nothing_to_learn_from() -> None:
    with pytest.raises(ValueError, match="has no column to learn from"):
        fitted({"a": [1], "b": ["q"]}, np.ones(1))


# ---- the same from everywhere -------------------------------------------------------------------


def mixed(n: int = 3000) -> pa.Table:
    r = np.random.default_rng(0)
    return pa.table(
        {
            "a": pa.array([None if v < -1.5 else v for v in r.normal(size=n)], pa.float64()),
            "k": r.integers(0, 5, n),
            "town": [None if v % 50 == 0 else f"ü{v}" for v in r.integers(0, 66, n)],
            "few": [["x", "y", ""][v] for v in r.integers(0, 3, n)],
            "flag": r.random(n) < 0.3,
        }
    )


def test_the_same_from_every_form_of_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gramian.data.encoding.learn.BATCH_NUMBERS", 1000)
    table = mixed()
    n, y = len(table), np.random.default_rng(1).normal(size=len(table))
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=70)
    narrow = table.set_column(1, "k", table["k"].cast(pa.int32()))
    frame = table.to_pandas()
    forms = {
        "arrow": table,
        "chunks": pa.concat_tables([table.slice(0, 7), table.slice(7, 1500), table.slice(1507)]),
        "categories": narrow.set_column(2, "town", narrow["town"].dictionary_encode()),
        "parquet": tmp_path / "x.parquet",
        "pandas": frame,
        "pandas categories": frame.astype({"town": "category", "few": "category"}),
        "other order": table.select(["flag", "few", "town", "k", "a"]),
    }
    results = {}
    for name, form in forms.items():
        source = as_table(form)
        fit = FittedEncoding.fit(source, table.column_names, y, rng=seeded())
        rows = fit.training_rows(source)
        results[name] = (
            rows.map(xp.copy, size=999),
            fit.encoding.rows(source).take(np.arange(n - 1, -1, -1)),
        )
    for name, (training, new) in results.items():
        assert np.array_equal(training, results["arrow"][0]), name
        assert np.array_equal(new, results["arrow"][1]), name


def test_categories_that_no_row_has_are_no_levels() -> None:
    codes = pa.array([0, 2, 0, None], pa.int8())
    fit = fitted({"t": pa.DictionaryArray.from_arrays(codes, ["b", "unused", "a"])})
    assert fit.encoding.feature_names == ("t=a", "t=b", "t missing")


def test_categories_of_numbers_are_categories() -> None:
    codes = pa.array([0, 1, 2, 0], pa.int8())
    ints = fitted({"t": pa.DictionaryArray.from_arrays(codes, pa.array([10, 9, 8]))})
    assert ints.encoding.feature_names == ("t=10", "t=8", "t=9")
    zeros = fitted({"t": pa.DictionaryArray.from_arrays(codes, pa.array([0.0, -0.0, 1.5]))})
    assert len(zeros.encoding.feature_names) == 2


def test_rows_that_do_not_count_teach_nothing() -> None:
    table = mixed(500)
    keep = np.arange(500) < 300
    y = np.random.default_rng(0).normal(size=500)
    whole = FittedEncoding.fit(MemoryTable(table), None, y, rng=seeded(), keep=keep)
    y[300:] = 1e6
    strange = table.slice(0, 300).to_pylist() + [
        {"a": 1e6, "k": 77, "town": f"never {i}", "few": "new", "flag": True} for i in range(200)
    ]
    other = MemoryTable(pa.Table.from_pylist(strange, table.schema))
    again = FittedEncoding.fit(other, None, y, rng=seeded(), keep=keep)
    first = whole.training_rows(MemoryTable(table)).take(np.arange(300))
    assert np.array_equal(again.training_rows(other).take(np.arange(300)), first)


def test_names_of_features_differ() -> None:
    fit = fitted({"a=x": [1.0, 2.0, 3.0], "a": ["x", "y", "x"], "b": [1.0, None, 3.0],
                  "b missing": [3, 1, 2]})  # fmt: skip
    names = fit.encoding.feature_names
    assert names == ("a=x", "a=x (2)", "a=y", "b", "b missing", "b missing (2)")


def test_encoded_rows_are_rows() -> None:
    table = MemoryTable(mixed(100))
    rows = FittedEncoding.fit(table, None, np.zeros(100), rng=seeded()).encoding.rows(table)
    assert isinstance(rows, EncodedRows)
    whole = rows.map(xp.copy, size=100)
    assert whole.shape == rows.shape == (100, len(rows.feature_names or ()))
    assert np.array_equal(rows.map(xp.copy, size=7), whole)
    assert np.array_equal(rows.take(np.array([5, 5, 0])), whole[[5, 5, 0]])
    with pytest.raises(IndexError):
        rows.take(np.array([100]))
    with pytest.raises(ValueError, match="at least one row"):
        next(rows.blocks(0))
