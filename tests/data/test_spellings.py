"""Columns as people write them: read as meant, or as text; odd values are reported."""

from __future__ import annotations

import math
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from spellings import COLUMNS, ROWS, Spelled

from gramian.data import ReadOptions, as_table
from gramian.data.tables import PiecesTable


def same(found: Any, meant: Any) -> bool:
    if isinstance(found, float) and isinstance(meant, int | float):
        return math.isclose(found, meant, rel_tol=1e-12)
    return type(found) is type(meant) and found == meant


def check(column: Spelled, path: Path) -> None:
    table = as_table(path)
    assert str(table.schema.field("v").type) == column.type
    found, meant = table.column("v").to_pylist(), column.expected()
    assert len(found) == len(meant)
    wrong = [pair for pair in zip(found, meant, strict=True) if not same(*pair)]
    assert not wrong
    odd = table.column_readings["v"].odd
    assert odd.count == len(column.odd)
    assert odd.first == [(row + 2, text) for row, text in sorted(column.odd.items())]
    assert table.column("k").to_pylist()[:ROWS] == list(range(ROWS))


@pytest.mark.parametrize("name", COLUMNS)
def test_column_is_read_as_meant(name: str, tmp_path: Path) -> None:
    check(COLUMNS[name], COLUMNS[name].write(tmp_path / "x.csv"))


@pytest.mark.parametrize("name", COLUMNS)
def test_new_rows_are_read_as_in_training(name: str, tmp_path: Path) -> None:
    """A file of two rows tells nothing by itself; a gap of training is a gap there."""
    column = COLUMNS[name]
    trained = as_table(column.write(tmp_path / "x.csv")).column_readings["v"]
    mark = column.separator
    texts = [*column.texts[:2], *list(column.odd.values())[:1]]
    quoted = [f'"{text}"' if mark in text else text for text in texts]
    (tmp_path / "new.csv").write_text("\n".join([f"v{mark}k", *(f"{q}{mark}1" for q in quoted)]))
    table = as_table(tmp_path / "new.csv", options=ReadOptions(columns={"v": trained}))
    found = table.column("v").to_pylist()
    meant = [*column.values[:2], None][: len(texts)]
    assert all(map(same, map(float_of, found), map(float_of, meant)))
    assert table.column_readings["v"].odd.count == 0


