"""Layouts of text tables: each is read with the values that were meant, or refused."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from layouts import LAYOUTS, Layout

from gramian.data import ReadOptions, ReadWarning, Table, as_table


def read(layout: Layout, folder: Path) -> Table:
    path = folder / "x.csv"
    path.write_bytes(layout.text.encode(layout.encoding))
    return as_table(path, options=ReadOptions.of(layout.read))


@pytest.mark.parametrize("name", [name for name, layout in LAYOUTS.items() if not layout.refused])
def test_values_are_as_meant(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ReadWarning)
        table = read(layout, tmp_path)
    assert {n: table.column(n).to_pylist() for n in table.names} == layout.columns
    assert len(caught) == bool(layout.warned)
    assert all(layout.warned in str(warning.message) for warning in caught)


@pytest.mark.parametrize("name", [name for name, layout in LAYOUTS.items() if layout.refused])
def test_refusals_name_file_and_remedy(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"x.csv.*{LAYOUTS[name].refused}") as refusal:
        read(LAYOUTS[name], tmp_path)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", [name for name, layout in LAYOUTS.items() if layout.columns])
def test_stored_options_read_alike_without_a_warning(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadWarning)
        first = read(layout, tmp_path)
    assert first.reading is not None
    stored = ReadOptions.from_dict(first.reading.to_dict())
    assert stored.is_stored
    again = as_table(tmp_path / "x.csv", options=stored)
    assert {n: again.column(n).to_pylist() for n in again.names} == layout.columns


@pytest.mark.parametrize(
    ("read", "words"),
    [
        ({"separator": ";;"}, "separator must be one character"),
        ({"decimal": ";"}, 'decimal must be "." or ","'),
        ({"encoding": "klingon"}, "encoding must be a codec of Python"),
        ({"header": "a,b"}, "header must be False, True, or a list"),
        ({"skip": -1}, "skip must be a number of lines"),
        ({"comment": " "}, "comment must be the beginning of lines"),
        ({"date_format": "day"}, "date_format must be a format"),
        ({"date_format": "%d/%m"}, "date_format must be a format with %Y or %y"),
        ({"types": {"a": "zip"}}, "types must be one of number, category"),
        ({"seperator": ";"}, "no option 'seperator'.*did you mean separator"),
    ],
)
def test_options_that_are_not_allowed(read: dict[str, object], words: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=words):
        as_table(tmp_path / "x.csv", options=ReadOptions.of(read))
