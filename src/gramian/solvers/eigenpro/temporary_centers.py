"""Sum of the steps of EigenPro 3 since the last projection, as a function."""

from __future__ import annotations

from dataclasses import replace

from ... import _arrays as xp
from ..._arrays import Array, Float
from ...data import Batches, as_rows, scratch
from ...operators import KernelOperator
from .state import Segment


class TemporaryCenters:
    """Function to which the steps since the last projection add up, with its values on Z.

    The function is k(., X_tmp) a + k(., X_s) U b: X_tmp are the temporary centers, X_s the rows of
    the preconditioner, U its eigenvectors, and a and b coefficients.

    Between `enter` and `leave` it collects the steps of the batches of a segment, whose rows and
    kernel entries are in memory. The rows of the segment then become temporary centers.

    - `K`: operator of any rows with the centers Z.
    - `K_Zs_U`: K(Z, X_s) U.
    - `t`: number of targets.
    - `delay`: T, the number of batches between two projections. Their rows become temporary
      centers, in a temporary file if they exceed the memory budget of K.
    """

    def __init__(
        self,
        K: KernelOperator,
        K_Zs_U: Float[Array, "p q"],
        t: int,
        delay: int,
        batches: Batches,
    ) -> None:
        self._K, self._K_Zs_U, self._t = K, K_Zs_U, t
        # The last batch before a projection never becomes a center.
        rows = min(delay - 1, len(batches)) * batches.size
        self._points = _empty(K, rows)
        self._a = xp.empty((rows, t), like=K_Zs_U)
        self._b = xp.zeros((K_Zs_U.shape[1], t), like=K_Zs_U)
        self._h = xp.zeros((K.shape[1], t), like=K_Zs_U)
        self._used, self._stepped = 0, False

    @property
    def h(self) -> Float[Array, "p t"]:
        """Values of the function on the centers."""
        return self._h + self._K_Zs_U @ self._b

    def enter(self, segment: Segment, alpha: Float[Array, "p t"]) -> None:
        """Begin a segment, for coefficients alpha of the centers."""
        self._segment = segment
        self._a_x = xp.zeros((len(segment.x), self._t), like=self._b)
        # Within a segment these functions only decay, so that their values are computed once.
        self._before = segment.K_bZ @ alpha
        if self._used:
            K = replace(self._K, rows=as_rows(segment.x), cols=as_rows(self._points[: self._used]))
            self._before += K @ self._a[: self._used]

    def values(self, batch: slice) -> Float[Array, "b t"]:
        """Return the values of both functions at the rows of a batch in the segment."""
        f, segment = self._before[batch], self._segment
        if self._stepped:
            f = f + segment.K_bs_U[batch] @ self._b
        # The first batch of a segment has no earlier rows in it.
        if batch.start and segment.K_bb is not None:
            f = f + segment.K_bb[batch] @ self._a_x
        return f

    def decay_(self, factor: float) -> None:
        """Multiply both functions by a factor, in place."""
        # Without a penalty the pass over all vectors is left out.
        if factor != 1:
            for part in (self._a[: self._used], self._b, self._h, self._a_x, self._before):
                part *= factor

    def add_(self, batch: slice, a: Float[Array, "b t"]) -> None:
        """Add k^P(., X_m) a: coefficients of the batch rows, and -U' K(X_s, X_m) a on X_s."""
        self._a_x[batch] = a
        self._b -= self._segment.K_bs_U[batch].T @ a
        self._stepped = True

    def leave(self) -> None:
        """Add the segment's values on the centers; keep its rows unless a projection follows."""
        segment = self._segment
        self._h += segment.K_bZ.T @ self._a_x
        del self._segment
        if segment.due:
            return
        x = segment.x
        part = slice(self._used, self._used + len(x))
        self._points[part] = x if not xp.is_sparse(x) else xp.to_dense(x)
        self._a[part] = self._a_x
        self._used = part.stop

    def clear(self) -> None:
        """Reset the function to zero after a projection."""
        self._used, self._stepped = 0, False
        xp.fill_(self._b, 0)
        xp.fill_(self._h, 0)


def _empty(K: KernelOperator, rows: int) -> Array:
    """Allocate rows on the device of the products, in memory or in a file."""
    shape, dtype = (rows, K.rows.shape[1]), K.rows.dtype
    if not xp.is_host(K.device):
        return xp.empty(shape, dtype, like=K)
    return scratch(shape, dtype, K.host_bytes)
