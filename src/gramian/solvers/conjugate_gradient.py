"""Conjugate gradient for many right-hand sides, with refinement of the true residual."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .._linalg import condition_of_lanczos
from .._messages.errors import TextError
from .loop.metrics import RESIDUAL_KEY
from .loop.state import State, starting_coef
from .loop.stopping import StopReason

Linear = Callable[[Tensor], Tensor]

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
    residual, direction : Tensor of shape (m, t)
    energy : Tensor of shape (t,)
        Inner product of the residual with the preconditioned residual.
    active : Tensor of shape (t,)
        Whether a column still moves.
    checked : Tensor of shape (t,)
        Norms of the residual when it was last computed directly.
    lanczos : Tensor of shape (k, 2)
        Step lengths and residual ratios of the watched column; see `conjugate_gradient`.
    best : Tensor of shape (m, t)
        The iterate with the least ``rel_residual`` so far.
    least : float
        The ``rel_residual`` of `best`.
    """

    residual: Float[Tensor, "m t"]
    direction: Float[Tensor, "m t"]
    energy: Float[Tensor, " t"]
    active: Bool[Tensor, " t"]
    checked: Float[Tensor, " t"]
    lanczos: Float[Tensor, "k 2"]
    best: Float[Tensor, "m t"]
    least: float = math.inf

    @property
    def verdict(self) -> StopReason | None:
        """No progress if no column can move and some residual is larger than rounding."""
        is_large = self.metrics.get(RESIDUAL_KEY, 0.0) > torch.finfo(self.coef.dtype).eps
        return "no_progress" if is_large and not bool(self.active.any()) else None


