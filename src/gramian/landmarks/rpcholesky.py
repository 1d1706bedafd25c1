"""Selector whose landmarks are the pivots of a randomly pivoted Cholesky factorisation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from .. import _arrays as xp
from .._arrays import Array, Float, Int, RandomStream
from .._messages.checks import as_count
from ..lowrank import ZERO_RESIDUAL_SHARE, PartialCholesky, pivoted_cholesky
from ..operators import KernelOperator
from .base import Landmarks, SizeOrPenalty, cap_size, selectors

CHOLESKY_METHODS = ("accelerated", "simple", "block", "greedy")
SAME_LANDMARK_DISTANCE = 1e-12
"""Squared kernel distance, relative to k(x, x), below which two rows are the same landmark."""
FILL_ROWS = 512


@selectors.register("rpcholesky")
@dataclass(frozen=True)
class RPCholesky(SizeOrPenalty):
    r"""Draw each landmark with a probability proportional to the residual of k(x, x).

    The residual is what earlier landmarks leave of k(x, x). The Nystrom approximation :math:`\hat
    K` of the landmarks has a certificate, :math:`\hat K \le K \le \hat K + \mathrm{tr}(K - \hat K)
    I`.

    Use it to reach an error with the fewest landmarks, for the fewest iterations of FALKON, or for
    the certificate.

    Parameters
    ----------
    m : int, optional
        Number of landmarks. `Landmarks.penalty` is then the residual trace / n, and at least 1e-13
        of the trace / n.
    penalty : float, optional
        Penalty :math:`\lambda`: rows are drawn until the residual trace is at most :math:`n
        \lambda`: :math:`\hat K \le K \le \hat K + n \lambda I`.
    method : str, default="accelerated"
        ``"accelerated"``, ``"simple"`` (the same distribution, one row at a time), ``"block"`` or
        ``"greedy"``; see `pivoted_cholesky`.
    block : int, optional
        Rows drawn together; see `pivoted_cholesky`.
    tol : float, default=0
        Stop, with fewer than m landmarks, at a residual trace of at most tol · trace.
    weights : str, default="voronoi"
        Landmark weights, which cannot be inverse probabilities, because these are unknown for
        pivots. ``"voronoi"``: m times the share of the rows that are nearest to this landmark, in
        the distance of the kernel, from entries that are evaluated anyway. ``"ones"``: as for
        uniform landmarks.

    Notes
    -----
    Rows that equal a landmark are never chosen. If the rank of K is below m, to rounding, the
    remaining landmarks are drawn uniformly among rows that the kernel distinguishes from landmarks;
    they do not change the span. There are fewer than m landmarks only if there are fewer distinct
    rows. `Landmarks.info` has ``rank``, the number of pivots, ``trace`` and ``residual_trace``.

    Cost: about n m kernel evaluations and n m² multiplications, 8 n m bytes of memory.

    The reason for Voronoi weights: FALKON with its paper's preconditioner took 49 to 60 iterations
    to 1e-6 with them and 123 to 156 with ones, on California housing with m = 500, penalty 1e-6 and
    a Gaussian of lengthscales 1 and 2; uniform landmarks took 174 to 203.

    References
    ----------
    .. [1] Chen, Epperly, Tropp, Webber, *Randomly pivoted Cholesky: Practical approximation of a
       kernel matrix with few entry evaluations*, Comm. Pure Appl. Math. 78, 2025.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import nystrom_error
    >>> from gramian.data import sample_path
    >>> from gramian.landmarks import RPCholesky, Uniform
    >>> places = pd.read_parquet(
    ...     sample_path("california_housing"), columns=["latitude", "longitude"]
    ... )
    >>> places = places.sample(1000, random_state=0)
    >>> for chosen in (Uniform(60), RPCholesky(60)):
    ...     error = nystrom_error("gaussian", places, chosen, lengthscale=1.0, random_state=0)
    ...     print(f"norm of K - K^: {error:.1f}")
    norm of K - K^: 8.7
    norm of K - K^: 0.1
    """

    _: KW_ONLY
    method: str = "accelerated"
    block: int | None = None
    tol: float = 0.0
    weights: str = "voronoi"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in CHOLESKY_METHODS:
            names = ", ".join(CHOLESKY_METHODS)
            raise ValueError(f"method must be one of {names}, not {self.method!r}")
        if self.weights not in ("voronoi", "ones"):
            raise ValueError(f"weights must be 'voronoi' or 'ones', not {self.weights!r}")
        if not 0 <= self.tol < 1:
            raise ValueError(f"tol must be a share of the trace, at least 0, not {self.tol!r}")
        if self.block is not None:
            as_count(self.block, "the number of rows in a block")

    def kept_bytes(self, n: int, d: int, m: int) -> int:
        return 8 * n * m + 48 * n

    def operations(self, n: int, d: int, m: int) -> float:
        return 2.0 * n * m * m

    def select(self, K: KernelOperator, *, rng: RandomStream) -> Landmarks:
        self.check_rows(K.rows)
        n = K.shape[0]
        m = None if self.m is None else cap_size(self.m, n)
        # Without a number of landmarks the factor may grow to n columns.
        K = K.fitting_device(8 * n * (n if m is None else m))
        # The cells are filled while the factorisation has the columns of its pivots: a pass of its
        # own would evaluate all of them again.
        cells = Cells(K.double().diag())
        cholesky = pivoted_cholesky(
            K,
            m,
            tol=self.tol,
            target=n * (self.penalty or 0.0),
            method=self.method,
            block=self.block,
            rng=rng,
            watch=cells.add,
        )
        cells.reassign(cholesky)
        # A zero matrix has no pivots, but some row must represent all.
        index = fill_up(cholesky, 1 if m is None or self.tol else m, cells, rng)
        weight = (
            cells.weights(index) if self.weights == "voronoi" else xp.ones(len(index), xp.float32)
        )
        # The penalty at which the landmarks are good: the residual per row, bounded from below by
        # its rounding, because a penalty must be positive.
        least_trace = ZERO_RESIDUAL_SHARE * cholesky.trace
        penalty = self.penalty or max(cholesky.residual_trace, least_trace) / n
        return Landmarks(
            K.points(index),
            xp.to_float64(weight),
            index,
            penalty=penalty,
            coverage=len(index) / n,
            info={
                "rank": float(len(cholesky.pivots)),
                "trace": cholesky.trace,
                "residual_trace": cholesky.residual_trace,
            },
        )


class Cells:
    """Assignment of each row i to the nearest landmark j, with the largest K_ij - K_jj / 2.

    Arguments and results with row numbers are on the host, other tensors with the diagonal.

    Attributes
    ----------
    best : Array of shape (n,)
        The largest K_ij - K_jj / 2 of each row.
    owner : Array of shape (n,)
        Row number of the nearest landmark.
    """

    def __init__(self, diagonal: Float[Array, " n"]) -> None:
        self.diagonal = diagonal
        # The first landmark is nearer than none, whatever its number.
        self.best = xp.full_like(diagonal, -xp.inf)
        self.owner = xp.full(diagonal.shape, -1, like=diagonal)

    def add(self, part: slice, columns: Float[Array, "b a"], index: Int[Array, " a"]) -> None:
        """Assign the rows of a slice to new landmarks that are nearer than the old landmarks.

        The landmarks are `index`; `columns` is K[part, index]. Other rows keep their owner.
        """
        index = xp.cast_like(index, self.owner)
        value, nearest = xp.max_with_index(columns - self.diagonal[index] / 2, 1)
        closer = value > self.best[part]
        self.best[part] = xp.where(closer, value, self.best[part])
        self.owner[part] = xp.where(closer, index[nearest], self.owner[part])

    def reassign(self, cholesky: PartialCholesky) -> None:
        """Reassign the rows of discarded pivots to the remaining pivots."""
        pivots = xp.cast_like(cholesky.pivots, self.owner)
        # A block of pivots may be cut after `add` has seen all of its columns.
        lost = xp.flatnonzero(~xp.isin(self.owner, pivots))
        if len(pivots) == 0 or len(lost) == 0:
            self.best[lost] = -xp.inf
            return
        at_pivots = cholesky.factor[pivots].T
        for rows in xp.split(lost, max(1, (1 << 22) // len(pivots))):
            # F F' agrees with K in the columns of pivots.
            columns = cholesky.factor[rows] @ at_pivots
            value, nearest = xp.max_with_index(columns - self.diagonal[pivots] / 2, 1)
            self.best[rows], self.owner[rows] = value, pivots[nearest]

    def are_distinct(self, rows: Int[Array, " b"]) -> Array:
        """Return a mask of the rows that the kernel distinguishes from all landmarks."""
        distance = self.diagonal[rows] - 2 * self.best[rows]
        return xp.to_host(distance > SAME_LANDMARK_DISTANCE * self.diagonal[rows])

    def weights(self, index: Int[Array, " m"]) -> Float[Array, " m"]:
        """Return m times the share of the rows in the cell of each landmark."""
        n = len(self.owner)
        self.owner[index] = xp.cast_like(
            index, self.owner
        )  # a landmark owns itself, despite rounding
        count = xp.bincount(xp.to_host(self.owner), minlength=n)[index]
        return xp.to_float64(count) * (len(index) / n)


def fill_up(cholesky: PartialCholesky, m: int, cells: Cells, rng: RandomStream) -> Int[Array, " m"]:
    """Return the pivots and, up to m, random distinct rows that differ from the pivots."""
    index, n = cholesky.pivots, len(cholesky.residual)
    if len(index) >= m:
        return index
    # The factorisation ends where only rounding of K is left. Further landmarks must still differ
    # from all others: equal ones would make K_mm singular, and waste their number.
    for candidates in xp.split(rng.permutation(n), FILL_ROWS):
        distinct_candidates = candidates[cells.are_distinct(candidates)]
        new = distinct_candidates[
            _first_distinct(
                cholesky.factor[distinct_candidates], cells.diagonal[distinct_candidates]
            )
        ]
        new = new[: m - len(index)]
        # The cells must know the new landmarks before the next candidates are compared with them. F
        # F' is K to rounding: their columns cost no kernel evaluations.
        for part in _parts(n) if len(new) else []:
            cells.add(part, cholesky.factor[part] @ cholesky.factor[new].T, new)
        index = xp.concat([index, new])
        if len(index) == m:
            break
    return index


def _parts(n: int, size: int = 1 << 14) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _first_distinct(F: Float[Array, "b k"], diagonal: Float[Array, " b"]) -> Array:
    """Return a mask of the rows that differ from all earlier rows."""
    # The factor spans all of K to rounding here, so no kernel entry is evaluated.
    G = F @ F.T
    distance = xp.diagonal(G)[:, None] + xp.diagonal(G) - 2 * G
    alike = distance <= SAME_LANDMARK_DISTANCE * diagonal[:, None]
    return ~xp.to_host(xp.tril(alike, -1).any(axis=1))
