"""Preconditioner of FALKON: two triangular factors, stored in the memory of one matrix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, Int, RandomStream
from .._linalg.spectrum import Spectrum
from ..operators import largest_diagonal
from ..problems import LossProblem, NystromProblem
from ._root import Root

DIMENSION_SHARE = 0.3
"""Largest effective dimension per landmark at which its estimate is reliable; see `Falkon`."""

FEW_ROWS = 2
"""Most rows per landmark for a factor built from rows, if landmarks are not rows."""

MOST_PRODUCTS = 1e12
"""Most products n m² for a factor of many rows with few distinct ones: about a minute."""

CHEAP_PRODUCTS = 1e9
"""Products n m² up to which the factor is built from all rows: at most 0.1 s.

The factor is then exact, and one or two iterations replace 30 to 70, which take as long or longer.
"""

LEAST_SHARE = 1e-9
"""Least penalty, relative to the largest entry of K, for a factor of rows that are not needed.

Rounding of the sum over the rows is far below such a penalty.
"""

ROUNDING_ROWS = 1000
"""Rows of K_mm that estimate the rounding error."""

ROUNDING_PROBES = 4
"""Random vectors that estimate the rounding error."""


@dataclass(frozen=True)
class FalkonFactor:
    r"""Preconditioner B of FALKON, in two triangles.

    B satisfies :math:`B B^\top \approx (K_{nm}^\top K_{nm} / n + \lambda K_{mm})^{-1}`. With
    :math:`R^\top R = K_{mm}`, :math:`R = (T, S)`, and :math:`A^\top A = R D^2 R^\top / m + \lambda
    I`, B is :math:`T^{-1} A^{-1}`, with zeros for the landmarks of S; :math:`D^2` holds the
    landmark weights. Both factors are float64 for all dtypes, because :math:`K_{mm}` is often
    singular in float32.

    Attributes
    ----------
    triangles : Array of shape (q, q), by columns
        A in the upper triangle with the diagonal; below it T' with its columns divided by
        `diagonal`, so that its own diagonal is one and is not stored.
    diagonal : Array of shape (q, 1)
        Diagonal of T.
    order : Array of shape (m,), or None
        Indices of the landmarks in the order of their pivots, of which T has the first q; None if
        T has all landmarks in their own order.
    penalty : float
        The penalty :math:`\lambda` inside A.
    rounding : float
        Estimated change of predictions, relative to their spread, if products are computed in
        float32; zero for float64 rows.
    rounding_in_float64 : float
        Estimated change of predictions by rounding in a factorisation of rows in float64: ``4 eps q
        ** 0.5`` times the squared ratio of the largest to the least pivot of A. Zero for a factor
        from a root of K_mm.
    coef_norm : float
        Root mean square of :math:`\|B g\|` for random normal g.
    entry_rounding : float
        Rounding of an entry of K in float64: eps times the largest pivot of T.

    Notes
    -----
    Cost: m² kernel evaluations; m³ operations; 8 m² bytes. An automatic penalty adds about 320 m²
    operations.

    Departures from the paper. There is no jitter: it would add to the penalty, and change the
    problem. Instead, pivots remove landmarks that depend on the others to rounding. This is the
    paper's remedy for a singular K_mm, with a pivoted Cholesky factor in place of eigenvectors: no
    function is lost, and the solution uses the exact K_mm.

    `rounding` is measured: the root mean square of (K - K32) B g for random normal g, where K and
    K32 are rows of K_mm computed in float64 and in float32. On 135 problems (Gaussian, Matern 5/2,
    rational quadratic, Laplacian and polynomial kernels; 1, 3 and 8 features; lengthscales of 0.3,
    1 and 3 times the root of d; 2,000 rows, 200 landmarks, penalties 1e-3, 1e-6 and 1e-9),
    products in float32 moved predictions by 0.01 to 6 times the estimate where it was below 1e-3;
    above 0.1 conjugate gradient hardly converged:

    ============  ========  =================================
    `rounding`    problems  error, relative to their spread
    ============  ========  =================================
    below 1e-4    66        3e-7 to 2e-4
    1e-4 to 1e-3  14        3e-6 to 2e-3
    1e-3 to 0.01  8         1e-4 to 3e-2
    0.01 to 0.1   7         1e-4 to 0.1
    above 0.1     40        0.03 and more
    ============  ========  =================================

    References
    ----------
    .. [1] Rudi, Carratino, Rosasco, *FALKON: An optimal large scale kernel method*, NeurIPS 2017,
       eq. (10), (13), algorithm 1 and appendix A.
    """

    triangles: Float[Array, "q q"]
    diagonal: Float[Array, "q 1"]
    order: Int[Array, " m"] | None
    penalty: float
    rounding: float = 0.0
    rounding_in_float64: float = 0.0
    coef_norm: float = 0.0
    entry_rounding: float = 0.0

    @classmethod
    def build(
        cls,
        problem: NystromProblem,
        penalty: float | Literal["auto", "landmarks"] | None = None,
        *,
        exact: bool = True,
    ) -> FalkonFactor:
        """Build the factor for a problem.

        - `penalty`: the penalty inside A: see `Falkon`.
        - `exact`: whether T keeps all pivots that float64 resolves. If False, it omits pivots that
          products in the dtype of the rows cannot resolve.
        """
        root = root_of(problem, exact=exact)
        # The paper estimates K_nm' K_nm from the landmarks alone, which fails where these outnumber
        # the rows, and costs iterations where there are few rows: the sum over the rows themselves
        # then replaces the estimate.
        by_rows = penalty == "auto" and _has_few_products(problem)
        if by_rows or (isinstance(penalty, str) and _needs_rows(problem)):
            B = cls.from_rows(root, problem, _all_strips(problem), problem.penalty)
        else:
            B = cls.from_root(root, problem, penalty)
        return replace(
            B,
            rounding=rounding_of(B, problem),
            coef_norm=float(xp.sqrt(xp.square(xp.norm(_random_coef(B), axis=0)).mean())),
            entry_rounding=la.FLOAT64_EPS * float(xp.square(B.diagonal).max()),
        )

    @classmethod
    def from_root(
        cls,
        root: Root,
        problem: NystromProblem,
        penalty: float | Literal["auto", "landmarks"] | None = None,
    ) -> FalkonFactor:
        """Build the factor in the memory of a root of K_mm, without an estimate of its rounding."""
        T, S, weight = root.T, root.S, problem.landmark_weight
        if weight is not None and root.order is not None:
            # R has its columns in the order of the pivots.
            weight = weight[xp.to_device(root.order, weight.device)]
        # The diagonals of T and A both occupy the diagonal of one square: the diagonal of T is kept
        # apart, and T' below it is divided by it to have a diagonal of ones.
        diagonal = xp.copy(xp.diagonal(T))
        # T' moves below the diagonal, so that A can replace T above it, in the same memory.
        la.mirror_upper_(T)
        _divide_columns_below_diagonal(T, diagonal)
        _scale_columns(T, S, weight)
        # The search for a penalty needs R D / sqrt(m), so that it precedes the next line, which
        # replaces R by R R'.
        if isinstance(penalty, str):
            lam = _automatic_penalty(T, S, problem)
        else:
            lam = penalty or problem.penalty
        la.times_transpose_(T)
        la.add_outer_(T, S)
        return cls._pack(T, diagonal, root, lam, problem)

    @classmethod
    def from_rows(
        cls,
        root: Root,
        problem: NystromProblem,
        strips: Iterable[tuple[Float[Array, "s m"], Float[Array, " s"]]],
        penalty: float,
    ) -> FalkonFactor:
        """Build the factor from rows with weights, in the memory of a root of K_mm.

        The sum of K' diag(weights) K over the strips replaces the estimate from landmarks. It is
        exact if the strips have all rows of nonzero weight. Cost: m² operations per row.
        """
        T, q = root.T, len(root.T)
        diagonal = xp.copy(xp.diagonal(T))
        la.mirror_upper_(T)
        _divide_columns_below_diagonal(T, diagonal)
        # The sum over the strips starts from zero in the upper triangle.
        xp.assign_(T, xp.tril(T, -1))
        for K, weights in strips:
            selected = K if root.order is None else K[:, xp.to_device(root.order[:q], K.device)]
            # T'^-1 K' of this strip, whose product with itself is the strip's part of A'A - lam I.
            # Solved before the product, because T^-1 on both sides would amplify the rounding of K'
            # K. By columns and in place: each transposed copy takes a quarter of the solution.
            rows = xp.copy_by_rows(xp.cast_like(selected, T))
            half = rows.T
            la.solve_triangular_(T, half, lower=True, transpose=False, unit=True)
            rows *= xp.sqrt(xp.cast_like(weights, T))[:, None]
            rows /= diagonal
            # Only the upper triangle is summed: the lower one holds T'.
            if not la.is_on_device(T):
                la.add_outer_(T, half)
                continue
            for j in _blocks(q):
                T[: j.start, j] += half[: j.start] @ half[j].T
                T[j, j] += xp.triu(half[j] @ half[j].T)
        # Below this penalty, the factorisation may fail by rounding.
        least_penalty = q * la.FLOAT64_EPS * float(xp.diagonal(T).max())
        B = cls._pack(T, diagonal, root, max(penalty, least_penalty), problem)
        # `_pack` factorised T in place, so its diagonal is the diagonal of A.
        pivots = xp.square(xp.diagonal(T))
        rounding = 4 * math.sqrt(q) * la.FLOAT64_EPS * float(pivots.max() / pivots.min())
        return replace(B, rounding_in_float64=rounding)

    @classmethod
    def _pack(
        cls, T: Array, diagonal: Array, root: Root, lam: float, problem: NystromProblem
    ) -> FalkonFactor:
        """Return the factor, given A'A - lam I in the upper triangle of T."""
        xp.add_(xp.diagonal(T), lam)
        la.cholesky_(T)
        device = problem.targets.device
        order = None if root.order is None else xp.to_device(root.order, device)
        return cls(xp.to_device(T, device), xp.to_device(diagonal[:, None], device), order, lam)

    def solve_T(self, b: Float[Array, "q t"]) -> Float[Array, "m t"]:
        """Return T⁻¹ b for all landmarks, with zeros for removed landmarks."""
        # The triangle below the diagonal is T' over its diagonal, so b is divided first.
        x = la.solve_triangular(
            self.triangles, b / self.diagonal, lower=True, transpose=True, unit=True
        )
        if self.order is None:
            return x
        # Coefficients of zero are a valid expansion: the functions of removed landmarks are, to
        # rounding, combinations of the others.
        out = xp.zeros((len(self.order), x.shape[1]), like=x)
        out[self.order[: len(x)]] = x
        return out

    def solve_Tt(self, b: Float[Array, "m t"]) -> Float[Array, "q t"]:
        """Return T'⁻¹ b, from the rows of b that belong to the landmarks in T."""
        if self.order is not None:
            b = b[self.order[: len(self.diagonal)]]
        x = la.solve_triangular(self.triangles, b, lower=True, transpose=False, unit=True)
        return x / self.diagonal

    def solve_A(self, b: Float[Array, "q t"]) -> Float[Array, "q t"]:
        """Return A⁻¹ b."""
        return la.solve_triangular(self.triangles, b, lower=False, transpose=False)

    def solve_At(self, b: Float[Array, "q t"]) -> Float[Array, "q t"]:
        """Return A'⁻¹ b."""
        return la.solve_triangular(self.triangles, b, lower=False, transpose=True)

    def to_coef(self, beta: Float[Array, "q t"]) -> Float[Array, "m t"]:
        """Return the coefficients T⁻¹ A⁻¹ beta of coordinates beta."""
        return self.solve_T(self.solve_A(beta))

    def from_values(self, values: Float[Array, "m t"]) -> Float[Array, "q t"]:
        """Return the coordinates A T'⁻¹ values of a function, given its values at the landmarks."""
        x = self.solve_Tt(values)
        return la.times_triangular(self.triangles, x, lower=False, transpose=False)

    def from_coef(self, coef: Float[Array, "m t"]) -> Float[Array, "q t"]:
        """Return the coordinates A T coef, without the coefficients of removed landmarks."""
        if self.order is not None:
            coef = coef[self.order[: len(self.diagonal)]]
        Tcoef = self.diagonal * la.times_triangular(
            self.triangles, coef, lower=True, transpose=True, unit=True
        )
        return la.times_triangular(self.triangles, Tcoef, lower=False, transpose=False)

    def least_eigenvalue(self, penalty: float) -> float:
        """Return a lower bound of the eigenvalues of B'H B, from the penalty and A."""
        squares = sum(
            # Blocks avoid a copy of the whole triangle. The mask leaves out T' below the diagonal.
            float(xp.square(xp.triu(self.triangles[: j.stop, j], -j.start)).sum())
            for j in _blocks(len(self.diagonal))
        )
        return penalty / squares


