"""Basic FALKON: gradient descent in the coordinates of FALKON's preconditioner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..._messages.checks import as_positive
from ...problems import NystromProblem
from ..base import solvers
from .base import NystromDescent
from .coordinates import Coordinates
from .state import DescentState


@solvers.register("falkongd")
@dataclass(frozen=True)
class FalkonGD(NystromDescent[DescentState]):
    r"""Basic FALKON, equations (11) and (12) of [1]_: preconditioned gradient descent.

    With FALKON's :math:`B B^\top \approx (K_{nm}^\top W K_{nm} / N + \lambda K_{mm})^{-1}`,

    .. math:: \alpha_k = B \beta_k, \quad \beta_k = \beta_{k-1} - \tau\, B^\top \left( K_{nm}^\top W
        (K_{nm} B \beta_{k-1} - y) / N + \lambda K_{mm} B \beta_{k-1} \right)

    Use `Falkon`, which takes the same gradients by conjugate gradient, unless you study the step.

    Parameters
    ----------
    preconditioner_penalty : float, "auto" or None, default="auto"
        As in `Falkon`: the penalty inside B, which is the penalty of the problem if None, as in the
        paper.
    step_scale : float, default=1
        :math:`\tau L`, with L the largest eigenvalue of the preconditioned matrix.

    Notes
    -----
    Cost: as `NystromGD`. The number of iterations grows with the condition number of the
    preconditioned matrix, for `Falkon` with its root.

    ``prediction_error`` is the norm of the gradient over the root of the least eigenvalue, which
    ten passes of Lanczos estimate together with L.

    Departures: the paper calls for "a suitably chosen" :math:`\tau`; it is one over L. The penalty
    inside B, and a singular K_mm, are treated as in `Falkon`.

    References
    ----------
    .. [1] Rudi, Carratino, Rosasco, *FALKON: An optimal large scale kernel method*, NeurIPS 2017,
       equations (10) to (12).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import KernelRidge
    >>> from gramian.solvers import FalkonGD
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = KernelRidge("matern32", lengthscale=5.0, penalty=1e-3, landmarks=100, random_state=0)
    >>> est = est.set_params(solver=FalkonGD(), tol=1e-3, max_iter=200).fit(X, y)
    >>> est.stop_reason_
    'converged'
    """

    preconditioner_penalty: float | Literal["auto"] | None = "auto"

    def build_coordinates(self, problem: NystromProblem) -> Coordinates:
        return Coordinates.build(problem, "falkon", self.preconditioner_penalty)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.preconditioner_penalty not in ("auto", None):
            as_positive(self.preconditioner_penalty, "preconditioner_penalty")
