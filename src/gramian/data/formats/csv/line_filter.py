"""`LineFilter`: a text without comments, and with tabs for spaces between its fields."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

_LINE_PATTERN = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_FIELD_PATTERN = re.compile(r'("(?:[^"]|"")*")|[ \t]+')
_EDGE_PATTERN = re.compile(r"(?m)^[ \t]+|[ \t]+$")


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, with their ends."""
    return _LINE_PATTERN.findall(text)


def unify_spaces(text: str) -> str:
    """Return a text with one tab for each run of spaces and tabs outside quotes, none at edges."""
    text = _EDGE_PATTERN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    if '"' not in text:
        return re.sub(r"[ \t]+", "\t", text)
    return _FIELD_PATTERN.sub(lambda match: match[1] or "\t", text)


def drop_comments(text: str, sign: str) -> str:
    """Return a text without the lines that begin with a sign, or are blank."""
    lines = (line for line in split_lines(text) if line.strip())
    return "".join(line for line in lines if not line.lstrip().startswith(sign))


class LineFilter:
    """A stream of bytes whose lines are rewritten, in UTF-8.

    - `read`: returns bytes of a text, by their number; none at its end.
    - `skipped_lines`: lines to drop at the beginning.
    - `comment`: beginning of lines to drop.
    - `spaces`: whether to write a tab for spaces between fields.
    """

    def __init__(
        self,
        read: Callable[[int], bytes],
        encoding: str,
        skipped_lines: int,
        comment: str | None,
        spaces: bool,
    ) -> None:
        self._read, self._decoder = read, codecs.getincrementaldecoder(encoding)()
        self._skipped_lines, self._comment, self._spaces = skipped_lines, comment, spaces
        self._rest, self._is_first = "", True

    def read(self, size: int = -1) -> bytes:
        """Return the next lines; none at the end."""
        while True:
            data = self._read(size)
            text = self._rest + self._decoder.decode(data, final=not data)
            if self._is_first and text:
                text, self._is_first = text.removeprefix("\ufeff"), False
            end = max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1 if data else len(text)
            lines, self._rest = self._skip(text[:end]), text[end:]
            if self._comment is not None:
                lines = drop_comments(lines, self._comment)
            rewritten = unify_spaces(lines) if self._spaces else lines
            if rewritten or not data:
                return rewritten.encode()

    def _skip(self, text: str) -> str:
        if not self._skipped_lines:
            return text
        lines = split_lines(text)
        dropped = min(self._skipped_lines, len(lines))
        self._skipped_lines -= dropped
        return "".join(lines[dropped:])
