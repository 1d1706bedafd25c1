"""Exact leverage scores from a factorisation of the kernel matrix, the reference."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _arrays as xp
from ... import _linalg as la
from ..._arrays import Array, Float, RandomStream
from ..._linalg.spectrum import Spectrum
from ..._messages.checks import as_bytes, readable_bytes
from ..._messages.errors import TextError
from ...operators import KernelOperator
from ..base import selectors
from .candidates import Candidates
from .selecting import Level, LeverageSelector, draw_exactly, draw_independently


def exact_scores(
    K: KernelOperator, penalty: float, memory_limit: float | int | str = "8GB"
) -> Float[Array, " n"]:
    r"""Return the leverage scores, :math:`1 - n \lambda\, [(K + n \lambda I)^{-1}]_{ii}`.

    Raises
    ------
    ValueError
        If the matrix exceeds `memory_limit`; raised before any work.

    Notes
    -----
    Cost: n² kernel evaluations, :math:`2 n^3 / 3` operations in float64, 8 n² bytes.
    """
    return _scores_(_dense(K, memory_limit), K.shape[0] * penalty)


def _dense(K: KernelOperator, memory_limit: float | int | str) -> Float[Array, "n n"]:
    n, limit = K.shape[0], as_bytes(memory_limit)
    if 8 * n * n > limit:
        raise TextError(
            f"exact leverage scores of {n:,} rows need {readable_bytes(8 * n * n)}, but "
            f"{{memory_limit}} allows {readable_bytes(limit)}; raise it, take fewer rows, or use "
            "'bless'"
        )
    matrix = K.double().dense()
    la.prepare_(matrix)
    return matrix


def _scores_(matrix: Float[Array, "n n"], shift: float) -> Float[Array, " n"]:
    """Return the leverage scores of a kernel matrix, which is overwritten."""
    R = la.by_columns(matrix)
    # The matrix becomes its factor and then its inverse in place: a copy would double the memory.
    xp.add_(xp.diagonal(R), shift)
    la.cholesky_(R)
    return xp.to_host((1 - shift * la.inverse_diagonal_(R)).clip(0.0, 1.0))


@selectors.register("exact_rls")
@dataclass(frozen=True, kw_only=True)
class ExactRLS(LeverageSelector):
    """Sample by exact ridge leverage scores [1]_.

    Use it as the reference for other selectors, on a few thousand rows.

    Parameters
    ----------
    m : int, optional
        Number of landmarks.
    penalty : float, optional
        Penalty at which leverage scores are computed; it determines the number of landmarks.
    oversampling : float, default=3
        Landmarks over the effective dimension.
    memory_limit : int or str, default="8GB"
        Limit for the kernel matrix of 8 n² bytes.

    Notes
    -----
    Cost: see `exact_scores`.

    References
    ----------
    .. [1] El Alaoui & Mahoney, *Fast randomized kernel ridge regression with statistical
       guarantees*, NeurIPS 2015.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import nystrom_error
    >>> from gramian.data import sample_path
    >>> from gramian.landmarks import ExactRLS
    >>> places = pd.read_parquet(
    ...     sample_path("california_housing"), columns=["latitude", "longitude"]
    ... )
    >>> places = places.sample(1000, random_state=0)
    >>> chosen = ExactRLS(m=60)
    >>> error = nystrom_error("gaussian", places, chosen, lengthscale=1.0, random_state=0)
    >>> print(f"norm of K - K^: {error:.1f}")
    norm of K - K^: 0.5
    """

    memory_limit: float | int | str = "8GB"

    def kept_bytes(self, n: int, d: int, m: int) -> int:
        return 8 * n * n + 48 * n

    def evaluations(self, n: int, m: int) -> int:
        return n * n

    def operations(self, n: int, d: int, m: int) -> float:
        return 2.0 * n**3 / 3

    def sample(self, K: KernelOperator, penalty: float, *, rng: RandomStream) -> Level:
        scores, rows = exact_scores(K, penalty, self.memory_limit), Candidates.all(K)
        dictionary = draw_independently(rows, scores[rows.index], self.oversampling, rng)
        d = float(scores.sum())
        return Level(penalty, dictionary, d, rows.coverage(dictionary, len(scores)))

    def sample_of_size(self, K: KernelOperator, m: int, *, rng: RandomStream) -> Level:
        n = K.shape[0]
        matrix = _dense(K, self.memory_limit)
        least_penalty = 1e-13 * (float(xp.diagonal(matrix).max()) or 1.0)
        # The search for a penalty comes before the scores, which overwrite the matrix.
        penalty = Spectrum.build(lambda v: matrix @ v / n, n, matrix.device).penalty_for(
            m / self.oversampling, least_penalty
        )
        scores, rows = _scores_(matrix, n * penalty), Candidates.all(K)
        dictionary = draw_exactly(rows, scores[rows.index], m, rng)
        return Level(penalty, dictionary, float(scores.sum()), rows.coverage(dictionary, n))