def _has_few_products(problem: NystromProblem) -> bool:
    """Return whether building the factor from all rows is cheaper than a few iterations."""
    m, rows = problem.K.shape[1], problem.K.rows
    # Rows of a cluster never fit: a factor from all rows would read them on the client.
    if not (rows.random_access and rows.fits(CHEAP_PRODUCTS / float(m) ** 2)):
        return False
    # Strips of entries need all columns in memory, which a factor of landmarks does not.
    if not problem.K.double().holds_columns():
        return False
    return problem.penalty >= LEAST_SHARE * largest_diagonal(problem.K)


def _needs_rows(problem: NystromProblem) -> bool:
    """Return whether to build the factor from rows, because the landmarks alone do not suffice.

    With more centers than rows, the penalty alone determines the functions that vanish at all rows,
    and a factor of centers takes thousands of iterations to resolve them.
    """
    m, rows = problem.K.shape[1], problem.K.rows
    if problem.centers_are_rows:
        return False
    if rows.fits(FEW_ROWS * m):
        return True
    return rows.fits(MOST_PRODUCTS / float(m) ** 2) and _has_few_distinct_rows(problem)


def _has_few_distinct_rows(problem: NystromProblem) -> bool:
    """Return whether a sample of the rows, drawn by weight, has few distinct rows per landmark.

    The sample, with replacement, is twice as large as the limit. Sparse rows count as distinct.
    """
    n, m = problem.K.shape
    rows = problem.K.rows
    if rows.sparse or not rows.random_access:
        return False
    # A fixed seed leaves the generator of the fit untouched, and makes the same decision in each
    # fit.
    rng = RandomStream(0)
    position = rng.random(2 * FEW_ROWS * m, xp.float64)
    if problem.weights is None:
        index = xp.cast(position * n, xp.int64)
    else:
        total = xp.to_host(xp.to_float64(problem.weights)).cumsum(axis=0)
        # Rows are drawn in proportion to their weights. The clamp catches a position rounded to the
        # total.
        index = xp.find_insertions(total, position * total[-1], right=True).clip(max=n - 1)
    distinct = xp.unique(rows.take(xp.unique(index)), axis=0)
    return len(distinct) <= FEW_ROWS * m


