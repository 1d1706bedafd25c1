"""EigenProFactor: the top of a kernel's spectrum, flattened, and the steps that this allows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..data import RowSource
from ..lowrank import POWER_SAFETY
from ..operators import KernelOperator, largest_diagonal
from ._sample import Left, Sample, largest_left
from .eigenpairs import (
    MOST_EIGENPAIRS,
    aimed_batch,
    automatic_rank,
    automatic_subsample,
    flattening,
    most_eigenpairs,
    top_of,
)

UNSEEN_SHARE = 0.55
"""Of k(x, x) at least this much is taken to be left where rows to come cannot be seen."""

CONTRACTION_EPOCHS = 5
"""A flattened direction contracts within about so many epochs, however few rows there are."""

COMMON_ROUNDING = {torch.float32: 6e-5, torch.float64: 1e-12}
"""Part of k(x, x) that rounding leaves all rows in common where it should be flattened."""

DECAY_MARGIN = 300
"""Flattened directions stay this many times above a decay, which else would be all they feel."""

BETA_ROUNDING = 1e3
"""Units of rounding to which the rest of k(x, x) is known."""

STEP_FACTOR = 1.5
"""The step in units of the one that the theory shows to be stable; the limit is 2."""


@dataclass(frozen=True)
class EigenProFactor:
    r"""The preconditioner of EigenPro, :math:`P = I - \sum_{i \le q} \dots`, from a subsample S.

    With :math:`(l_i, e_i)` the eigenpairs of :math:`K_{SS} / s`, the largest first, gradients
    :math:`K_{\cdot B}\, g` become

    .. math:: K_{\cdot B}\, g - K_{\cdot S} U U^\top K_{SB}\, g, \qquad
        U U^\top = \frac1s \sum_{i \le q} \frac{1 - (l_{q+1} / l_i)^a}{l_i} e_i e_i^\top

    so that the eigenvalues above :math:`l_{q+1}` come down to about that. For s = n and a = 1
    this is :math:`K (I - Q)` with the Q of [2]_; the formula is that of [1]_, eq. (30) of [3]_.

    Attributes
    ----------
    points : RowSource of shape (s, d)
    index : Tensor of shape (s,)
        Row numbers of the points.
    vectors : Tensor of shape (s, q)
        U, float64.
    values : Tensor of shape (q + 1,)
        :math:`l_1, \dots, l_q`, with the ridge, and the level to which they come down.
    beta : float
        The largest :math:`k(x, x)` that the preconditioner leaves, with weight and ridge, of all
        rows; of rows that are augmented of those of the fresh sample, and 0.55 of what it is
        without the preconditioner at least.
    top : float
        The largest eigenvalue of the preconditioned matrix over the number of rows, measured.
    longest : float
        The longest step per row: infinite where `beta` is that of all rows, else 1 / 0.55 of
        1 / k(x, x), so that no single row can make it diverge.
    features : Tensor of shape (n, q), or None
        :math:`K_{XS} U` of all rows, in their dtype, if asked for: the preconditioned kernel is K
        less their inner products.

    Notes
    -----
    Observation weights, relative to their mean, enter as :math:`\Omega^{1/2} K \Omega^{1/2}`, a
    ridge as the kernel k + ridge [x = x'], of which nothing else is asked than of any kernel.

    Cost: n s kernel evaluations, and 2 s² for the subsample and a fresh sample of s rows, 4/3 s³
    operations for the eigenvectors in float64 (LAPACK). For float32 rows and an automatic rank,
    which flattens nothing near rounding, they are float32, and for few of many rows by
    `subspace_eigenpairs`: 8 s² q. Memory 28 s² bytes meanwhile, then 8 s q.
    Kernels that are not stationary take a pass over the rows for `beta`.

    Departures: the published codes take :math:`l_{q+1}` of the subsample for the largest
    eigenvalue that is left, which it underestimates; here it is measured with power steps on the
    fresh sample, ``1.1`` times. q is the number of eigenvalues with :math:`\beta / l_i` below the
    batch, n / 4 between 512 and 4,096 (in the code of [1]_ what fits into memory: but flattened
    directions contract by beta / top rows, and wait if that is more than an epoch), at least 5, at
    most 1,000, and at most s / 10 if s < n: a subsample says little beyond. Batches are a quarter
    of the critical ones, beta / top: an epoch then goes 1.6 times as far. The codes take
    k(x, x) for `beta`; what the preconditioner leaves of it allows a longer step, as in theory.

    `beta` is measured, once, over all rows that the solver will see: n s kernel evaluations and
    2 n s q operations, a pass more over a sequential source. Rows that are augmented cannot be
    seen: there it is at least 0.55 k(x, x), and the step at most 1 / 0.55 of 1 / k(x, x).

    With an automatic rank eigenvalues come down to :math:`l_{q+1}`, but not below beta over the
    batch that the rank aims at, at most 5 n, and 6e-5 of k(x, x) (1e-12 for float64 rows; that is
    the least `top` there is, too, since rounding is alike in equal rows), nor 300 times the decay
    of EigenPro 3: below, a direction contracts more slowly than the step allows, and where the
    kernel is nearly flat the mean of the targets is never learned.

    The step is 1.5 times that of the theory; the codes take 1 to 2 times theirs. On 20 random
    problems with either solver it did not diverge, and took 1.20 times the epochs of the best step
    in hindsight in the median and 2.4 times at worst: ``benchmarks/results/large_steps.md``.

    References
    ----------
    .. [1] Ma & Belkin, *Kernel machines that adapt to GPUs for effective large batch training*,
       MLSys 2019.
    .. [2] Ma & Belkin, *Diving into the shallows: a computational perspective on large-scale
       shallow learning*, NeurIPS 2017.
    .. [3] Abedsoltan, Belkin, Pandit, *Toward large kernel models*, ICML 2023, arXiv:2302.02605.
    """

    points: RowSource
    index: Int[Tensor, " s"]
    vectors: Float[Tensor, "s q"]
    values: Float[Tensor, " k"]
    beta: float
    top: float
    longest: float
    features: Float[Tensor, "n q"] | None = None

    @classmethod
    def build(
        cls,
        K: KernelOperator,
        *,
        subsample: int | None = None,
        rank: int | None = None,
        exponent: float | int = 0.95,
        most: int = MOST_EIGENPAIRS,
        weights: Float[Tensor, " n"] | None = None,
        ridge: float | int = 0.0,
        decay: float | int = 0.0,
        change: Callable[[Tensor], Tensor] | None = None,
        features_bytes: int = 0,
        rng: torch.Generator,
    ) -> EigenProFactor:
        """Return the factor for the rows of an operator.

        Parameters
        ----------
        K : KernelOperator of shape (n, m)
            Its columns are of no consequence.
        subsample, rank : int, optional
            s and q; automatic if None.
        exponent : float, default=0.95
            a. Below 1 for safety where s < n: with 1 it may diverge.
        most : int, default=1000
            Eigenpairs at most, if their number is automatic.
        weights : Tensor of shape (n,), optional
            Relative to their mean.
        ridge : float, default=0
        decay : float, default=0
            What solvers without a ridge let the function decay by, per row and unit of step.
        change : callable, optional
            What is done to rows before the kernel sees them: augmentation.
        features_bytes : int, default=0
            Memory for the features of all rows, which are kept if they fit and rows do not change.
        rng : torch.Generator
        """
        n = K.shape[0]
        s = min(n, subsample or automatic_subsample(n, K.memory_bytes))
        order = torch.randperm(n, generator=rng)
        sample = Sample.take(K, order[:s], weights, change)
        fresh = sample if s == n else Sample.take(K, order[n - s :], weights, change)
        diagonal = largest_diagonal(K, weights) + float(ridge)
        most = min(s - 1, most_eigenpairs(s, n, most) if rank is None else rank)
        coarsely = rank is None and K.dtype == torch.float32
        values, vectors = top_of(sample, float(ridge), min(most + 1, s), rng, coarsely=coarsely)
        values = (values / s).clamp(min=0)
        q = automatic_rank(values, most, diagonal, n) if rank is None else most
        values, V = values[: q + 1], vectors[:, :q]
        left = Left.build(fresh, sample, V, float(ridge), n)
        coarse = COMMON_ROUNDING[K.dtype] * diagonal
        seen, least = change is None, BETA_ROUNDING * torch.finfo(K.dtype).eps
        if rank is None:  # no lower than the step asks for, or what is flattened has to wait
            measured = left.scaled((flattening(values, float(exponent)) / s).sqrt()).diagonal()
            beta = max(measured, (least if seen else UNSEEN_SHARE) * diagonal)
            wait = beta / min(aimed_batch(n), CONTRACTION_EPOCHS * n)
            values[-1] = max(float(values[-1]), wait + coarse, DECAY_MARGIN * decay)
        scale = (flattening(values, float(exponent)) / s).sqrt()
        left = left.scaled(scale)
        features = None
        if seen:
            if n * q * K.dtype.itemsize <= features_bytes:
                features = torch.empty(n, q, dtype=K.dtype, device=K.device)
            measured = largest_left(K, sample, V * scale, float(ridge), weights, features)
            beta = max(measured, least * diagonal)
        else:
            beta = max(left.diagonal(), UNSEEN_SHARE * diagonal)
        return cls(
            points=sample.rows,
            index=sample.index,
            vectors=sample.root[:, None] * (V * scale),
            values=values,
            beta=beta,
            top=max(POWER_SAFETY * left.largest(rng), coarse),
            longest=math.inf if seen else 1 / (UNSEEN_SHARE * diagonal),
            features=features,
        )

    @property
    def rank(self) -> int:
        """Return q."""
        return self.vectors.shape[1]

    def correction(self, h: Float[Tensor, "s t"]) -> Float[Tensor, "s t"]:
        """Return U U' h, for h = K_SB g. Cost: 4 s q t operations."""
        return self.vectors @ (self.vectors.t() @ h.double())

    def batch(self, decay: float | int = 0.0) -> int:
        """Return a quarter of the critical batch, at which steps would be half as long."""
        return int(min(self.beta / max(4 * (self.top + decay), self.beta * 1e-9), 1e9)) + 1

    def step(self, batch: int, decay: float | int = 0.0) -> float:
        """Return the step, per row of a batch; a step of twice that may diverge.

        1.5 / (beta + (batch - 1) (top + decay)): theorem 4 of [1]_, of the class docstring, has 1,
        and 2 is the limit of stability. At most `longest`.
        """
        step = STEP_FACTOR / (self.beta + (batch - 1) * (self.top + float(decay)))
        return min(step, self.longest)

    def settings(self) -> dict[str, int | float]:
        """Return the numbers that were chosen, for the eye."""
        return {
            "subsample": len(self.index),
            "rank": self.rank,
            "tail": float(self.values[-1]),
            "top": self.top,
            "beta": self.beta,
        }
