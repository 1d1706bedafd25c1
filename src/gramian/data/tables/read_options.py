"""Options for reading a table of text."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

from ..._messages.checks import did_you_mean
from ..._messages.errors import ParameterError
from .column_reading import ColumnReading

COLUMN_TYPES = ("number", "category", "date", "boolean", "ignore")
"""Types of `ReadOptions.types`."""

DAY_ORDERS = ("dmy", "mdy", "ymd")
"""Orders of day, month and year, as values of `ReadOptions.date_format`."""

WHITESPACE_SEPARATOR = " "
"""Separator of files whose fields are divided by any number of spaces and tabs."""

SEPARATOR_NAMES = {
    "whitespace": WHITESPACE_SEPARATOR, "space": WHITESPACE_SEPARATOR, r"\s+": WHITESPACE_SEPARATOR,
    "tab": "\t", r"\t": "\t", "comma": ",", "semicolon": ";",
}  # fmt: skip


@dataclass(frozen=True)
class ReadOptions:
    r"""Options for reading a table of text; options that are not given are detected.

    `types` and `missing` also apply to frames and other files; their other values are read as they
    are.

    Attributes
    ----------
    separator : str, optional
        One character between fields, or ``"whitespace"`` for any number of spaces and tabs.
    decimal : {".", ","}, optional
        Mark for decimals. The other one then separates thousands.
    encoding : str, optional
        Name of a codec of Python, such as ``"cp1251"``.
    header : bool or sequence of str, optional
        False if no line has the names of the columns: they are then ``"0"``, ``"1"`` and so on, or
        the names given. True if the first row has the names, although they are numbers.
    skip : int, default=0
        Lines above the header line, or above the first row, to be skipped.
    comment : str, optional
        Beginning of lines to be skipped anywhere in the file.
    missing : sequence of str
        Texts for missing values in any column, besides the usual ones.
    date_format : str, optional
        Format of dates, such as ``"%d/%m/%Y"``, in the codes of `datetime.datetime.strptime`; or
        their order, ``"dmy"``, ``"mdy"`` or ``"ymd"``.
    types : mapping of str to {"number", "category", "date", "boolean", "ignore"}
        Types of columns, by name.
    strict : bool, default=False
        Whether to refuse values that a column's type cannot hold, instead of reading them as
        missing.
    columns : mapping of str to ColumnReading
        How columns are read, by name; others are inferred. Names that the table does not have are
        ignored.
    labels : collection of str, optional
        Targets of a training table, whose booleans stay as they are written. None: the table is
        not for training.
    is_stored : bool, default=False
        Whether a model stores the options: a new file is then read with their separator and
        encoding first, and with others if these fail.

    Raises
    ------
    ParameterError
        If a value is not allowed.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | tuple[str, ...] | None = None
    skip: int = 0
    comment: str | None = None
    missing: tuple[str, ...] = ()
    date_format: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False
    columns: Mapping[str, ColumnReading] = field(default_factory=dict)
    labels: Collection[str] | None = None
    is_stored: bool = False

    def __post_init__(self) -> None:
        for name, check in _OPTION_CHECKS.items():
            object.__setattr__(self, name, check(getattr(self, name)))

    @property
    def for_model(self) -> ReadOptions:
        """The options that a model stores."""
        return replace(self, strict=False, columns={}, labels=None, is_stored=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the given options as a dictionary for JSON."""
        values = {name: getattr(self, name) for name in STORED_OPTIONS}
        return {name: value for name, value in values.items() if value not in (None, (), 0, {})
                or value is False}  # fmt: skip

    @classmethod
    def from_dict(cls, options: Any) -> ReadOptions:
        """Rebuild the options of a model; ValueError if they are damaged."""
        if not isinstance(options, Mapping) or not set(options) <= set(STORED_OPTIONS):
            raise ValueError("the options for reading must be an object of known options")
        return cls(**options, is_stored=True)

    @classmethod
    def of(cls, read: ReadLike) -> ReadOptions:
        """Convert a mapping, or None, to options.

        Raises
        ------
        ParameterError, TypeError
            If there is no such option, or its value is not allowed.
        """
        if read is None:
            return DEFAULT_OPTIONS
        if isinstance(read, ReadOptions):
            return read
        if not isinstance(read, Mapping):
            raise TypeError(
                "read must be a dict of options, as {'separator': ';'}, or ReadOptions, not "
                f"{type(read).__name__}"
            )
        unknown = [name for name in read if name not in GIVEN_OPTIONS]
        if unknown:
            name = str(unknown[0])
            raise ValueError(
                f"read has no option {name!r}; known: {', '.join(GIVEN_OPTIONS)}"
                f"{did_you_mean(name, GIVEN_OPTIONS)}"
            )
        return cls(**read)


ReadLike: TypeAlias = ReadOptions | Mapping[str, Any] | None
"""Options as users give them."""

STORED_OPTIONS = tuple(option.name for option in fields(ReadOptions))[:9]
"""Options that a model stores."""

GIVEN_OPTIONS = (*STORED_OPTIONS, "strict")
"""Options that users give."""

DEFAULT_DECIMALS = (".", ",")


def _separator(value: Any) -> str | None:
    if value is None:
        return None
    separator = SEPARATOR_NAMES.get(value, value) if isinstance(value, str) else ""
    if len(separator) != 1 or separator in '"\r\n' or not separator.isascii():
        raise ParameterError(
            "separator", value, 'one character other than " and line ends, or "whitespace"'
        )
    return separator


def _decimal(value: Any) -> str | None:
    if value not in (None, *DEFAULT_DECIMALS):
        raise ParameterError("decimal", value, '"." or ","')
    return value if value is None else str(value)


def _encoding(value: Any) -> str | None:
    if value is None:
        return None
    try:
        return codecs.lookup(value).name
    except (LookupError, TypeError):
        raise ParameterError(
            "encoding", value, "a codec of Python, such as utf-8, cp1252, cp1251 or shift_jis"
        ) from None


def _header(value: Any) -> bool | tuple[str, ...] | None:
    if value is None or isinstance(value, bool):
        return value
    names = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
    are_names = all(isinstance(name, str) and name for name in names)
    if not names or not are_names or len(set(names)) < len(names):
        raise ParameterError("header", value, "False, True, or a list of different names")
    return names


def _skip(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ParameterError("skip", value, "a number of lines, 0 or more")
    return value


def _comment(value: Any) -> str | None:
    if value is not None and (not isinstance(value, str) or not value.strip() or "\n" in value):
        raise ParameterError("comment", value, 'the beginning of lines, such as "#"')
    return value if value is None else value.strip()


def _missing(value: Any) -> tuple[str, ...]:
    values = [value] if isinstance(value, str | int | float) else value
    if not isinstance(values, Sequence) or any(isinstance(text, bool) for text in values):
        raise ParameterError("missing", value, 'texts, such as ["unknown", "-999"]')
    return tuple(str(text).strip() for text in values)


def _date_format(value: Any) -> str | None:
    if value is None:
        return None
    if value in DAY_ORDERS or (isinstance(value, str) and "%" in value):
        return str(value)
    raise ParameterError(
        "date_format", value, 'a format such as "%d/%m/%Y", or the order "dmy", "mdy" or "ymd"'
    )


def _types(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ParameterError("types", value, 'types by column, as {"zip": "category"}')
    types = {str(name): "category" if kind == "text" else kind for name, kind in value.items()}
    for name, kind in types.items():
        if kind not in COLUMN_TYPES:
            expected = f"one of {', '.join(COLUMN_TYPES)} for column {name!r}"
            raise ParameterError("types", kind, expected)
    return types


_OPTION_CHECKS: dict[str, Callable[[Any], Any]] = {
    "separator": _separator, "decimal": _decimal, "encoding": _encoding, "header": _header,
    "skip": _skip, "comment": _comment, "missing": _missing, "date_format": _date_format,
    "types": _types,
}  # fmt: skip

DEFAULT_OPTIONS = ReadOptions()
