"""Partial Cholesky factorisation of a kernel matrix with random pivots: RPCholesky."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .. import _arrays as xp
from .. import _linalg as la
from .._arrays import Array, Float, Int, RandomStream
from ..data import Subset, as_rows
from ..operators import KernelOperator
from ._pivots import Elimination, Pivoting, pivoting

STRIP_ENTRIES = 1 << 19
"""Entries of new columns computed at once on the host, with three copies."""

ZERO_RESIDUAL_SHARE = 1e-13
"""The residual of a row is zero if it is below this share of the row's k(x, x)."""

Watch = Callable[[slice, Array, Array], None]


@dataclass(frozen=True)
class PartialCholesky:
    """Factor F with F F' = K_nS K_SS⁻¹ K_Sn, the Nystrom approximation of the pivots S.

    - `factor`: float64, on the device of K, like `residual`; pivots are on the host. Row
      ``pivots[j]`` is zero after column j.
    - `pivots`: distinct row indices S, in the order of the columns.
    - `residual`: diagonal of K - F F', at least zero.
    - `trace`: trace of K.
    """

    factor: Float[Array, "n k"]
    pivots: Int[Array, " k"]
    residual: Float[Array, " n"]
    trace: float

    @property
    def residual_trace(self) -> float:
        """Trace of K - F F', which bounds its norm: F F' <= K <= F F' + residual_trace I."""
        return float(self.residual.sum())


def pivoted_cholesky(
    K: KernelOperator,
    k: int | None = None,
    *,
    tol: float = 0.0,
    target: float = 0.0,
    method: str = "accelerated",
    block: int | None = None,
    rng: RandomStream,
    watch: Watch | None = None,
) -> PartialCholesky:
    """Factorise K partially, with pivots drawn in proportion to the diagonal of the residual.

    The factorisation stops at k pivots, when the residual trace falls to ``max(tol * trace,
    target)``, or when only rounding is left, whichever comes first.

    Parameters
    ----------
    K : KernelOperator of shape (n, n)
        Operator of any row source. Entries are computed in float64.
    k : int, optional
        Largest number of pivots; n if None.
    tol, target : float, default=0
        Residual trace to reach, relative to the trace of K and absolute.
    method : str, default="accelerated"
        ``"simple"`` [1]_ draws one row after the other; ``"accelerated"`` [2]_ draws pivots of the
        same distribution by rejection from rows drawn together, in matrix-matrix products;
        ``"block"`` [1]_ accepts most of the rows drawn together, which is worse on clustered data;
        ``"greedy"`` uses the largest residual and is not random.
    block : int, optional
        Rows drawn together by ``"block"``, and at first by ``"accelerated"``, which adapts it;
        k / 10 and at least 10 if None.
    watch : callable, optional
        Receives the kernel columns as they are computed: ``watch(rows, columns, pivots)`` with a
        slice of rows and columns of shape (rows, a) for a row numbers. If the target is reached in
        the middle of a block, the last of these pivots are discarded.

    Notes
    -----
    Cost: n k kernel evaluations, plus the entries among rows drawn together (below about n k / 4,
    or ten per pivot, in an accelerated run); n k² multiplications. Each block reads the rows twice,
    a sequential source in two passes: about 15 blocks for k pivots, k with "simple".

    Memory: 8 n k bytes, touched only as pivots are added; without k, up to 20 n k as it grows.

    Departures from the papers: counted kernel entries determine the size of blocks; a block in
    which the target is reached is cut there, so that there are no more pivots than with the simple
    method; residuals below 1e-13 of k(x, x) are zero.

    References
    ----------
    .. [1] Chen, Epperly, Tropp, Webber, *Randomly pivoted Cholesky: Practical approximation of a
       kernel matrix with few entry evaluations*, Comm. Pure Appl. Math. 78, 2025,
       arXiv:2207.06503.
    .. [2] Epperly, Tropp, Webber, *Embrace rejection: Kernel matrix approximation by accelerated
       randomly pivoted Cholesky*, 2024, arXiv:2410.03969.
    """
    max_rank = K.shape[0] if k is None else min(k, K.shape[0])
    rule = pivoting(method, k, block)
    # Residuals are differences of nearly equal numbers: with float32 entries they would be rounding
    # long before the factorisation has k pivots.
    state = _GrowingFactor(K.double(), k)
    goal = max(tol * state.trace, target)
    while state.rank < max_rank and float(state.residual.sum()) > goal:
        accepted = state.extend(rule, max_rank - state.rank, goal, rng, watch)
        rule.learn(accepted, state.rank, K.shape[0])
    return state.result()


