"""Columns as people write them, and what they mean: written by hand, not by the reader.

Each case is a file of text with the column ``v``, whose spellings are repeated to `ROWS` rows, and
a column ``k`` of whole numbers. ``odd`` replaces single values: a dictionary of rows and texts.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROWS = 100


def day(year: int, month: int, number: int) -> datetime.date:
    return datetime.date(year, month, number)


def at(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts)


def utc(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts, tzinfo=datetime.UTC)


def clock(hour: int, minute: int, second: int = 0) -> datetime.time:
    return datetime.time(hour, minute, second)


def span(**parts: float) -> datetime.timedelta:
    return datetime.timedelta(**parts)


@dataclass(frozen=True)
class Spelled:
    """A column of text.

    Attributes
    ----------
    kind : str
        What is awkward about it.
    texts : tuple of str
    values : tuple
        What they mean; None for gaps.
    type : str
        Of Arrow.
    odd : mapping of int to str
        Texts of some rows that are read as gaps, and reported.
    separator : str
    """

    kind: str
    texts: tuple[str, ...]
    values: tuple[Any, ...]
    type: str = "double"
    odd: dict[int, str] = field(default_factory=dict)
    separator: str = ";"

    def lines(self) -> list[str]:
        """Return the texts of all rows."""
        cycle = [self.texts[i % len(self.texts)] for i in range(ROWS)]
        return [self.odd.get(i, text) for i, text in enumerate(cycle)]

    def expected(self) -> list[Any]:
        """Return the values of all rows."""
        return [None if i in self.odd else self.values[i % len(self.values)] for i in range(ROWS)]

    def write(self, path: Path) -> Path:
        """Write the file."""
        mark = self.separator
        quoted = [f'"{text}"' if mark in text or text == "" else text for text in self.lines()]
        rows = [f"{text}{mark}{i}" for i, text in enumerate(quoted)]
        path.write_text("\n".join([f"v{mark}k", *rows]) + "\n", "utf-8")
        return path


def number(kind: str, *pairs: tuple[str, float | None], **more: Any) -> Spelled:
    texts, values = zip(*pairs, strict=True)
    return Spelled(kind, texts, values, **more)


def words(kind: str, *texts: str) -> Spelled:
    return Spelled(kind, texts, texts, "string")


DATE, MOMENT, ZONED = "date32[day]", "timestamp[us]", "timestamp[us, tz=UTC]"
CLOCK, SPAN = "time64[us]", "duration[us]"
JAN, MAR, DEC = day(2019, 1, 3), day(2020, 3, 31), day(1999, 12, 9)
DAYS = (JAN, MAR, DEC)


def dates(kind: str, *texts: str, values: tuple[Any, ...] = DAYS, **more: Any) -> Spelled:
    return Spelled(kind, texts, values, more.pop("type", DATE), **more)


COLUMNS: dict[str, Spelled] = {
    # one odd value among numbers, dates, times and booleans
    "unknown": number("odd", ("12", 12), ("7", 7), ("-3", -3), type="int64", odd={5: "unknown"}),
    "two odd texts": number("odd", ("1.5", 1.5), ("2", 2), odd={5: "broken", 99: "see note"}),
    "below a limit": number("odd", ("0.5", 0.5), ("3.25", 3.25), odd={0: "<0.1"}),
    "first value odd": number("odd", ("4", 4), ("9", 9), type="int64", odd={0: "tbd"}),
    "another mark": number("odd", ("4.25", 4.25), ("9.5", 9.5), odd={50: "1,23,5"}),
    "a question among days": dates("odd", "2019-01-03", "2020-03-31", "1999-12-09",
                                   odd={7: "unclear"}),
    "no such day": dates("odd", "03.01.2019", "31.03.2020", "09.12.1999", odd={7: "31.02.2019"}),
    "maybe": Spelled("odd", ("yes", "no"), (True, False), "bool", {3: "maybe"}),
    "a word among times": Spelled("odd", ("09:45", "17:05"), (clock(9, 45), clock(17, 5)), CLOCK,
                                  {8: "closed"}),
    "three of a hundred are text": Spelled(
        "not odd", tuple("many" if i in (3, 50, 97) else str(i) for i in range(ROWS)),
        tuple("many" if i in (3, 50, 97) else str(i) for i in range(ROWS)), "string"),
    # usual words for gaps
    "spreadsheet errors": number("gaps", ("5", 5), ("#DIV/0!", None), ("#NAME?", None), ("#NUM!",
        None), type="int64"),
    "n.d. and n/a": number("gaps", ("5.5", 5.5), ("n.d.", None), ("N/A", None), ("#N/A", None)),
    "dots and dashes": number("gaps", ("5.5", 5.5), ("-", None), ("--", None), (".", None), ("…",
        None)),
    "null and None": number("gaps", ("5.5", 5.5), ("null", None), ("None", None), ("NULL", None),
        ("nan", None)),
    "not numbers of C": number("gaps", ("5.5", 5.5), ("-1.#IND", None), ("1.#QNAN", None), ("-nan",
        None)),
    "gaps among days": dates("gaps", "03.01.2019", "n/a", "-", values=(JAN, None, None)),
    "gaps among times": Spelled("gaps", ("09:45", "NaT", "?"), (clock(9, 45), None, None), CLOCK),
    # currency
    "dollars": number("currency", ("$1,234.50", 1234.5), ("$12.00", 12), ("-$3.25", -3.25),
        separator=","),
    "dollars after": number("currency", ("1,234.50 $", 1234.5), ("12.00 $", 12)),
    "euros": number("currency", ("1.234,50 €", 1234.5), ("12,00 €", 12), ("-3,25 €", -3.25)),
    "euros before": number("currency", ("€ 1.234,50", 1234.5), ("€ 12,00", 12)),
    "pounds": number("currency", ("£3.50", 3.5), ("£1,250.00", 1250), separator=","),
    "yen": number("currency", ("¥1,200", 1200), ("¥12,345,000", 12345000), ("¥980", 980),
        separator=","),
    "codes before": number("currency", ("USD 1,234.50", 1234.5), ("USD 12", 12), separator=","),
    "codes after": number("currency", ("1'234.50 CHF", 1234.5), ("12.05 CHF", 12.05)),
    "rupees": number("currency", ("₹1,23,456.50", 123456.5), ("₹45,000.00", 45000), separator=","),
    "reals": number("currency", ("R$ 1.234,50", 1234.5), ("R$ 12,00", 12)),
    "some without": number("currency", ("$5.25", 5.25), ("7.5", 7.5), ("$0", 0)),
    "accounting": number("currency", ("$1,234.50", 1234.5), ("($3.25)", -3.25), ("$(12.50)",
        -12.5), separator=","),
    "no sign at zero": number("percent", ("45%", 45), ("3.5%", 3.5), ("7%", 7), ("0", 0)),
    "a dash for zero": number("currency", ("$5", 5), ("$7.25", 7.25), ("$ -", 0)),
    "thousands and millions": number("multiples", ("$1.2M", 1.2e6), ("$450K", 450e3)),
    "yen and a tab": number("currency", ("¥1,234", 1234), ("¥5", 5), separator="\t"),
    "units in either case": number("unit", ("12 Kg", 12), ("13 kg", 13), ("9 KG", 9)),
    "feet": number("unit", ("5'", 5), ("6'", 6)),
    "litres": number("unit", ("1.5 l/100km", 1.5), ("7 l/100km", 7)),
    "milli and mega": words("mixed marks", "5 mW", "6 MW", "7 mW", "8 MW"),
    "groups and short numbers": number("groups", ("1,234", 1234), ("5", 5), ("12,345", 12345)),
    "a Unicode minus behind": number("signs", ("5\u2212", -5), ("6", 6)),
    "unlike currencies": words("mixed marks", "$5", "€7", "£3", "$8"),
    # percent
    "percent": number("percent", ("45%", 45), ("3.5%", 3.5), ("-2%", -2)),
    "percent after a space": number("percent", ("45,5 %", 45.5), ("3,25 %", 3.25)),
    "percent and shares": words("mixed marks", "45%", "0.45", "12%", "0.12"),
    # units
    "kilograms": number("unit", ("12 kg", 12), ("3.5 kg", 3.5), ("-7 kg", -7)),
    "no space": number("unit", ("12kg", 12), ("3.5kg", 3.5)),
    "degrees": number("unit", ("12.5 °C", 12.5), ("-3.0 °C", -3)),
    "square metres": number("unit", ("1.250,5 m²", 1250.5), ("85,0 m²", 85)),
    "a quotient": number("unit", ("120 km/h", 120), ("95.5 km/h", 95.5)),
    "years": number("unit", ("1 year", 1), ("12 years", 12), ("3 years", 3)),
    "two words": number("unit", ("850 sq ft", 850), ("1,200 sq ft", 1200), separator=","),
    "unlike units": words("mixed marks", "12 kg", "30 lb", "7 kg", "4 st"),
    "one odd unit": number("unit", ("12.5 kg", 12.5), ("3.5 kg", 3.5), odd={11: "30 lb"}),
    "house numbers": words("codes", "12a", "7", "3b", "112"),
    "grades": words("codes", "1st", "2nd", "3rd", "4th"),
    # signs
    "parentheses": number("signs", ("1,234.50", 1234.5), ("(1,234.50)", -1234.5), ("7.25", 7.25),
        separator=","),
    "trailing minus": number("signs", ("12-", -12), ("3.5", 3.5), ("7.25-", -7.25)),
    "a minus of Unicode": number("signs", ("\u22121.5", -1.5), ("2.25", 2.25)),
    "a dash for a minus": number("signs", ("\u20131.5", -1.5), ("2.25", 2.25)),
    "a sign apart": number("signs", ("- 1.5", -1.5), ("+ 2.25", 2.25)),
    # groups of thousands
    "spaces": number("groups", ("1 234", 1234), ("12 345 678", 12345678), ("7", 7)),
    "spaces and a comma": number("groups", ("1 234,5", 1234.5), ("7,25", 7.25)),
    "spaces that do not break": number("groups", ("1\u00a0234,5", 1234.5), ("7,25", 7.25)),
    "thin spaces": number("groups", ("1\u202f234.5", 1234.5), ("12\u2009345.0", 12345), ("7.25",
        7.25)),
    "apostrophes": number("groups", ("1'234.5", 1234.5), ("7.25", 7.25), ("1'234'567", 1234567)),
    "curly apostrophes": number("groups", ("1\u2019234.5", 1234.5), ("7.25", 7.25)),
    "groups and exponents": number("groups", ("1,234.5", 1234.5), ("1.5e3", 1500), (".5", 0.5),
        separator=","),
    "telephone numbers": words("codes", "030 123 456", "089 555 123", "040 777 888"),
    # exponents
    "exponents of Fortran": number("exponents", ("1.5D+03", 1500), ("-2.5d-1", -0.25), ("7.0D0",
        7)),
    "exponents with a comma": number("exponents", ("1,5E+03", 1500), ("-2,5e-1", -0.25)),
    # days in words
    "3-Jan-2019": dates("words", "3-Jan-2019", "31-Mar-2020", "9-Dec-1999"),
    "03JAN2019": dates("words", "03JAN2019", "31MAR2020", "09DEC1999"),
    "January 3, 2019": dates("words", "January 3, 2019", "March 31, 2020", "December 9, 1999"),
    "Jan 3 2019": dates("words", "Jan 3 2019", "Mar 31 2020", "Dec 9 1999"),
    "3rd of": dates("words", "3rd January 2019", "31st March 2020", "9th December 1999"),
    "3. Januar 2019": dates("words", "3. Januar 2019", "31. März 2020", "9. Dezember 1999"),
    "3 janvier 2019": dates("words", "3 janvier 2019", "31 mars 2020", "9 décembre 1999"),
    "2019-Jan-03": dates("words", "2019-Jan-03", "2020-Mar-31", "1999-Dec-09"),
    "Thursday": dates("words", "Thu, 3 Jan 2019", "Tue, 31 Mar 2020", "Thu, 9 Dec 1999"),
    "words and time": dates("words", "3 Jan 2019 10:30", "31 Mar 2020 1:05",
                            values=(at(2019, 1, 3, 10, 30), at(2020, 3, 31, 1, 5)), type=MOMENT),
    "mail": dates("zones", "Thu, 03 Jan 2019 10:30:00 +0200", "Tue, 31 Mar 2020 01:05:00 GMT",
                  values=(utc(2019, 1, 3, 8, 30), utc(2020, 3, 31, 1, 5)), type=ZONED),
    "1er janvier": dates("words", "1er janvier 2019", "31 mars 2020", "9 décembre 1999",
                         values=(day(2019, 1, 1), MAR, DEC)),
    "a date of Unix": dates("words", "Thu Jan  3 10:30:00 2019", "Tue Mar 31 01:05:00 2020",
                            values=(at(2019, 1, 3, 10, 30), at(2020, 3, 31, 1, 5)), type=MOMENT),
    "a log": dates("zones", "03/Jan/2019:10:30:00 +0200", "31/Mar/2020:01:05:00 +0000",
                   values=(utc(2019, 1, 3, 8, 30), utc(2020, 3, 31, 1, 5)), type=ZONED),
    "a zone in letters": dates("zones", "2019-01-03 10:30 CET", "2020-03-31 01:05 CEST",
                               values=(utc(2019, 1, 3, 9, 30), utc(2020, 3, 30, 23, 5)),
                               type=ZONED),
    # years of two digits
    "03.01.19": dates("two digits", "03.01.19", "31.03.20", "09.12.99"),
    "01/31/19": dates("two digits", "01/03/19", "03/31/20", "12/09/99"),
    "31/01/19": dates("two digits", "03/01/19", "31/03/20", "09/12/99"),
    "3-Jan-19": dates("two digits", "3-Jan-19", "31-Mar-20", "9-Dec-99"),
    "pivot": dates("two digits", "01.01.68", "31.12.69", values=(day(2068, 1, 1), day(1969, 12,
        31))),
    # times of day
    "09:45": Spelled("times", ("09:45", "17:05"), (clock(9, 45), clock(17, 5)), CLOCK),
    "9:45": Spelled("times", ("9:45", "17:05"), (clock(9, 45), clock(17, 5)), CLOCK),
    "0945": Spelled("times", ("0945", "1705", "0000"), (clock(9, 45), clock(17, 5), clock(0, 0)),
        CLOCK),
    "9:45 AM": Spelled("times", ("9:45 AM", "5:05 PM", "12:00 AM"), (clock(9, 45), clock(17, 5),
        clock(0, 0)), CLOCK),
    "9:45pm": Spelled("times", ("9:45pm", "12:30pm"), (clock(21, 45), clock(12, 30)), CLOCK),
    "09:45:30": Spelled("times", ("09:45:30", "17:05:00.5"), (clock(9, 45, 30), datetime.time(17,
        5, 0, 500_000)), CLOCK),
    "codes of four digits": words("codes", "0945", "7100", "0182", "1399"),
    "945": number("times", ("945", 945), ("1705", 1705), type="int64"),
    # quarters, months, weeks
    "2019Q1": dates("quarters", "2019Q1", "2020Q4", values=(day(2019, 1, 1), day(2020, 10, 1))),
    "Q1 2019": dates("quarters", "Q1 2019", "Q4 2020", values=(day(2019, 1, 1), day(2020, 10, 1))),
    "2019-Q1": dates("quarters", "2019-Q1", "2020-Q4", values=(day(2019, 1, 1), day(2020, 10, 1))),
    "2019-03": dates("months", "2019-03", "2020-12", values=(day(2019, 3, 1), day(2020, 12, 1))),
    "03/2019": dates("months", "03/2019", "12/2020", values=(day(2019, 3, 1), day(2020, 12, 1))),
    "Mar 2019": dates("months", "Mar 2019", "Dec 2020", values=(day(2019, 3, 1), day(2020, 12, 1))),
    "March-2019": dates("months", "March-2019", "December-2020", values=(day(2019, 3, 1), day(2020,
        12, 1))),
    "Mar-19": dates("months", "Mar-19", "Dec-20", values=(day(2019, 3, 1), day(2020, 12, 1))),
    "Q1 19": dates("quarters", "Q1 19", "Q4'20", values=(day(2019, 1, 1), day(2020, 10, 1))),
    "03.2019": dates("months", "03.2019", "12.2020", values=(day(2019, 3, 1), day(2020, 12, 1))),
    "2019M03": dates("months", "2019M03", "2020M12", values=(day(2019, 3, 1), day(2020, 12, 1))),
    "2019-W01": dates("weeks", "2019-W01", "2020-W53", values=(day(2018, 12, 31), day(2020, 12,
        28))),
    # durations
    "1h 30m": Spelled("durations", ("1h 30m", "45m", "2h"), (span(minutes=90), span(minutes=45),
        span(hours=2)), SPAN),
    "2 d 3 h": Spelled("durations", ("2 d 3 h", "5 h", "1 d"), (span(hours=51), span(hours=5),
        span(days=1)), SPAN),
    "hours and minutes": Spelled("durations", ("1 hour 30 minutes", "2 hours", "1 minute"),
        (span(minutes=90), span(hours=2), span(minutes=1)), SPAN),
    "PT1H30M": Spelled("durations", ("PT1H30M", "PT45S", "P1DT2H"), (span(minutes=90),
        span(seconds=45), span(hours=26)), SPAN),
    "beyond a day": Spelled("durations", ("26:30:00", "01:30:00"), (span(hours=26.5),
        span(hours=1.5)), SPAN),
    "0 days 01:30:00": Spelled("durations", ("0 days 01:30:00", "2 days 00:00:30"),
        (span(hours=1.5), span(days=2, seconds=30)), SPAN),
    # zones
    "offsets": dates("zones", "2019-01-03T10:30:00+02:00", "2020-03-31T01:05:00Z",
                     values=(utc(2019, 1, 3, 8, 30), utc(2020, 3, 31, 1, 5)), type=ZONED),
    "UTC in words": dates("zones", "2019-01-03 10:30:00 UTC", "2020-03-31 01:05:00 UTC",
                          values=(utc(2019, 1, 3, 10, 30), utc(2020, 3, 31, 1, 5)), type=ZONED),
    "nanoseconds": dates("times", "2019-01-03 10:30:00.123456789", "2020-03-31 01:05:00",
                         values=(at(2019, 1, 3, 10, 30, 0, 123456), at(2020, 3, 31, 1, 5)),
        type=MOMENT),
    "unpadded": dates("times", "2019-1-3", "2020-3-31", "1999-12-9"),
    # what stays text
    "ranges": words("codes", "18-25", "26-35", "36-45"),
    "scores": words("codes", "3:2", "0:1", "4:0"),
    "sizes": words("codes", "3x4", "5x7", "10x12"),
    "versions": words("codes", "1.2.3", "2.0.1", "10.4.0"),
    "at least": words("codes", "1", "2", "3+", "0"),
    "employment": words("codes", "10+ years", "< 1 year", "2 years", "3 years"),
    "letters": words("codes", "t", "x", "f", "k"),
    "zip codes": words("codes", "02134", "90210", "10001"),
}  # fmt: skip
