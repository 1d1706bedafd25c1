"""Trials of a search, as its callbacks see them."""

from __future__ import annotations

import math
from typing import Any

from gramian.search import Recipe, Trial


def trial(step: str, loss: float, rounds: int = 0, **more: Any) -> Trial:
    recipe = Recipe("laplacian", rounds=rounds)
    losses = more.pop("losses", ((1e-3, 2 * loss), (1e-4, loss)))
    return Trial(step, recipe, 1e-4, loss, losses, None, 0.5, more.pop("elapsed", 1.0), 10)


TRIALS = (
    trial("screen", 0.64),
    trial("screen", 0.81),
    trial("metric", 0.49),
    trial("metric", 0.36, rounds=1, elapsed=3.0),
    trial("metric", 0.40, rounds=2, elapsed=3.5),
    trial("kernel", 0.38, rounds=1),
    trial("fit", 0.09, rounds=1),
    trial("average", 0.0225, rounds=1, losses=()),
    trial("refit", math.nan, rounds=1, losses=()),
)
