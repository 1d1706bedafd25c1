"""Text tables: types that every value has, in bounded memory, from a file that goes with them."""

from __future__ import annotations

import gc
import gzip
import importlib
import subprocess
import sys
import tempfile
from datetime import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramian.data import ReadOptions, ReadWarning, Table, as_table
from gramian.data.formats.csv import MISSING_TEXTS, Inference
from gramian.data.formats.csv.columns.odd_values import read_values
from gramian.data.tables import MemoryTable, PiecesTable
from gramian.data.tables.column_reading import TEXT_COLUMN


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of temporary files; texts of more than some kilobytes go there."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr("gramian.data.formats.csv.table.HELD_BYTES", 1 << 14)
    monkeypatch.setattr("gramian.data.formats.csv.table._GUESS_BYTES", 1 << 12)
    monkeypatch.setattr("gramian.data.formats.csv.reader.BLOCK_BYTES", 1 << 11)
    return folder


def written(folder: Path, content: str, encoding: str = "utf-8") -> Path:
    (folder / "x.csv").write_text(content, encoding, newline="")
    return folder / "x.csv"


def read(table: Table) -> pa.Table:
    return pa.Table.from_batches(table.batches(table.names, 999))


def texts(*names: str) -> ReadOptions:
    """Return options that read columns as text."""
    return ReadOptions(columns=dict.fromkeys(names, TEXT_COLUMN))


def column(*texts: str) -> tuple[str, list]:
    found = Inference(["0"], separator=";")
    values = pa.array([text or None for text in texts], pa.string())
    found.add([values])
    (reading,) = found.readings()
    return str(reading.type), read_values(reading, values, (), 0)[0].to_pylist()


@pytest.mark.parametrize(
    ("texts", "kind", "values"),
    [
        (("1", "-2", "7"), "int64", [1, -2, 7]),
        (("1", "2.5"), "double", [1, 2.5]),
        (("+1", ".5", "1e3"), "double", [1, 0.5, 1000]),
        (("1", "2,5"), "double", [1, 2.5]),
        (("1.234,5", "12"), "double", [1234.5, 12]),
        (("1,234.5", "1,234,567"), "double", [1234.5, 1234567]),
        (("1,23.5", "1"), "string", ["1,23.5", "1"]),
        (("1.5", "2,5"), "string", ["1.5", "2,5"]),
        (("1", "nan", ""), "int64", [1, None, None]),
        (("inf", "1"), "double", [np.inf, 1]),
        (("", "?", "NA"), "null", [None] * 3),
        (("T", "f", "-"), "bool", [True, False, None]),
        (("y", "No"), "string", ["y", "No"]),
        (("true", "1"), "string", ["true", "1"]),
        (("31.02.2020", "1.1.2020"), "string", ["31.02.2020", "1.1.2020"]),
        (("2020-02-30",), "string", ["2020-02-30"]),
        ((" a ", "", "NA"), "string", ["a", None, "NA"]),
        (("12:30", "13:00"), "time64[us]", [time(12, 30), time(13)]),
    ],
)
def test_types_that_every_value_has(texts: tuple[str, ...], kind: str, values: list) -> None:
    assert column(*texts) == (kind, values)


@pytest.mark.parametrize("word", [word for word in MISSING_TEXTS if word])
def test_words_for_missing_values(word: str) -> None:
    assert column("1", word, f" {word} ") == ("int64", [1, None, None])
    assert column("a", word) == ("string", ["a", word])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("2020-01-31", "date32[day]"),
        ("2020-01-31 10:30", "timestamp[us]"),
        ("2020-01-31T10:30:00.25", "timestamp[us]"),
        ("2020-01-31T10:30:00Z", "timestamp[us, tz=UTC]"),
        ("2020/01/31", "date32[day]"),
        ("31.1.2020", "date32[day]"),
        ("31.1.2020 10:30", "timestamp[us]"),
        ("31/1/2020", "date32[day]"),
        ("1/31/2020", "date32[day]"),
        ("1/31/2020 10:30 PM", "timestamp[us]"),
        ("1-31-2020 10:30:00", "timestamp[us]"),
    ],
)
def test_days_and_times(text: str, kind: str) -> None:
    found, values = column(text, "NA", text)
    assert found == kind
    assert values[1] is None
    day = values[0].date() if "time" in kind else values[0]
    assert day.isoformat() == "2020-01-31"
    if "time" in kind:
        assert (values[0].hour, values[0].minute) == (22 if "PM" in text else 10, 30)


