"""Text tables of kinds that `neighbours` lacks: types and values written by hand, before a run."""

from __future__ import annotations

from neighbours import BODY, Neighbour, at, clock, column, columns, day, span, towns, utc, words

MAR = day(2020, 3, 31)

STRANGERS = {
    # other currencies and forms of amounts
    "rupees with letters": column(
        "currency", "number", ("Rs. 1,23,456.00", 123456), ("Rs. 45,000", 45000)
    ),
    "a code in parentheses": column("currency", "number", ("(USD 3.50)", -3.5), ("USD 7", 7)),
    "won in letters": column("currency", "number", ("12,345원", 12345), ("9,800원", 9800)),
    "yen in letters": column("currency", "number", ("1,200円", 1200), ("980円", 980)),
    "koruny": column("currency", "number", ("1 234,50 Kč", 1234.5), ("7,00 Kč", 7)),
    "bitcoin": column("currency", "number", ("₿0.5", 0.5), ("₿1.25", 1.25)),
    "rubles in letters": column("currency", "number", ("1 234,50 руб.", 1234.5), ("7,00 руб.", 7)),
    "minus on either side": column(
        "currency", "number", ("-$5.00", -5), ("$-7.00", -7), ("$3.00", 3)
    ),
    "cents": column("currency", "number", ("50¢", 50), ("25¢", 25)),
    "soles": column("currency", "number", ("S/ 12.50", 12.5), ("S/ 1,250.00", 1250)),
    "rand": column("currency", "number", ("R 1 234,50", 1234.5), ("R 7,00", 7)),
    "pesos, points alone": column(
        "currency", "number", ("$ 1.234.567", 1234567), ("$ 950.000", 950000)
    ),
    "euros, points alone": column("currency", "number", ("1.234 €", 1234), ("950 €", 950)),
    "a dash for cents": column("currency", "number", ("12,- €", 12), ("7,50 €", 7.5)),
    "dollars per pound": column("currency", "number", ("$5.00/lb", 5), ("$7.25/lb", 7.25)),
    "euros per square metre": column("currency", "number", ("12,50 €/m²", 12.5), ("9,00 €/m²", 9)),
    "two amounts of three": Neighbour(
        "currency", "v;k\n$1,200;1\n$950;2\n$3,400;3\n",
        columns(v=("number", 1200, 950, 3400), k=("integer", 1, 2, 3)),
    ),
    "crores and lakhs": words("currency", "₹1.5 Cr", "₹50 L", "₹2.25 Cr", "₹75 L"),
    # percent
    "per mille": column("percent", "number", ("3,5 ‰", 3.5), ("12 ‰", 12)),
    "percent with groups": column("percent", "number", ("1,234.5%", 1234.5), ("12.5%", 12.5)),
    "percent and a Unicode minus": column("percent", "number", ("−2.5%", -2.5), ("3%", 3)),
    "signed percent": column("percent", "number", ("+12.5%", 12.5), ("-3%", -3)),
    "percent by volume": column("percent", "number", ("12,5 % vol", 12.5), ("40 % vol", 40)),
    "wide percent": column("percent", "number", ("45％", 45), ("7％", 7)),
    # numbers
    "plus signs": column("numbers", "number", ("+5", 5), ("-3", -3), ("+12", 12)),
    "beyond 2 to the 53": column(
        "identifiers", "integer", ("9007199254740993", 9007199254740993), ("12", 12)
    ),
    "zeros in front of decimals": column(
        "numbers", "number", ("0012.50", 12.5), ("0107.25", 107.25)
    ),
    "zeros behind the point": column(
        "numbers", "number", ("1.000", 1), ("2.500", 2.5), ("3.125", 3.125), mark=","
    ),
    "D and E": column("exponents", "number", ("1.5D+03", 1500), ("2.5E+01", 25)),
    "hexadecimal": words("codes", "0x1F", "0xA0", "0xFF"),
    "hexadecimal without a sign": words("codes", "1F", "A0", "3C", "5E3"),
    "quotes of one stroke": column("quotes", "number", ("'5'", 5), ("'7.5'", 7.5)),
    "quoted whole numbers": Neighbour(
        "quotes", '"v","k"\n' + "".join(f'"{i}","{i % 3}"\n' for i in range(1, 31)),
        columns(v=("integer", *range(1, 31)), k=("integer", *(i % 3 for i in range(1, 31)))),
    ),
    "quoted spaces": column("quotes", "integer", ('" 5 "', 5), ('"7 "', 7)),
    "strokes before codes": words("codes", "'00123", "'00456"),
    "spaces of web pages": column("numbers", "number", ("\u00a05.5", 5.5), ("7\u00a0", 7)),
    "spaces of no width": column("numbers", "number", ("\u200b5.5", 5.5), ("7.25\u200b", 7.25)),
    "marks of direction": column(
        "digits", "date", ("\u200e31.03.2020", MAR), ("\u200e03.01.2019", day(2019, 1, 3))
    ),
    "points that group, by another column": Neighbour(
        "groups", "v;w\n1.234;3,50\n12.345;7,25\n",
        columns(v=("number", 1234, 12345), w=("number", 3.5, 7.25)),
    ),
    "spaces that group, two rows": Neighbour(
        "groups", "v;k\n1 234;1\n12 345;2\n",
        columns(v=("number", 1234, 12345), k=("integer", 1, 2)),
    ),
    "below zero": column("numbers", "integer", ("-0", 0), ("5", 5)),
    "with a power of ten": column("exponents", "number", ("1.5×10^3", 1500), ("2×10^-1", 0.2)),
    "wide digits": column("numbers", "number", ("１２", 12), ("３．５", 3.5)),
    "plus or minus": words("codes", "5 ± 0.2", "7 ± 0.3"),
    "in a list": words("codes", "1)", "2)", "3)"),
    "half a parenthesis": words("codes", "(5", "(7", "(9"),
    "mixed fractions": words("codes", "1 1/2", "2 3/4"),
    # units
    "degrees in one sign": column("units", "number", ("12.5℃", 12.5), ("−3℃", -3)),
    "square metres in one sign": column("units", "number", ("85.5㎡", 85.5), ("120㎡", 120)),
    "dollars an hour": column("units", "number", ("$12.50/hr", 12.5), ("$9.00/hr", 9)),
    "power without a number": column("units", "number", ("74 bhp", 74), ("null bhp", None)),
    "humidity": column("units", "number", ("45 %RH", 45), ("62.5 %RH", 62.5)),
    "decibels": column("units", "number", ("61 dB(A)", 61), ("58.5 dB(A)", 58.5)),
    "stars of five": column("units", "number", ("4.1/5", 4.1), ("3/5", 3)),
    "kilometres, groups": column("units", "number", ("1,234 km", 1234), ("56 km", 56)),
    "metres and kilometres": words("units", "500 m", "1.2 km", "350 m", "2 km"),
    "milliseconds and seconds": words("units", "250 ms", "1.5 s", "300 ms", "2 s"),
    "units in the header": Neighbour(
        "units", "temp (°C),wind [m/s],rain/mm\n1,2.5,3\n4,5.5,6\n",
        {
            "temp (°C)": ("integer", [1, 4]),
            "wind [m/s]": ("number", [2.5, 5.5]),
            "rain/mm": ("integer", [3, 6]),
        },
    ),
    # booleans
    "tak and nie": column("booleans", "boolean", ("tak", True), ("nie", False)),
    "ano and ne": column("booleans", "boolean", ("ano", True), ("ne", False)),
    "evet and hayır": column("booleans", "boolean", ("evet", True), ("hayır", False)),
    "igen and nem": column("booleans", "boolean", ("igen", True), ("nem", False)),
    "Japanese booleans": column("booleans", "boolean", ("はい", True), ("いいえ", False)),
    "Chinese booleans": column("booleans", "boolean", ("是", True), ("否", False)),
    "Python's booleans": column(
        "booleans", "boolean", ("True", True), ("False", False), ("None", None)
    ),
    "three answers": words("booleans", "yes", "no", "do not know"),
    # days
    "ISO without dashes": column(
        "digits", "moment",
        ("20190103T103000", at(2019, 1, 3, 10, 30)), ("20200331T010500", at(2020, 3, 31, 1, 5)),
    ),
    "numbers of bills": words("codes", "2019-003", "2020-366"),
    "unpadded points": column(
        "digits", "date", ("3.1.2019", day(2019, 1, 3)), ("31.12.2020", day(2020, 12, 31))
    ),
    "American with half days": column(
        "digits", "moment",
        ("1/31/2019 9:45:00 AM", at(2019, 1, 31, 9, 45)),
        ("12/1/2020 5:05:00 PM", at(2020, 12, 1, 17, 5)),
    ),
    "a browser's": column(
        "digits", "moment",
        ("1/31/2019, 9:45:00 AM", at(2019, 1, 31, 9, 45)),
        ("12/1/2020, 5:05:00 PM", at(2020, 12, 1, 17, 5)),
    ),
    "Chinese days": column(
        "words", "date", ("2019年1月3日", day(2019, 1, 3)), ("2020年12月31日", day(2020, 12, 31))
    ),
    "Korean days": column(
        "digits", "date", ("2019. 1. 3.", day(2019, 1, 3)), ("2020. 12. 31.", day(2020, 12, 31))
    ),
    "Swedish days": column(
        "words", "date", ("3 maj 2019", day(2019, 5, 3)), ("31 augusti 2020", day(2020, 8, 31))
    ),
    "Polish days": column(
        "words", "date", ("3 stycznia 2019", day(2019, 1, 3)), ("31 marca 2020", MAR)
    ),
    "Russian days": column(
        "words", "date", ("3 января 2019", day(2019, 1, 3)), ("31 марта 2020", MAR)
    ),
    "umlauts in capitals": column(
        "words", "date", ("3. JANUAR 2019", day(2019, 1, 3)), ("31. MÄRZ 2020", MAR)
    ),
    "ordinals": column(
        "words", "date", ("Jan. 3rd, 2019", day(2019, 1, 3)), ("Mar. 31st, 2020", MAR)
    ),
    "of a month": column(
        "words", "date", ("3rd of January, 2019", day(2019, 1, 3)), ("31st of March, 2020", MAR)
    ),
    "SAS": column(
        "words", "moment",
        ("31JAN2019:10:30:00", at(2019, 1, 31, 10, 30)),
        ("31MAR2020:01:05:00", at(2020, 3, 31, 1, 5)),
    ),
    "seasons": words("quarters", "2008-09", "2009-10", "2010-11", "2011-12"),
    "seasons with strokes": words("quarters", "2018/19", "2019/20", "2020/21"),
    "halves of a year": column(
        "quarters", "date", ("2019H1", day(2019, 1, 1)), ("2020H2", day(2020, 7, 1))
    ),
    "Stata": column("quarters", "date", ("2019q1", day(2019, 1, 1)), ("2020q4", day(2020, 10, 1))),
    "days without a year": words("words", "3 Jan", "31 Mar", "9 Dec"),
    "years": column("digits", "integer", ("2019", 2019), ("1987", 1987)),
    "long ago": column(
        "digits", "date", ("1492-10-12", day(1492, 10, 12)), ("0800-12-25", day(800, 12, 25))
    ),
    # zones
    "Java": column(
        "zones", "zoned",
        ("Thu Jan 03 10:30:00 CET 2019", utc(2019, 1, 3, 9, 30)),
        ("Tue Jun 30 01:05:00 CEST 2020", utc(2020, 6, 29, 23, 5)),
    ),
    "a browser's zone": column(
        "zones", "zoned",
        ("Thu Jan 03 2019 10:30:00 GMT+0100 (Central European Standard Time)",
         utc(2019, 1, 3, 9, 30)),
        ("Tue Jun 30 2020 01:05:00 GMT+0200 (Central European Summer Time)",
         utc(2020, 6, 29, 23, 5)),
    ),
    "PostgreSQL": column(
        "zones", "zoned",
        ("2019-01-03 10:30:00-05", utc(2019, 1, 3, 15, 30)),
        ("2020-06-30 01:05:00-04", utc(2020, 6, 30, 5, 5)),
    ),
    "ISO without dashes in UTC": column(
        "zones", "zoned",
        ("20190103T103000Z", utc(2019, 1, 3, 10, 30)),
        ("20200331T010500Z", utc(2020, 3, 31, 1, 5)),
    ),
    "some with a zone": words("zones", "2019-01-03T10:30:00Z", "2019-01-03T10:30:00"),
    # times and durations
    "o'clock": column("times", "clock", ("09:45 Uhr", clock(9, 45)), ("17:05 Uhr", clock(17, 5))),
    "a.m.": column("times", "clock", ("9:45 a.m.", clock(9, 45)), ("5:05 p.m.", clock(17, 5))),
    "Python's durations": column(
        "durations", "duration",
        ("3 days, 4:05:06", span(days=3, hours=4, minutes=5, seconds=6)),
        ("1 day, 0:00:30", span(days=1, seconds=30)),
    ),
    "pandas' negative durations": column(
        "durations", "duration",
        ("-1 days +23:00:00", span(hours=-1)), ("0 days 01:30:00", span(hours=1.5)),
    ),
    "short words": column(
        "durations", "duration",
        ("1 hr 5 mins", span(minutes=65)), ("30 mins", span(minutes=30)),
    ),
    "minutes and seconds": column(
        "durations", "duration", ("5 min 30 s", span(seconds=330)), ("45 s", span(seconds=45))
    ),
    # gaps
    "gaps of Eurostat": column("gaps", "number", ("5.5", 5.5), (":", None)),
    "a minus alone": column("gaps", "number", ("5.5", 5.5), ("−", None), ("----", None)),
    "gaps in Dutch and Polish": column(
        "gaps", "number", ("5.5", 5.5), ("n.v.t.", None), ("b.d.", None), ("н/д", None)
    ),
    "gaps of browsers": column("gaps", "number", ("5.5", 5.5), ("undefined", None), ("null", None)),
    "gaps in brackets": column("gaps", "number", ("5.5", 5.5), ("[null]", None), ("<null>", None)),
    "not applicable": column(
        "gaps", "number", ("5.5", 5.5), ("not applicable", None), ("not reported", None)
    ),
    "gaps alone": Neighbour(
        "gaps", "v,k\n" + "".join(f"NA,{i}\n" for i in range(30)),
        columns(v=("nothing", *[None] * 30), k=("integer", *range(30))),
    ),
    "stars for kept back": column("gaps", "number", ("5.5", 5.5), ("*", None)),
    # what stays text
    "German postcodes": words("codes", "01067", "10115", "80331"),
    "addresses of machines": words("codes", "192.168.1.1", "10.0.0.7"),
    "books": words("codes", "978-3-16-148410-0", "978-1-86197-876-9"),
    "cards": words("codes", "4111 1111 1111 1111", "5500 0000 0000 0004"),
    "sums of money between": words("codes", "$10-$20", "$20-$50", "$50-$100"),
    "feet and inches": words("codes", "5'11\"", "6'2\""),
    "degrees and minutes": words("codes", "52°31'12\"N", "13°24'36\"E"),
    "spans with a dash": words("codes", "10–20", "20–30", "30–40"),
    "labels with zeros": words("codes", "01", "1.0", "2"),
    "names of months": words("codes", "Jan", "Feb", "Mar"),
    "names of weekdays": words("codes", "Mon", "Tue", "Fri"),
    "days of one month": words("codes", "3-Jan", "4-Jan", "17-Jan"),
    "flats": words("codes", "12-B", "7-B", "112-B"),
    "ranks": words("codes", "#1", "#2", "#12"),
    # encodings
    "UTF-16 without a mark": Neighbour(
        "encodings", "a,b,c\n" + BODY, towns(), encoding="utf-16-le"
    ),
    "UTF-32": Neighbour("encodings", "a,b,c\n" + BODY, towns(), encoding="utf-32"),
    "two marks": Neighbour("encodings", "\ufeff\ufeffa,b,c\n" + BODY, towns()),
    # rows and columns
    "a separator behind the header": Neighbour(
        "ragged", "a,b,\n1,2\n3,4\n", refused="row 2 .* has 2 fields"
    ),
    "separators behind all lines": Neighbour(
        "ragged", "a,b,,\n1,2,,\n3,4,,\n", columns(a=("integer", 1, 3), b=("integer", 2, 4))
    ),
    "empty rows of a spreadsheet": Neighbour(
        "ragged", "a,b\n1,2.5\n3,4.5\n,\n,\n",
        columns(a=("integer", 1, 3, None, None), b=("number", 2.5, 4.5, None, None)),
    ),
    "a last line of spaces": Neighbour("ragged", "a,b,c\n" + BODY + "   \n", towns()),
    "the end of a file of DOS": Neighbour("ragged", "a,b,c\n" + BODY + "\x1a", towns()),
    "a comment at the end": Neighbour(
        "footers", "a,b,c\n" + BODY + "# 30 rows\n", refused="row 32 .*has 1 fields"
    ),
    "a long row in the middle": Neighbour(
        "ragged", "a,b,c\n" + BODY + "5,6,x,7\n" + BODY, refused="row 32 .*has 4 fields"
    ),
    "names twice": Neighbour("names", "a,b,a\n1,2,3\n", refused="several columns named a"),
    "names in either case": Neighbour(
        "names", "A,a\n1,2\n3,4\n", {"A": ("integer", [1, 3]), "a": ("integer", [2, 4])}
    ),
    "two lines of names": Neighbour(
        "names", "Group A,,Group B\na,b,c\n" + BODY, refused="column 2 has no name"
    ),
    "quotes with strokes before them": Neighbour(
        "quotes", 'a,b\n1,"say \\"hi\\", ok"\n2,"x"\n', refused="row 2 .*fields"
    ),
    "strokes for quotes": Neighbour(
        "quotes", "'a','b'\n'1','x, y'\n'2','z'\n",
        columns(a=("integer", 1, 2), b=("text", "x, y", "z")),
    ),
    "strokes around names": Neighbour(
        "quotes", "'a'\t'b'\n1\t2\n3\t4\n", columns(a=("integer", 1, 3), b=("integer", 2, 4))
    ),
    "years without names": Neighbour(
        "no names", "Oslo|2011\nBergen|2012\nMoss|2015\n", refused="no header line"
    ),
    "a year above counts": Neighbour(
        "names", "town,2011\nOslo,5\nBonn,1999\n",
        {"town": ("text", ["Oslo", "Bonn"]), "2011": ("integer", [5, 1999])},
    ),
    "a separator of two bars": Neighbour(
        "separators", "a||b||c\n" + BODY.replace(",", "||"), towns()
    ),
    # no tables
    "a web page": Neighbour(
        "no tables", "<!DOCTYPE html>\n<html><body>Sign in</body></html>\n", refused="a web page"
    ),
    "an array of JSON": Neighbour(
        "no tables", '[{"a": 1, "b": 2},\n {"a": 3, "b": 4}]\n', refused="is JSON"
    ),
    "objects of JSON": Neighbour(
        "no tables", '{"a": 1, "b": 2}\n{"a": 3, "b": 4}\n{"a": 5, "b": 6}\n', refused="is JSON"
    ),
    "a file of Weka": Neighbour(
        "no tables", "@relation x\n@attribute a numeric\n@attribute b numeric\n@data\n1,2\n3,4\n",
        refused="of Weka",
    ),
    "a file of LIBSVM": Neighbour(
        "no tables", "1 1:0.5 2:0.3\n-1 1:0.2 3:0.1\n", refused="of LIBSVM"
    ),
}  # fmt: skip
