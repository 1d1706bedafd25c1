"""Metric M, a mean of outer products of gradients, and maps that are powers of M."""

from __future__ import annotations

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float
from ..data import LinearMap
from ..operators import KernelOperator

FEW_FEATURES = 32
"""Most features for which the map is the symmetric root, which then costs little."""

NEGLIGIBLE_SHARE = 1e-4
"""Largest share of the squared stretches in removed directions."""


def outer_products(
    K: KernelOperator,
    mapped: Float[Array, "s k"],
    coef: Float[Array, "m t"],
    map_: LinearMap | None,
    root: Float[Array, " s"] | None,
) -> Float[Array, "d d"] | None:
    """Return M = G'G in float64, scaled to a largest diagonal entry of 1; None if G is zero."""
    G = xp.to_float64(K.gradients(mapped, coef))
    if map_ is not None:
        # Gradients with respect to mapped rows become gradients with respect to the features.
        G = map_.pull_back(G)
    G = G if root is None else G * root[:, None, None]
    G = G.reshape(-1, G.shape[-1])
    M = G.T @ G
    largest = float(xp.diagonal(M).max())
    # Only ratios matter, because the lengthscale is measured in the metric.
    return M / largest if 0 < largest < float("inf") else None


def map_of(M: Float[Array, "d d"], power: float, *, diagonal: bool = False) -> LinearMap:
    """Return the map of the metric M: its symmetric power, or the power of its diagonal."""
    return LinearMap(scales=_scales(M, power)) if diagonal else LinearMap(_root(M, power))


def _root(M: Float[Array, "d d"], power: float) -> Float[Array, "d k"]:
    """Return the symmetric power of M, with its largest eigenvalue scaled to 1.

    For many features, if at most half of the directions, k of d, account for nearly all of M, only
    these are kept: distances are the same, and each costs k operations instead of d.
    """
    values, vectors = la.eigenpairs(M)
    # Rounding makes the least eigenvalues of a singular M slightly negative.
    stretch = (values / values[-1]).clip(min=0.0) ** power
    if len(M) > FEW_FEATURES:
        tail = xp.square(stretch).cumsum(axis=0)
        is_large = tail > NEGLIGIBLE_SHARE * tail[-1]
        if 2 * int(is_large.sum()) <= len(M):
            # Without the rotation back to the features: distances do not depend on it.
            thin: Array = vectors[:, is_large] * stretch[is_large]
            return thin
    root: Array = (vectors * stretch) @ vectors.T
    return root


def _scales(M: Float[Array, "d d"], power: float) -> Float[Array, " d"]:
    scales: Array = xp.diagonal(M).clip(min=0.0) ** power
    return scales