def test_the_mark_for_decimals_is_that_of_the_file(tmp_path: Path) -> None:
    german = as_table(written(tmp_path, "a;b\n1,5;1.234\n2,5;5.678\n"))
    assert read(german).to_pydict() == {"a": [1.5, 2.5], "b": [1234.0, 5678.0]}
    english = as_table(written(tmp_path, 'a,b\n1.5,1.234\n2.5,"1,234"\n'))
    assert read(english)["b"].to_pylist() == [1.234, 1234.0]
    american = as_table(written(tmp_path, 'a,b\n1.5,"5,678"\n2.5,"1,234"\n'))
    assert read(american)["b"].to_pylist() == [5678.0, 1234.0]


@pytest.mark.parametrize(
    ("last", "kind"),
    [("7", "int64"), ("0.5", "double"), ("x", "int64"), ("NA", "int64"), ("01067", "string")],
)
def test_a_long_text_is_read_from_a_temporary_file(
    tmp_path: Path, temporary: Path, last: str, kind: str
) -> None:
    lines = [f"{i % 9},{'ab' * (i % 3)},{i / 8}" for i in range(5000)]
    table = as_table(written(tmp_path, "\n".join(["n,t,x", *lines, f"{last},z,1"])))
    assert isinstance(table, PiecesTable)
    assert [str(t) for t in table.schema.types] == [kind, "string", "double"]
    assert len(list(temporary.iterdir())) == 1
    for _ in range(2):
        found = read(table)
        assert found["x"].to_pylist() == [*(np.arange(5000) / 8), 1.0]
        assert found["n"].to_pylist()[:-1] == [
            str(i % 9) if kind == "string" else i % 9 for i in range(5000)
        ]
    assert table.take(["x"], np.array([5000, 8]))["x"].to_pylist() == [1.0, 1.0]
    del table
    gc.collect()
    assert not list(temporary.iterdir())


@pytest.mark.parametrize(
    ("first", "last", "values"),
    [
        ("1/2/2020", "1/31/2020", "date32[day]"),  # ambiguous until the last row
        ("1.234", "12.5", "double"),
        ("1,5", "x", "double"),
    ],
)
def test_what_only_the_last_row_tells(
    tmp_path: Path, temporary: Path, first: str, last: str, values: str
) -> None:
    content = "\n".join(["a;b", *[f"{first};1"] * 5000, f"{last};2"])
    long = as_table(written(tmp_path, content))
    assert isinstance(long, PiecesTable)
    assert str(long.schema.field("a").type) == values


def test_another_column_tells_the_mark_late(tmp_path: Path, temporary: Path) -> None:
    content = "\n".join(["a;b", *["1.234;1"] * 5000, "1.234;2,5"])
    assert as_table(written(tmp_path, content)).column("a").to_pylist() == [1234.0] * 5001


def test_an_encoding_that_shows_late(tmp_path: Path, temporary: Path) -> None:
    content = "\n".join(["a,b", *["x,1"] * 200_000, "é,2"])
    path = written(tmp_path, content, "latin-1")
    with pytest.warns(
        ReadWarning, match=r"x\.csv: read in the encoding cp1252, in which it has 'é'"
    ):
        table = as_table(path)
    assert table.column("a").to_pylist()[-2:] == ["x", "é"]
    assert len(list(temporary.iterdir())) == 1


