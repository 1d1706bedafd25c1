"""Recursive RLS-Nystrom (Musco, Musco 2017): figures 1 to 4, theorems 3, 7, 8, 12, 16 to 19."""

from __future__ import annotations

from ..item import Item
from .figures import (
    clustering,
    components,
    evaluations,
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    projection_cost,
    regression_risk,
    spectral_bound,
)
from .uses import (
    canonical_correlations,
    flat_scores,
    least_rank,
    regression_with_features,
    sandwich,
    seconds_by_part,
)


def items() -> list[Item]:
    """Return the items of the paper, in its order."""
    return [
        Item("figure 1: uneven clusters", "uniform misses, RLS covers all", figure_1),
        Item("theorems 3 and 7: spectral error", "K̃ <= K <= K̃ + lambda I", spectral_bound),
        Item("theorem 8 (6): weighted sample", "between 1/2 and 3/2", sandwich),
        Item("section 3.2: effective dimension", "essentially the smallest rank", least_rank),
        Item("theorem 8: kernel evaluations", "O(n s)", evaluations),
        Item("theorem 12: projection cost", "within 1 + epsilon, all projections", projection_cost),
        Item("theorem 16: regression", "(1 + epsilon) relative risk", regression_risk),
        Item("theorem 17: kernel k-means", "(1 + epsilon) relative error", clustering),
        Item("theorem 18: kernel PCA", "(1 + epsilon) relative error", components),
        Item("theorem 19: kernel CCA", "additive error ε", canonical_correlations),
        Item("appendix G: regression", "RLS below Fourier features", regression_with_features),
        Item("figure 2: spectral error", "RLS below uniform and Fourier on all sets", figure_2),
        Item("figure 2: flat scores", "not in the paper", flat_scores),
        Item("figure 3: error by seconds", "RLS fastest on three of four sets", figure_3),
        Item("figure 3: cause", "not in the paper", seconds_by_part),
        Item("figure 4: accelerated recursion", "as fast as uniform, smaller errors", figure_4),
    ]
