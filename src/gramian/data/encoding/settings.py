"""Settings of an encoding that a user may choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..._messages.checks import as_count, did_you_mean

Numbers = Literal["standard", "quantile", "raw"]
NUMBER_MAPS: tuple[Numbers, ...] = ("standard", "quantile", "raw")

MOST_LEVELS = 200
"""Number of levels up to which each frequent level has a column.

Columns come without means: out-of-fold means of one level differ by the targets of the fold that is
left out, and so a fit that knows the level sees a row's own target.
Ratios of test errors with columns alone to columns and means, with the defaults of `KernelRidge`
and at most 3,000 rows of the ten tables of `benchmarks/tables/mixed_sets.py` for development that
have such columns: 0.84, 0.92, 0.94, 0.98, 0.99 (2), 1.00 (3) and 1.05; 0.97 in the geometric mean.
With means alone instead: 1.09 in the geometric mean, and up to 1.6.
"""

SMOOTHING_ROWS = 20.0
"""Neither this nor the empirical Bayes of scikit-learn is better on all sets: see the benchmark
`categories`."""


@dataclass(frozen=True)
class Settings:
    """Settings for numbers and levels.

    - `numbers`: ``"standard"``, ``"quantile"`` or ``"raw"``.
    - `max_levels`: categories of more levels, or with mostly rare levels, are encoded by means.
    - `smoothing`: rows of the overall mean that are added to each level.
    - `text_features`: columns that become features even if they hold identifiers or free text.

    Raise ValueError if a setting is not valid.
    """

    numbers: Numbers = "standard"
    max_levels: int = MOST_LEVELS
    smoothing: float = SMOOTHING_ROWS
    text_features: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.numbers not in NUMBER_MAPS:
            raise ValueError(
                f"numbers must be one of {', '.join(NUMBER_MAPS)}, not {self.numbers!r}"
                + did_you_mean(self.numbers, NUMBER_MAPS)
            )
        as_count(self.max_levels, "max_levels")
        if not 0 <= self.smoothing < float("inf"):
            raise ValueError(
                f"smoothing must be a finite number that is not negative, not {self.smoothing!r}"
            )
