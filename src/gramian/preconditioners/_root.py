"""Factorisation R'R = K_mm, to the precision of the products."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, Int

COLUMNS_AT_ONCE = 256
"""Columns moved at once."""


@dataclass(frozen=True)
class Root:
    """Factor R = (T, S) with R'R = K_mm, rows and columns in the order of the pivots.

    - `T`: upper triangular, by columns; entries below the diagonal are arbitrary.
    - `S`: the rest of R, by columns. The last m - q landmarks are combinations of the first q, to
      rounding.
    - `order`: indices of the landmarks in pivot order; None if q = m and the given order stays.
    """

    T: Float[Array, "q q"]
    S: Float[Array, "q s"]
    order: Int[Array, " m"] | None

    @classmethod
    def build(cls, P: Float[Array, "m m"], dtype: xp.DType) -> Root:
        """Factorise K_mm in place.

        - `P`: K_mm in float64, by columns, without subnormal entries; it is overwritten.
        - `dtype`: dtype of products with K_nm. T omits pivots that these cannot resolve.

        Notes
        -----
        T keeps pivots above m eps of the largest diagonal entry, LAPACK's limit. If all pivots
        exceed it, T is the plain Cholesky factor; otherwise the factor with the largest pivots
        first, computed on the host. Cost: m³ / 3 operations, at most twice.
        """
        diagonal = xp.copy(xp.diagonal(P))
        least_pivot = len(P) * la.FLOAT64_EPS * float(diagonal.max())
        if dtype != xp.float64:
            # Smaller pivots would amplify the rounding of products in this dtype.
            rounding = la.ROUNDING_UNITS * xp.finfo(dtype).eps * float(diagonal.mean())
            least_pivot = max(least_pivot, rounding)
        # The plain factorisation comes first: it is faster than the pivoted one, and
        # most kernel matrices pass it.
        try:
            la.cholesky_(P)
        except la.NotPositiveDefinite:
            pivot = 0.0
        else:
            # The diagonal of a Cholesky factor holds the roots of the pivots.
            pivot = float(xp.diagonal(P).min()) ** 2
        if pivot > least_pivot:
            return cls(P, P[:, :0], None)
        # The factorisation overwrote the upper triangle and the diagonal, but the lower one is
        # intact.
        la.mirror_lower_(P)
        xp.assign_(xp.diagonal(P), diagonal)
        return cls._with_pivots(P, least_pivot)

    @classmethod
    def _with_pivots(cls, P: Array, least_pivot: float) -> Root:
        # LAPACK has a pivoted factorisation, and the library of the device has none.
        host = P if not la.is_on_device(P) else la.by_columns(xp.to_host(P.T))
        order, q = la.pivoted_cholesky_(host, least_pivot)
        if q == 0:  # the kernel vanishes at all landmarks, and so everywhere
            # A factor needs at least one pivot. Any value serves, because K_nm is zero.
            xp.fill_(host, 1.0)
            q = 1
        return cls(*_leading_rows(host, q), order)


def _leading_rows(P: Array, q: int) -> tuple[Array, Array]:
    """Split the first q rows into the first q columns and the other columns, both contiguous."""
    m = len(P)
    flat = P.T.reshape(-1)
    for j in range(0, m if q < m else 0, COLUMNS_AT_ONCE):
        k = min(j + COLUMNS_AT_ONCE, m)
        # The columns move to the front of the same memory, in groups: a copy would double the peak.
        flat[j * q : k * q].reshape(k - j, q)[:] = flat[j * m : k * m].reshape(k - j, m)[:, :q]
    R = flat[: m * q].reshape(m, q).T
    return R[:, :q], R[:, q:]
