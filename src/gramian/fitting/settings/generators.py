"""Random generators, one for each step of a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._arrays import RandomStream

MAPS_MASK = 0x6D617073
"""Mask that turns the seed of the kernel's sample into the seed of the maps of features."""

CHOICE_MASK = 0x63686F69
"""Mask that turns it into the seed of the choice of kernel, lengthscale and penalty."""


@dataclass(frozen=True)
class Generators:
    """Independent generators, so that the draws of a step do not change the draws of others.

    - `maps`: generator of the sample of quantiles of features, and of a learned metric.
    - `choice`: generator of the rows used to choose kernel, lengthscale and penalty.
    - `kernel`, `landmarks`, `solver`: generators of the sample of the median heuristic, of the
      selector and of the solver.
    - `folds`: generator of the folds of a path of penalties; None in `partial_fit`, which has no
      path.
    - `held_out`: generator of the held-out rows of early stopping; None in `partial_fit`.
    - `encoding`: generator of the folds of the means of levels, and of the sample of medians; None
      in `partial_fit`.
    """

    maps: RandomStream
    choice: RandomStream
    kernel: RandomStream
    landmarks: RandomStream
    solver: RandomStream
    folds: RandomStream | None = None
    held_out: RandomStream | None = None
    encoding: RandomStream | None = None

    @classmethod
    def from_random_state(cls, state: np.random.RandomState, *, folds: bool = True) -> Generators:
        """Return generators whose seeds are drawn from a RandomState of NumPy.

        - `folds`: whether rows may be held out, and tables encoded; False in `partial_fit`.
        """
        # `partial_fit` draws three seeds, as it has neither folds
        # nor held-out rows nor an encoding.
        seeds = state.randint(2**31 - 1, size=6 if folds else 3)
        # The seeds of maps and choice are masks of the first one. Two more draws would change the
        # later draws of all estimators that share the state.
        masked = (seeds[0] ^ mask for mask in (MAPS_MASK, CHOICE_MASK))
        return cls(*(RandomStream(int(seed)) for seed in (*masked, *seeds)))
