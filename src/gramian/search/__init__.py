"""Search over kernels, inputs, metrics, lengthscales and penalties by held-out error.

`Search` tries the choices in the cheapest order, within a `Budget`; `refit` makes the last fits
with all rows. Both need rows in memory; `gramian.fitting.search.fit` loads them.
"""

from __future__ import annotations

from ..paths.sample import SampleFit
from .all_rows.full_fit import FullFit
from .all_rows.last_fit import Member, refit, sampled_member
from .cells.all_cells import CellFits
from .cells.by_cells import CellSearch
from .cells.cell_fit import CellFit
from .clock import Budget, Clock
from .gains import Gain, gains
from .material import Material, Split
from .recipe import L1_KERNEL, RADIAL_KERNELS, Recipe, Trial, TrialCallback
from .samples.sampled_fit import Effort, Stem
from .search import Search
from .search_state import Score, SearchState
from .space import INPUT_SCALINGS, Space
from .steps import register_results

# `steps` cannot import these classes, because their modules import it, through `clock`.
register_results(CellFit, FullFit, Recipe, SampleFit, Stem)

__all__ = [
    "INPUT_SCALINGS",
    "L1_KERNEL",
    "RADIAL_KERNELS",
    "Budget",
    "CellFits",
    "CellSearch",
    "Clock",
    "Effort",
    "FullFit",
    "Gain",
    "Material",
    "Member",
    "Recipe",
    "Score",
    "Search",
    "SearchState",
    "Space",
    "Split",
    "Stem",
    "Trial",
    "TrialCallback",
    "gains",
    "refit",
    "sampled_member",
]
