"""Columns of booleans, and of numbers: standardised, made normal by quantiles, or as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from .... import _arrays as xp
from ...._arrays import Array
from ...maps.quantiles import normal_scores, quantiles_of
from ...rows.arrow import to_numpy
from ..kinds import Kind, column_kind
from ..moments import Summary
from ..saved import Saved
from ..settings import NUMBER_MAPS
from .base import ColumnEncoding, Observer, Part, Seen, refuse
from .left_out import CONSTANT_COLUMN, CONSTANT_NUMBER, EMPTY_COLUMN, Gaps, LeftOut

_MAP_TEXTS = {
    "standard": "standardised",
    "quantile": "made normal by its quantiles",
    "raw": "as it is",
}


@dataclass(frozen=True, eq=False)
class Number(ColumnEncoding):
    """Encoding of numbers as a feature, with a second feature, 0 or 1, that marks gaps.

    - `numbers`: ``"standard"``, ``"quantile"`` or ``"raw"``.
    - `mean`, `scale`: mean and scale of the training rows, after gaps were filled and quantiles
      were mapped.
    - `quantiles`, ndarray of shape (q,) or None: quantiles of the training rows, for
      ``"quantile"``.
    """

    code: ClassVar[str] = "number"
    kind: ClassVar[Kind] = "number"
    name: str
    numbers: str
    mean: float
    scale: float
    gaps: Gaps
    quantiles: Array | None = None

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, *self.gaps.mark(self.name))

    def encode(self, column: pa.Array, part: Part) -> np.ndarray:
        x, gaps = finite(column, self.name, part), None
        # One sum finds a gap among finite numbers; a mask is made only then.
        if np.isnan(x.sum()):
            gaps = np.isnan(x)
            self.gaps.note(gaps, self.name, part)
            x = np.where(gaps, self.gaps.fill, x)
        if self.quantiles is not None:
            x = normal_scores(x, self.quantiles)
        if self.numbers != "raw":
            x = (x - self.mean) / self.scale
        gaps = np.zeros(len(x), bool) if gaps is None else gaps
        return self.gaps.append_mark(x[:, None], gaps)

    def describe(self) -> str:
        return f"number, {_MAP_TEXTS[self.numbers]}" + self.gaps.describe(f"{self.gaps.fill:.6g}")

    def to_dict(self) -> dict[str, Any]:
        fields = {"name": self.name, "numbers": self.numbers, "mean": self.mean}
        return {**fields, "scale": self.scale, **self.gaps.to_dict()}

    def tensors(self) -> dict[str, Array]:
        return {} if self.quantiles is None else {"quantiles": self.quantiles}

    @classmethod
    def from_saved(cls, saved: Saved) -> Number:
        name, numbers = saved.text("name"), saved.one_of("numbers", NUMBER_MAPS)
        mean, scale = saved.number("mean"), saved.number("scale", positive=True)
        gaps, quantiles = Gaps.from_saved(saved), None
        if numbers == "quantile":
            quantiles = saved.tensor("quantiles", xp.float64, (None,))
            if len(quantiles) == 0 or bool((np.diff(quantiles) < 0).any()):
                raise ValueError(f"the quantiles of '{name}' do not increase")
        return cls(name, numbers, mean, scale, gaps, quantiles)


def finite(column: pa.Array, name: str, part: Part) -> np.ndarray:
    """Return numbers in float64, NaN for gaps; ValueError if one is infinite."""
    x = to_numpy(column, name).astype(np.float64, copy=False)
    # NaN of gaps passes: only infinite numbers are refused, and a sum that overflowed is neither.
    if not np.isfinite(x.sum()):
        refuse(
            part, name, np.isinf(x), "is infinite",
            "only finite numbers can be used; leave the gap empty, or drop the row",
        )  # fmt: skip
    return x


def _is_number(type_: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(type_) for test in tests)


@column_kind("number", "numbers", _is_number)
class NumberObserver(Observer):
    """Observer of numbers."""

    measured = 1

    def see(self, column: pa.Array, seen: Seen) -> Sequence[np.ndarray]:
        return (finite(column, self.name, seen.part),)

    def finish(self, summaries: Sequence[Summary]) -> ColumnEncoding:
        (summary,), numbers = summaries, self.settings.numbers
        if summary.value_count == 0:
            return LeftOut(self.name, EMPTY_COLUMN)
        # A constant column with gaps stays: its mark of gaps varies.
        if summary.constant and not summary.gaps and numbers != "raw":
            return LeftOut(self.name, CONSTANT_NUMBER)
        gaps = Gaps.of(summary)
        if numbers == "quantile" and not summary.constant:
            return self._normal(summary, gaps)
        raw = numbers == "raw"
        mean, scale = (0.0, 1.0) if raw else (summary.mean, summary.scale)
        return Number(self.name, "raw" if raw else "standard", mean, scale, gaps)

    def _normal(self, known: Summary, gaps: Gaps) -> Number:
        values = known.sample
        quantiles = quantiles_of(values if len(values) else np.array([known.fill]))
        # Mean and scale of all rows, gaps filled: the sample stands for the rows with a value, and
        # one more score for all gaps.
        scores = normal_scores(np.append(values, known.fill), quantiles)
        weights = np.full(len(scores), known.value_count / max(1, len(values)))
        weights[-1] = known.gaps
        mean = float(np.average(scores, weights=weights))
        scale = float(np.sqrt(np.average((scores - mean) ** 2, weights=weights)))
        # The scale is 0 if all scores are equal.
        return Number(self.name, "quantile", mean, scale or 1.0, gaps, quantiles)


@dataclass(frozen=True, eq=False)
class Boolean(ColumnEncoding):
    """Encoding of booleans as 0 and 1, with a second feature that marks gaps.

    - `gaps`: treatment of gaps: the more frequent value fills them.
    """

    code: ClassVar[str] = "boolean"
    kind: ClassVar[Kind] = "boolean"
    name: str
    gaps: Gaps

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, *self.gaps.mark(self.name))

    def encode(self, column: pa.Array, part: Part) -> np.ndarray:
        x = _zero_or_one(column)
        # `to_numpy` makes NaN of nulls.
        gaps = np.isnan(x)
        self.gaps.note(gaps, self.name, part)
        return self.gaps.append_mark(np.where(gaps, self.gaps.fill, x)[:, None], gaps)

    def describe(self) -> str:
        return "boolean, 0 or 1" + self.gaps.describe(f"{self.gaps.fill:g}")

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, **self.gaps.to_dict()}

    @classmethod
    def from_saved(cls, saved: Saved) -> Boolean:
        return cls(saved.text("name"), Gaps.from_saved(saved))


def _zero_or_one(column: pa.Array) -> np.ndarray:
    return to_numpy(column).astype(np.float64)


@column_kind("boolean", "booleans", pa.types.is_boolean)
class BooleanObserver(Observer):
    """Observer of booleans, which learns whether they vary and which value fills gaps."""

    measured = 1

    def see(self, column: pa.Array, seen: Seen) -> Sequence[np.ndarray]:
        return (_zero_or_one(column),)

    def finish(self, summaries: Sequence[Summary]) -> ColumnEncoding:
        (summary,) = summaries
        if summary.value_count == 0:
            return LeftOut(self.name, EMPTY_COLUMN)
        if summary.constant and not summary.gaps:
            return LeftOut(self.name, CONSTANT_COLUMN)
        # The median of 0 and 1 may be 0.5; the fill is a value that booleans have.
        return Boolean(self.name, Gaps(summary.gaps, float(summary.fill > 0.5)))