class _GrowingFactor:
    """Factor that grows by blocks of columns.

    The buffer holds F', so that new columns, and the growing factor, are contiguous.
    """

    def __init__(self, K: KernelOperator, k: int | None) -> None:
        n = K.shape[0]
        self.K, self.rank = K, 0
        # Without a limit the buffer grows, because n² numbers may not fit.
        first = min(64, n) if k is None else min(k, n)
        self.buffer = xp.empty((first, n), xp.float64, like=K)
        self.pivots = xp.empty(0, xp.int64)
        self.residual = xp.copy(K.diag())
        # NaN would make the comparison with the goal false, and the result would silently have no
        # pivots.
        la.require_finite(self.residual[:, None])
        self.floor = ZERO_RESIDUAL_SHARE * self.residual
        self.trace = float(self.residual.sum())

    def extend(
        self, rule: Pivoting, most: int, goal: float, rng: RandomStream, watch: Watch | None
    ) -> int:
        """Draw rows, accept some of them as pivots, and return their number."""
        drawn = rule.draw(self.residual, rng)
        rows = as_rows(self.K.rows.take(drawn))
        at_drawn = self.buffer[: self.rank, drawn]
        # The residual among the drawn rows alone decides which of them become pivots: full columns,
        # n entries each, are evaluated for these only.
        H = replace(self.K, rows=rows, cols=rows).dense() - at_drawn.T @ at_drawn
        # Pivots are eliminated one after the other, with a few numbers each: on the host.
        small = Elimination(xp.to_host(H), xp.to_host(self.floor[drawn]))
        # The summed residual may exceed its floor although this difference does not.
        self.residual[drawn[small.residual <= small.floor]] = 0
        rule.accept(small, most, rng)
        if not small.chosen:
            return 0
        chosen = xp.array(small.chosen, xp.int64)
        pivots = drawn[chosen]
        columns = self.K.against(Subset(rows, chosen))
        self._add_columns(columns, pivots, xp.cast_like(small.factor, self.buffer), watch)
        return self._accept(pivots, goal)

    def _add_columns(
        self, columns: KernelOperator, pivots: Array, L: Array, watch: Watch | None
    ) -> None:
        """Write L⁻¹ (K[S, :] - F[S] F') behind the rank of the buffer, strip by strip."""
        r, a = self.rank, len(pivots)
        self._make_room(r + a)
        at_pivots = self.buffer[:r, pivots].T
        size = self.buffer.shape[1] if la.is_on_device(self.buffer) else max(1, STRIP_ENTRIES // a)
        for part, strip in columns.strips():
            # The strip is cut further on the host, so that its three copies stay small.
            entries = xp.cast_like(strip.T, L)
            for start in range(part.start, part.stop, size):
                rows = slice(start, min(start + size, part.stop))
                block = entries[:, start - part.start : rows.stop - part.start]
                new = xp.addmm(block, at_pivots, self.buffer[:r, rows], alpha=-1)
                self.buffer[r : r + a, rows] = xp.solve_triangular(L, new, upper=False)
            if watch is not None:
                watch(part, xp.cast_like(strip, L), pivots)

    def _accept(self, pivots: Array, goal: float) -> int:
        """Accept new columns until the goal is reached, and return their number."""
        new = self.buffer[self.rank : self.rank + len(pivots)]
        # The trace after each new column decides where the block is cut.
        traces = self.residual.sum() - xp.square(xp.norm(new, axis=1)).cumsum(axis=0)
        count = min(int((traces > goal).sum()) + 1, len(pivots))
        self.residual -= xp.square(xp.norm(new[:count], axis=0))
        self.residual[self.residual <= self.floor] = 0
        # Rounding leaves a residual at the pivots, which must not be drawn again.
        self.residual[pivots[:count]] = 0
        self.pivots = xp.concat([self.pivots, pivots[:count]])
        self.rank += count
        return count

    def _make_room(self, rank: int) -> None:
        capacity, n = self.buffer.shape
        if rank > capacity:
            # Growth by a factor: all copies together cost no more than a few of the last one.
            larger = xp.empty((min(max(rank, 3 * capacity // 2), n), n), like=self.buffer)
            larger[: self.rank] = self.buffer[: self.rank]
            self.buffer = larger

    def result(self) -> PartialCholesky:
        return PartialCholesky(self.buffer[: self.rank].T, self.pivots, self.residual, self.trace)
