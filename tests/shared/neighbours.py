"""Text tables next to those of `layouts` and `spellings`: types and values written by hand.

The list was written before the reader was tried on it. Each table is read with these types and
values, or refused in one line.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any

ROWS = 40

ARROW_TYPES = {
    "integer": "int64",
    "number": "double",
    "boolean": "bool",
    "date": "date32[day]",
    "moment": "timestamp[us]",
    "zoned": "timestamp[us, tz=UTC]",
    "clock": "time64[us]",
    "duration": "duration[us]",
    "text": "string",
    "nothing": "null",
}


@dataclass(frozen=True)
class Neighbour:
    """A table of text, and what it means.

    Attributes
    ----------
    kind : str
        What is awkward about it.
    text : str
    columns : mapping of str to (str, list)
        Type and values of each column, by name.
    refused : str
        What the refusal says, if the table is refused.
    warned : str
        What a warning says, if one must.
    encoding : str
    read : mapping
        Options of reading.
    """

    kind: str
    text: str
    columns: Mapping[str, tuple[str, list[Any]]] = field(default_factory=dict)
    refused: str = ""
    warned: str = ""
    encoding: str = "utf-8"
    read: Mapping[str, Any] = field(default_factory=dict)


def column(
    kind: str, type_name: str, *pairs: tuple[str, Any], mark: str = ";", **more: Any
) -> Neighbour:
    """Return a table of ``v``, whose texts are repeated, and the row number ``k``."""
    texts, values = zip(*islice(cycle(pairs), ROWS), strict=True)
    quoted = [f'"{text}"' if mark in text else text for text in texts]
    lines = [f"v{mark}k", *(f"{text}{mark}{i}" for i, text in enumerate(quoted))]
    columns = {"v": (type_name, list(values)), "k": ("integer", list(range(ROWS)))}
    return Neighbour(kind, "\n".join(lines) + "\n", columns, **more)


def words(kind: str, *texts: str) -> Neighbour:
    return column(kind, "text", *((text, text) for text in texts))


def day(year: int, month: int, number: int) -> datetime.date:
    return datetime.date(year, month, number)


def at(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts)


def utc(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts, tzinfo=datetime.UTC)


def clock(*parts: int) -> datetime.time:
    return datetime.time(*parts)


def span(**parts: float) -> datetime.timedelta:
    return datetime.timedelta(**parts)


TOWNS = [(i, i * 1.5, "north" if i % 3 else "south") for i in range(1, 31)]
BODY = "".join(f"{a},{b},{c}\n" for a, b, c in TOWNS)
SALES = "".join(f"{['Oslo', 'Bergen', 'Molde'][i % 3]},{i},{2 * i}\n" for i in range(1, 31))


def towns(**names: str) -> dict[str, tuple[str, list[Any]]]:
    """Return the columns of `BODY`."""
    kinds = dict(zip("abc", ("integer", "number", "text"), strict=True))
    return {name: (kinds[name], [row[j] for row in TOWNS]) for j, name in enumerate("abc")}


def columns(**named: Sequence[Any]) -> dict[str, tuple[str, list[Any]]]:
    """Return columns given as a type and values each."""
    return {name: (given[0], list(given[1:])) for name, given in named.items()}


NEIGHBOURS = {
    # currency
    "euros in parentheses": column(
        "currency", "number", ("(1.234,50 €)", -1234.5), ("12,00 €", 12)
    ),
    "francs before": column("currency", "number", ("CHF 1'234.50", 1234.5), ("CHF -12.05", -12.05)),
    "kroner": column("currency", "number", ("1 234,50 kr", 1234.5), ("-12,00 kr", -12)),
    "dollars, minus behind": column("currency", "number", ("$12.50-", -12.5), ("$7.00", 7)),
    "euros in a file of commas": column(
        "currency", "number", ("€1,234", 1234), ("€5", 5), mark=","
    ),
    "francs without rappen": column(
        "currency", "number", ("Fr. 12.–", 12), ("Fr. 1'234.50", 1234.5)
    ),
    "zloty": column("currency", "number", ("1\u00a0234,50\u00a0zł", 1234.5), ("7,00\u00a0zł", 7)),
    # percent
    "percent in parentheses": column("percent", "number", ("(2,5 %)", -2.5), ("1,5 %", 1.5)),
    "percent before": column("percent", "number", ("%45", 45), ("%3,5", 3.5)),
    "percent, space that does not break": column(
        "percent", "number", ("45,5\u202f%", 45.5), ("-2\u202f%", -2)
    ),
    # accounting
    "parentheses and spaces": column(
        "accounting", "number", ("(1 234,50)", -1234.5), ("7,25", 7.25)
    ),
    "parentheses and a dash": column(
        "accounting", "number", ("(12)", -12), ("15", 15), ("-", None)
    ),
    "debit and credit": words("accounting", "12.50 CR", "7.00 DR", "3.10 CR", "8.25 DR"),
    # groups of thousands
    "underscores": column("groups", "number", ("1_234", 1234), ("12_345_678", 12345678)),
    "points alone": column("groups", "number", ("12.345", 12345), ("1.234.567", 1234567)),
    "commas between tabs": column(
        "groups", "number", ("12,345", 12345), ("1,234,567", 1234567), mark="\t"
    ),
    "lakhs": column("groups", "number", ("1,23,456", 123456), ("12,34,567", 1234567), ("500", 500)),
    "below zero with spaces": column(
        "groups", "number", ("-1\u00a0234", -1234), ("12\u00a0345", 12345)
    ),
    # plain numbers
    "nothing behind the point": column("numbers", "number", ("12.", 12), ("5.", 5), (".5", 0.5)),
    "nothing before the comma": column(
        "numbers", "number", (",5", 0.5), ("-,25", -0.25), ("1,75", 1.75)
    ),
    "exponents alone": column("numbers", "number", ("1E3", 1000), ("2E-1", 0.2)),
    "quoted decimal commas": column("numbers", "number", ("1,5", 1.5), ("12,25", 12.25), mark=","),
    # gaps
    "errors of a German spreadsheet": column(
        "gaps", "number", ("5,5", 5.5), ("#NV", None), ("#WERT!", None), ("#BEZUG!", None)
    ),
    "newer errors of spreadsheets": column(
        "gaps", "integer", ("5", 5), ("#CALC!", None), ("#SPILL!", None), ("7", 7)
    ),
    "words of several languages": column(
        "gaps",
        "number",
        ("5.5", 5.5),
        ("k. A.", None),
        ("N.A.", None),
        ("not available", None),
        ("s/d", None),
    ),
    "missing in words": column("gaps", "integer", ("5", 5), ("missing", None), ("8", 8)),
    "stars of Fortran": column("gaps", "number", ("5.25", 5.25), ("*****", None), ("7.5", 7.5)),
    "days of zeros": column("gaps", "date", ("2019-01-03", day(2019, 1, 3)), ("0000-00-00", None)),
    "moments of zeros": column(
        "gaps",
        "moment",
        ("2019-01-03 10:30:00", at(2019, 1, 3, 10, 30)),
        ("0000-00-00 00:00:00", None),
    ),
    "points of zeros": column(
        "gaps", "date", ("31.01.2019", day(2019, 1, 31)), ("00.00.0000", None)
    ),
    "spaces that do not break": column("gaps", "number", ("5.5", 5.5), ("\u00a0", None)),
    "a database's gap": column("gaps", "integer", ("5", 5), (r"\N", None), mark="\t"),
    # booleans
    "ja and nein": column("booleans", "boolean", ("ja", True), ("nein", False), ("Ja", True)),
    "oui and non": column("booleans", "boolean", ("oui", True), ("non", False)),
    "sí and no": column("booleans", "boolean", ("Sí", True), ("No", False), ("", None)),
    "WAHR and FALSCH": column("booleans", "boolean", ("WAHR", True), ("FALSCH", False)),
    "VRAI and FAUX": column("booleans", "boolean", ("VRAI", True), ("FAUX", False), ("#N/A", None)),
    "on and off": words("booleans", "on", "off", "standby"),
    # days in words
    "Spanish days": column(
        "words",
        "date",
        ("3 de enero de 2019", day(2019, 1, 3)),
        ("31 de agosto de 2020", day(2020, 8, 31)),
    ),
    "Italian days": column(
        "words", "date", ("3 gennaio 2019", day(2019, 1, 3)), ("31 luglio 2020", day(2020, 7, 31))
    ),
    "Dutch days": column(
        "words", "date", ("3 mei 2019", day(2019, 5, 3)), ("31 maart 2020", day(2020, 3, 31))
    ),
    "upper case and seconds": column(
        "words",
        "moment",
        ("03-JAN-2019 10:30:15", at(2019, 1, 3, 10, 30, 15)),
        ("31-MAR-2020 01:05:00", at(2020, 3, 31, 1, 5)),
    ),
    "month, day, year": column(
        "words", "date", ("Jan-03-2019", day(2019, 1, 3)), ("Mar-31-2020", day(2020, 3, 31))
    ),
    "long days of the week": column(
        "words",
        "date",
        ("Thursday, January 3, 2019", day(2019, 1, 3)),
        ("Tuesday, March 31, 2020", day(2020, 3, 31)),
    ),
    "points behind months": column(
        "words", "date", ("3. Jan. 2019", day(2019, 1, 3)), ("31. Aug. 2020", day(2020, 8, 31))
    ),
    # days in digits
    "eight digits": column(
        "digits", "date", ("20190103", day(2019, 1, 3)), ("20201231", day(2020, 12, 31))
    ),
    "the year first, two digits": column(
        "digits", "date", ("99-12-31", day(1999, 12, 31)), ("20-01-15", day(2020, 1, 15))
    ),
    "the year first, two digits and points": column(
        "digits", "date", ("90.01.01", day(1990, 1, 1)), ("91.12.31", day(1991, 12, 31))
    ),
    "American, two digits and times": column(
        "digits",
        "moment",
        ("1/31/19 9:45", at(2019, 1, 31, 9, 45)),
        ("12/1/20 17:05", at(2020, 12, 1, 17, 5)),
    ),
    "fractions": words("digits", "1/2", "3/4", "5/8"),
    # times
    "French times": column("times", "clock", ("14h30", clock(14, 30)), ("9h05", clock(9, 5))),
    "six digits": column("times", "clock", ("093015", clock(9, 30, 15)), ("174500", clock(17, 45))),
    "hours alone": column(
        "times", "clock", ("9 AM", clock(9)), ("12 PM", clock(12)), ("11 pm", clock(23))
    ),
    "unpadded with seconds": column(
        "times", "clock", ("0:05:30", clock(0, 5, 30)), ("23:59:59", clock(23, 59, 59))
    ),
    # quarters and weeks
    "3Q2021": column("quarters", "date", ("3Q2021", day(2021, 7, 1)), ("1Q2020", day(2020, 1, 1))),
    "2021/Q3": column(
        "quarters", "date", ("2021/Q3", day(2021, 7, 1)), ("2020/Q1", day(2020, 1, 1))
    ),
    "trimesters": column(
        "quarters", "date", ("2021-T3", day(2021, 7, 1)), ("2020-T1", day(2020, 1, 1))
    ),
    "days of weeks": column(
        "quarters", "date", ("2021-W05-3", day(2021, 2, 3)), ("2020-W53-7", day(2021, 1, 3))
    ),
    # durations
    "laps": column(
        "durations",
        "duration",
        ("1:23.456", span(seconds=83.456)),
        ("2:01.100", span(seconds=121.1)),
    ),
    "negative durations": column(
        "durations", "duration", ("-00:15", span(minutes=-15)), ("01:30", span(minutes=90))
    ),
    "days and clocks": column(
        "durations",
        "duration",
        ("1d 02:03:04", span(days=1, hours=2, minutes=3, seconds=4)),
        ("00:15:00", span(minutes=15)),
    ),
    "minutes": column("durations", "number", ("90 min", 90), ("45 min", 45)),
    "hours of several lengths": column(
        "durations", "duration", ("1 h 30 min", span(minutes=90)), ("45 min", span(minutes=45))
    ),
    # zones
    "offsets without a colon": column(
        "zones",
        "zoned",
        ("2019-01-03T10:30:00.250+0200", utc(2019, 1, 3, 8, 30, 0, 250_000)),
        ("2020-03-31T01:05:00.000-0500", utc(2020, 3, 31, 6, 5)),
    ),
    "zones in brackets": column(
        "zones",
        "zoned",
        ("2019-01-03T10:30:00+01:00[Europe/Paris]", utc(2019, 1, 3, 9, 30)),
        ("2020-06-30T01:05:00+02:00[Europe/Paris]", utc(2020, 6, 29, 23, 5)),
    ),
    # what stays text
    "latitudes": words("codes", "52.5N", "33.9S", "48.1N", "34.6S"),
    "telephones": words("codes", "+4930123456", "+4989555123"),
    "fiscal years": words("codes", "FY2021", "FY2022", "FY2020"),
    # above the table
    "a line for spreadsheets": Neighbour(
        "titles", "sep=;\n" + "a;b;c\n" + BODY.replace(",", ";"), towns()
    ),
    "two titles": Neighbour(
        "titles",
        "Report of 2020\nPrinted on 3 Jan 2021\n\na,b,c\n" + BODY,
        towns(),
        warned="Report of 2020",
    ),
    "a mark and comments": Neighbour(
        "titles", "\ufeff# station 7\n# 2020\na,b,c\n" + BODY, towns()
    ),
    "units and decimal commas": Neighbour(
        "units",
        "Zeit;Druck\ns;bar\n" + "1,5;2,25\n2,5;3,75\n3,5;4,0\n",
        columns(Zeit=("number", 1.5, 2.5, 3.5), Druck=("number", 2.25, 3.75, 4)),
        warned="s bar",
    ),
    "units of some columns": Neighbour(
        "units",
        "town;temp;wind\n;°C;m/s\nOslo;5;2.5\nBonn;6;3.5\nOslo;7;1.5\n",
        columns(
            town=("text", "Oslo", "Bonn", "Oslo"),
            temp=("integer", 5, 6, 7),
            wind=("number", 2.5, 3.5, 1.5),
        ),
        warned="°C m/s",
    ),
    "dashes below the names": Neighbour("units", "a,b,c\n--,---,-----\n" + BODY, towns()),
    "a table of Markdown": Neighbour(
        "units",
        "| x | y |\n|---|---|\n| 1 | 2.5 |\n| 3 | 4.5 |\n| 5 | 6.5 |\n",
        columns(x=("integer", 1, 3, 5), y=("number", 2.5, 4.5, 6.5)),
    ),
    # below the table
    "a total": Neighbour(
        "footers", "town,sales,cost\n" + SALES + "Total,465,930\n", refused="row 32 .*'Total'"
    ),
    "a total in German": Neighbour(
        "footers", "town,sales,cost\n" + SALES + "Summe,465,930\n", refused="row 32 .*'Summe'"
    ),
    "a source": Neighbour(
        "footers",
        "a,b,c\n" + BODY + "Source: office of statistics\n",
        refused="row 32 .*has 1 fields",
    ),
    "a count of rows": Neighbour(
        "footers", "a,b,c\n" + BODY + "\n(30 rows affected)\n", refused="has 1 fields"
    ),
    "a repeated header line": Neighbour(
        "footers", "a,b,c\n" + BODY + "a,b,c\n" + BODY, refused="row 32 .*repeats the header line"
    ),
    # names of rows, spaces
    "names of rows between semicolons": Neighbour(
        "row names",
        '"x";"y"\n' + "".join(f'"{i}";{i};{i},5\n' for i in range(1, 9)),
        columns(x=("integer", *range(1, 9)), y=("number", *(i + 0.5 for i in range(1, 9)))),
    ),
    "cars": Neighbour(
        "row names",
        '"mpg" "cyl"\n"Mazda RX4" 21 6\n"Datsun 710" 22.8 4\n"Hornet 4 Drive" 21.4 6\n',
        columns(mpg=("number", 21, 22.8, 21.4), cyl=("integer", 6, 4, 6)),
    ),
    "columns below zero": Neighbour(
        "spaces",
        "  x      y\n -1  -2.50\n 10   3.25\n-12  -0.75\n",
        columns(x=("integer", -1, 10, -12), y=("number", -2.5, 3.25, -0.75)),
    ),
    "towns of two words": Neighbour(
        "spaces",
        "town  x  y\nOslo  1  2\nNew York  3  4\nBonn  5  6\nOslo  7  8\n",
        refused="aligned by spaces",
    ),
    # encodings and line ends
    "big-endian, tabs and quotes": Neighbour(
        "encodings",
        "\ufeffa\tb\tc\r\n" + BODY.replace(",", "\t").replace("\n", "\r\n"),
        towns(),
        encoding="utf-16-be",
    ),
    "Russian with decimal commas": Neighbour(
        "encodings",
        "город;цена\nМосква;1,5\nКазань;2,25\nПермь;3,75\nМосква;4,5\n",
        {
            "город": ("text", ["Москва", "Казань", "Пермь", "Москва"]),
            "цена": ("number", [1.5, 2.25, 3.75, 4.5]),
        },
        warned="cp1251",
        encoding="cp1251",
    ),
    "a mark before quotes": Neighbour("encodings", '\ufeff"a","b","c"\n' + BODY, towns()),
    "mixed line ends": Neighbour(
        "line ends", "a,b,c\r\n" + BODY.replace("\n", "\r\n", 15), towns()
    ),
    "old line ends": Neighbour("line ends", ("a,b,c\n" + BODY).replace("\n", "\r"), towns()),
    "a name of two lines": Neighbour(
        "line ends",
        '"x\n(m)",y\n1,2\n3,4\n',
        {"x\n(m)": ("integer", [1, 3]), "y": ("integer", [2, 4])},
    ),
    # rows and columns
    "too few fields": Neighbour(
        "ragged", "a,b,c\n" + BODY + "31,46.5\n", refused="row 32 .* has 2 fields"
    ),
    "a separator behind each row": Neighbour(
        "ragged", "a,b\n1,2,\n3,4,\n5,6,\n", refused="row 2 .* has 3 fields"
    ),
    "names that differ by spaces": Neighbour(
        "names", "a, a,b\n1,2,3\n", refused="several columns named a"
    ),
    "bars and spaces": Neighbour("separators", "a | b | c\n" + BODY.replace(",", " | "), towns()),
    "tabs behind": Neighbour(
        "separators", "a\tb\tc\t\n" + BODY.replace(",", "\t").replace("\n", "\t\n"), towns()
    ),
    "decimal commas in one column": Neighbour(
        "separators", "v\n1,5\n2,5\n3,25\n", refused="row 2 .* has 2 fields"
    ),
    "sentences between semicolons": Neighbour(
        "separators",
        "s;v\n" + "".join(f"so, then, {i};{i},5\n" for i in range(1, 9)),
        columns(
            s=("text", *(f"so, then, {i}" for i in range(1, 9))),
            v=("number", *(i + 0.5 for i in range(1, 9))),
        ),
    ),
    "one name alone": Neighbour("sizes", "income", refused="has 0 rows"),
    "names without a line end": Neighbour("sizes", "\ufeffa,b", refused="has 0 rows"),
    "values above numbers": Neighbour(
        "no names", "1|6370|371|p1\n10|214|465|p2\n100|2403|160|p3\n", refused="no header line"
    ),
    "one value above numbers": Neighbour(
        "no names", "123|TEST|a\n345|TEST|b\n567|TRY|c\n", refused="no header line"
    ),
    "counts above numbers": Neighbour(
        "names",
        "town,0,1\nx,5,6\ny,7,8\n",
        {"town": ("text", ["x", "y"]), "0": ("integer", [5, 7]), "1": ("integer", [6, 8])},
    ),
    "decades above numbers": Neighbour(
        "names",
        "town,10,20,30\nx,5,6,1\ny,7,8,2\n",
        {
            "town": ("text", ["x", "y"]),
            "10": ("integer", [5, 7]),
            "20": ("integer", [6, 8]),
            "30": ("integer", [1, 2]),
        },
    ),
    "quotes that are no marks": Neighbour(
        "separators",
        "k\ttitle\n" + "".join(f"{i}\t{'!' if i % 7 else chr(34)}{i}\n" for i in range(1, 31)),
        refused="row 8 .*several lines in column 'title'",
    ),
    "commas and spaces": Neighbour(
        "separators", 'a, b, c\n1, 2, "Hi, Mom!"\n3, 4, "x"\n', refused="row 2 .* has 4 fields"
    ),
    "names alone": Neighbour("sizes", "a,b,c\r\n", refused="has 0 rows"),
    "one row": Neighbour("sizes", "a;b\n1,5;x\n", columns(a=("number", 1.5), b=("text", "x"))),
    "a long text": Neighbour(
        "sizes",
        "t,v\n" + "".join(f"{'word ' * 60_000}{i},{i}\n" for i in range(3)),
        columns(t=("text", *(f"{'word ' * 60_000}{i}" for i in range(3))), v=("integer", 0, 1, 2)),
    ),
    "a gap of minus 9999": column(
        "options", "number", ("5.5", 5.5), ("-9999.00", None), read={"missing": ["-9999"]}
    ),
}
