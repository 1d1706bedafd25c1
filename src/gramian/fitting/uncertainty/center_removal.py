"""Removal of a landmark from a fit, both as a row and as a center, by rank-one changes."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _arrays as xp
from ..._arrays import Array, Float, Int, RandomStream
from ..._sparse import is_sparse, times
from ...data import RowSource
from ...data.rows.base import default_block_size
from ...model.uncertainty.factors import LandmarkFactors
from ...preconditioners._root import Root
from ...problems import NystromProblem

SAME_POINT = 1e-6
"""A row is a center if combinations of their features differ by less, relative to the largest."""

ROUNDING_UNITS = 4
"""Units of rounding of the features by which they may always differ."""

KEY_COUNT = 4
"""Random combinations of the features by which rows and centers are compared."""

SPANNED_SHARE = 1e-3
"""Coefficient of a center in a landmark without pivot from which on that landmark replaces it."""


@dataclass(frozen=True, eq=False)
class CenterRemoval:
    r"""Rank-one changes that remove the center of a landmark together with its row.

    If a row is a landmark, no other row determines the coefficient of its column :math:`k(\cdot,
    x_i)`: leaving out the row alone overstates its error. Removing center c is the constraint that
    its coefficient is zero. With u = :math:`T^{-\top} e_c` in the coordinates of the features and
    :math:`A = R^\top R`, the inverse becomes :math:`A^{-1} - A^{-1} u u^\top A^{-1} / u^\top A^{-1}
    u`.

    - `position`: the column in U and G of each row; -1 for rows without a center that is removed.
    - `U`, `G`: u and :math:`R^{-\top} u` of each center that is removed, each u of length one.
    - `coef`: :math:`u^\top \beta`.
    """

    position: Int[Array, " n"]
    R: Float[Array, "q q"]
    U: Float[Array, "q p"]
    G: Float[Array, "q p"]
    coef: Float[Array, "p t"]

    @classmethod
    def build(
        cls,
        problem: NystromProblem,
        factors: LandmarkFactors,
        beta: Float[Array, "q t"],
        root: Root,
    ) -> CenterRemoval:
        """Find the rows that are landmarks, and solve for their centers.

        Cost: about 2 m³ operations.

        A center stays if another row equals it, which determines its coefficient. A center also
        stays if a landmark without a pivot, at another point, could replace it.
        """
        q = len(factors.index)
        # 1. Find the rows that equal a landmark, with and without a pivot.
        index = xp.arange(q) if root.order is None else root.order
        numbers = rows_of_centers(problem.K.rows, problem.K.cols, index)
        rows, unpivoted = numbers[:q], numbers[q:]
        # 2. Keep the center if a landmark without a pivot, at another point, replaces it: its
        # function would remain in the span of the others.
        expansion = xp.solve_triangular(factors.T, root.S, upper=True)
        spanned = ((xp.abs(expansion) > SPANNED_SHARE) & (rows[:, None] != unpivoted)).any(axis=1)
        removed = xp.flatnonzero((rows >= 0) & ~spanned)
        # 3. Dual vectors of the removed centers, whose length cancels in the update.
        identity = xp.eye(len(factors.T), xp.float64)[:, removed]
        U = xp.solve_triangular(factors.T.T, identity, upper=False)
        U = U / xp.norm(U, axis=0)
        # 4. u' A^-1 u is the squared norm of R^-T u.
        G = xp.solve_triangular(factors.R.T, U, upper=False)
        position = xp.full((len(problem.K.rows),), -1)
        position[rows[removed]] = xp.arange(len(removed))
        return cls(position, factors.R, U, G, U.T @ beta)

    def apply(
        self,
        rows: slice,
        f: Float[Array, "b q"],
        off: Float[Array, "b t"],
        norm: Float[Array, " b"],
        spread: Float[Array, " b"],
    ) -> tuple[Float[Array, "b t"], Float[Array, " b"], Float[Array, " b"]]:
        """Return residuals, squared norms and leverages of rows in fits without their centers."""
        # Most rows are no landmarks, and keep their centers.
        own = xp.flatnonzero(self.position[rows] >= 0)
        at = self.position[rows][own]
        U, G = self.U[:, at], self.G[:, at]
        e = xp.solve_triangular(self.R.T, f[own].T, upper=False)
        cross, curvature = (e * G).sum(axis=0), xp.square(G).sum(axis=0)
        # The caller still needs the values with all centers.
        off, norm, spread = xp.copy(off), xp.copy(norm), xp.copy(spread)
        off[own] += (cross / curvature)[:, None] * self.coef[at]
        norm[own] -= xp.square((f[own].T * U).sum(axis=0))
        spread[own] -= xp.square(cross) / curvature
        # Differences of nearly equal numbers may round below zero.
        return off, norm.clip(min=0.0), spread.clip(min=0.0)


def rows_of_centers(
    rows: RowSource, centers: RowSource, index: Int[Array, " q"]
) -> Int[Array, " q"]:
    """Return, for each center, the index of the only row that equals it; -1 for none or several.

    Points are equal if random combinations of their features agree to the rounding of maps. Dense
    features are centered and divided by their spread over the centers: otherwise an offset, or one
    wide feature, would hide the others.
    """
    # A seed of its own: the result must not depend on the random state of the fit.
    rng = RandomStream(0)
    mixing = rng.standard_normal((rows.shape[1], KEY_COUNT), xp.float64)
    points = centers.take(index)
    if not is_sparse(points):
        # 1. Random combinations of the features, in units of their spread unless they are sparse.
        spread = xp.std(xp.to_float64(points), axis=0)
        mixing /= xp.where(spread > 0, spread, 1.0)[:, None]

    def mix(block: Array) -> Array:
        return times(block, mixing) if is_sparse(block) else xp.to_float64(block) @ mixing

    # 2. Compare few mixed features in place of all: rows may be wide, and in files.
    keys, own = rows.map(mix, size=default_block_size(rows)), mix(points)
    rounding = ROUNDING_UNITS * xp.finfo(rows.dtype).eps * float(xp.abs(own).max())
    keys, own = keys - own.mean(axis=0), own - own.mean(axis=0)
    tolerance = max(SAME_POINT * float(xp.abs(own).max()), rounding)
    # 3. Sort by the first mixed feature, so that each center has few candidates.
    order = keys[:, 0].argsort(stable=True)
    first = keys[order, 0]
    numbers = xp.full((len(own),), -1)
    starts = xp.find_insertions(first, own[:, 0] - tolerance).tolist()
    ends = xp.find_insertions(first, own[:, 0] + tolerance, right=True).tolist()
    for c, (start, end) in enumerate(zip(starts, ends, strict=True)):
        near = order[start:end]
        equal = near[(xp.abs(keys[near] - own[c]) <= tolerance).all(axis=1)]
        # 4. Of several equal rows, the others still determine the center when one is left out.
        if len(equal) == 1:
            numbers[c] = equal[0]
    return numbers
