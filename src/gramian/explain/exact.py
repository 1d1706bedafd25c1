"""Exact Shapley values of sums of products over groups of features."""

from __future__ import annotations

import numpy as np

from .._arrays import Array, Float
from .terms import Term

BLOCK_NUMBERS = 1 << 17
"""Numbers of the factors of a block of centers, so that they stay in the cache."""


def exact_values(
    terms: list[Term],
    groups: int,
    x: Float[Array, "n d"],
    background: Float[Array, "b d"],
    centers: Float[Array, "m d"],
    coef: Float[Array, "m t"],
) -> Float[Array, "n g t"]:
    r"""Return the Shapley values of each group of features at each row.

    - `terms`: the terms of the kernel.
    - `groups`: number of groups g.

    Notes
    -----
    Of one term, one center and one row of the background, the game of a coalition S is
    :math:`\prod_{i \in S} p_i \prod_{i \notin S} q_i`, with the factors p of the row and q of the
    background. Its Shapley values are the integrals over u in [0, 1] of :math:`(p_i - q_i)
    \prod_{k \ne i} (u p_k + (1 - u) q_k)`, because the multilinear extension of a game determines
    its values [1]_. The integrand is a polynomial of degree g - 1: Gauss's quadrature with g / 2
    nodes is exact, and of factors between 0 and 1 all its terms are positive, so that no digits
    cancel. [2]_ computes the same values from elementary symmetric polynomials.

    Cost: 4 g² multiplications for each term, row, row of the background and center.

    References
    ----------
    .. [1] Owen, *Multilinear extensions of games*, Management Science 18, 1972.
    .. [2] Mohammadi et al., *Computing exact Shapley values in polynomial time for product-kernel
       methods*, 2025.
    """
    out = np.zeros((len(x), groups, coef.shape[1]))
    for term in terms:
        if not term.groups:
            continue  # a constant has no contributions
        size = max(1, BLOCK_NUMBERS // (len(term.groups) * len(background)))
        for start in range(0, len(centers), size):
            z, a = centers[start : start + size], term.weight * coef[start : start + size]
            out[:, term.groups] += _values_of_block(term, x, background, z) @ a
    return out


def _values_of_block(
    term: Term, x: Float[Array, "n d"], background: Float[Array, "b d"], z: Float[Array, "m d"]
) -> Float[Array, "n g m"]:
    """Return the Shapley values of one term for each center, means over the background."""
    p = np.stack([term.values(group, x, z) for group in term.groups], axis=1)
    q = np.stack([term.values(group, background, z) for group in term.groups])
    nodes, weights = np.polynomial.legendre.leggauss((len(q) + 1) // 2)
    out = np.empty(p.shape)
    for own, values in zip(p[:, :, None], out, strict=True):
        products = np.zeros_like(q)
        for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            _add_products_of_others(node * own + (1 - node) * q, weight, products)
        np.einsum("gbm,gbm->gm", own - q, products, out=values)
    out /= len(background)
    return out


def _add_products_of_others(
    mixed: Float[Array, "g b m"], weight: float, out: Float[Array, "g b m"]
) -> None:
    """Add to `out`, for each group, the product of all other groups times a weight."""
    # By products of the groups before and after each one: a division would fail for zeros.
    after = np.empty_like(mixed)
    after[-1] = weight
    for k in range(len(mixed) - 1, 0, -1):
        np.multiply(after[k], mixed[k], out=after[k - 1])
    before = mixed[0].copy()
    out[0] += after[0]
    for k in range(1, len(mixed)):
        after[k] *= before
        out[k] += after[k]
        before *= mixed[k]
