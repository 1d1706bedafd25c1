"""Kinds of columns, by their type in Arrow, of any width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa

from ..._messages.checks import join_words
from ..._messages.errors import Text

Kind = Literal[
    "number", "boolean", "category", "ordered", "date", "zoned date", "time", "duration", "nothing"
]

WORDS_OF_KIND: dict[Kind, str] = {
    "number": "numbers",
    "boolean": "booleans",
    "category": "text or categories",
    "ordered": "ordered categories",
    "date": "dates without a time zone",
    "zoned date": "times with a time zone",
    "time": "times of day",
    "duration": "durations",
    "nothing": "nothing",
}

LEAVE_OUT = "leave it out with {columns=[...]}"
"""Advice about a column that cannot be used."""


def kind_of(type_: pa.DataType) -> Kind | None:
    """Return the kind of a type; None if no encoding supports it."""
    if pa.types.is_dictionary(type_):
        # Categories may stand for values of any type; codes themselves are never numbers.
        usable = kind_of(type_.value_type) in ("category", "number", "boolean", "date")
        return ("ordered" if type_.ordered else "category") if usable else None
    if is_text(type_):
        return "category"
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "number"
    return _rarer(type_)


def _rarer(type_: pa.DataType) -> Kind | None:
    if pa.types.is_timestamp(type_):
        return "date" if type_.tz is None else "zoned date"
    tests: dict[Kind, bool] = {
        "boolean": pa.types.is_boolean(type_),
        "date": pa.types.is_date(type_),
        "time": pa.types.is_time(type_),
        "duration": pa.types.is_duration(type_),
        "nothing": pa.types.is_null(type_),
    }
    return next((kind for kind, true in tests.items() if true), None)


def is_text(type_: pa.DataType) -> bool:
    """Return whether values are texts."""
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
    )


def kinds_of(schema: pa.Schema, names: Sequence[str], where: str) -> list[Kind]:
    """Return the kind of each column; raise TypeError if no encoding supports its type.

    Parameters
    ----------
    schema : pyarrow.Schema
    names : sequence of str
    where : str
        Subject of the error.
    """
    kinds = [kind_of(schema.field(name).type) for name in names]
    bad = [name for name, kind in zip(names, kinds, strict=True) if kind is None]
    if bad:
        types = [f"{name} ({schema.field(name).type})" for name in bad]
        raise TypeError(
            Text(
                "{} has columns that cannot be encoded as numbers: {}; expected numbers, booleans, "
                f"text, categories, dates or times; {LEAVE_OUT}{{}}",
                where,
                join_words(types),
                about_lists(schema, bad),
            )
        )
    return [kind for kind in kinds if kind is not None]


def about_lists(schema: pa.Schema, names: Sequence[str]) -> str:
    """Return advice about the first column of lists of numbers; empty without such columns."""
    for name in names:
        type_ = schema.field(name).type
        lists = pa.types.is_list(type_) or pa.types.is_large_list(type_)
        if not lists and not pa.types.is_fixed_size_list(type_):
            continue
        if pa.types.is_integer(type_.value_type) or pa.types.is_floating(type_.value_type):
            return (
                f"; in Python, lists of numbers can be rows: "
                f"gramian.data.ParquetLists(path, {name!r}), or sparse rows with indices=... and "
                "features=..."
            )
    return ""


def fits(trained: Kind, now: Kind | None) -> bool:
    """Return whether a column of kind `now` can replace the training column of kind `trained`."""
    texts = ("category", "ordered")
    # A column of nulls only has only gaps, which later checks refuse where there were none in
    # training.
    return now in (trained, "nothing") or (trained in texts and now in texts)
