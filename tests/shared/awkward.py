"""Awkward tables, made from a real set: as people have them, and as others write them.

``TABLES[name].write(folder, original())`` writes one and gives its path.
"""

from __future__ import annotations

import bz2
import datetime
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from gramian.data import sample_path

Write = Callable[[Path, pd.DataFrame], Path]
Change = Callable[[pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Awkward:
    """A table that somebody has.

    Attributes
    ----------
    write : callable
        Given a folder and the original, writes the table and gives its path.
    expected : callable
        Given the original, gives the columns that are read, with their values.
    refused : str
        What the one line of refusal says, as a regular expression; empty if the table is read.
    """

    write: Write
    expected: Change = lambda frame: frame
    refused: str = ""


def original(rows: int = 120) -> pd.DataFrame:
    """Return houses in California: numbers, integers, text, a day, a truth value, and the price."""
    columns = ["median_income", "latitude", "longitude", "population", "target"]
    frame = pq.read_table(sample_path("california_housing"), columns=columns).to_pandas()[:rows]
    north, east = frame["latitude"] > 37.83, frame["longitude"] > -122.27
    places = np.array([["Süd-West", "Südost"], ["Nordwest", 'Nord, "Ost"']], dtype=object)
    days = [datetime.date(2019, 1, 3) + datetime.timedelta(days=7 * i) for i in range(len(frame))]
    return pd.DataFrame(
        {
            "income": frame["median_income"].astype(float).round(4),
            "people": frame["population"].astype("int64"),
            "place": places[north.astype(int), east.astype(int)],
            "sold": pd.Series(days, dtype=object),
            "coast": (frame["longitude"] < -122.25).astype(bool),
            "target": frame["target"].astype(float) / 8,
        }
    )


def text(name: str = "x.csv", encoding: str = "utf-8", **how: object) -> Write:
    """Return a writer of text as pandas writes it."""

    def write(folder: Path, frame: pd.DataFrame) -> Path:
        options = {"index": False, **how}
        (folder / name).write_bytes(frame.to_csv(None, **options).encode(encoding))
        return folder / name

    return write


def changed(change: Change, write: Write | None = None, **how: object) -> Write:
    """Return a writer of a frame that is changed before."""
    return lambda folder, frame: (write or text(**how))(folder, change(frame.copy()))


def lines(change: Callable[[list[str]], list[str]], ending: str = "\n") -> Write:
    """Return a writer of text whose lines are changed afterwards."""

    def write(folder: Path, frame: pd.DataFrame) -> Path:
        whole = frame.to_csv(None, index=False).rstrip("\n").split("\n")
        (folder / "x.csv").write_text(ending.join(change(whole)) + ending, "utf-8", newline="")
        return folder / "x.csv"

    return write


def raw(content: bytes, name: str = "x.csv") -> Write:
    """Return a writer of these bytes."""

    def write(folder: Path, frame: pd.DataFrame) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def packed(compress: Callable[[bytes], bytes], name: str, keep: float = 1.0) -> Write:
    """Return a writer of a compressed text, of which only a part may be kept."""

    def write(folder: Path, frame: pd.DataFrame) -> Path:
        whole = compress(frame.to_csv(None, index=False).encode())
        (folder / name).write_bytes(whole[: int(keep * len(whole))])
        return folder / name

    return write


def zstandard(content: bytes) -> bytes:
    return pa.Codec("zstd").compress(content, asbytes=True)


def with_column(name: str, values: Callable[[pd.DataFrame], object]) -> Change:
    """Return a change: one column added, or replaced."""
    return lambda frame: frame.assign(**{name: values(frame)})


def strings(column: str, form: str) -> Change:
    """Return a change: a column written with a format."""
    return with_column(column, lambda frame: [form.format(v) for v in frame[column]])


def german(value: float) -> str:
    return f"{value:,.4f}".translate(str.maketrans(",.", ".,"))


def gaps(column: str, *texts: object) -> Change:
    """Return a change: every fifth value is one of these texts."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        values = [texts[i // 5 % len(texts)] if i % 5 == 0 else v for i, v in frame[column].items()]
        return frame.assign(**{column: pd.Series(values, dtype=object, index=frame.index)})

    return change


def long(frame: pd.DataFrame, last: object, rows: int = 400_000) -> pd.DataFrame:
    """Return many rows of integers below ten, and at their end a value of another type."""
    late = (np.arange(rows) % 10).astype(object)
    late[-1] = last
    return pd.DataFrame({"late": late, "target": np.arange(rows) % 7})


def wide(frame: pd.DataFrame, columns: int = 4_000) -> pd.DataFrame:
    values = np.tile(np.arange(columns) % 13, (8, 1)) + np.arange(8)[:, None]
    named = pd.DataFrame(values, columns=[f"c{j}" for j in range(columns)])
    return named.assign(target=[1.5, 2, 3, 4, 5, 6, 7, 8])


def wider(frame: pd.DataFrame) -> pd.DataFrame:
    return wide(frame, 30_000)


def moments(frame: pd.DataFrame) -> pd.DataFrame:
    times = pd.to_datetime(frame["sold"]) + pd.to_timedelta(np.arange(len(frame)) * 3671, "s")
    return frame.assign(sold=times)


def as_text(column: str, form: str) -> Change:
    """Return a change: a column of days or times in another form."""
    return with_column(column, lambda frame: [day.strftime(form) for day in frame[column]])


def early(frame: pd.DataFrame) -> pd.DataFrame:
    """Return days of which day and month could both be the month."""
    days = [datetime.date(2019, 1 + i % 12, 1 + i // 12) for i in range(len(frame))]
    return frame.assign(sold=days)


def parquet(name: str = "x.parquet", **how: object) -> Write:
    def write(folder: Path, frame: pd.DataFrame) -> Path:
        frame.to_parquet(folder / name, **how)
        return folder / name

    return write


def feather(folder: Path, frame: pd.DataFrame) -> Path:
    pyarrow.feather.write_feather(frame, str(folder / "x.feather"))
    return folder / "x.feather"


def partitioned(folder: Path, frame: pd.DataFrame) -> Path:
    for year, part in years(frame).groupby("year"):
        (folder / "set" / f"year={year}").mkdir(parents=True)
        part.drop(columns="year").to_parquet(folder / "set" / f"year={year}" / "0.parquet")
    return folder / "set"


def years(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(year=[day.year for day in frame["sold"]])


def twice(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.set_axis(["income", *frame.columns[1:-2], "income", "target"], axis=1)


VERY_WIDE = "30,000 columns"
"""A name of `TABLES`: slow to read, so that fits take the next one."""

LEVELS = with_column("place", lambda frame: [f"level {i % 1000}" for i in range(len(frame))])
EMPTY = with_column("place", lambda frame: [None] * len(frame))
SWITCH = with_column("coast", lambda frame: np.where(frame["coast"], "yes", "No"))
MIXED = gaps("people", "many", "few")
MIXED_TEXT = with_column("people", lambda frame: [str(v) for v in MIXED(frame)["people"]])
NEWLINES = with_column("place", lambda f: [f"{p}\n{i}" for i, p in enumerate(f["place"])])
UNICODE = with_column("stadtteil ☂", lambda frame: ["Ōsaka ☂", "Łódź"] * (len(frame) // 2))
SIGNED = with_column("income", lambda frame: [f"{v:+.3e}" for v in frame["income"]])
LARGE = with_column("people", lambda frame: [v * 10**18 for v in map(int, frame["people"])])
NO_GAP, GAP = gaps("people", None), gaps("people", "NA", "?", "", "null", "N/A", "-", " ")
LEVEL_NONE = gaps("place", "None", "-", "?")


TABLES: dict[str, Awkward] = {
    "as pandas writes it": Awkward(text()),
    "semicolons": Awkward(text(sep=";")),
    "tabs": Awkward(text("x.tsv", sep="\t")),
    "bars in .txt": Awkward(text("x.txt", sep="|")),
    "German decimals": Awkward(text(sep=";", decimal=",")),
    "German thousands": Awkward(
        changed(with_column("target", lambda f: f["target"].map(german)), sep=";", decimal=",")
    ),
    "American thousands": Awkward(changed(strings("target", "{:,.4f}"))),
    "signs and exponents": Awkward(
        changed(SIGNED), with_column("income", lambda f: [float(v) for v in SIGNED(f)["income"]])
    ),
    "integers beyond 64 bits": Awkward(
        changed(LARGE), with_column("people", lambda f: f["people"] * 1e18)
    ),
    "latin-1": Awkward(text(encoding="latin-1")),
    "Windows' code page": Awkward(
        changed(with_column("price €", lambda f: ["5 €"] * len(f)), encoding="cp1252"),
        with_column("price €", lambda f: [5.0] * len(f)),
    ),
    "latin-1 late": Awkward(
        changed(lambda f: long(f, "é", 200_000), encoding="latin-1"),
        lambda f: long(f, None, 200_000).astype({"late": "Int64"}),
    ),
    "UTF-8 with its mark": Awkward(text(encoding="utf-8-sig")),
    "UTF-16": Awkward(text(encoding="utf-16")),
    "UTF-16 without its mark": Awkward(text(encoding="utf-16-le", sep="\t")),
    "gzip": Awkward(packed(gzip.compress, "x.csv.gz")),
    "gzip under another name": Awkward(packed(gzip.compress, "x.csv")),
    "bzip2": Awkward(packed(bz2.compress, "x.csv.bz2")),
    "Zstandard": Awkward(packed(zstandard, "x.csv.zst")),
    "gzip, cut off": Awkward(packed(gzip.compress, "x.csv.gz", 0.7), refused="x.csv.gz cannot be"),
    "quoted newlines": Awkward(changed(NEWLINES), NEWLINES),
    "all quoted": Awkward(text(quoting=1)),
    "Windows' line ends": Awkward(text(lineterminator="\r\n")),
    "spaces around": Awkward(lines(lambda rows: [r.replace(",2019", " , 2019") for r in rows])),
    "blank lines": Awkward(lines(lambda rows: ["", *rows[:9], "", *rows[9:], "", ""])),
    "a separator too many in each line": Awkward(lines(lambda rows: [f"{r}," for r in rows])),
    "late decimal": Awkward(
        changed(lambda f: long(f, 0.5)), lambda f: long(f, 0.5).astype({"late": float})
    ),
    "late code": Awkward(
        changed(lambda f: long(f, "010")), lambda f: long(f, "010").astype({"late": str})
    ),
    "late text": Awkward(
        changed(lambda f: long(f, "ten")), lambda f: long(f, None).astype({"late": "Int64"})
    ),
    "1,000 levels": Awkward(changed(LEVELS), LEVELS),
    "a column of nothing": Awkward(changed(EMPTY), EMPTY),
    "words for missing": Awkward(changed(GAP), NO_GAP),
    "words for missing among levels": Awkward(changed(LEVEL_NONE), LEVEL_NONE),
    "days with points": Awkward(changed(as_text("sold", "%d.%m.%Y"))),
    "days in American order": Awkward(changed(as_text("sold", "%m/%d/%Y"))),
    "days in British order": Awkward(changed(as_text("sold", "%d/%m/%Y"))),
    "days in either order": Awkward(
        changed(lambda f: as_text("sold", "%m/%d/%Y")(early(f))),
        lambda f: as_text("sold", "%m/%d/%Y")(early(f)),
    ),
    "days with two-digit years": Awkward(
        changed(as_text("sold", "%d.%m.%y"))
    ),
    "times": Awkward(changed(moments), moments),
    "times of Excel": Awkward(
        changed(lambda f: as_text("sold", "%m/%d/%Y %I:%M:%S %p")(moments(f))), moments
    ),
    "yes and no": Awkward(changed(SWITCH)),
    "0 and 1": Awkward(
        changed(with_column("coast", lambda f: f["coast"].astype(int))),
        with_column("coast", lambda f: f["coast"].astype(int)),
    ),
    "mixed types": Awkward(changed(MIXED), MIXED_TEXT),
    "unicode": Awkward(changed(UNICODE), UNICODE),
    "the index of pandas": Awkward(text(index=True)),
    "the index of pandas in Parquet": Awkward(
        changed(lambda f: f.set_index(f.index[::-1]), parquet())
    ),
    "categories in Parquet": Awkward(changed(lambda f: f.astype({"place": "category"}), parquet())),
    "Feather": Awkward(feather),
    "folders by year": Awkward(partitioned, years),
    "one row": Awkward(changed(lambda f: f[:1]), lambda f: f[:1]),
    "one column": Awkward(changed(lambda f: f[["people"]]), lambda f: f[["people"]]),
    "4,000 columns": Awkward(changed(wide), wide),
    VERY_WIDE: Awkward(changed(wider), wider),
    "duplicate names": Awkward(
        changed(twice, quoting=0), refused="x.csv has several columns named income: rename"
    ),
    "a column without a name": Awkward(
        text(header=["income", "people", "", "sold", "coast", "target"]),
        refused="x.csv: column 3 has no name; give it one",
    ),
    "no header line": Awkward(
        changed(lambda f: f[["income", "people"]], header=False),
        refused=r"x.csv has no header line: its first row is all numbers \(8.3252, 322\); write",
    ),
    "a field too many": Awkward(
        lines(lambda rows: [*rows[:5], f"{rows[5]},7", *rows[6:]]),
        refused=r"x.csv: row 6 \(the header line is row 1\) has 7 fields, but the header has 6",
    ),
    "a quote that does not end": Awkward(
        lines(lambda rows: [*rows[:5], f'"{rows[5]}', *rows[6:]]), refused=r"x.csv.*quote"
    ),
    "empty": Awkward(raw(b""), refused="x.csv is empty; expected a line of column names"),
    "blank": Awkward(raw(b"\n \n"), refused="x.csv is empty; expected a line"),
    "header only": Awkward(changed(lambda f: f[:0]), refused="x.csv has 0 rows: add rows below"),
    "no text": Awkward(raw(b"PK\x03\x04\x14\x00\x06\x00"), refused="not a text file: byte 5"),
    "a workbook": Awkward(raw(b"PK\x03\x04", "x.xlsx"), refused="cannot be read as a workbook"),
}  # fmt: skip
