"""What an encoding refuses, in training and of new tables: column, row and remedy are named."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gramian._arrays import RandomStream
from gramian._messages.errors import TextWarning
from gramian.data import MemoryTable
from gramian.data.encoding import FittedEncoding


def fitted(columns: dict[str, Any], targets: Any = None, **settings: Any) -> FittedEncoding:
    rng = RandomStream(0)
    return FittedEncoding.fit(
        MemoryTable(pa.table(columns), "t.csv"), None, targets, rng=rng, **settings
    )


def encode(fit: FittedEncoding, columns: dict[str, Any]) -> np.ndarray:
    blocks = list(fit.encoding.rows(MemoryTable(pa.table(columns), "new.csv")).blocks(2))
    return blocks[0][1]


REMEDY = r".*; leave it out with columns=\[\.\.\.\]$"


@pytest.mark.parametrize(
    "values",
    [
        pa.array([["a"], ["b"]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([b"x", b"y"]),
        pa.array([b"x", b"y"], pa.binary(1)),
    ],
    ids=["list", "struct", "binary", "fixed binary"],
)
def test_types_of_which_no_numbers_are_made(values: pa.Array) -> None:
    with pytest.raises(TypeError, match=r"t\.csv has columns.*as numbers: odd \(" + REMEDY):
        fitted({"x": [1, 2], "odd": values})


IDS = [f"id{k}" for k in range(40)]
REMARKS = [f"a long remark about the house number {k % 33}" for k in range(40)]


def test_identifiers_and_free_text_are_left_out_with_one_warning() -> None:
    table = {"x": list(range(40)), "id": [*IDS[:39], None], "key": IDS, "why": REMARKS}
    sentence = (
        r"t\.csv: columns left out: id, key \(a different text in nearly every row, as an "
        r"identifier has\); "
        r"why \(free text, long and seldom the same\); to use them, name all features in columns$"
    )
    with pytest.warns(TextWarning, match=sentence) as caught:
        fit = fitted(table)
    assert len(caught) == 1
    assert fit.encoding.feature_names == ("x",)
    assert fit.encoding.describe()["key"].startswith("left out: a different text in nearly")
    encode(fit, {"x": [1, 2]})  # new tables need not have them


def test_levels_are_no_identifiers() -> None:
    fitted({"x": list(range(20)), "id": IDS[:20]})  # no more than get a column each
    fitted({"x": list(range(60)), "id": IDS[:30] * 2})
    fitted({"why": [text[-8:] for text in REMARKS]})


@pytest.mark.filterwarnings("ignore:t.csv. columns left out")
@pytest.mark.parametrize(("singles", "is_left_out"), [(94, False), (96, True)])
def test_nearly_different_texts_are_identifiers(*, singles: int, is_left_out: bool) -> None:
    pairs = [f"pair{k}" for k in range((100 - singles) // 2)]
    texts = [*(f"id{k}" for k in range(singles)), *pairs, *pairs]
    table = {"x": list(range(100)), "id": texts}
    said = fitted(table).encoding.describe()["id"]
    assert said.startswith("left out: a different text in nearly") == is_left_out


def test_texts_that_are_named_become_features() -> None:
    fit = fitted({"x": list(range(40)), "id": IDS, "why": REMARKS}, text_features=["id", "why"])
    assert fit.encoding.names == ("x", "id", "why")


def test_a_table_of_identifiers_alone() -> None:
    with pytest.raises(ValueError, match=r"no column to learn from: id \(left out: a different"):
        fitted({"id": IDS})


@pytest.mark.parametrize("limit", ["MOST_LEVELS", "MOST_BYTES"])
def test_too_many_levels(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramian.data.encoding.columns.target_means." + limit, 50)
    table = {"x": list(range(180)), "id": [f"id{k}" for k in range(60)] * 3}
    with pytest.warns(TextWarning, match=r"id \(too many texts to be a category\)"):
        assert fitted(table).encoding.names == ("x",)
    with pytest.raises(ValueError, match="column 'id' has too many texts" + REMEDY):
        fitted(table, text_features=["id"])


@pytest.mark.parametrize("bad", [math.inf, -math.inf])
def test_infinite_numbers(bad: float) -> None:
    with pytest.raises(ValueError, match=r"t\.csv: column 'x' is infinite in row 2; only finite"):
        fitted({"x": [1.0, math.nan, bad, 2.0]})
    with pytest.raises(ValueError, match=r"new\.csv: column 'x' is infinite in row 1; "):
        encode(fitted({"x": [1.0, 2.0]}), {"x": [1.0, bad]})


def test_numbers_whose_squares_overflow() -> None:
    with pytest.raises(ValueError, match="column 'x' has numbers so large"):
        fitted({"x": [1e300, -1e300, 0.0]})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([1.0, 2.0], [1.0, None]),
        ([1.0, 2.0], [1.0, math.nan]),
        ([True, False], [True, None]),
        (pa.array([1, 2], pa.timestamp("s")), pa.array([1, None], pa.timestamp("s"))),
        ([1.0, 2.0], pa.nulls(2)),
        ([True, False], pa.nulls(2)),
        (pa.array([1, 2], pa.timestamp("s")), pa.nulls(2)),
        (pa.DictionaryArray.from_arrays([0, 1], ["a", "b"], ordered=True), ["a", None]),
    ],
)
def test_gaps_where_training_had_none_are_counted(before: Any, after: Any) -> None:
    fit = fitted({"x": before})
    count = 2 if isinstance(after, pa.NullArray) else 1
    sentence = rf"new.csv: gaps in columns that had none in training: 'x' {count};"
    with pytest.warns(UserWarning, match=sentence) as caught:
        encode(fit, {"x": after})
    assert len(caught) == 1


FILLED = {
    "x": ([1.0, 2.0, 9.0], 2.0),
    "flag": ([True, True, False], True),
    "day": (pa.array([0, 10, 90], pa.date32()), pa.scalar(10, pa.date32())),
    "rank": (pa.DictionaryArray.from_arrays([0, 1, 2], ["a", "b", "c"], ordered=True), "b"),
}


@pytest.mark.parametrize("name", FILLED)
def test_gaps_where_training_had_none_are_filled_with_the_median(name: str) -> None:
    values, median = FILLED[name]
    fit = fitted({name: values})
    type_ = pa.array(values).type if isinstance(values, list) else values.type
    with pytest.warns(UserWarning, match="'" + name + "' 1;"):
        filled = encode(fit, {name: pa.array([None], pa.string() if name == "rank" else type_)})
    np.testing.assert_array_equal(filled, encode(fit, {name: pa.array([median])}))


def test_gaps_of_all_blocks_are_reported_once() -> None:
    fit = fitted({"x": [1.0, 2.0], "level": ["a", "b"]})
    table = pa.table({"x": [None, 2.0, 3.0, None], "level": ["a", None, None, None]})
    rows = fit.encoding.rows(MemoryTable(table))
    with pytest.warns(UserWarning, match=r"training: 'x' 2, 'level' 3; they are filled") as caught:
        _ = [list(rows.blocks(2)) for _ in range(2)]
    assert len(caught) == 1


def test_levels_of_which_training_had_none_are_reported_once() -> None:
    many = [f"level {k}" for k in range(30)]
    fit = fitted({"few": ["a", "b", None] * 20, "many": many * 2, "known": ["a", "b"] * 30})
    table = {"few": ["q", "r", None], "many": ["s"] * 3, "known": ["a", "q", "q"]}
    sentence = (
        r"no value of these columns is a level of training: 'few' \(2 rows, such as 'q', 'r'\), "
        r"'many' \(3 rows, such as 's'\);"
    )
    with pytest.warns(UserWarning, match=sentence) as caught:
        list(fit.encoding.rows(MemoryTable(pa.table(table))).blocks(2))
    assert len(caught) == 1


def test_an_error_names_the_row_of_the_table() -> None:
    fit = fitted({"x": [1.0, 2.0]})
    table = MemoryTable(pa.table({"x": [1.0, 2.0, 3.0, math.inf]}))
    with pytest.raises(ValueError, match="in row 3;"):
        list(fit.encoding.rows(table).blocks(2))
    with pytest.raises(ValueError, match="in row 3;"):
        fit.encoding.rows(table).take(np.array([0, 3]))


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ([1, 2], ["1", "2"], "holds string, but held numbers in training"),
        (["a", "b"], [1, 2], "holds int64, but held text or categories in training"),
        ([True, False], [0, 1], "holds int64, but held booleans in training"),
        ([1, 2], [True, False], "holds bool, but held numbers in training"),
        (pa.array([1, 2], pa.date32()), ["2020-01-01"] * 2, "holds string, but held dates"),
        (pa.array([1, 2], pa.time32("s")), [1, 2], "holds int64, but held times of day"),
        ([1, 2], [[1], [2]], "holds list"),
    ],
)
def test_columns_of_another_kind(before: Any, after: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=f"new.csv: column 'x' {sentence}"):
        encode(fitted({"x": before}), {"x": after})


def test_columns_that_are_not_there() -> None:
    fit = fitted({"price": [1, 2], "town": ["a", "b"]})
    with pytest.raises(ValueError, match=r"new\.csv has no column town; it has prices, price$"):
        encode(fit, {"prices": [1, 2], "price": [1, 2]})
    table = MemoryTable(pa.table({"x": [1, 2]}), "t")
    with pytest.raises(ValueError, match=r"t has no column q; it has x"):
        FittedEncoding.fit(table, ["q"], None, rng=RandomStream(0))


def test_dates_too_far_away() -> None:
    far = pa.array([0, None, 2**62], pa.timestamp("s"))
    with pytest.raises(ValueError, match="'d' is more than 290,000 years from 1970 in row 2"):
        fitted({"d": far})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"numbers": "normal"}, "numbers must be one of standard, quantile, raw, not 'normal'"),
        ({"max_levels": 0}, "max_levels must be a whole number of at least 1"),
        ({"smoothing": -1.0}, "smoothing must be a finite number that is not negative, not -1"),
        ({"smoothing": math.nan}, "smoothing must be a finite number"),
        ({"keep": np.ones(3, bool)}, "has 2 rows, but targets has 2 and keep 3"),
        ({"keep": np.zeros(2, bool)}, "has no row that counts"),
    ],
)
def test_settings(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        fitted({"x": [1, 2]}, np.array([0.0, 1.0]), **settings)


def test_targets_of_another_length() -> None:
    with pytest.raises(ValueError, match="has 2 rows, but targets has 3"):
        fitted({"x": [1, 2]}, np.arange(3.0))


def test_training_rows_of_another_table() -> None:
    texts = [f"t{k % 30}" for k in range(90)]
    fit = fitted({"t": texts}, np.arange(90.0), max_levels=20)
    with pytest.raises(ValueError, match=r"has 3 rows, but the encoding was fitted to 90"):
        fit.training_rows(MemoryTable(pa.table({"t": texts[:3]})))
