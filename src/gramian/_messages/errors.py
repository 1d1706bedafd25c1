"""Messages that name parameters, in the notation of Python or of the command line."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from string import Formatter
from typing import Any, TypeAlias

LONGEST_VALUE = 200
"""Most characters of a value in a message; a longer value is abbreviated."""

MUST_BE_FORM = "{{{0}}} must be {{}}, not {{!r}}"
SETTING_FORM = "{{{0}=}} {{}}"
UNKNOWN_FORM = "unknown {{{0}}} {{!r}}; known: {{}}"
"""Forms of an error: ``tol must be x, not -1``; ``tol=-1 is x``; ``unknown tol -1; known: x``."""

Face: TypeAlias = "Callable[[str, Any], str]"
"""Writes a mark of a template, such as ``tol`` or ``solver='pcg'``; ``tol=`` with a value."""


class Text:
    """Text that names parameters, in the notation of Python or of the command line.

    - `template`: a template of `str.format` in which ``{}`` takes the next value, ``{tol}`` marks a
      parameter, ``{solver='pcg'}`` a parameter and its setting, and ``{tol=}`` a parameter whose
      setting is the next value. User input, such as names of files, must be a value, because it may
      contain braces.
    - `values`: a `Text`, or an error with a `Text`, is written for the same face.

    Examples
    --------
    >>> str(Text("stopped after {max_iter=} of {:,} iterations", 3, 1000))
    'stopped after max_iter=3 of 1,000 iterations'
    """

    def __init__(self, template: str, *values: Any) -> None:
        self.template, self.values = template, values

    def __str__(self) -> str:
        return self.write(write_argument)

    def __repr__(self) -> str:
        return repr(str(self))

    def write(self, face: Face) -> str:
        """Return the text in the notation of Python or of the command line."""
        values = iter(self.values)
        parts = []
        for literal, mark, spec, conversion in Formatter().parse(self.template):
            parts.append(literal)
            # The text after the last mark has none.
            if mark is None:
                continue
            # The parser takes a colon for the start of a format, but in
            # 'torch:cuda' it is a part of the setting.
            if mark and not mark.endswith("="):
                parts.append(face(f"{mark}:{spec}" if spec else mark, None))
                continue
            # Every other mark takes the next value, in the order of the template.
            value = next(values)
            if mark and spec:
                parts.append(face(f"{mark}{value:{spec}}", None))
            elif mark:
                parts.append(face(mark, value))
            # The only conversion is !r, shortened: an array would fill the message.
            elif conversion:
                parts.append(short_repr(value))
            else:
                parts.append(format(value, spec) if spec else write_message(value, face))
        return "".join(parts)


class TextError(ValueError):
    """Error whose text names parameters; arguments as for `Text`."""

    def __init__(self, template: str, *values: Any) -> None:
        super().__init__(Text(template, *values))

    def __reduce__(self) -> tuple[Any, ...]:
        # Processes send errors by pickle, which would pass the Text as the template otherwise.
        return type(self), (self.args[0].template, *self.args[0].values)


class TextWarning(UserWarning):
    """Warning whose text names parameters; arguments as for `Text`."""

    def __init__(self, template: str, *values: Any) -> None:
        super().__init__(Text(template, *values))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0].template, *self.args[0].values)


class ParameterError(TextError):
    """Error about a parameter whose value cannot be used.

    - `parameter`: name of the parameter in Python.
    - `expected`: allowed values, or the reason why this value is not allowed.
    - `remedy`: remedy; empty if `expected` is enough.

    Examples
    --------
    >>> str(ParameterError("tol", -1, "at least 0", Text("or leave {tol} out")))
    'tol must be at least 0, not -1; or leave tol out'
    """

    def __init__(
        self,
        parameter: str,
        value: Any,
        expected: str | Text,
        remedy: str | Text = "",
        form: str = MUST_BE_FORM,
    ) -> None:
        self.parameter, self.value = parameter, value
        self.expected, self.remedy, self.form = expected, remedy, form
        # "tol must be x, not -1" has the allowed values first, the
        # other forms have the value first.
        values = (expected, value) if form == MUST_BE_FORM else (value, expected)
        # The remedy is a value and not a part of the template, because it may contain braces.
        end = ("; {}", remedy) if remedy else ("",)
        super().__init__(form.format(parameter) + end[0], *values, *end[1:])

    def __reduce__(self) -> tuple[Any, ...]:
        # As in `TextError`, but the arguments of this constructor are others.
        parts = self.parameter, self.value, self.expected, self.remedy, self.form
        return type(self), parts


def write_message(message: object, face: Face) -> str:
    """Return an error, a warning or a text in the notation of Python or of the command line."""
    if isinstance(message, BaseException) and message.args:
        text = message.args[0]
        return text.write(face) if isinstance(text, Text) else str(message)
    return message.write(face) if isinstance(message, Text) else str(message)


def write_argument(mark: str, value: Any) -> str:
    """Write a mark as an argument in Python."""
    return f"{mark}{short_repr(value)}" if mark.endswith("=") else mark


def short_repr(value: object) -> str:
    """Return the representation of a value, abbreviated if it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else reprlib.repr(value)
