"""Standard deviations of predictions, and detection of rows out of range."""

from __future__ import annotations

from ... import _arrays as xp
from ..._arrays import Array, Bool, Float
from ..._messages.checks import readable_bytes
from ...data import RowSource
from ...engines import Engine
from ...operators import KernelOperator
from ..base import KernelPart, Model
from .factors import RowFactors, Variance, diagonal_of

LEAST_BLOCKS, MOST_BLOCKS = 48 << 20, 1 << 30
"""Memory for blocks of rows, in addition to a factor."""


def residual_variance(
    model: KernelPart, rows: RowSource, engine: str | Engine, memory_bytes: int
) -> tuple[Variance, Float[Array, " n"]]:
    """Return the `Variance` of a model, and the residual variance v of unprepared rows.

    Cost: n m kernel evaluations in float64 and 2 n m² operations.

    Raise ValueError if the model has no variance, or all rows are centers and their factor,
    which this method recomputes, exceeds the memory.
    """
    if model.variance is None:
        raise ValueError(
            "the model has no standard deviations; call predict(X, return_std=True) of the fitted "
            "estimator before saving it, or give --std to gramian fit"
        )
    factors = model.variance.factors
    # Files and copies leave out the n² numbers of the inverse factor: the first call computes them.
    if isinstance(factors, RowFactors) and factors.inverse is None:
        needed = 8 * len(model.centers) ** 2 + LEAST_BLOCKS
        if needed > memory_bytes:
            raise ValueError(
                f"the standard deviations of {len(model.centers):,} centers require "
                f"{readable_bytes(needed)}, but the memory limit is "
                f"{readable_bytes(memory_bytes)}; raise the limit, or fit landmarks"
            )
        factors.inverse_factor(KernelOperator(model.kernel, model.centers, model.centers))
    # Float64 below, because v is a small difference of numbers near k(x, x).
    blocks = min(max(memory_bytes - factors.bytes, LEAST_BLOCKS), MOST_BLOCKS)
    K = xp.to_float64(
        KernelOperator(model.kernel, model.prepare_rows(rows), model.centers, engine, blocks // 3)
    )
    diagonal = diagonal_of(K)
    # A strip, and two more of its size: the solution and the squares.
    return model.variance, K.over_strips(factors.unexplained_variance, diagonal)


def deviations(
    model: Model, rows: RowSource, engine: str | Engine, memory_bytes: int, *, by_errors: bool
) -> Float[Array, "n t"]:
    """Return standard deviations; see `Model.deviations`."""
    if by_errors:
        return _by_errors(model, rows, engine, memory_bytes)
    total = far_terms = slope = xp.zeros((), xp.float64)
    for share, part in zip(model.shares, model.parts, strict=True):
        variance_of_part, v = residual_variance(part, rows, engine, memory_bytes)
        # The mean of the variances bounds the variance of the mean, however correlated the members
        # are.
        total = total + share * (v[:, None] * variance_of_part.scale + variance_of_part.noise)
        # The clamp is left to the sum: out of range is a property of the average, not of a member.
        far_terms = far_terms + share * (v - variance_of_part.limit)
        slope = slope + share * variance_of_part.beyond
    return xp.sqrt(total + far_terms.clip(min=0.0)[:, None] * slope)


def _by_errors(
    model: Model, rows: RowSource, engine: str | Engine, memory_bytes: int
) -> Float[Array, "n t"]:
    """Return deviations by the `ErrorScale` of one of the kernel models.

    Out of range, the variance grows with v as without an `ErrorScale`.
    """
    v = far_terms = slope = xp.zeros((), xp.float64)
    for share, part in zip(model.shares, model.parts, strict=True):
        variance_of_part, v_of_part = residual_variance(part, rows, engine, memory_bytes)
        v = v + share * v_of_part
        far_terms = far_terms + share * (v_of_part - variance_of_part.limit)
        slope = slope + share * (variance_of_part.scale + variance_of_part.beyond)
    for part in model.parts:
        if part.variance is not None and (errors := part.variance.errors) is not None:
            prepared = part.prepare_rows(rows)
            K = KernelOperator(part.kernel, prepared, part.centers, engine, MOST_BLOCKS)
            total = errors.variance(K.double(), v)
            return xp.sqrt(total + far_terms.clip(min=0.0)[:, None] * slope)
    raise ValueError(
        "the model has no deviations by errors; call predict(X, return_std='errors') of the fitted "
        "estimator before saving it"
    )


def out_of_range(
    model: Model, rows: RowSource, engine: str | Engine, memory_bytes: int
) -> Bool[Array, " n"]:
    """Return a mask of rows far from the training rows; see `Model.out_of_range`."""
    beyond = xp.zeros((), xp.float64)
    for share, part in zip(model.shares, model.parts, strict=True):
        variance_of_part, v = residual_variance(part, rows, engine, memory_bytes)
        beyond = beyond + share * (v - variance_of_part.limit)
    # Not `beyond >= 0`: a row whose variance is NaN is out of range.
    return ~(beyond < 0)
