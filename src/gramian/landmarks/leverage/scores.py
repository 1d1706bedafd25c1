"""Ridge leverage scores: the part of each row that other rows do not explain, at a penalty.

    l_i = [K (K + n penalty I)⁻¹]_ii = (K_ii - k_i' (K + n penalty I)⁻¹ k_i) / (n penalty)

A weighted dictionary approximates them; every selector of this package computes one. Their sum is
the effective dimension. Matrices are on the device of the operator, scores and dictionaries on the
host.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, Float, Int
from ..._linalg.spectrum import Spectrum
from ...data import Cast, as_rows
from ...operators import KernelOperator, diagonal
from ..base import Landmarks

SOLVED_ENTRIES = 1 << 19
"""Entries against a dictionary that are solved for at once on the host, with three copies."""

DICTIONARY_MATRICES = 3
"""Most matrices of a dictionary in memory: the factorised one, a copy, and blocks."""


@dataclass(frozen=True)
class Dictionary:
    r"""Sampled rows J, with weights by which they represent all rows.

    The weights are the diagonal of A in eq. (3) of the BLESS paper.

    - `index`: row numbers without repetition. No two rows are equal, unless the function that
      returns the dictionary documents equal rows.
    - `copies`: inclusion probability of a group of equal rows divided by the size of the group, so
      that :math:`\sum_j \phi_j \phi_j^\top / \mathrm{copies}_j` has the mean :math:`\sum_i \phi_i
      \phi_i^\top`.
    """

    index: Int[Array, " k"]
    copies: Float[Array, " k"]

    @classmethod
    def empty(cls) -> Dictionary:
        """Return a dictionary without rows."""
        return cls(xp.empty(0, xp.int64), xp.empty(0, xp.float64))

    @classmethod
    def uniform(cls, index: Int[Array, " k"], copies: float = 1.0) -> Dictionary:
        """Return a dictionary in which all rows have the same expected number of copies."""
        return cls(index, xp.full((len(index),), copies, dtype=xp.float64))

    @classmethod
    def of(cls, chosen: Landmarks, n: int) -> Dictionary:
        """Convert landmarks to a dictionary; raise ValueError if they are not rows."""
        if chosen.index is None:
            raise ValueError("leverage scores need landmarks that are rows of the data")
        return cls(chosen.index, len(chosen.index) / (n * xp.to_float64(chosen.weight)))

    def __len__(self) -> int:
        return len(self.index)

    def weights(self, n: int) -> Float[Array, " k"]:
        """Return the landmark weight of each row, for n rows; see `Landmarks.weight`."""
        return len(self) / (n * self.copies)


@dataclass(frozen=True)
class Scorer:
    r"""Function that approximates the leverage scores of any rows by a dictionary, eq. (3) of [1]_.

    .. math:: \tilde\ell_i = \frac{1}{n\lambda}
        \left(K_{ii} - K_{Ji}^\top (K_{JJ} + n \lambda A)^{-1} K_{Ji}\right)

    With R'R the matrix in brackets, it is the difference of K_ii and a sum of squares. All
    quantities are float64 for all dtypes, because small scores cancel; results are clipped to the
    range of a score.

    References
    ----------
    .. [1] Rudi, Calandriello, Carratino, Rosasco, *On fast leverage score sampling and optimal
       learning*, NeurIPS 2018.
    """

    K: KernelOperator
    points: Array
    factor: Float[Array, "k k"]
    shift: float

    @classmethod
    def build(cls, K: KernelOperator, dictionary: Dictionary, penalty: float) -> Scorer:
        """Factorise the matrix. Cost: k² kernel evaluations and k³ / 3 operations; 8 k² bytes."""
        points = K.rows.take(dictionary.index) if len(dictionary) else xp.empty((0, 0), xp.float32)
        shift = K.shape[0] * penalty
        if len(dictionary) == 0:
            return cls(K, points, xp.empty((0, 0), xp.float64), shift)
        K = K.fitting_device(DICTIONARY_MATRICES * 8 * len(dictionary) ** 2)
        A = gram(K, points)
        return cls(
            K, points, _regularised_factor_(A, shift * xp.cast_like(dictionary.copies, A)), shift
        )

    def __call__(self, index: Int[Array, " r"] | None = None) -> Float[Array, " r"]:
        """Return the scores of rows `index`, or of all n rows.

        Cost: k kernel evaluations and k² operations per row.
        """
        if index is not None and len(index) == 0:
            return xp.empty(0, xp.float64)
        K = self.K.double()
        rows = K if index is None else K[index]
        explained = xp.zeros(rows.shape[0], xp.float64)
        if len(self.factor):
            # Eq. (3): the score is the part of k(x, x) that the dictionary does not explain. An
            # empty dictionary explains nothing, and the scores are k(x, x) over the shift.
            on_device, k = la.is_on_device(self.factor), len(self.factor)
            at_once = self.K.shape[0] if on_device else max(1, SOLVED_ENTRIES // k)
            squares = _Squares.of(self.factor, at_once)
            explained = rows.against(self.points).over_strips(squares)
        # The diagonal is float64: the difference from the explained part cancels for small scores.
        own = xp.to_host(diagonal(K, rows.rows))
        bound = (own / self.shift).clip(max=1.0)
        # Rounding may exceed the bounds of a score, and scores become probabilities.
        return xp.minimum(((own - explained) / self.shift).clip(min=0.0), bound)


@dataclass(frozen=True, eq=False)
class _Squares:
    """Function that returns the squared norms of R'⁻¹ k for the rows k' of a strip.

    - `factor`: R⁻¹, by columns, because products are faster than solves (by half for 300 columns);
      on a device R.
    """

    factor: Float[Array, "k k"]
    at_once: int

    @classmethod
    def of(cls, R: Float[Array, "k k"], at_once: int) -> _Squares:
        """Build the function from a triangular factor. Cost: k³ / 3 operations."""
        if la.is_on_device(R):
            return cls(R, at_once)
        inverse = xp.copy(R)  # by columns, too
        la.invert_triangle_(inverse)
        return cls(inverse, at_once)

    def __call__(self, strip: Float[Array, "b k"]) -> Float[Array, " b"]:
        """Return the squared norms for the rows of a strip, which is overwritten, on the host."""
        return xp.to_host(xp.concat([self._solve(part) for part in xp.split(strip, self.at_once)]))

    def _solve(self, x: Float[Array, "b k"]) -> Float[Array, " b"]:
        if la.is_on_device(x):
            x = xp.solve_triangular(self.factor, x, upper=True, left=False)
        else:
            la.times_triangle_(x := xp.contiguous(x), self.factor)
        return xp.square(x).sum(axis=1)


def own_scores(
    K: KernelOperator, points: Array, copies: Float[Array, " k"], penalty: float
) -> Float[Array, " k"]:
    r"""Return the leverage scores of the rows of a dictionary among these rows alone.

    :math:`K - K (K + S)^{-1} K = S - S (K + S)^{-1} S` with :math:`S = n \lambda A` turns eq. (3)
    into :math:`\tilde\ell_i = A_{ii} (1 - S_{ii} [(K_{JJ} + S)^{-1}]_{ii})`.

    Cost: k² kernel evaluations, 2 k³ / 3 operations.
    """
    shift = K.shape[0] * penalty
    A = gram(K.fitting_device(DICTIONARY_MATRICES * 8 * len(copies) ** 2), points)
    # Before the factorisation overwrites the diagonal of A.
    bound = (xp.to_host(xp.diagonal(A)) / shift).clip(max=1.0)
    R = _regularised_factor_(A, shift * xp.cast_like(copies, A))
    scores = copies * (1 - shift * copies * xp.to_host(la.inverse_diagonal_(R)))
    return xp.minimum(scores.clip(min=0.0), bound)


def gram(K: KernelOperator, points: Array) -> Float[Array, "k k"]:
    """Return the kernel matrix of some points in float64."""
    # One source on both sides makes the diagonal exact.
    own = Cast(as_rows(points), xp.float64)
    return replace(K, rows=own, cols=own).dense()


def _regularised_factor_(A: Array, ridge: Array) -> Float[Array, "k k"]:
    """Overwrite A by R, upper triangular: R'R = A + diag(ridge), with a jitter if singular."""
    la.prepare_(A)
    R = la.by_columns(A)
    xp.add_(xp.diagonal(R), ridge)
    la.cholesky_with_jitter_(R, xp.float64, exact=True)
    return R


def spectrum(K: KernelOperator, dictionary: Dictionary) -> Spectrum:
    """Estimate the spectrum of K / n by W K_JJ W / n, for a dictionary J with W² = A⁻¹."""
    A = gram(K, K.rows.take(dictionary.index))
    root = xp.rsqrt(K.shape[0] * xp.cast_like(dictionary.copies, A))[:, None]
    return Spectrum.build(lambda v: root * (A @ (root * v)), len(A), A.device)