def _all_strips(problem: NystromProblem) -> Iterator[tuple[Array, Array]]:
    """Yield K in strips of float64 entries, with the weights over their sum."""
    n, weights = problem.K.shape[0], problem.weights
    w = xp.ones(n, xp.float64) if weights is None else xp.to_float64(weights)
    return ((strip, w[rows] / problem.total) for rows, strip in problem.K.double().strips())


def root_of(problem: NystromProblem, *, exact: bool = True) -> Root:
    """Factorise K_mm in float64; see `FalkonFactor.build` for `exact`."""
    # K_mm is often singular in float32, whatever the dtype of the rows.
    P = la.by_columns(problem.K_mm.double().dense())
    la.prepare_(P)
    return Root.build(P, xp.float64 if exact else problem.K.dtype)


def _divide_columns_below_diagonal(P: Array, diagonal: Array) -> None:
    for j in _blocks(len(P)):
        P[j.stop :, j] /= diagonal[j]
        corner = P[j, j]
        # The square on the diagonal holds a part of T above and a part of T' below.
        xp.assign_(corner, xp.triu(corner) + xp.tril(corner / diagonal[j], -1))


def _blocks(m: int, size: int = 512) -> Iterator[slice]:
    return (slice(j, min(j + size, m)) for j in range(0, m, size))


