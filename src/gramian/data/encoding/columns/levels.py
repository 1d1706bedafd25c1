"""Levels of a category: its texts in a fixed order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from .... import _arrays as xp
from ...._arrays import Array
from ...tables.new_values import NewValues
from ..saved import Saved
from ..values import encode_levels


@dataclass(frozen=True)
class Levels:
    """Texts of a category.

    Attributes
    ----------
    texts : tuple of str
    missing : bool
        Whether a missing value is a level, too: the last one.
    """

    texts: tuple[str, ...]
    missing: bool = False

    def __len__(self) -> int:
        """Return the number of levels."""
        return len(self.texts) + self.missing

    @cached_property
    def _places(self) -> dict[str | None, int]:
        places: dict[str | None, int] = {text: place for place, text in enumerate(self.texts)}
        return {**places, None: len(self.texts)} if self.missing else places

    def codes(
        self, column: pa.Array, name: str = "", new_values: NewValues | None = None
    ) -> np.ndarray:
        """Return the level of each value; -1 for unknown values.

        Parameters
        ----------
        column : pyarrow.Array of length b
        name : str
            Of the column, for `new_values`.
        new_values : NewValues, optional
            Counts unknown values, and missing ones unless these are a level.
        """
        texts, index = encode_levels(column)
        places = [self._places.get(text, -1) for text in (*texts, None)]
        # The place -1 of missing values is the last entry of `places`, which is for None.
        codes: np.ndarray = np.array(places, np.int64)[index]
        if new_values is not None:
            is_unknown, is_text = codes < 0, index >= 0
            new_values.add_gaps(name, is_unknown & ~is_text)
            unknown = index[is_unknown & is_text]
            new_values.add_levels(name, texts, unknown, int(np.count_nonzero(is_text)))
        return codes

    def tensors(self) -> dict[str, Array]:
        """Return the concatenated texts as bytes, and the end of each text."""
        parts = [text.encode() for text in self.texts]
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        return {"texts": np.frombuffer(b"".join(parts), np.uint8), "ends": ends}

    @classmethod
    def from_tensors(cls, saved: Saved, missing: bool) -> Levels:
        """Rebuild from the result of `tensors`; raise ValueError if it is damaged."""
        data = saved.tensor("texts", xp.uint8, (None,)).tobytes()
        ends = saved.tensor("ends", xp.int64, (None,))
        starts = np.concatenate([[0], ends[:-1]])
        if len(ends) == 0 or ends[-1] != len(data) or (ends < starts).any():
            raise ValueError("the levels of an encoding are damaged")
        places = zip(starts.tolist(), ends.tolist(), strict=True)
        texts = tuple(data[start:end].decode() for start, end in places)
        # Means and counts are stored in the order of the levels, which must be the one they were
        # saved in.
        if any(a >= b for a, b in pairwise(texts)):
            raise ValueError("the levels of an encoding must be sorted and distinct")
        return cls(texts, missing)


def in_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts in the order of `Levels`, which does not depend on the order of the rows."""
    return tuple(sorted(texts))