def conjugate_gradient(
    apply: Linear,
    rhs: Float[Tensor, "m t"],
    *,
    state: State | None = None,
    precondition: Linear | None = None,
    exact_residual: Linear | None = None,
    probes: Float[Tensor, "m k"] | None = None,
    rounding: float = 1e-5,
    refine_below: float = REFINE_BELOW,
    watched: int | None = None,
) -> Iterator[CGState]:
    """Solve A x = b for the columns of b by (preconditioned) conjugate gradient.

    Parameters
    ----------
    apply : callable
        Products with the symmetric positive definite A, possibly in a lower precision than
        float64.
    rhs : Tensor of shape (m, t)
    state : State, optional
        A `CGState` to resume from, or a plain state with the starting coefficients. Resuming
        recomputes the residual, at one more product, and raises ValueError if it differs from the
        one stored in the state.
    precondition : callable, optional
        Products with an approximate inverse of A; the identity if None.
    exact_residual : callable, optional
        Map from x to b - A x in float64. With it the iterate is float64, and the solution reaches
        float64 accuracy although `apply` does not.
    probes : Tensor of shape (m, k), optional
        Directions along which the residual stored in a state is compared with the recomputed one;
        whole columns if None. Give them if x is in coordinates that amplify rounding.
    rounding : float, default=1e-5
        Difference, relative to the right-hand side, that rounding may cause in this comparison.
    refine_below : float, default=0.1
        Drop of the recursive residual after which the exact residual is computed.
    watched : int, optional
        Column whose steps the Lanczos estimates use; the column with the largest right-hand side if
        None. If each column has its own A, pass the column whose A has the least eigenvalue.

    Yields
    ------
    CGState
        With metrics ``rel_residual``, the largest over the columns of the residual relative to
        the right-hand side, and ``condition``, a Lanczos estimate for the (preconditioned) A.

    Notes
    -----
    Columns share only products. A column freezes when its residual is zero to rounding or its
    curvature is not positive: another step would gain nothing, and divide by rounding errors. It
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
    s = state if isinstance(state, CGState) else _start(setup, rhs, state)
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
    norm: Tensor
    watched: int
    probes: Tensor | None
    rounding: float

    def metrics(self, residual: Tensor, lanczos: Tensor) -> dict[str, float]:
        relative = _norms(residual) / torch.where(self.norm > 0, self.norm, 1.0)
        condition = condition_of_lanczos(lanczos[:, 0], lanczos[:, 1])
        return {RESIDUAL_KEY: float(relative.max()), "condition": condition}

    def floor(self, dtype: torch.dtype) -> Tensor:
        return torch.finfo(dtype).eps * self.norm


def _start(setup: _Setup, rhs: Tensor, state: State | None) -> CGState:
    # The iterate holds more digits than the products, because true residuals correct it.
    dtype = torch.float64 if setup.exact_residual is not None else rhs.dtype
    x = starting_coef(state, rhs.to(dtype))
    residual = rhs if state is None else _true_residual(setup, x, rhs)
    z = setup.precondition(residual)
    metrics = setup.metrics(residual, rhs.new_empty(0, 2))
    return CGState(
        iteration=0 if state is None else state.iteration,
        coef=x,
        metrics=metrics,
        residual=residual,
        direction=z,
        energy=dot_columns(residual, z),
        active=_norms(residual) > 0,
        checked=_norms(residual),
        lanczos=torch.empty(0, 2, dtype=torch.float64, device=rhs.device),
        best=x,
        least=metrics[RESIDUAL_KEY],
    )


def _true_residual(setup: _Setup, x: Tensor, rhs: Tensor) -> Tensor:
    if setup.exact_residual is not None:
        return setup.exact_residual(x).to(rhs.dtype)
    return rhs - setup.apply(x)


def _check_residual(setup: _Setup, rhs: Tensor, s: CGState) -> None:
    """Raise ValueError if the residual of a state differs from the residual of its iterate."""

    def sizes(x: Tensor) -> Tensor:
        return _norms(x if setup.probes is None else setup.probes.T @ x.double())

    difference = _true_residual(setup, s.coef, rhs).double() - s.residual.double()
    # Machines sum in different orders, so that a sound file differs by rounding.
    margin = setup.rounding * sizes(rhs)
    if setup.exact_residual is not None:
        # The recursive residual may be wrong until the exact one replaces it.
        margin += sizes(rhs) * s.checked / torch.where(setup.norm > 0, setup.norm, 1.0)
    if not bool((sizes(difference) <= RESIDUAL_AGREEMENT * sizes(s.residual) + margin).all()):
        stated, apart = (
            setup.metrics(r, s.lanczos)[RESIDUAL_KEY] for r in (s.residual, difference)
        )
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
    residual = s.residual - alpha.to(q.dtype) * q
    # The true residual replaces the recursive one before norms are taken, so that they are true.
    residual, restarted = _refine_residual(setup, s, x, residual, active)
    moving = _norms(residual) > setup.floor(x.dtype)
    # A true residual may revive columns that the recursive one had frozen by mistake.
    active = moving if restarted else active & moving
    z = setup.precondition(residual)
    energy = dot_columns(residual, z)
    # After a replacement the old direction is no longer conjugate, and keeping it may diverge.
    beta = torch.zeros_like(energy) if restarted else divide_active(energy, s.energy, active)
    lanczos = _append_step(s.lanczos, alpha[setup.watched], beta[setup.watched])
    metrics = setup.metrics(residual, lanczos)
    better = metrics[RESIDUAL_KEY] < s.least
    return replace(
        s,
        iteration=s.iteration + 1,
        coef=x,
        metrics=metrics,
        residual=residual,
        direction=z + beta.to(z.dtype) * s.direction,
        energy=energy,
        active=active,
        checked=_norms(residual) if restarted else s.checked,
        lanczos=lanczos,
        best=x if better else s.best,
        least=metrics[RESIDUAL_KEY] if better else s.least,
    )


def _return_to_best(setup: _Setup, rhs: Tensor, s: CGState) -> CGState:
    """Return to the best iterate and its true residual, because rounding may spoil later ones."""
    residual = _true_residual(setup, s.best, rhs)
    return replace(s, coef=s.best, residual=residual, metrics=setup.metrics(residual, s.lanczos))


def _refine_residual(
    setup: _Setup, s: CGState, x: Tensor, residual: Tensor, active: Tensor
) -> tuple[Tensor, bool]:
    """Return the residual, and whether it has just been computed directly."""
    # A true residual serves all columns in one pass, so that it waits for the slowest active one.
    due = bool((_norms(residual) <= setup.refine_below * s.checked)[active].all())
    if setup.exact_residual is None or not due:
        return residual, False
    return setup.exact_residual(x).to(residual.dtype), True


def no_gain(before: CGState, after: CGState) -> bool:
    """Return whether a new true residual is more than half of the previous one."""
    is_new = not torch.equal(before.checked, after.checked)
    return is_new and bool((after.checked > 0.5 * before.checked)[before.active].any())


def _append_step(lanczos: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """Append a step; after a restart (beta = 0) the recurrence continues as a separate block."""
    # A frozen column has a step of zero, whose inverse would be an entry of the Lanczos matrix.
    if len(lanczos) >= LANCZOS_STEPS or not alpha > 0:
        return lanczos
    row = torch.stack([alpha, beta]).to(lanczos.dtype)
    return torch.cat([lanczos, row[None]])


def divide_active(numerator: Tensor, denominator: Tensor, active: Tensor) -> Tensor:
    """Return the quotient in active columns, and zero in the others."""
    # Both branches of `where` are computed, so the divisor of a frozen column is 1.
    return torch.where(active, numerator / torch.where(active, denominator, 1.0), 0.0)


def dot_columns(a: Tensor, b: Tensor) -> Tensor:
    """Return the inner products of the columns of two matrices, in float64."""
    # Sums of float32 products over many rows would lose the digits that decide convergence.
    return (a.double() * b.double()).sum(dim=0)


def _norms(a: Tensor) -> Tensor:
    return dot_columns(a, a).sqrt()