def _scale_columns(P: Array, S: Array, weight: Array | None) -> None:
    """Replace R = (T, S), T in the upper triangle, by R D / sqrt(m)."""
    q, m = len(P), len(P) + S.shape[1]
    scale = xp.ones(m, like=P) if weight is None else xp.sqrt(xp.cast_like(weight, P))
    scale /= m**0.5
    for j in _blocks(q):
        P[: j.start, j] *= scale[j]
        corner = P[j, j]
        xp.assign_(corner, xp.triu(corner * scale[j]) + xp.tril(corner, -1))
    S *= scale[q:]


def _automatic_penalty(P: Array, S: Array, problem: NystromProblem) -> float:
    """Return the smallest penalty, not below the problem's, for which m landmarks are reliable.

    The landmarks determine as many directions as the effective dimension only if this dimension is
    well below m; the larger their share of all rows, the closer to m it may be.
    """
    q, m = len(P), len(P) + S.shape[1]
    uncovered = 1 - problem.covered_fraction
    # Landmarks that are all of the rows determine every direction.
    if uncovered <= 0:
        return problem.penalty

    def product(x: Array) -> Array:
        half = la.times_triangular(P, x, lower=False, transpose=True)
        return la.times_triangular(P, half, lower=False, transpose=False) + S @ (S.T @ x)

    largest_dimension = DIMENSION_SHARE * m / uncovered
    return Spectrum.build(product, q, P.device).penalty_for(largest_dimension, problem.penalty)


def rounding_of(B: FalkonFactor, problem: NystromProblem | LossProblem) -> float:
    """Estimate the rounding error of float32 entries in values of random functions."""
    if problem.K.dtype == xp.float64:
        return 0.0
    x = _random_coef(B)
    # Some rows are enough to estimate a mean square.
    rows = problem.K_mm[: min(ROUNDING_ROWS, len(x))]
    return float(xp.sqrt(xp.square(rows @ x - rows.double() @ x).mean()))


def _random_coef(B: FalkonFactor) -> Float[Array, "m t"]:
    """Return the coefficients of functions with random normal coordinates."""
    rng = RandomStream(0)
    g = rng.standard_normal((len(B.diagonal), ROUNDING_PROBES), xp.float64)
    return B.to_coef(xp.to_device(g, B.diagonal.device))