def test_utf_16_that_is_cut_off(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n" + "1,ü\n" * 50, "utf-16")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match=r"x\.csv begins as UTF-16 but has bytes that are not"):
        as_table(path)


def test_a_row_longer_than_what_is_parsed_at_a_time(tmp_path: Path, temporary: Path) -> None:
    rows = [f"{i},{'ab' * (9000 if i == 70 else 3)}" for i in range(100)]
    table = as_table(written(tmp_path, "\n".join(["n,text", *rows])))
    assert [len(text) for text in table.column("text").to_pylist()[69:72]] == [6, 18_000, 6]


@pytest.mark.parametrize("end", ["1,2,3", '"1,2', "1"])
def test_a_text_that_is_damaged_late_leaves_no_file(
    tmp_path: Path, temporary: Path, end: str
) -> None:
    content = "\n".join(["a,b", *["x,1"] * 50_000, end])
    with pytest.raises(ValueError, match=r"x\.csv"):
        as_table(written(tmp_path, content))
    assert not list(temporary.iterdir())


def test_a_full_disk_is_named(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gramian.data.formats.feather.IpcWriter.write", full)
    with pytest.raises(OSError, match=r"could not rewrite .*x\.csv to .*No space.*set TMPDIR"):
        as_table(written(tmp_path, "\n".join(["a", *["123456"] * 10_000])))
    assert not list(temporary.iterdir())


def test_a_short_text_is_held(tmp_path: Path) -> None:
    assert isinstance(as_table(written(tmp_path, "a\n1\n")), MemoryTable)


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("a\tb\n1.5\t45,000\n2.5\t800\n", [45000, 800]),
        ("a;b\n1.5;45,000\n2.5;800\n", [45000, 800]),
        ('a,b\n"0,5","1,234"\n"2,5",800\n', [1.234, 800]),
        ("a;b\n1,5;1,234\n2,5;5,678\n", [1.234, 5.678]),
        ("a;b\n0,123;1.234\n2;5.678\n", [1234, 5678]),
        ("a\tb\n0.250\t1,234\n1.125\t5,678\n", [1234, 5678]),
        ('a,b\n1,"0,123"\n2,"1,234"\n', [0.123, 1.234]),
        ("a;b\n1;0.250\n2;1.125\n", [0.25, 1.125]),
        ("a;b;c\n1.5;45,000;2,5\n2.5;800;3,5\n", [45, 800]),
    ],
)
def test_any_column_tells_the_mark_for_decimals(
    tmp_path: Path, content: str, values: list[float]
) -> None:
    assert as_table(written(tmp_path, content)).column("b").to_pylist() == values


def test_the_point_is_told_late(tmp_path: Path, temporary: Path) -> None:
    content = "\n".join(["a\tb", *["45,000\t1"] * 5000, "45,000\t2.5"])
    assert as_table(written(tmp_path, content)).column("a").to_pylist() == [45000.0] * 5001
    content = "\n".join(["a,b", *['"1,234",1'] * 5000, '"1,234","2,5"'])
    assert as_table(written(tmp_path, content)).column("a").to_pylist() == [1.234] * 5001


@pytest.mark.parametrize(
    "code",
    ["01067", "00", "-007", " 0341 ", "+4917612345678", "0x1F", "0X1f", "00000000000000000000000"],
)
@pytest.mark.parametrize("number", ["1", "2.5", "2,5", "1,234.5"])
def test_numbers_that_are_codes_stay_text(code: str, number: str) -> None:
    assert column(code, "12") == ("string", [code.strip(), "12"])
    assert column(number, code) == ("string", [number, code.strip()])


def test_numbers_that_look_like_codes() -> None:
    assert column("+1234567", "0") == ("double", [1234567, 0])
    assert column("0.5", "-0.25", "+0") == ("double", [0.5, -0.25, 0])
    assert column("+12,345,678.5", "0") == ("double", [12345678.5, 0])


def test_a_code_that_shows_late(tmp_path: Path, temporary: Path) -> None:
    content = "\n".join(["a,b", *["12345,1"] * 5000, "01067,2"])
    assert as_table(written(tmp_path, content)).column("a").to_pylist()[-2:] == ["12345", "01067"]


