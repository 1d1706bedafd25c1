"""Solvers: algorithms for the problems, each one file or folder, each a generator of states.

A `Solver` is a value: its fields are hyperparameters. ``solver.iterate(problem)`` yields the state
at the start and after each iteration, without end. `solve`, in `loop`, is the only loop. `solve`
alone handles stopping, time, history, callbacks and divergence::

    result = solve(problem, Falkon(), stop=[tolerance(1e-6), max_iterations(20)])
    model = problem.model(result.state.coef)

A yielded state is enough to resume exactly: ``solve(..., state=state)``. A plain
``State(0, coef)`` is a starting point instead.

===========  ===============  ==============================================================
name         problem          method
===========  ===============  ==============================================================
direct       both             factorisation in float64: the reference solution
pcg          FullProblem      preconditioned conjugate gradient, K never stored
askotch      FullProblem      accelerated block coordinate descent, memory of order n
skotch       FullProblem      the same without momentum
eigenpro1    FullProblem      gradient descent with the top of the spectrum of K flattened
eigenpro2    FullProblem      the same with a subsample's spectrum, in mini-batches
falkon       NystromProblem   conjugate gradient with FALKON's preconditioner
eigenpro3    NystromProblem   mini-batches from a stream, projected onto many centers
sketchysaga  NystromProblem   preconditioned gradients with variance reduction, memory of order m
nystromgd    NystromProblem   gradient descent, in functions or in coefficients: a baseline
nystromsgd   NystromProblem   the same in mini-batches
nytro        NystromProblem   least squares regularised by the number of iterations
falkongd     NystromProblem   gradient descent with FALKON's preconditioner
newton       LossProblem      Newton steps on a path of penalties, for losses besides the square
===========  ===============  ==============================================================

EigenPro also supports penalty 0: the number of epochs then regularises. The fixed point of EigenPro
3 is a weighted least-squares solution and not the solution of the problem.

The file of an algorithm begins with the loop of its paper. An algorithm of several files has a
folder.

To add a solver: one file with a `State` subclass and a registered `Solver`, one import line here.
"""

from __future__ import annotations

from typing import Any

from .askotch.askotch import ASkotch, Skotch
from .askotch.state import ASkotchState
from .base import Callback, Solver, solvers
from .conjugate_gradient import CGState, conjugate_gradient
from .cost import BLOCK_BYTES, PANEL_ROWS, ProblemSize
from .direct import Direct
from .eigenpro.eigenpro1 import EigenPro1
from .eigenpro.eigenpro2 import EigenPro2
from .eigenpro.eigenpro3 import EigenPro3
from .eigenpro.state import EigenPro3State, EigenProState
from .falkon import Falkon, FalkonState
from .loop.loop import (
    Interrupted,
    Result,
    Stop,
    deadline,
    max_iterations,
    patience,
    solve,
    time_limit,
    tolerance,
)
from .loop.state import State, StopReason
from .newton.newton import Newton
from .newton.stages import NewtonState
from .nystrom.gradient_descent import FalkonGD, NystromGD
from .nystrom.nystrom_sgd import NystromSGD
from .nystrom.nytro import Nytro
from .nystrom.state import DescentState, NytroState, StochasticState
from .pcg.pcg import PCG
from .sketchy_saga.sketchy_saga import SketchySAGA
from .sketchy_saga.state import SagaState


def make(name: str, **parameters: Any) -> Solver[Any, Any]:
    """Return the solver called `name`, one of `names`."""
    return solvers.make(name, **parameters)


def name_of(solver: Solver[Any, Any]) -> str:
    """Return the registered name of a solver, or the name of its class if it has none."""
    registered = any(type(solver) is solvers[name] for name in solvers)
    return solvers.name_of(solver) if registered else type(solver).__name__


def names() -> tuple[str, ...]:
    """Return the names of all solvers, including solvers that other packages register."""
    return solvers.names()


__all__ = [
    "BLOCK_BYTES",
    "PANEL_ROWS",
    "PCG",
    "ASkotch",
    "ASkotchState",
    "CGState",
    "Callback",
    "DescentState",
    "Direct",
    "EigenPro1",
    "EigenPro2",
    "EigenPro3",
    "EigenPro3State",
    "EigenProState",
    "Falkon",
    "FalkonGD",
    "FalkonState",
    "Interrupted",
    "Newton",
    "NewtonState",
    "NystromGD",
    "NystromSGD",
    "Nytro",
    "NytroState",
    "ProblemSize",
    "Result",
    "SagaState",
    "SketchySAGA",
    "Skotch",
    "Solver",
    "State",
    "StochasticState",
    "Stop",
    "StopReason",
    "conjugate_gradient",
    "deadline",
    "make",
    "max_iterations",
    "name_of",
    "names",
    "patience",
    "solve",
    "time_limit",
    "tolerance",
]
