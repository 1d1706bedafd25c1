"""Tables next to those that were reported: types and values are those of an independent list."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from neighbours import ARROW_TYPES, ROWS, Neighbour, day
from neighbours import NEIGHBOURS as LISTED
from strangers import STRANGERS

from gramian.data import ReadOptions, ReadWarning, Table, as_table

NEIGHBOURS = LISTED | STRANGERS


def read(table: Neighbour, folder: Path) -> Table:
    path = folder / "x.csv"
    path.write_bytes(table.text.encode(table.encoding))
    return as_table(path, options=ReadOptions.of(table.read))


def same(found: Any, meant: Any) -> bool:
    if isinstance(found, float) and isinstance(meant, int | float):
        return math.isclose(found, meant, rel_tol=1e-12)
    return type(found) is type(meant) and found == meant


@pytest.mark.parametrize("name", [name for name, case in NEIGHBOURS.items() if not case.refused])
def test_types_and_values_are_those_of_the_list(name: str, tmp_path: Path) -> None:
    case = NEIGHBOURS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ReadWarning)
        table = read(case, tmp_path)
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {column: ARROW_TYPES[kind] for column, (kind, _) in case.columns.items()}
    for column, (_, meant) in case.columns.items():
        found = table.column(column).to_pylist()
        assert len(found) == len(meant)
        assert not [pair for pair in zip(found, meant, strict=True) if not same(*pair)]
        assert table.column_readings[column].odd.count == 0
    assert case.warned in " ".join(str(warning.message) for warning in caught)


@pytest.mark.parametrize("name", [name for name, case in NEIGHBOURS.items() if case.refused])
def test_refusals_have_one_line_with_the_row(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"x.csv.*{NEIGHBOURS[name].refused}") as refusal:
        read(NEIGHBOURS[name], tmp_path)
    assert "\n" not in str(refusal.value)


def test_the_list_has_many_kinds() -> None:
    assert len(NEIGHBOURS) >= 60
    assert len({case.kind for case in NEIGHBOURS.values()}) >= 12


@pytest.mark.parametrize("name", [name for name, case in NEIGHBOURS.items() if not case.refused])
def test_a_model_reads_the_first_row_alone_alike(name: str, tmp_path: Path) -> None:
    case = NEIGHBOURS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadWarning)
        table = read(case, tmp_path)
    assert table.reading is not None
    odd = {
        name: r
        for name, r in table.column_readings.items()
        if r.name == "text" or not r.is_canonical
    }
    stored = replace(ReadOptions.from_dict(table.reading.to_dict()), columns=odd)
    if case.text.startswith("v") and len(table) == ROWS:
        head = "".join(case.text.splitlines(keepends=True)[:2])
        (tmp_path / "x.csv").write_text(head, "utf-8")
    again = as_table(tmp_path / "x.csv", options=stored)
    for column in table.names:
        found, meant = again.column(column)[0].as_py(), table.column(column)[0].as_py()
        assert same(float(found) if type(found) is int else found, meant) or found == meant


def test_days_of_eight_digits_are_numbers_of_frames(tmp_path: Path) -> None:
    """Other libraries read them as numbers: a fit says so, and new frames are read as days."""
    path = tmp_path / "x.csv"
    path.write_text(NEIGHBOURS["eight digits"].text)
    with pytest.warns(ReadWarning, match="digits are read as dates or times in v; frames"):
        trained = as_table(path, options=ReadOptions(labels=())).column_readings["v"]
    options = ReadOptions(columns={"v": trained}, is_stored=True)
    for numbers in ([20210131, 20210201], [20210131.0, math.nan]):
        found = as_table(pd.DataFrame({"v": numbers}), options=options).column("v").to_pylist()
        assert found[0] == day(2021, 1, 31)
        assert found[1] == (day(2021, 2, 1) if numbers[1] > 0 else None)


def test_new_numbers_that_look_like_days_stay_numbers(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("v,k\n20190103,1\n")
    table = as_table(tmp_path / "x.csv", options=ReadOptions(is_stored=True))
    assert table.column("v").to_pylist() == [20190103]


def test_percent_before_numbers_is_needed(tmp_path: Path) -> None:
    trained = read(NEIGHBOURS["percent before"], tmp_path).column_readings["v"]
    (tmp_path / "new.csv").write_text("v;k\n%5;1\n0,45;1\n")
    with pytest.raises(ValueError, match=r"'v' was written as %1,5 in training, but row 3 .*0,45"):
        as_table(tmp_path / "new.csv", options=ReadOptions(columns={"v": trained}))


@pytest.mark.parametrize(
    "text",
    [
        "0,1,2\n3,4,5\n0,1,2\n",  # names that may be values
        "a,b\n1,2\na,2\n3,4\n",  # one name alone
        "town,sales\nOslo,5\nBonn,6\nTotal,7\n",  # no total of the rows above it
        "town,sales\nOslo,5\nTotal,11\nBonn,6\n",
    ],
)
def test_rows_that_are_values_stay(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(text)
    assert len(as_table(tmp_path / "x.csv")) == text.count("\n") - 1