def test_columns_that_are_read_as_text(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b,c\n1,NA,\n2,2020-01-31,\n3,,\n")
    table = as_table(path, options=texts("a", "b", "c", "not there"))
    assert read(table).to_pydict() == {
        "a": ["1", "2", "3"],
        "b": ["NA", "2020-01-31", None],
        "c": [None] * 3,
    }
    assert [str(kind) for kind in table.schema.types] == ["string"] * 3
    assert str(as_table(path, options=texts("b")).schema.field("a").type) == "int64"


def test_a_long_column_that_is_read_as_text(tmp_path: Path, temporary: Path) -> None:
    path = written(tmp_path, "\n".join(["a,b", *["1,2.5"] * 5000]))
    table = as_table(path, options=texts("a"))
    assert isinstance(table, PiecesTable)
    assert [str(kind) for kind in table.schema.types] == ["string", "double"]


def test_other_tables_have_their_types(tmp_path: Path) -> None:
    there = pa.table({"a": [1, 2]})
    pq.write_table(there, tmp_path / "x.parquet")
    for x in (there, as_table(there), tmp_path / "x.parquet"):
        assert as_table(x, options=texts("a")).column("a").to_pylist() == [1, 2]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16", "utf-16-be"])
@pytest.mark.parametrize(
    ("content", "row"),
    [
        ('a,b\n1,x\n2,"ü\n3,z\n', 3),
        ('a,b\n1,x\n2,"ü""\n3,z', 3),
        ('a,b\n1,ü\n2,"z', 3),
        ('a,b\n1,ü\n2,"', 3),
        ('a,b\r\n1,ü\r\n2,"z\r\n', 3),
        ('a\nü\n"y\nz\n\n', 3),
    ],
)
def test_a_quote_without_end_in_the_last_column(
    tmp_path: Path, content: str, row: int, encoding: str
) -> None:
    with pytest.raises(ValueError, match=rf"x\.csv: a quote begins in row {row} .*does not end"):
        as_table(written(tmp_path, content, encoding))


def test_a_quote_without_end_in_a_long_text(tmp_path: Path, temporary: Path) -> None:
    content = "\n".join(["a,b", *["x,1"] * 50_000, 'y,"1', *["x,1"] * 100])
    with pytest.raises(ValueError, match=r"x\.csv: a quote begins in row 50002 "):
        as_table(written(tmp_path, content))
    assert not list(temporary.iterdir())
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(content.encode()))
    with pytest.raises(ValueError, match=r"x\.csv\.gz: a quote begins in row 50002 "):
        as_table(tmp_path / "x.csv.gz")


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ('a,b\n1,"x\ny\n"\n', ["x\ny"]),
        ('a,b\n1,"\n"\n', [None]),
        ('a,b\n1,"x"""', ['x"']),
        ('a,b\n1,5" disk\n', ['5" disk']),
        ('b\nx\n"\n"\n', ["x", None]),
        ('b\nx\n""\n', ["x", None]),
    ],
)
def test_quotes_that_end(tmp_path: Path, content: str, values: list) -> None:
    assert as_table(written(tmp_path, content)).column("b").to_pylist() == values


@pytest.mark.parametrize(
    "word", ["n.a.", "na", "<NA>", r"\N", ".", "--", "#DIV/0!", "#VALUE!", "#REF!"]
)
def test_words_of_other_programs_for_missing_values(word: str) -> None:
    assert column("1.5", word) == ("double", [1.5, None])
    assert column(word, "2020-01-31")[0] == "date32[day]"


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n", "\r\n\r\n", "\n" * 5000])
def test_blank_lines_at_the_end_of_one_column(tmp_path: Path, temporary: Path, end: str) -> None:
    found = as_table(written(tmp_path, f"a\n1\n\n2{end}")).column("a").to_pylist()
    assert found == [1, None, 2]
    gap = "\n" * 6000
    found = as_table(written(tmp_path, f"a\n1\n{gap}2{end}")).column("a").to_pylist()
    assert found == [1, *[None] * 6000, 2]


