"""Kinds of columns by their types in Arrow, of any width; each column file registers its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from ..._messages.checks import join_words
from ..._messages.errors import Text
from ..rows.arrow import is_list

Kind: TypeAlias = str
Cls = TypeVar("Cls", bound=type[Any])


@dataclass(frozen=True)
class ColumnKind:
    """A kind of columns.

    - `words`: name of its values, in the plural, for messages.
    - `takes`: whether a type of Arrow is of this kind.
    - `observer`: class that learns the encoding.
    """

    words: str
    takes: Callable[[pa.DataType], bool]
    observer: Any


COLUMN_KINDS: dict[Kind, ColumnKind] = {}
"""Kinds of columns by name. Each type is of one kind at most."""


def column_kind(
    name: Kind, words: str, takes: Callable[[pa.DataType], bool]
) -> Callable[[Cls], Cls]:
    """Return a class decorator that registers an observer for a kind; see `ColumnKind`."""

    def add(cls: Cls) -> Cls:
        COLUMN_KINDS[name] = ColumnKind(words, takes, cls)
        return cls

    return add


LEAVE_OUT = "leave it out with {columns=[...]}"
"""Advice about a column that cannot be used."""


def kind_of(type_: pa.DataType) -> Kind | None:
    """Return the kind of a type; None if no encoding supports it."""
    return next((name for name, kind in COLUMN_KINDS.items() if kind.takes(type_)), None)


def are_categories(type_: pa.DataType) -> bool:
    """Return whether a type is a dictionary of values that can be categories."""
    # Categories may stand for values of any type; codes themselves are never numbers.
    return bool(
        pa.types.is_dictionary(type_)
        and kind_of(type_.value_type) in ("category", "number", "boolean", "date")
    )


def is_text(type_: pa.DataType) -> bool:
    """Return whether values are texts."""
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
    )


def kinds_of(schema: pa.Schema, names: Sequence[str], where: str) -> list[Kind]:
    """Return the kind of each column; raise TypeError if no encoding supports its type.

    - `where`: subject of the error.
    """
    kinds = [kind_of(schema.field(name).type) for name in names]
    bad = [name for name, kind in zip(names, kinds, strict=True) if kind is None]
    if bad:
        types = [f"{name} ({schema.field(name).type})" for name in bad]
        raise TypeError(
            Text(
                "{} has columns that cannot be encoded as numbers: {}; expected {}; "
                f"{LEAVE_OUT}{{}}",
                where,
                join_words(types),
                ", ".join(kind.words for name, kind in COLUMN_KINDS.items() if name != "nothing"),
                about_lists(schema, bad),
            )
        )
    return [kind for kind in kinds if kind is not None]


def about_lists(schema: pa.Schema, names: Sequence[str]) -> str:
    """Return advice about the first column of lists of numbers; empty without such columns."""
    for name in names:
        type_ = schema.field(name).type
        if is_list(type_) and (
            pa.types.is_integer(type_.value_type) or pa.types.is_floating(type_.value_type)
        ):
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