def float_of(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@pytest.mark.parametrize("name", ["unknown", "dollars", "3-Jan-2019", "0945", "parentheses"])
def test_long_column_is_read_as_meant(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("gramian.data.formats.csv.table.HELD_BYTES", 1 << 9)
    monkeypatch.setattr("gramian.data.formats.csv.table._GUESS_BYTES", 1 << 8)
    monkeypatch.setattr("gramian.data.formats.csv.reader.BLOCK_BYTES", 1 << 8)
    path = COLUMNS[name].write(tmp_path / "x.csv")
    check(COLUMNS[name], path)
    assert isinstance(as_table(path), PiecesTable)


@pytest.mark.parametrize(
    ("first", "late", "values"),
    [
        ("5", "$1,234.50", [5.0, 1234.5]),
        ("5", "(12)", [5.0, -12.0]),
        ("1", "1 234", [1.0, 1234.0]),
        ("2", "unknown", [2, None]),
        ("1,5", "2.5", ["1,5", "2.5"]),
    ],
)
def test_what_only_late_rows_tell(
    first: str, late: str, values: list, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("gramian.data.formats.csv.table.HELD_BYTES", 1 << 12)
    monkeypatch.setattr("gramian.data.formats.csv.table._GUESS_BYTES", 1 << 11)
    monkeypatch.setattr("gramian.data.formats.csv.reader.BLOCK_BYTES", 1 << 11)
    lates = 1 if values[1] is None else 2000
    lines = [*[first] * 5000, *[late] * lates]
    (tmp_path / "x.csv").write_text("\n".join(["v;k", *(f"{line};1" for line in lines)]))
    found = as_table(tmp_path / "x.csv").column("v").to_pylist()
    assert found == [values[0]] * 5000 + [values[1]] * lates


@pytest.mark.parametrize(
    ("count", "odd", "kind"), [(20, 1, "int64"), (19, 1, "string"), (200, 4, "int64"),
                               (200, 5, "string")]
)  # fmt: skip
def test_share_of_odd_values(count: int, odd: int, kind: str, tmp_path: Path) -> None:
    texts = ["odd"] * odd + [str(i) for i in range(count - odd)]
    (tmp_path / "x.csv").write_text("\n".join(["v;k", *(f"{text};1" for text in texts)]))
    assert str(as_table(tmp_path / "x.csv").schema.field("v").type) == kind


@pytest.mark.parametrize(
    ("trained", "texts", "error"),
    [
        (
            "kilograms",
            ("12 lb", "3 kg"),
            "'v' was written as 1.5 kg in training, but row 2 .* '12 lb'",
        ),
        ("percent", ("0.45", "0.5"), r"'v' was written as 1.5% in training, but row 2 .* '0.45'"),
        ("euros", ("1,234.50 €", "2 €"), r"written as 1.000,5€ in training, but row 2"),
        ("01/31/19", ("31/01/19", "30/01/19"), r"written as %m/%d/%y in training, but row 2"),
        ("spaces and a comma", ("1 234.5", "7.25"), r"row 2 .* '1 234.5', .*1.5.*decimal='\.' for"),
        ("01/31/19", ("31/01/19",), "'31/01/19', which is written as %d/%m/%y.*date_format='dmy'"),
        ("0945", ("9945", "0800"), "written as %H%M in training, but row 2 .* '9945'"),
    ],
)
def test_contradiction_of_training_is_refused(
    trained: str, texts: tuple[str, ...], error: str, tmp_path: Path
) -> None:
    reading = as_table(COLUMNS[trained].write(tmp_path / "x.csv")).column_readings["v"]
    (tmp_path / "new.csv").write_text("\n".join(["v;k", *(f"{text};1" for text in texts)]))
    with pytest.raises(ValueError, match=rf"new\.csv: column .*{error}"):
        as_table(tmp_path / "new.csv", options=ReadOptions(columns={"v": reading}))


def test_order_of_days_is_that_of_the_file(tmp_path: Path) -> None:
    lines = ["01/02/2019;03/25/2019", "02/03/2019;04/26/2019"] * 20
    (tmp_path / "x.csv").write_text("\n".join(["v;w", *lines]))
    days = as_table(tmp_path / "x.csv").column("v").to_pylist()
    assert [day.isoformat() for day in days[:2]] == ["2019-01-02", "2019-02-03"]


def test_strict_reading_refuses_odd_values(tmp_path: Path) -> None:
    path = COLUMNS["unknown"].write(tmp_path / "x.csv")
    with pytest.raises(
        ValueError, match=r"x\.csv: column 'v' .* 1 value of 100: 'unknown' in row 7"
    ):
        as_table(path, options=ReadOptions(strict=True))


@pytest.mark.parametrize(
    ("first", "texts", "said"),
    [
        ("v;w", [f"{i}.234;{i},50" for i in range(1, 30)], "as 1.234 are read as 1234 in v; "),
        ("v;w", [f"{i},234;{i}" for i in range(1, 30)], "as 1,234 are read as 1.234 in v; "),
        ("v,w", [f'"{i},234",{i}' for i in range(1, 30)], ""),
        ("v;w", [f"{i},234;{i},5" for i in range(1, 30)], ""),
        ("v,w", [f"{10**19 + i},{i}" for i in range(30)], "'v' holds whole numbers beyond 2"),
        ("v,w", [f"{i if i % 9 else '<0.1'},{i}" for i in range(1, 61)],
         r"'v' is text, because 6 of its first 60 values are no numbers, such as '<0.1' in row 10 "
         r"\(the header .*state types={'v': 'number'}"),
        ("v,w", [f"{'ab'[i % 9 == 0]}{i},{i}" for i in range(1, 61)], ""),
        ("v,w", [f"{i % 19 if i % 9 else '3+'},{i}" for i in range(1, 61)], ""),
        ("v,w", [f"{i % 12 + 1:02d}/{i % 11 + 1:02d}/2019,{i}" for i in range(60)],
         "'v' is text, because days such as '01/01/2019' in row 2 .*state date_format='dmy' or"),
        ("v,w", [f"2019-{i % 12 + 1:02d}-{i % 27 + 1:02d},{i}" if i % 9 else f"x,{i}"
                 for i in range(1, 61)], "are no dates, such as 'x' in row 10 .*{'v': 'date'}"),
    ],
)  # fmt: skip
def test_columns_that_may_be_meant_otherwise(
    first: str, texts: list[str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text("\n".join([first, *texts]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        as_table(tmp_path / "x.csv", options=ReadOptions(labels=()))
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == bool(said)
    assert re.search(said, "".join(messages))


def test_texts_of_frames_that_are_mostly_numbers() -> None:
    frame = pd.DataFrame({"v": [i if i % 9 else "<0.1" for i in range(1, 61)]}).astype(str)
    with pytest.warns(UserWarning, match=r"'<0.1' in row 8 \(the first row is row 0\)"):
        as_table(frame, options=ReadOptions(labels=()))
