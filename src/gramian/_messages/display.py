"""Text for people: addresses without their secrets, control characters escaped."""

from __future__ import annotations

import json
import re

URI_IN_TEXT = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]+):(/{1,3})([^/\s'\"<>][^\s'\"<>]*)")
"""An address in a text, also as `pathlib.Path` leaves it: with one slash."""

URI_LOGIN = re.compile(r"[^/@]*:.*@|[^/]*@")
"""User and password. A password may have slashes: without an escape, but they are secret, too."""

URI_QUERY = re.compile(r"[?#].*?([,;:.)]*)$")
"""Options of an address, such as a signature, without the punctuation of the sentence around."""

CONTROL_CHARACTERS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
    r"\U000e0000-\U000e007f]"
)
"""Control characters, line separators, invisible marks of direction, halves of pairs."""


def display_text(text: object) -> str:
    """Return a text that is safe on a terminal and in a log: see the two functions below."""
    return escape_controls(without_secrets(text))


def display_lines(text: str) -> str:
    """Return the same of a text whose lines stay lines, as a traceback."""
    return "\n".join(map(display_text, text.splitlines()))


def without_secrets(text: object) -> str:
    """Return a text whose addresses have neither user and password nor options.

    >>> without_secrets("s3://KEY:SECRET@bucket/x.parquet?region=eu: no such file")
    's3://bucket/x.parquet: no such file'
    """
    return URI_IN_TEXT.sub(_public, str(text))


def _public(match: re.Match[str]) -> str:
    """Return an address without its secrets, and with the slash that a `Path` drops."""
    scheme, slashes, address = match.groups()
    login = URI_LOGIN.match(address)
    address = URI_QUERY.sub(r"\1", address[login.end() :] if login else address)
    return f"{scheme}:{slashes if scheme == 'file' else '//'}{address}"


def escape_controls(text: str) -> str:
    r"""Return a text whose control characters are written as in Python, such as ``\x1b``.

    A column, file or label with one could else rewrite the terminal, or reverse the text after it.
    """
    return CONTROL_CHARACTERS.sub(lambda match: ascii(match[0])[1:-1], text)


def escape_json_controls(text: str) -> str:
    """Return JSON whose control characters, which are in its strings, are written as JSON does."""
    return CONTROL_CHARACTERS.sub(lambda match: json.dumps(match[0])[1:-1], text)
