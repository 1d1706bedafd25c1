"""The metric M, a mean of outer products of gradients, and the maps that are powers of it."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from .. import _linalg as la
from ..data import LinearMap
from ..operators import KernelOperator

FEW_FEATURES = 32
"""Up to so many features the map is the symmetric root, which says more than it costs."""

NEGLIGIBLE = 1e-4
"""Share of the squared stretches that directions may have that are left out."""


def outer_products(
    K: KernelOperator,
    mapped: Float[Tensor, "s k"],
    coef: Float[Tensor, "m t"],
    map_: LinearMap | None,
    root: Float[Tensor, " s"] | None,
) -> Float[Tensor, "d d"] | None:
    """Return M = G'G in float64, its largest diagonal entry 1; None if all gradients vanish."""
    G = K.gradients(mapped, coef).double()
    if map_ is not None:
        G = map_.back(G)
    G = G if root is None else G * root[:, None, None]
    G = G.reshape(-1, G.shape[-1])
    M = G.T @ G
    largest = float(M.diagonal().max())
    return M / largest if 0 < largest < float("inf") else None


def map_of(M: Float[Tensor, "d d"], power: float, *, diagonal: bool = False) -> LinearMap:
    """Return the map of the metric M: its symmetric power, or that of its diagonal."""
    return LinearMap(scales=_scales(M, power)) if diagonal else LinearMap(_root(M, power))


def _root(M: Float[Tensor, "d d"], power: float) -> Float[Tensor, "d k"]:
    """Return the symmetric power of M, its largest eigenvalue taken for 1.

    Of many features the few directions that hold nearly all of it, where these are at most half as
    many: distances are the same, and each costs k operations instead of d.
    """
    values, vectors = la.eigenpairs(M)
    stretch = (values / values[-1]).clamp(min=0.0) ** power
    if len(M) > FEW_FEATURES:
        left_out = stretch.square().cumsum(dim=0)
        kept = left_out > NEGLIGIBLE * left_out[-1]
        if 2 * int(kept.sum()) <= len(M):
            few: Tensor = vectors[:, kept] * stretch[kept]
            return few
    root: Tensor = (vectors * stretch) @ vectors.T
    return root


def _scales(M: Float[Tensor, "d d"], power: float) -> Float[Tensor, " d"]:
    scales: Tensor = M.diagonal().clamp(min=0.0) ** power
    return scales
