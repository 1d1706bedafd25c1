"""Description of how a column of text is read, and of the texts that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

SHOWN_VALUES = 3
"""Odd values of a column that are reported, and named in errors."""

STORED_SPELLINGS = 100
"""Most spellings of gaps of a column that are stored."""

CANONICAL_READINGS = frozenset(
    ("integer", "1.5", "true/false", "date", "time", "time with zone", "text", "nothing")
)
"""Readings of what libraries write by default: new files are read alike without being told."""


@dataclass
class OddValues:
    """Texts of a column that cannot be parsed as its type, and are read as missing values.

    - `count`: number of such texts.
    - `first`: the first such texts with their row numbers; the header is row 1.
    - `spellings`: distinct texts, in order of appearance; at most `STORED_SPELLINGS`.
    - `written_gap`: the first text of the column that usually stands for a gap, such as ``n.d.``,
      and its row; it is not counted.
    """

    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)
    spellings: dict[str, None] = field(default_factory=dict)
    written_gap: tuple[int, str] | None = None

    def add(self, rows: Iterable[int], texts: Iterable[str]) -> None:
        """Count further odd values, and keep the first of them."""
        for row, text in zip(rows, texts, strict=True):
            self.count += 1
            if len(self.first) < SHOWN_VALUES:
                self.first.append((row, text))
            if len(self.spellings) < STORED_SPELLINGS:
                self.spellings[text] = None

    def describe(self) -> str:
        """Return the first values and their rows, in words."""
        shown = ", ".join(f"{text!r:.60} in row {row:,}" for row, text in self.first)
        return shown + (f" and {self.count - len(self.first):,} more" * (self.count > SHOWN_VALUES))


@dataclass(frozen=True)
class ColumnReading:
    """How the texts of a column become values.

    - `name`: name of a `Reading`, without its mark.
    - `mark`: texts before and after numbers, such as a currency or a unit; both may be empty, of
      numbers with signs or groups of their own.
    - `gaps`: texts of the training file that are gaps besides the usual ones.
    - `odd`: values of this file that became gaps; not stored.
    """

    name: str
    mark: tuple[str, str] | None = None
    gaps: tuple[str, ...] = ()
    odd: OddValues = field(default_factory=OddValues, compare=False)

    @property
    def is_canonical(self) -> bool:
        """Whether a new file is read in the same way without this description."""
        return self.name in CANONICAL_READINGS and self.mark is None and not self.gaps

    @property
    def written_form(self) -> str:
        """Form of the values, such as ``$1,000.5``."""
        before, after = self.mark or ("", "")
        apart = " " if after[:1].isalpha() else ""
        name = "1" if self.name == "integer" else self.name
        return f"{before}{name}{apart}{after}"

    def describe(self) -> str:
        """Return how values are written, in words; empty if there is nothing to say."""
        spellings = ", ".join(repr(text) for text in self.gaps[:SHOWN_VALUES])
        more = ", ..." if len(self.gaps) > SHOWN_VALUES else ""
        parts = (
            []
            if self.name in CANONICAL_READINGS and not self.mark
            else [f"read as {self.written_form}"]
        )
        parts += [f"{spellings}{more}: missing"] if self.gaps else []
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return fields for JSON."""
        mark = None if self.mark is None else list(self.mark)
        return {"name": self.name, "mark": mark, "gaps": list(self.gaps)}

    @classmethod
    def from_dict(cls, fields: Any) -> ColumnReading:
        """Rebuild from the fields of `to_dict`; ValueError if they are damaged."""
        if not isinstance(fields, Mapping) or set(fields) != {"name", "mark", "gaps"}:
            raise ValueError("the reading of a column must be an object of name, mark and gaps")
        mark, gaps = fields["mark"], fields["gaps"]
        are_lists = isinstance(gaps, list) and isinstance(mark, list | None)
        texts = [fields["name"], *(mark or ()), *gaps] if are_lists else [None]
        if not all(isinstance(text, str) for text in texts) or len(mark or ("", "")) != 2:
            raise ValueError(f"the reading of a column is damaged: {fields!r:.80}")
        return cls(fields["name"], None if mark is None else (mark[0], mark[1]), tuple(gaps))


TEXT_COLUMN = ColumnReading("text")
"""Of a column that is read as text, whatever it looks like."""
