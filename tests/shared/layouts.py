"""Text tables in layouts that people have, with what they hold: written before the reader.

Each row is `Layout(text, columns, options)`: the columns and their values if the text is read with
these options, or a text that the refusal has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any


@dataclass(frozen=True)
class Layout:
    """A text and its meaning.

    Attributes
    ----------
    text : str
    columns : mapping of str to list
        Values of the columns.
    read : mapping
        Options for reading.
    warned : str
        What a warning says.
    refused : str
        What the refusal says, if the text is refused.
    encoding : str
    """

    text: str
    columns: Mapping[str, list[Any]] = field(default_factory=dict)
    read: Mapping[str, Any] = field(default_factory=dict)
    warned: str = ""
    refused: str = ""
    encoding: str = "utf-8"


ROWS = [(i, i * 1.5, "north" if i % 3 else "south") for i in range(1, 31)]
BODY = "".join(f"{a},{b},{c}\n" for a, b, c in ROWS)
SPACED = "".join(f"  {a:3d}   {b:5.1f}  {c}\n" for a, b, c in ROWS)
MEANT = {name: [row[j] for row in ROWS] for j, name in enumerate("abc")}
DAYS = "".join(f"{i},{i:02d}/03/2021\n" for i in range(1, 13))
AMOUNTS = "".join(f"{i},234;{i}\n" for i in range(1, 13))

LAYOUTS = {
    # --- above the header line -----------------------------------------------------------------
    "comments": Layout("# station 7\n# 2020\na,b,c\n" + BODY, MEANT),
    "comments of percent": Layout("% station 7\n\na,b,c\n" + BODY, MEANT),
    "comments of slashes": Layout("// station 7\na,b,c\n" + BODY, MEANT),
    "names in a comment": Layout("# station 7\n# a,b,c\n" + BODY, MEANT),
    "names and units in comments": Layout("#a b c\n#m s -\n" + SPACED, MEANT),
    "one name with a sign": Layout(
        "#a,b,c\n" + BODY, {"#a": MEANT["a"], "b": MEANT["b"], "c": MEANT["c"]}
    ),
    "a title": Layout("Sales of 2020\na,b,c\n" + BODY, MEANT, warned="'Sales of 2020'"),
    "a title and a blank line": Layout("Sales\n\na,b,c\n" + BODY, MEANT, warned="'Sales'"),
    "a title of a spreadsheet": Layout("Sales,,\n,,\na,b,c\n" + BODY, MEANT, warned="'Sales'"),
    "titles with numbers": Layout(
        "Station: 7\nHeight: 120\n\na,b,c\n" + BODY, MEANT, warned="'Station: 7'"
    ),
    "skipped lines": Layout("x,y\nz\na,b,c\n" + BODY, MEANT, {"skip": 2}),
    "blank lines": Layout("\n\na,b,c\n" + BODY, MEANT),
    # --- within --------------------------------------------------------------------------------
    "comments anywhere": Layout(
        "a,b,c\n" + BODY.replace("\n5,", "\n! broken\n5,", 1) + "! end\n", MEANT, {"comment": "!"}
    ),
    "units": Layout("a,b,c\nm,s,-\n" + BODY, MEANT, warned="'m s -'"),
    "units in brackets": Layout("a;b;c\n[m];[s];\n" + BODY.replace(",", ";"), MEANT, warned="[m]"),
    "no units": Layout(
        "a,c\n1,x\n2,y\n3,z\n4,x\n", {"a": [1, 2, 3, 4], "c": ["x", "y", "z", "x"]}
    ),
    # --- spaces --------------------------------------------------------------------------------
    "spaces": Layout("  a b c\n" + SPACED, MEANT),
    "spaces and tabs": Layout("a\tb c\n" + SPACED.replace("   ", " \t "), MEANT),
    "R": Layout(
        '"a" "b" "c"\n' + "".join(f'"{a}" {a} {b} "{c}"\n' for a, b, c in ROWS), MEANT
    ),
    "R with commas": Layout(
        '"a","b","c"\n' + "".join(f'"{a}",{a},{b},"{c}"\n' for a, b, c in ROWS), MEANT
    ),
    "a field too many in one row": Layout("a,b\n1,2,3\n", refused="row 2 .* has 3 fields"),
    "decimal commas without quotes": Layout(
        "a,b\n" + "".join(f"{i},5,{i}\n" for i in range(3, 9)), refused="row 2 .* has 3 fields"
    ),
    "R with quoted spaces": Layout(
        "a b\n" + "".join(f'"row {i}" {i} "x y"\n' for i in range(1, 9)),
        {"a": list(range(1, 9)), "b": ["x y"] * 8},
    ),
    "spaces, told": Layout(
        SPACED, {"0": MEANT["a"], "1": MEANT["b"], "2": MEANT["c"]},
        {"separator": "whitespace", "header": False},
    ),
    "spaces with empty fields": Layout(
        "a b c\n" + "".join(f"{i}   {i if i % 2 else ' '}  {i}\n" for i in range(1, 20)),
        refused="aligned by spaces, but its header line has 3 of them, and rows have 2 to 3",
    ),
    "a name of two words": Layout(
        "mean depth\tb\n" + "".join(f"{i}\t{i}\n" for i in range(1, 9)),
        {"mean depth": list(range(1, 9)), "b": list(range(1, 9))},
    ),
    # --- no header line ------------------------------------------------------------------------
    "numbers without names": Layout("1,2\n3,4\n5,6\n", refused="has no header line.*header=False"),
    "values without names": Layout(BODY, refused="has no header line: its first row has values"),
    "positions": Layout(
        BODY, {"0": MEANT["a"], "1": MEANT["b"], "2": MEANT["c"]}, {"header": False}
    ),
    "given names": Layout(BODY, MEANT, {"header": ["a", "b", "c"]}),
    "too few names": Layout(BODY, read={"header": ["a"]}, refused="has 1 names, but .* 3 fields"),
    "years as names": Layout(
        "town,1990,1991\nx,5,6\ny,7,8\n",
        {"town": ["x", "y"], "1990": [5, 7], "1991": [6, 8]},
    ),
    # --- marks ---------------------------------------------------------------------------------
    "a given separator": Layout(
        BODY.replace(",", "^").replace("1^1.5", "a^b^c\n1^1.5", 1), MEANT, {"separator": "^"}
    ),
    "a decimal comma, told": Layout(
        "v;k\n" + AMOUNTS,
        {"v": [i + 0.234 for i in range(1, 13)], "k": list(range(1, 13))},
        {"decimal": ","},
    ),
    "a decimal point, told": Layout(
        "v;k\n" + AMOUNTS,
        {"v": [1000.0 * i + 234 for i in range(1, 13)], "k": list(range(1, 13))},
        {"decimal": "."},
    ),
    "another decimal mark than told": Layout(
        "a,b,c\n" + BODY, read={"decimal": ","}, refused="column 'b' have another mark"
    ),
    # --- values --------------------------------------------------------------------------------
    "the day first": Layout(
        "k,d\n" + DAYS,
        {"k": list(range(1, 13)), "d": [date(2021, 3, i) for i in range(1, 13)]},
        {"date_format": "dmy"},
    ),
    "the month first": Layout(
        "k,d\n" + DAYS,
        {"k": list(range(1, 13)), "d": [date(2021, i, 3) for i in range(1, 13)]},
        {"date_format": "%m/%d/%Y"},
    ),
    "days of eight digits": Layout(
        "k,d\n" + "".join(f"{i},202103{i:02d}\n" for i in range(1, 13)),
        {"k": list(range(1, 13)), "d": [date(2021, 3, i) for i in range(1, 13)]},
        {"date_format": "%Y%m%d"},
    ),
    "given gaps": Layout(
        "v,w\n" + "".join(f"{-999 if i % 4 == 0 else i},{'x' if i % 2 else 'no'}\n"
                          for i in range(1, 9)),
        {"v": [1, 2, 3, None, 5, 6, 7, None], "w": ["x", None] * 4},
        {"missing": [-999, "no"]},
    ),
    "codes as numbers": Layout(
        "z\n007\n012\n100\n", {"z": [7.0, 12.0, 100.0]}, {"types": {"z": "number"}}
    ),
    "numbers as categories": Layout(
        "z,v\n7,1\n12,2\n", {"z": ["7", "12"], "v": [1, 2]}, {"types": {"z": "category"}}
    ),
    "columns to ignore": Layout("z,v\n7,1\n12,2\n", {"v": [1, 2]}, {"types": {"z": "ignore"}}),
    "texts as numbers": Layout(
        "z,v\nx,1\ny,2\n", read={"types": {"z": "number"}}, refused="row 2 .* holds 'x'"
    ),
    "half of a column is no number": Layout(
        "z\n1\nx\n3\ny\n", {"z": [1, None, 3, None]}, {"types": {"z": "number"}}
    ),
    "a type of no column": Layout(
        "z,v\n1,1\n", read={"types": {"zz": "number"}}, refused="has no column zz"
    ),
    # --- encodings -----------------------------------------------------------------------------
    "Russian": Layout(
        "город,x\nМосква,1\nКазань,2\nПермь,3\n",
        {"город": ["Москва", "Казань", "Пермь"], "x": [1, 2, 3]},
        warned="cp1251", encoding="cp1251",
    ),
    "Russian of Unix": Layout(
        "город,x\nМосква,1\nКазань,2\nСанкт-Петербург,3\n",
        {"город": ["Москва", "Казань", "Санкт-Петербург"], "x": [1, 2, 3]},
        warned="koi8_r", encoding="koi8_r",
    ),
    "Greek": Layout(
        "πόλη,x\nΑθήνα,1\nΘεσσαλονίκη,2\n", {"πόλη": ["Αθήνα", "Θεσσαλονίκη"], "x": [1, 2]},
        warned="cp1253", encoding="cp1253",
    ),
    "Japanese": Layout(
        "都市,x\n東京,1\n大阪,2\n京都,3\n", {"都市": ["東京", "大阪", "京都"], "x": [1, 2, 3]},
        warned="shift_jis", encoding="shift_jis",
    ),
    "Chinese": Layout(
        "城市,x\n北京,1\n上海,2\n广州,3\n", {"城市": ["北京", "上海", "广州"], "x": [1, 2, 3]},
        warned="gb18030", encoding="gb18030",
    ),
    "Polish": Layout(
        "miasto,x\nŁódź,1\nWrocław,2\nPoznań,3\nGdańsk,4\n",
        {"miasto": ["Łódź", "Wrocław", "Poznań", "Gdańsk"], "x": [1, 2, 3, 4]},
        warned="cp1250", encoding="cp1250",
    ),
    "French": Layout(
        "ville,x\nOrléans,1\nNîmes,2\n", {"ville": ["Orléans", "Nîmes"], "x": [1, 2]},
        warned="cp1252", encoding="cp1252",
    ),
    "degrees": Layout(
        "temp °C,x\n5,1\n6,2\n", {"temp °C": [5, 6], "x": [1, 2]},
        warned="cp1252", encoding="cp1252",
    ),
    "Hebrew, told": Layout(
        "עיר,x\nחיפה,1\n", {"עיר": ["חיפה"], "x": [1]}, {"encoding": "cp1255"}, encoding="cp1255"
    ),
    "spaces of UTF-16": Layout("a b c\n" + SPACED, MEANT, encoding="utf-16"),
}  # fmt: skip
