"""Text for display: without secrets of addresses, with escaped control characters."""

from __future__ import annotations

import json
import re
from datetime import datetime, time

URI_IN_TEXT = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]+):(/{1,3})([^/\s'\"<>][^\s'\"<>]*)")
"""An address in a text, also as `pathlib.Path` leaves it: with one slash."""

URI_LOGIN = re.compile(r"[^/@]*:.*@|[^/]*@")
"""User and password. A password may have unescaped slashes, which are also secret."""

URI_QUERY = re.compile(r"[?#].*?([,;:.)]*)$")
"""Options of an address, such as a signature, without punctuation of the sentence."""

CONTROL_CHARACTERS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
    r"\U000e0000-\U000e007f]"
)
"""Control characters, line separators, invisible direction marks and surrogates."""


def display_text(text: object) -> str:
    """Make a text safe for terminals and logs, by `without_secrets` and `escape_controls`."""
    # Secrets go first: a line break ends an address, but its escape would be a part of it.
    return escape_controls(without_secrets(text))


def display_lines(text: str) -> str:
    """Apply `display_text` to each line of a text, such as a traceback."""
    return "\n".join(map(display_text, text.splitlines()))


def value_text(value: object) -> str:
    """Return the text of a value of a table: gaps by name, and dates without midnight."""
    if value is None or value != value:
        return "missing"
    if isinstance(value, datetime) and value.time() == time():
        return str(value.date())
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def without_secrets(text: object) -> str:
    """Remove user, password and options from the addresses in a text.

    >>> without_secrets("s3://KEY:SECRET@bucket/x.parquet?region=eu: no such file")
    's3://bucket/x.parquet: no such file'
    """
    return URI_IN_TEXT.sub(_public, str(text))


def _public(match: re.Match[str]) -> str:
    """Return an address without its secrets, and with the slash that a `Path` drops."""
    scheme, slashes, address = match.groups()
    # The match is greedy up to the last "@": no part of a password that has one remains.
    login = URI_LOGIN.match(address)
    address = URI_QUERY.sub(r"\1", address[login.end() :] if login else address)
    # Both file:/path and file:///path are valid. In other schemes, `Path` has dropped a slash.
    return f"{scheme}:{slashes if scheme == 'file' else '//'}{address}"


def escape_controls(text: str) -> str:
    r"""Escape control characters as in Python, such as ``\x1b``.

    The name of a column or a file, or a label, could otherwise rewrite or reverse terminal text.
    """
    return CONTROL_CHARACTERS.sub(lambda match: ascii(match[0])[1:-1], text)


def escape_json_controls(text: str) -> str:
    """Escape the control characters in the strings of JSON."""
    return CONTROL_CHARACTERS.sub(lambda match: json.dumps(match[0])[1:-1], text)
