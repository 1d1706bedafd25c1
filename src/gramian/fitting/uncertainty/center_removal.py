"""CenterRemoval: a landmark left out as a row and as a center, by rank-one changes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

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

    Attributes
    ----------
    position : Tensor of shape (n,)
        The column of each row in U and G; -1 for rows whose centers stay.
    R : Tensor of shape (q, q)
    U, G : Tensor of shape (q, p)
        u and :math:`R^{-\top} u` of each center that is removed, each u of length one.
    coef : Tensor of shape (p, t)
        :math:`u^\top \beta`.
    """

    position: Int[Tensor, " n"]
    R: Float[Tensor, "q q"]
    U: Float[Tensor, "q p"]
    G: Float[Tensor, "q p"]
    coef: Float[Tensor, "p t"]

    @classmethod
    def build(
        cls,
        problem: NystromProblem,
        factors: LandmarkFactors,
        beta: Float[Tensor, "q t"],
        root: Root,
    ) -> CenterRemoval:
        """Find the rows that are landmarks, and solve for their centers: about 2 m³ operations.

        A center stays if another row equals it, which determines its coefficient. It also stays if
        a landmark without a pivot, at another point, could replace it.
        """
        q = len(factors.index)
        # 1. Find the rows that equal a landmark, with and without a pivot.
        index = torch.arange(q) if root.order is None else root.order
        numbers = rows_of_centers(problem.K.rows, problem.K.cols, index)
        rows, unpivoted = numbers[:q], numbers[q:]
        # 2. Keep the center if a landmark without a pivot, at another point, replaces it: its
        # function would remain in the span of the others.
        expansion = torch.linalg.solve_triangular(factors.T, root.S, upper=True)
        spanned = ((expansion.abs() > SPANNED_SHARE) & (rows[:, None] != unpivoted)).any(dim=1)
        removed = ((rows >= 0) & ~spanned).nonzero()[:, 0]
        # 3. Dual vectors of the removed centers, whose length cancels in the update.
        identity = torch.eye(len(factors.T), dtype=torch.float64)[:, removed]
        U = torch.linalg.solve_triangular(factors.T.t(), identity, upper=False)
        U = U / U.norm(dim=0)
        # 4. u' A^-1 u is the squared norm of R^-T u.
        G = torch.linalg.solve_triangular(factors.R.t(), U, upper=False)
        position = torch.full((len(problem.K.rows),), -1)
        position[rows[removed]] = torch.arange(len(removed))
        return cls(position, factors.R, U, G, U.t() @ beta)

    def apply(
        self,
        rows: slice,
        f: Float[Tensor, "b q"],
        off: Float[Tensor, "b t"],
        norm: Float[Tensor, " b"],
        spread: Float[Tensor, " b"],
    ) -> tuple[Float[Tensor, "b t"], Float[Tensor, " b"], Float[Tensor, " b"]]:
        """Return residuals, squared norms and leverages of rows in fits without their centers."""
        # Most rows are no landmarks, and keep their centers.
        own = (self.position[rows] >= 0).nonzero()[:, 0]
        at = self.position[rows][own]
        U, G = self.U[:, at], self.G[:, at]
        e = torch.linalg.solve_triangular(self.R.t(), f[own].t(), upper=False)
        cross, curvature = (e * G).sum(dim=0), G.square().sum(dim=0)
        # The caller still needs the values with all centers.
        off, norm, spread = off.clone(), norm.clone(), spread.clone()
        off[own] += (cross / curvature)[:, None] * self.coef[at]
        norm[own] -= (f[own].t() * U).sum(dim=0).square()
        spread[own] -= cross.square() / curvature
        # Differences of nearly equal numbers may round below zero.
        return off, norm.clamp(min=0.0), spread.clamp(min=0.0)


def rows_of_centers(
    rows: RowSource, centers: RowSource, index: Int[Tensor, " q"]
) -> Int[Tensor, " q"]:
    """Return the number of the only row that equals each center; -1 for none or several.

    Points are equal if random combinations of their features agree to the rounding of maps. Dense
    features are centered and divided by their spread over the centers: otherwise an offset, or one
    wide feature, would hide the others.
    """
    # A seed of its own: the result must not depend on the random state of the fit.
    rng = torch.Generator().manual_seed(0)
    mixing = torch.randn(rows.shape[1], KEY_COUNT, generator=rng, dtype=torch.float64)
    points = centers.take(index)
    if not is_sparse(points):
        # 1. Random combinations of the features, in units of their spread unless they are sparse.
        spread = points.double().std(dim=0, correction=0)
        mixing /= torch.where(spread > 0, spread, 1.0)[:, None]

    def mix(block: Tensor) -> Tensor:
        return times(block, mixing) if is_sparse(block) else block.double() @ mixing

    # 2. Compare few mixed features in place of all: rows may be wide, and in files.
    keys, own = rows.map(mix, size=default_block_size(rows)), mix(points)
    rounding = ROUNDING_UNITS * torch.finfo(rows.dtype).eps * float(own.abs().max())
    keys, own = keys - own.mean(dim=0), own - own.mean(dim=0)
    tolerance = max(SAME_POINT * float(own.abs().max()), rounding)
    # 3. Sort by the first mixed feature, so that each center has few candidates.
    order = keys[:, 0].argsort()
    first = keys[order, 0]
    numbers = torch.full((len(own),), -1)
    starts = torch.searchsorted(first, own[:, 0] - tolerance).tolist()
    ends = torch.searchsorted(first, own[:, 0] + tolerance, right=True).tolist()
    for c, (start, end) in enumerate(zip(starts, ends, strict=True)):
        near = order[start:end]
        equal = near[((keys[near] - own[c]).abs() <= tolerance).all(dim=1)]
        # 4. Of several equal rows, the others still determine the center when one is left out.
        if len(equal) == 1:
            numbers[c] = equal[0]
    return numbers
