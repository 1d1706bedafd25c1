"""Shapley values: exact ones of sums of products over groups of features, and sampled ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import Array, Float, RandomStream
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


BATCH_NUMBERS = 1 << 22
"""Numbers of the rows that are predicted at a time."""


def sampled_values(
    function: Callable[[Array], Array],
    group_of: Array,
    x: Float[Array, "n d"],
    background: Float[Array, "b d"],
    pairs: int,
    rng: RandomStream,
) -> tuple[Float[Array, "n g t"], Float[Array, "n g t"]]:
    """Return estimates of the Shapley values of each group of features, and their errors.

    - `function`: from rows, (k, d), to values, (k, t).
    - `group_of`: of shape (d,); the group of each feature.
    - `pairs`: pairs of permutations for each row of the background.

    They have the shape (n, g, t). Errors are NaN for a single pair.

    Notes
    -----
    A permutation changes the groups of a row of the background to the values of `x`, one after
    the other; a Shapley value is the mean change of the value at its group [1]_. Each permutation
    comes with its reverse [2]_, which is exact for sums of functions of up to two groups. The
    values of a row add up to its prediction minus the mean over the background.

    Cost: predictions for 2 (g + 1) b times `pairs` rows, for each row of `x`.

    References
    ----------
    .. [1] Castro et al., *Polynomial calculation of the Shapley value based on sampling*, Computers
       and Operations Research 36, 2009.
    .. [2] Mitchell et al., *Sampling permutations for Shapley value estimation*, JMLR 23, 2022.
    """
    groups = int(group_of.max()) + 1
    rows_of_pair = 2 * (groups + 1)
    size = max(1, BATCH_NUMBERS // (rows_of_pair * x.shape[1]))
    sums: Any = 0.0
    squares: Any = 0.0
    for _ in range(pairs):
        orders = np.argsort(rng.random((len(background), groups)), axis=1)
        total = np.concatenate([
            _changes(function, group_of, x, background[k : k + size], orders[k : k + size])
            for k in range(0, len(background), size)
        ], axis=1)  # fmt: skip
        sums, squares = sums + total, squares + total**2
    # Each row of the background is used: its own variation is no error.
    means = sums / pairs
    variance = np.maximum(squares / pairs - means**2, 0) / max(pairs - 1, 1)
    errors = np.sqrt(variance.mean(axis=1) / len(background))
    return means.mean(axis=1), errors if pairs > 1 else np.full_like(errors, np.nan)


def _changes(
    function: Callable[[Array], Array],
    group_of: Array,
    x: Float[Array, "n d"],
    background: Float[Array, "b d"],
    orders: Array,
) -> Float[Array, "n b g t"]:
    """Return the mean change at each group, of a permutation and its reverse."""
    b, groups = orders.shape
    rank = np.argsort(orders, axis=1)
    # Of permutation and reverse: whether a group is the one of x after each number of steps.
    steps = np.arange(groups + 1)[:, None]
    ranks = np.stack([rank, groups - 1 - rank], axis=1)[:, :, None]
    is_own = (ranks < steps)[..., group_of]
    out = []
    for row in x:
        composed = np.where(is_own, row, background[:, None, None])
        values = function(composed.reshape(-1, x.shape[1])).reshape(b, 2, groups + 1, -1)
        changes = np.diff(values, axis=2)
        of_group = np.take_along_axis(changes, ranks[:, :, 0, :, None], axis=2)
        out.append(of_group.mean(axis=1))
    return np.stack(out)
