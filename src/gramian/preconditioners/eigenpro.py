"""Preconditioner of EigenPro, which reduces the largest eigenvalues, and its step lengths."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float, Int, RandomStream
from ..data import RowSource
from ..lowrank import POWER_SAFETY
from ..operators import KernelOperator, largest_diagonal
from .samples import (
    MOST_EIGENPAIRS,
    ResidualMatrix,
    Sample,
    automatic_rank,
    automatic_subsample,
    compute_eigenpairs,
    flattening,
    largest_residual,
    most_eigenpairs,
    target_batch,
)

UNSEEN_SHARE = 0.55
"""Lower bound on the residual of k(x, x) for rows not known in advance, as a share of k(x, x)."""

CONTRACTION_EPOCHS = 5
"""Epochs within which a flattened direction contracts, however few rows there are."""

COMMON_ROUNDING = {xp.float32: 6e-5, xp.float64: 1e-12}
"""Part of k(x, x) that rounding leaves common to all rows instead of being flattened."""

DECAY_MARGIN = 300
"""Least ratio of flattened eigenvalues to a decay, which would dominate smaller ones."""

BETA_ROUNDING = 1e3
"""Rounding error of the residual of k(x, x), in units of eps."""

STEP_FACTOR = 1.5
"""The step, relative to the step that the theory shows to be stable; the limit is 2."""


@dataclass(frozen=True)
class EigenProFactor:
    r"""Preconditioner of EigenPro, :math:`P = I - \sum_{i \le q} \dots`, from a subsample S.

    With :math:`(l_i, e_i)` the eigenpairs of :math:`K_{SS} / s`, the largest first, gradients
    :math:`K_{\cdot B}\, g` become

    .. math:: K_{\cdot B}\, g - K_{\cdot S} U U^\top K_{SB}\, g, \qquad
        U U^\top = \frac1s \sum_{i \le q} \frac{1 - (l_{q+1} / l_i)^a}{l_i} e_i e_i^\top

    so that the eigenvalues above :math:`l_{q+1}` decrease to about :math:`l_{q+1}`. For s = n and a
    = 1 this is :math:`K (I - Q)` with the Q of [2]_; the formula comes from [1]_, eq. (30) of [3]_.

    Attributes
    ----------
    points : RowSource of shape (s, d)
    index : Array of shape (s,)
        Indices of the points among the rows.
    vectors : Array of shape (s, q)
        The matrix U, float64.
    values : Array of shape (q + 1,)
        :math:`l_1, \dots, l_q`, with the ridge, and the value to which they decrease.
    beta : float
        The largest residual of :math:`k(x, x)` under the preconditioner, with weight and ridge,
        over all rows. For augmented rows it is the maximum over the fresh sample, and at least 0.55
        of the value without preconditioner.
    top : float
        The largest eigenvalue of the preconditioned matrix over the number of rows, measured.
    longest : float
        The longest step per row: infinite if `beta` covers all rows, else 1 / (0.55 k(x, x)), so
        that no single row can make the method diverge.
    features : Array of shape (n, q), or None
        :math:`K_{XS} U` of all rows, in their dtype, if stored: the preconditioned kernel is K
        minus their inner products.

    Notes
    -----
    Observation weights, relative to their mean, enter as :math:`\Omega^{1/2} K \Omega^{1/2}`, and a
    ridge as the kernel k + ridge [x = x'], like any other kernel.

    Cost: n s kernel evaluations, and 2 s² for the subsample and a fresh sample of s rows, 4/3 s³
    operations for the eigenvectors in float64 (LAPACK). For float32 rows and an automatic rank,
    which flattens no eigenvalue near rounding, eigenvectors are computed in float32, and if they
    are few by `subspace_eigenpairs`: 8 s² q operations. Memory: 28 s² bytes meanwhile, then 8 s q.
    Kernels that are not stationary take a pass over the rows for `beta`.

    Departures: the published codes use :math:`l_{q+1}` of the subsample as the largest remaining
    eigenvalue, which it underestimates. This class measures it with power steps on the fresh
    sample, times ``1.1``. q is the number of eigenvalues with :math:`\beta / l_i` below the
    batch, n / 4 between 512 and 4,096, at least 5, at most 1,000, and at most s / 10 if s < n,
    because a subsample determines no more. (The code of [1]_ uses the batch that fits into memory.
    But flattened directions contract by beta / top rows, and stall if that is more than an epoch.)
    Batches are a quarter of the critical batch, beta / top: an epoch then makes 1.6 times the
    progress. The codes use k(x, x) for `beta`; its residual under the preconditioner allows a
    longer step, as in theory.

    `beta` is measured, once, over all rows that the solver uses: n s kernel evaluations and 2 n s q
    operations, one more pass over a sequential source. Augmented rows are not known in advance: for
    them it is at least 0.55 k(x, x), and the step at most 1 / 0.55 of 1 / k(x, x).

    With an automatic rank, eigenvalues decrease to :math:`l_{q+1}`, but not below beta over the
    target batch, at most 5 n, and 6e-5 of k(x, x) (1e-12 for float64 rows; this also bounds `top`,
    because rounding is alike in equal rows), nor below 300 times the decay of EigenPro 3. Below
    these, a direction contracts more slowly than the step allows, and if the kernel is nearly flat,
    the mean of the targets is never learned.

    The step is 1.5 times the step of the theory; the codes take 1 to 2 times theirs. On 20 random
    problems, neither solver diverged. They took 1.20 times the epochs of the best step in hindsight
    in the median and 2.4 times at worst: ``benchmarks/results/large_steps.md``.

    References
    ----------
    .. [1] Ma & Belkin, *Kernel machines that adapt to GPUs for effective large batch training*,
       MLSys 2019.
    .. [2] Ma & Belkin, *Diving into the shallows: a computational perspective on large-scale
       shallow learning*, NeurIPS 2017.
    .. [3] Abedsoltan, Belkin, Pandit, *Toward large kernel models*, ICML 2023, arXiv:2302.02605.
    """

    points: RowSource
    index: Int[Array, " s"]
    vectors: Float[Array, "s q"]
    values: Float[Array, " k"]
    beta: float
    top: float
    longest: float
    features: Float[Array, "n q"] | None = None

    @classmethod
    def build(
        cls,
        K: KernelOperator,
        *,
        subsample: int | None = None,
        rank: int | None = None,
        exponent: float | int = 0.95,
        most: int = MOST_EIGENPAIRS,
        weights: Float[Array, " n"] | None = None,
        ridge: float | int = 0.0,
        decay: float | int = 0.0,
        change: Callable[[Array], Array] | None = None,
        features_bytes: int = 0,
        rng: RandomStream,
    ) -> EigenProFactor:
        """Build the factor for the rows of an operator.

        Parameters
        ----------
        K : KernelOperator of shape (n, m)
            The columns of the operator are not used.
        subsample, rank : int, optional
            The numbers s of rows and q of eigenpairs; automatic if None.
        exponent : float, default=0.95
            The exponent a, below 1 for safety if s < n, because with 1 the solver may diverge.
        most : int, default=1000
            Largest automatic number of eigenpairs.
        weights : Array of shape (n,), optional
            Observation weights relative to their mean.
        decay : float, default=0
            Decay of the function in solvers without a ridge, per row and unit of step.
        change : callable, optional
            Augmentation of rows before kernel evaluation.
        features_bytes : int, default=0
            Memory for the features of all rows, which are stored if they fit and rows are fixed.
        """
        # 1. The eigenvectors fit their own sample too well: a fresh sample of the rows shows the
        # part of the kernel that they miss, which determines the step.
        n = K.shape[0]
        sample, fresh = draw_samples(K, subsample, weights, change, rng)
        s = len(sample.index)
        # 2. The ridge is part of the kernel k + ridge [x = x'], so that it counts in the diagonal.
        diagonal = largest_diagonal(K, weights) + float(ridge)
        values, V = _flattened_eigenpairs(sample, rank, most, float(ridge), diagonal, rng)
        residual = ResidualMatrix.build(fresh, sample, V, float(ridge), n)
        # 3. Limits below which numbers are rounding of entries. Augmented rows are not known before
        # the fit, so that `beta` has a floor of its own for them.
        rounding = COMMON_ROUNDING[K.dtype] * diagonal
        has_all_rows = change is None
        floor = BETA_ROUNDING * xp.finfo(K.dtype).eps if has_all_rows else UNSEEN_SHARE
        if rank is None:
            # 4. Raise the level to which eigenvalues decrease: below it, directions contract more
            # slowly than the step allows. The test needs a residual, so that the scale is computed
            # twice.
            scale = xp.sqrt(flattening(values, float(exponent)) / s)
            stall_level = stalling_eigenvalue(residual.scale(scale), floor * diagonal, n)
            values[-1] = max(float(values[-1]), stall_level + rounding, DECAY_MARGIN * decay)
        scale = xp.sqrt(flattening(values, float(exponent)) / s)
        residual = residual.scale(scale)
        # 5. `beta` is the largest diagonal entry of the residual: over all rows of the solver,
        # because a single row that the sample has missed would let the step diverge.
        measured, features = residual.diagonal(), None
        if has_all_rows:
            measured, features = largest_residual(
                K, sample, V * scale, float(ridge), weights, features_bytes
            )
        beta = max(measured, floor * diagonal)
        # 6. Power steps approach the largest eigenvalue from below, hence the safety factor.
        top = max(POWER_SAFETY * residual.largest(rng), rounding)
        longest = math.inf if has_all_rows else 1 / (UNSEEN_SHARE * diagonal)
        # With the scale and the roots of the weights in the vectors, `correction` is U U' h alone.
        vectors = sample.root[:, None] * (V * scale)
        return cls(sample.rows, sample.index, vectors, values, beta, top, longest, features)

    @property
    def rank(self) -> int:
        """Number q of flattened directions."""
        return self.vectors.shape[1]

    def correction(self, h: Float[Array, "s t"]) -> Float[Array, "s t"]:
        """Return U U' h, for h = K_SB g. Cost: 4 s q t operations."""
        return self.vectors @ (self.vectors.T @ xp.to_float64(h))

    def batch(self, decay: float | int = 0.0) -> int:
        """Return a quarter of the critical batch; at the critical batch, steps halve."""
        # The bounds keep the batch a finite integer where `top` is tiny.
        return int(min(self.beta / max(4 * (self.top + decay), self.beta * 1e-9), 1e9)) + 1

    def step(self, batch: int, decay: float | int = 0.0) -> float:
        """Return the step per row of a batch; twice this step may diverge.

        The step is 1.5 / (beta + (batch - 1) (top + decay)): theorem 4 of [1]_, see the class
        docstring, has 1, and the limit of stability is 2. It is at most `longest`.
        """
        step = STEP_FACTOR / (self.beta + (batch - 1) * (self.top + float(decay)))
        return min(step, self.longest)

    def settings(self) -> dict[str, int | float]:
        """Return the chosen settings, for display."""
        return {
            "subsample": len(self.index),
            "rank": self.rank,
            "tail": float(self.values[-1]),
            "top": self.top,
            "beta": self.beta,
        }


def stalling_eigenvalue(residual: ResidualMatrix, least: float, n: int) -> float:
    """Return the eigenvalue below which flattened directions would stall.

    Lower values would not allow longer steps either.
    """
    beta = max(residual.diagonal(), least)
    return beta / min(target_batch(n), CONTRACTION_EPOCHS * n)


def draw_samples(
    K: KernelOperator,
    subsample: int | None,
    weights: Float[Array, " n"] | None,
    change: Callable[[Array], Array] | None,
    rng: RandomStream,
) -> tuple[Sample, Sample]:
    """Return rows for the eigenvectors, and fresh rows for their residual.

    Both come from the two ends of one random order, so that they overlap as little as n allows.
    """
    n = K.shape[0]
    s = min(n, subsample or automatic_subsample(n, K.memory_bytes))
    order = rng.permutation(n)
    sample = Sample.take(K, order[:s], weights, change)
    return sample, sample if s == n else Sample.take(K, order[n - s :], weights, change)


def _flattened_eigenpairs(
    sample: Sample,
    rank: int | None,
    max_pairs: int,
    ridge: float,
    diagonal: float,
    rng: RandomStream,
) -> tuple[Float[Array, " _"], Float[Array, "s q"]]:
    """Return q + 1 eigenvalues of K_SS / s, descending, and the first q eigenvectors."""
    n, s = sample.K.shape[0], len(sample.index)
    # One eigenvalue more is needed: it is the level to which the others decrease.
    max_pairs = min(s - 1, most_eigenpairs(s, n, max_pairs) if rank is None else rank)
    coarse = rank is None and sample.K.dtype == xp.float32
    values, V = compute_eigenpairs(sample, ridge, min(max_pairs + 1, s), rng, coarse=coarse)
    # Rounding may make the least eigenvalues negative, of which the flattening takes powers.
    values = (values / s).clip(min=0)
    q = automatic_rank(values, max_pairs, diagonal, n) if rank is None else max_pairs
    return values[: q + 1], V[:, :q]
