"""`ColumnCandidates`: the possible readings of a column, given its values so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ....rows import arrow_compute as pc
from ....tables.column_reading import TEXT_COLUMN, ColumnReading
from .odd_values import LOOK_SHARE, ONE_ODD_ROWS, allowed_count, find_odd, without
from .parsers import NOTHING_READING, Reading, clean_texts
from .readings import ALL_READINGS, DeclaredColumn, first_readings, late_readings, readings_of

SAMPLE_VALUES = 24
"""Values of a batch, spread over it, that tell which readings may read nearly all."""

PLAUSIBLE_SHARE = 0.75
"""Share of the sample that a reading must match."""

PLAIN_COLUMN = DeclaredColumn()
"""A column of which nothing is declared."""


@dataclass
class ColumnCandidates:
    """Possible readings of a column, given its values so far.

    - `counts`: odd values of each reading.
    - `stored`: of a column that must be read as in training.
    - `values`: values so far that are not missing.
    - `is_late`: whether a reading was added that did not see the first values: they must be seen
      again.
    - `spans`: first and last day of readings with years of two digits.
    - `has_short`: whether there are whole numbers below 1,000 among numbers that either mark may
      divide.
    - `contradiction`: the first row and text that the reading of training, or of the declared type,
      does not read.
    """

    counts: Mapping[Reading, int] = field(default_factory=lambda: first_readings(PLAIN_COLUMN))
    stored: ColumnReading | None = None
    values: int = 0
    is_late: bool = False
    is_second_look: bool = False
    spans: dict[Reading, tuple[int, int]] = field(default_factory=dict)
    has_short: bool = False
    contradiction: tuple[int, str] | None = None
    declared: DeclaredColumn = PLAIN_COLUMN

    @classmethod
    def start(
        cls, stored: ColumnReading | None, declared: DeclaredColumn = PLAIN_COLUMN
    ) -> ColumnCandidates:
        """Return the readings of a column before its first value."""
        if stored is None or stored.name == NOTHING_READING.name:
            return cls(first_readings(declared), declared=declared)
        if stored == TEXT_COLUMN:
            return cls({})
        return cls(dict.fromkeys(readings_of(stored), 0), stored)

    def look(self, texts: pa.Array, row: int) -> None:
        """Take more texts into account; `row` is the row of the first one in the file."""
        if not self.counts or texts.null_count == len(texts):
            return
        gaps = self.stored.gaps if self.stored else ()
        holding = [] if gaps else _holding(self.counts, texts)
        # Most texts are clean: trimming, missing words and odd values are tried only if no reading
        # holds, because they cost more than a parse.
        if not holding:
            texts = clean_texts(texts, gaps)
            if texts.null_count == len(texts):
                return
            holding = _holding(self.counts, texts)
        if holding:
            places: dict[Reading, np.ndarray] = {}
            self.counts = {reading: self.counts[reading] for reading in holding}
        else:
            places = self._look_closely(texts, row)
        self.values += len(texts) - texts.null_count
        self._measure_spans(texts, places)
        if not self.has_short and has_either_mark(list(self.counts)):
            short = pc.match_substring_regex(texts, r"^[^\d.,]*\d{1,3}[^\d.,]*$")
            self.has_short = bool(pc.any(short).as_py())

    def _look_closely(self, texts: pa.Array, row: int) -> dict[Reading, np.ndarray]:
        """Count the values that each reading cannot read, also of readings not tried yet."""
        sample = _sample(texts)
        # 1. The readings so far, with the values that each of them cannot read.
        places = self._places(self.counts, texts, sample)
        fewest = min(map(len, places.values()), default=None)
        # Readings with patterns of their own are slow: only a column with odd values tries them.
        if fewest != 0 and not self.stored and not self.is_second_look:
            odd = next(
                (odd_places for odd_places in places.values() if len(odd_places) == fewest),
                np.empty(0),
            )
            odd_texts = [texts[place].as_py() for place in odd[:SAMPLE_VALUES].tolist()]
            # 2. All readings again only where none is left: the first values of the column were
            # then unlike the others.
            tried = () if places else () if self.values == 0 else ALL_READINGS
            more = [*tried, *late_readings([*sample, *odd_texts])]
            late_candidates = [r for r in more if r not in places and self.declared.allows(r)]
            late = self._places(late_candidates, texts, sample)
            better = {
                r: odd_places
                for r, odd_places in late.items()
                if fewest is None or len(odd_places) < fewest
            }
            # 3. A reading that comes late has not seen the earlier values: a second pass counts its
            # odd values among them.
            self.is_late |= bool(better) and self.values > 0
            places |= better
        elif self.stored and self.contradiction is None:
            self.contradiction = _first_unread(next(iter(self.counts)), texts, row)
        values = len(texts) - texts.null_count
        if self.declared.type and min(map(len, places.values()), default=values) == values:
            self.contradiction = _first_unread(None, texts, row)
        self.counts = {
            r: self.counts.get(r, 0) + len(odd_places) for r, odd_places in places.items()
        }
        return places

    def _places(
        self, readings: Iterable[Reading], texts: pa.Array, sample: Sequence[str]
    ) -> dict[Reading, np.ndarray]:
        """Return the places of odd values, of the readings that have few of them."""
        values = self.values + len(texts) - texts.null_count
        is_typed = self.declared.type is not None
        odd_limit = values if is_typed else max(1, int(LOOK_SHARE * values))
        plausible = [r for r in readings if is_typed or _is_plausible(r, sample)]
        pairs = [
            (reading, find_odd(reading, texts, odd_limit - self.counts.get(reading, 0)))
            for reading in plausible
        ]
        return {reading: odd_places for reading, odd_places in pairs if odd_places is not None}

    def _measure_spans(self, texts: pa.Array, places: Mapping[Reading, np.ndarray]) -> None:
        """Note the first and last days, if years of two digits may be read in several orders."""
        short = [reading for reading in self.counts if reading.group and "%y" in reading.order]
        if len({reading.order for reading in short}) < 2:
            return
        for reading in short:
            dates = reading.parse(
                without(clean_texts(texts), places.get(reading, np.empty(0, int)))
            )
            days = pc.min_max(dates.cast(pa.date32()).cast(pa.int32())).as_py()
            low, high = self.spans.get(reading, (days["min"], days["max"]))
            self.spans[reading] = min(low, days["min"]), max(high, days["max"])

    def best(self) -> list[Reading]:
        """Return the readings with the fewest odd values, if these are few enough."""
        fewest = min(self.counts.values(), default=0)
        if fewest > allowed_count(self.values) and (
            self.declared.type is None or fewest == self.values
        ):
            return []
        return [reading for reading, count in self.counts.items() if count == fewest]

    def second_look(self) -> ColumnCandidates:
        """Return the readings with their counts set to zero, for a second pass over the values."""
        counts = dict.fromkeys(self.counts, 0)
        return ColumnCandidates(counts, self.stored, is_second_look=True, declared=self.declared)


def has_either_mark(best: Sequence[Reading]) -> bool:
    """Return whether numbers of a column can be read with either mark for decimals."""
    return {reading.decimal for reading in best} - {None} == {".", ","}


def _holding(readings: Iterable[Reading], texts: pa.Array) -> list[Reading]:
    """Return the readings that can parse all of these texts, at least one of which is valid."""
    # One value by a pattern excludes most readings, before a parse of all of them.
    value = next(text.as_py() for text in texts if text.is_valid)
    holding: list[Reading] = []
    for reading in readings:
        if reading.shape.fullmatch(value) is None:
            continue
        # Texts that are integers are also numbers: this reading need not parse them again.
        if any(wider.name in reading.contains for wider in holding) or reading.holds(texts):
            holding.append(reading)
    return holding


def _sample(texts: pa.Array) -> list[str]:
    """Return some values, spread evenly."""
    values = texts.drop_null()
    places = np.linspace(0, len(values) - 1, min(SAMPLE_VALUES, len(values))).astype(np.int64)
    sample: list[str] = values.take(pa.array(places)).to_pylist()
    return sample


def _is_plausible(reading: Reading, sample: Sequence[str]) -> bool:
    matches = sum(reading.shape.fullmatch(text) is not None for text in sample)
    return matches >= PLAUSIBLE_SHARE * len(sample) and (
        matches == len(sample) or len(sample) >= min(SAMPLE_VALUES, ONE_ODD_ROWS)
    )


def _first_unread(reading: Reading | None, texts: pa.Array, row: int) -> tuple[int, str]:
    odd_places = None if reading is None else find_odd(reading, texts, len(texts))
    first = next(i for i, text in enumerate(texts) if text.is_valid)
    place = int(odd_places[0]) if odd_places is not None and len(odd_places) else first
    return row + place, str(texts[place].as_py())
