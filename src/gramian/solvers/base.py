"""Solver: an algorithm for a problem, as a generator of states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Generic, TypeVar

from .._arrays import RandomStream
from .._messages.errors import TextError
from .._registries.registry import Registry
from ..data import RowSource, refuse_remote
from ..problems import FullProblem, Problem
from .cost import ProblemSize
from .loop.state import State

ProblemType = TypeVar("ProblemType", bound=Problem)
StateType = TypeVar("StateType", bound=State)

Callback = Callable[[Problem, State], Any]
"""Function called after each iteration. It may add to ``state.metrics``, and stops the run by
returning True.

If it has a method ``finish()``, the method is called when the run has ended, for whatever reason.

Arrays of the problem and of the state may be on a GPU; ``xp.to_host(state.coef)`` works on any
device.
"""


class Solver(ABC, Generic[ProblemType, StateType]):
    """An algorithm for one or more types of problem.

    The fields of a solver are hyperparameters, not state.

    Attributes
    ----------
    problem_types : tuple of type
        Problems that the solver supports, checked before any work.
    state_type : type
        Class of the yielded states.
    needs_random_access : bool
        Whether it reads rows in random order, which a sequential row source does not support.
    closed_form : bool
        Whether it yields one state, the solution, without stopping rules.
    allows_zero_penalty : bool
        Whether it supports penalty 0, by interpolation or early stopping.
    solves_exactly : bool
        Whether its iterates converge to the solution of the problem.
    dense_centers : bool
        Whether it makes centers dense, which wide sparse rows do not allow.
    streams : bool
        Whether it supports ``partial_fit``: the coefficients suffice to continue on other rows.
    takes_remote : bool
        Whether it supports rows on other machines.
    leaves_targets : bool
        Whether targets and weights may also be on other machines.
    takes_penalties : bool
        Whether each target may have its own penalty.
    """

    problem_types: ClassVar[tuple[type, ...]]
    state_type: ClassVar[type] = State
    needs_random_access: ClassVar[bool] = False
    closed_form: ClassVar[bool] = False
    allows_zero_penalty: ClassVar[bool] = False
    solves_exactly: ClassVar[bool] = True
    dense_centers: ClassVar[bool] = False
    streams: ClassVar[bool] = False
    takes_remote: ClassVar[bool] = False
    leaves_targets: ClassVar[bool] = False
    takes_penalties: ClassVar[bool] = False

    @abstractmethod
    def iterate(
        self,
        problem: ProblemType,
        state: State | None = None,
        *,
        rng: RandomStream | None = None,
    ) -> Iterator[StateType]:
        """Yield the state at the start, then the state after each iteration, without end.

        From one of its own states it resumes exactly. From a plain `State`, it starts at the
        coefficients of the state. The generator has no tolerance, limit or clock, and never writes
        to a yielded tensor. A closed form yields one state, of iteration 0.
        """

    @abstractmethod
    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        """Return the peak bytes of factors, vectors and centers, without blocks of rows.

        Parameters
        ----------
        size : ProblemSize
        mapped : bool, default=False
            Whether centers are in a file and do not count.
        """

    @abstractmethod
    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        """Return the kernel evaluations of the setup and of some iterations."""

    @abstractmethod
    def operations(self, size: ProblemSize, iterations: int) -> float:
        """Return the floating-point operations of factorisations and matrix products."""

    def flexible_bytes(self, size: ProblemSize, available: int) -> int:
        """Return how many of the `available` bytes for blocks the solver uses; 0 by default."""
        return 0

    def storing(self, size: ProblemSize, available: int) -> Solver[ProblemType, StateType]:
        """Return a solver that stores kernel entries if that pays and `available` bytes suffice.

        The solver itself by default.
        """
        return self

    def stopped_early(self) -> Solver[ProblemType, StateType]:
        """Return a solver for fits that keep the best of several iterations; itself by default."""
        return self

    def kept_bytes(self, size: ProblemSize) -> int:
        """Return the bytes of stored kernel entries, a part of `peak_bytes`; 0 by default."""
        return 0

    def panel_bytes(self, size: ProblemSize) -> int:
        """Return the additional bytes of factorisations on a device; 0 by default."""
        return 0

    def steps(self, size: ProblemSize, iterations: int) -> int:
        """Return the number of successive steps, each with a latency; one per iteration."""
        return iterations

    def bytes_read(self, size: ProblemSize) -> float:
        """Return the bytes of stored matrices that a step reads; 0 by default."""
        return 0.0

    def verify(self, problem: ProblemType, state: StateType) -> None:
        """Raise ValueError if a state from a file disagrees with the problem.

        Each solver recomputes as many quantities of the state as it can, at the cost of about one
        pass. `conjugate_gradient` compares the residual whenever it resumes. The default compares
        nothing.
        """

    def takes(self, kind: type) -> bool:
        """Return whether this solver supports problems of a class."""
        return issubclass(kind, self.problem_types)

    def check_type(self, kind: type) -> None:
        """Raise ValueError if this solver does not support problems of a class."""
        if not self.takes(kind):
            types = " or ".join(cls.__name__ for cls in self.problem_types)
            raise TextError(
                f"{type(self).__name__} solves {types}, not {kind.__name__}: {{solver='falkon'}} "
                "needs {landmarks}, 'pcg' needs none, 'direct' works with or without them, and "
                "'newton' needs {loss}"
            )

    def check_penalty(self, penalty: int | float) -> None:
        """Raise ValueError if the penalty is 0 and this solver needs a positive one."""
        if penalty == 0 and not self.allows_zero_penalty:
            names = ", ".join(sorted(n for n in solvers if solvers[n].allows_zero_penalty))
            raise ValueError(
                f"{type(self).__name__} needs a positive penalty, not 0; for penalty 0, use a "
                f"solver that stops early: {names}"
            )

    def check_penalties(self) -> None:
        """Raise ValueError if this solver needs one penalty for all targets."""
        if not self.takes_penalties:
            names = ", ".join(sorted(n for n in solvers if solvers[n].takes_penalties))
            raise ValueError(
                f"{type(self).__name__} has one penalty for all targets; set a single number, or "
                f"use {names}"
            )

    def check_rows(self, rows: RowSource) -> None:
        """Raise ValueError if rows are too wide for this solver, or on other machines."""
        if not self.takes_remote:
            full = issubclass(FullProblem, self.problem_types)
            reason = "uses all rows as centers" if full else "keeps all rows on one machine"
            refuse_remote(
                rows,
                f"{type(self).__name__} {reason}, but these rows are on a cluster; set "
                "{landmarks} and {solver='falkon'}",
            )
        if self.dense_centers and rows.entries is not None:
            raise TextError(
                f"{type(self).__name__} makes centers dense, which takes too much memory for "
                f"sparse rows of {rows.shape[1]:,} features; use {{solver='falkon'}} with "
                "{landmarks}, or 'pcg' without"
            )

    def iterations_per_pass(self, n: int) -> float:
        """Return the iterations per pass over the pairs of n rows; 1 by default."""
        return 1.0

    def check(self, problem: ProblemType) -> None:
        """Raise ValueError if this solver cannot solve the problem, before any work."""
        self.check_type(type(problem))
        self.check_penalty(problem.penalty)
        if problem.penalties is not None:
            self.check_penalties()
        self.check_rows(problem.K.rows)
        if self.needs_random_access and not problem.K.rows.random_access:
            raise TextError(
                f"{type(self).__name__} reads rows in random order, but "
                f"{type(problem.K.rows).__name__} is sequential; convert the file once with "
                "`gramian convert data.parquet data.npy`, or use {solver='falkon'} with {landmarks}"
            )


solvers: Registry[Solver[Any, Any]] = Registry("solver")
