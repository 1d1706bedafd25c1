"""Conjugate gradient for many right-hand sides, with refinement of the true residual."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from .. import _arrays as xp
from .._arrays import Array, Bool, Float
from .._linalg import extremes_of_lanczos
from .._messages.errors import TextError
from .loop.state import ADDED_LATER, RESIDUAL_KEY, State, StopReason, starting_coef

Linear = Callable[[Array], Array]

REFINE_BELOW = 0.1
"""Default drop of the recursive residual from which the true residual is computed."""

RESIDUAL_AGREEMENT = 0.1
"""Largest difference between a residual and the residual of its iterate, as a fraction."""

LANCZOS_STEPS = 100
"""Steps that estimate the condition number; the estimate has settled by then."""


@dataclass(kw_only=True)
class CGState(State):
    """State of conjugate gradient, enough to resume exactly.

    Attributes
    ----------
    residual, direction : Array of shape (m, t)
    energy : Array of shape (t,)
        Inner product of the residual with the preconditioned residual.
    active : Array of shape (t,)
        Whether a column still moves.
    checked : Array of shape (t,)
        Norms of the residual when it was last computed directly.
    checked_at : int
        Iteration of the last directly computed residual.
    lanczos : Array of shape (k, 2)
        Step lengths and residual ratios of the watched column; see `conjugate_gradient`.
    best : Array of shape (m, t)
        The iterate with the least ``rel_residual`` so far.
    least : float
        The ``rel_residual`` of `best`.
    """

    residual: Float[Array, "m t"]
    direction: Float[Array, "m t"]
    energy: Float[Array, " t"]
    active: Bool[Array, " t"]
    checked: Float[Array, " t"]
    checked_at: int = field(default=0, metadata={ADDED_LATER: True})
    lanczos: Float[Array, "k 2"]
    best: Float[Array, "m t"]
    least: float = math.inf

    @property
    def verdict(self) -> StopReason | None:
        """Stop as "no_progress" if no column can move and some residual is larger than rounding."""
        is_large = self.metrics.get(RESIDUAL_KEY, 0.0) > xp.finfo(self.coef.dtype).eps
        return "no_progress" if is_large and not bool(self.active.any()) else None

    @functools.cached_property
    def extremes(self) -> tuple[float, float]:
        """Estimates of the extreme eigenvalues of the (preconditioned) matrix."""
        return extremes_of_lanczos(self.lanczos[:, 0], self.lanczos[:, 1])

    def with_metrics(self, relative: float) -> CGState:
        """Set the metrics from the largest relative residual, and return the state."""
        smallest, largest = self.extremes
        self.metrics = {RESIDUAL_KEY: relative, "condition": largest / smallest}
        return self


def conjugate_gradient(
    apply: Linear,
    rhs: Float[Array, "m t"],
    *,
    state: State | None = None,
    precondition: Linear | None = None,
    exact_residual: Linear | None = None,
    probes: Float[Array, "m k"] | None = None,
    rounding: float = 1e-5,
    refine_below: float = REFINE_BELOW,
    watched: int | None = None,
    lanczos: Float[Array, "k 2"] | None = None,
) -> Iterator[CGState]:
    """Solve A x = b for the columns of b by (preconditioned) conjugate gradient.

    Parameters
    ----------
    apply : callable
        Products with the symmetric positive definite A, possibly in a lower precision than
        float64.
    rhs : Array of shape (m, t)
    state : State, optional
        A `CGState` to resume from, or a plain state with the starting coefficients. Resuming
        recomputes the residual, at one more product, and raises ValueError if it differs from the
        one stored in the state.
    precondition : callable, optional
        Products with an approximate inverse of A; the identity if None.
    exact_residual : callable, optional
        Map from x to b - A x in float64. With it the iterate is float64, and the solution reaches
        float64 accuracy although `apply` does not.
    probes : Array of shape (m, k), optional
        Directions along which the residual stored in a state is compared with the recomputed one;
        whole columns if None. Give them if x is in coordinates that amplify rounding.
    rounding : float, default=1e-5
        Difference, relative to the right-hand side, that rounding may cause in this comparison.
    refine_below : float, default=0.1
        Drop of the recursive residual after which the exact residual is computed.
    watched : int, optional
        Column whose steps the Lanczos estimates use; the column with the largest right-hand side if
        None. If each column has its own A, pass the column whose A has the least eigenvalue.
    lanczos : Array of shape (k, 2), optional
        Steps of an earlier run with nearly the same matrix, which the eigenvalue estimates include.

    Yields
    ------
    CGState
        With metrics ``rel_residual``, the largest over the columns of the residual relative to
        the right-hand side, and ``condition``, a Lanczos estimate for the (preconditioned) A.

    Notes
    -----
    Columns share only products. A column freezes when its residual is zero to rounding or its
    curvature is not positive, where another step would gain nothing, and divide by rounding errors.
    It
    moves again if a true residual shows that the recursive one was wrong.

    Departure from [1]_: once the recursive residual has dropped far enough, the true residual
    replaces it and the direction restarts. Without this, float32 stalls while the recursion reports
    convergence; with replacement but without the restart it may diverge.

    References
    ----------
    .. [1] Hestenes & Stiefel, *Methods of conjugate gradients for solving linear systems*, 1952.
    """
    norm = _norms(rhs)
    setup = _Setup(
        apply,
        precondition or (lambda r: r),
        exact_residual,
        refine_below,
        norm,
        int(norm.argmax()) if watched is None else watched,
        probes,
        rounding,
    )
    if isinstance(state, CGState):
        _check_residual(setup, rhs, state)
    s = state if isinstance(state, CGState) else _start(setup, rhs, state, lanczos)
    yield s
    while True:
        s = _step(setup, s)
        if s.verdict is not None:
            s = _return_to_best(setup, rhs, s)
        yield s


@dataclass(frozen=True)
class _Setup:
    """The linear system and the constants of all iterations."""

    apply: Linear
    precondition: Linear
    exact_residual: Linear | None
    refine_below: float
    norm: Array
    watched: int
    probes: Array | None
    rounding: float

    def relative(self, norms: Array) -> float:
        """Return the largest norm of a residual, relative to the right-hand side."""
        return float((norms / xp.where(self.norm > 0, self.norm, 1.0)).max())


def _start(setup: _Setup, rhs: Array, state: State | None, lanczos: Array | None = None) -> CGState:
    if lanczos is None:
        lanczos = xp.empty((0, 2), xp.float64, like=rhs)
    elif len(lanczos) > 0:
        # A ratio of zero ends the block of the earlier run, as after a restart.
        lanczos = xp.concat([lanczos[:-1], lanczos[-1:] * xp.asarray([1.0, 0.0], like=lanczos)])
    # The iterate holds more digits than the products, because true residuals correct it.
    dtype = xp.float64 if setup.exact_residual is not None else rhs.dtype
    x = starting_coef(state, xp.cast(rhs, dtype))
    residual = rhs if state is None else _true_residual(setup, x, rhs)
    z = setup.precondition(residual)
    norms = _norms(residual)
    relative = setup.relative(norms)
    iteration = 0 if state is None else state.iteration
    started = CGState(
        iteration=iteration,
        coef=x,
        residual=residual,
        direction=z,
        energy=dot_columns(residual, z),
        active=norms > 0,
        checked=norms,
        checked_at=iteration,
        lanczos=lanczos,
        best=x,
        least=relative,
    )
    return started.with_metrics(relative)


def _true_residual(setup: _Setup, x: Array, rhs: Array) -> Array:
    if setup.exact_residual is not None:
        return xp.cast(setup.exact_residual(x), rhs.dtype)
    return rhs - setup.apply(x)


def _check_residual(setup: _Setup, rhs: Array, s: CGState) -> None:
    """Raise ValueError if the residual of a state differs from the residual of its iterate."""

    def sizes(x: Array) -> Array:
        return _norms(x if setup.probes is None else setup.probes.T @ xp.to_float64(x))

    difference = xp.to_float64(_true_residual(setup, s.coef, rhs)) - xp.to_float64(s.residual)
    # Machines sum in different orders, so that a sound file differs by rounding.
    margin = setup.rounding * sizes(rhs)
    if setup.exact_residual is not None:
        # The recursive residual may be wrong until the exact one replaces it.
        margin += sizes(rhs) * s.checked / xp.where(setup.norm > 0, setup.norm, 1.0)
    if not bool((sizes(difference) <= RESIDUAL_AGREEMENT * sizes(s.residual) + margin).all()):
        stated, apart = (setup.relative(_norms(r)) for r in (s.residual, difference))
        raise TextError(
            "the state reports a relative residual of {:.1e}, but the recomputed residual differs "
            "from it by {:.1e}: the state was changed, belongs to other data, or the penalty is "
            "too small for float32 rows. Start again with {state=State(0, state.coef)}",
            stated,
            apart,
        )


def _step(setup: _Setup, s: CGState) -> CGState:
    q = setup.apply(s.direction)
    curvature = dot_columns(s.direction, q)
    # Rounding alone can make the curvature of a positive-definite matrix nonpositive.
    active = s.active & (curvature > 0)
    alpha = divide_active(s.energy, curvature, active)
    x = s.coef + alpha * s.direction
    # The recursion saves a second product. Its residual drifts from the true one by the rounding of
    # all steps, which `_refine_residual` removes from time to time.
    residual = s.residual - xp.cast(alpha, q.dtype) * q
    # The true residual replaces the recursive one before norms are taken, so that they are true.
    residual, restarted = _refine_residual(setup, s, x, residual, active)
    norms = _norms(residual)
    moving = norms > xp.finfo(x.dtype).eps * setup.norm
    # A true residual may revive columns that the recursive one had frozen by mistake.
    active = moving if restarted else active & moving
    z = setup.precondition(residual)
    energy = dot_columns(residual, z)
    # After a replacement the old direction is no longer conjugate, and keeping it may diverge.
    beta = xp.zeros_like(energy) if restarted else divide_active(energy, s.energy, active)
    lanczos = _append_step(s.lanczos, alpha[setup.watched], beta[setup.watched])
    relative = setup.relative(norms)
    better = relative < s.least
    stepped = replace(
        s,
        iteration=s.iteration + 1,
        coef=x,
        residual=residual,
        direction=z + xp.cast(beta, z.dtype) * s.direction,
        energy=energy,
        active=active,
        checked=norms if restarted else s.checked,
        checked_at=s.iteration + 1 if restarted else s.checked_at,
        lanczos=lanczos,
        best=x if better else s.best,
        least=relative if better else s.least,
    )
    return stepped.with_metrics(relative)


def _return_to_best(setup: _Setup, rhs: Array, s: CGState) -> CGState:
    """Return to the best iterate and its true residual, which rounding may spoil later."""
    residual = _true_residual(setup, s.best, rhs)
    # The metrics are of the true residual, so that the result of a run that rounding has stopped
    # does not claim the recursive one.
    returned = replace(s, coef=s.best, residual=residual)
    return returned.with_metrics(setup.relative(_norms(residual)))


def _refine_residual(
    setup: _Setup, s: CGState, x: Array, residual: Array, active: Array
) -> tuple[Array, bool]:
    """Return the residual, and whether the residual has just been computed directly."""
    # A true residual serves all columns in one pass, so that it waits for the slowest active one.
    due = bool((_norms(residual) <= setup.refine_below * s.checked)[active].all())
    if setup.exact_residual is None or not due:
        return residual, False
    return xp.cast(setup.exact_residual(x), residual.dtype), True


def no_gain(before: CGState, after: CGState) -> bool:
    """Return whether a new true residual is more than half of the previous residual."""
    is_new = after.checked_at > before.checked_at
    return is_new and bool((after.checked > 0.5 * before.checked)[before.active].any())


def _append_step(lanczos: Array, alpha: Array, beta: Array) -> Array:
    """Append a step; after a restart (beta = 0) the recurrence continues as a separate block."""
    # A frozen column has a step of zero, whose inverse would be an entry of the Lanczos matrix.
    if len(lanczos) >= LANCZOS_STEPS or not alpha > 0:
        return lanczos
    row = xp.cast(xp.stack([alpha, beta]), lanczos.dtype)
    return xp.concat([lanczos, row[None]])


def divide_active(numerator: Array, denominator: Array, active: Array) -> Array:
    """Return the quotient in active columns, and zero in other columns."""
    # Both branches of `where` are computed, so the divisor of a frozen column is 1.
    return xp.where(active, numerator / xp.where(active, denominator, 1.0), 0.0)


def dot_columns(a: Array, b: Array) -> Array:
    """Return the inner products of the columns of two matrices, in float64."""
    # Sums of float32 products over many rows would lose the digits that decide convergence.
    return (xp.to_float64(a) * xp.to_float64(b)).sum(axis=0)


def _norms(a: Array) -> Array:
    return xp.sqrt(dot_columns(a, a))