def test_one_column_of_blank_lines(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"x\.csv has 0 rows"):
        as_table(written(tmp_path, "a\n\n\n"))


@pytest.mark.parametrize("before", [0, 100_000])
def test_a_byte_that_is_no_utf_8_after_others_that_are(
    tmp_path: Path, temporary: Path, before: int
) -> None:
    start = "a,b\nMünchen,1\n".encode() + b"x,1\n" * before
    path = written(tmp_path, "")
    path.write_bytes(start + b"K\xf6ln,2\nx,3\n")
    said = rf"x\.csv: byte {len(start) + 2:,}, in line {3 + before:,}, is not UTF-8"
    with pytest.raises(ValueError, match=said):
        as_table(path)
    assert not list(temporary.iterdir())


def test_a_text_that_is_cut_off_within_a_letter(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    path.write_bytes("a,b\nMünchen,1\n2,ö".encode()[:-1])
    with pytest.raises(ValueError, match=r"x\.csv: byte 18, in line 3, is not UTF-8"):
        as_table(path)


def test_a_field_longer_than_usual(tmp_path: Path) -> None:
    long = "ab " * 100_000
    table = as_table(written(tmp_path, f'a;b\n1;x\n2;"{long}"\n3;y\n'))
    assert [len(text) for text in table.column("b").to_pylist()] == [1, len(long) - 1, 1]
    with pytest.raises(
        ValueError, match=r"x\.csv has a field of more than 131,072 .*first row.*quote"
    ):
        as_table(written(tmp_path, f'"a;b\n1;x\n2;{long}\n3;y\n'))


# In a process of its own: by how many MB the peak grows beyond that of the libraries.
STREAM = """
import sys
from gramian.data import as_table

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1000

small, large = sys.argv[1:]
len(as_table(small))
before = peak()
table = as_table(large)
rows = sum(batch.num_rows for batch in table.batches(table.names, 4096))
assert rows == len(table)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize("last", ["7", "late"])
def test_memory_does_not_grow_with_the_text(tmp_path: Path, last: str) -> None:
    rng = np.random.default_rng(0)
    lines = [",".join(map(str, row)) for row in rng.normal(size=(5000, 12)).round(9)]
    header = ",".join([*(f"x{j}" for j in range(12)), "n"])
    block = "".join(f"{line},{i}\n" for i, line in enumerate(lines))
    (tmp_path / "small.csv").write_text(f"{header}\n{block}")
    with (tmp_path / "large.csv").open("w") as file:
        file.write(f"{header}\n")
        for _ in range(400_000_000 // len(block)):
            file.write(block)
        file.write(f"{lines[0]},{last}\n")
    names = [str(tmp_path / f"{name}.csv") for name in ("small", "large")]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", STREAM, *names],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 180  # of 400; it takes about 120


@pytest.mark.parametrize("held", [1 << 30, 1])
def test_a_text_that_changes_while_it_is_read(tmp_path, monkeypatch, held):
    """Its dialect, its types and its values come from several passes."""
    monkeypatch.setattr("gramian.data.formats.csv.table.HELD_BYTES", held)
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,2\n" * 100)
    module = importlib.import_module("gramian.data.formats.csv.table")
    read = module.strings

    def changing(*arguments: object) -> object:
        yield from read(*arguments)
        path.write_text("a,b\n" + "1,2\n" * 101)

    monkeypatch.setattr(module, "strings", changing)
    with pytest.raises(ValueError, match=r"x\.csv has changed since it was opened: it had 404 byt"):
        as_table(path)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (b"", r"no end of line in its first 16 MB"),
        (b"x,y\n", r"a row of more than 16 MB, or a quote that does not end"),
        (b'x,y\n1,2\n3,"', r"a row of more than 16 MB, or a quote that does not end"),
    ],
)
def test_a_compressed_line_of_many_megabytes_is_refused(tmp_path, start, message):
    path = tmp_path / "x.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(start + b"a" * (40 << 20))
    with pytest.raises(ValueError, match=message):
        as_table(path)
