"""Planned: which solver a fit will take and what it will need, before anything is computed."""

from __future__ import annotations

from typing import Any

import torch

from .. import solvers
from .._checks import as_count
from ..data import RowSource, as_rows
from ..landmarks import Selector
from ..operators import Engine, choose_engine
from ..problems import FullProblem, NystromProblem
from ..solvers import Solver
from . import choices, penalty_path
from .memory import Size
from .placement import Placement
from .plan import (
    ASSUMED_ITERATIONS,
    Plan,
    calibrated_seconds,
    evaluations,
)
from .shared import RowsEstimator


class Planned(RowsEstimator):
    """An estimator that knows the size of a fit beforehand and refuses what does not fit."""

    penalty: Any
    landmarks: Any
    cv: Any
    solver: Any
    max_iter: Any
    engine: Any

    def plan(self, X: Any, *, targets: int = 1) -> Plan:
        """Say what a fit will need, before anything is computed.

        Parameters
        ----------
        X : as in `fit`
        targets : int, default=1
            Number of targets: outputs of a regression, classes of a classifier beyond two.

        Returns
        -------
        Plan
            Solver, landmarks, peak memory, kernel evaluations and seconds on this machine.

        Raises
        ------
        ValueError
            If it does not fit in ``memory_limit``; the message says what would. If the number of
            landmarks is not known before they are selected, as with ``Bless(penalty=1e-6)``.

        Notes
        -----
        ``penalty="auto"``: kernel evaluations and seconds are an estimate for the whole path, if
        it does not end early: that the number of landmarks grows with the inverse of the square
        root of the penalty. Memory is for the last level.

        Takes about half a second, to measure the speed of this machine; some more on a device.
        """
        choices.check_settings(self)
        rows = as_rows(X)
        choices.require_count(self.landmarks, rows.shape[0])
        solver, size = self._chosen(rows, as_count(targets, "targets"))
        count = min(self.max_iter, ASSUMED_ITERATIONS)
        iterations = 1 if solver.closed_form else count
        rng = torch.Generator().manual_seed(0)
        kernel = choices.kernel(self.kernel, self.lengthscale)
        kernel = kernel.resolve(torch.randn(50, rows.shape[1], generator=rng))
        engine = self._engine_of_fit(rows)
        where = Placement.of(engine, solver, size, self._limit())
        host, there = where.bytes_with_blocks(engine, solver, size)
        return Plan(
            solver=solvers.name_of(solver),
            landmarks=None if size.full else size.m,
            memory_bytes=host,
            kernel_evaluations=evaluations(solver, size, iterations),
            seconds=calibrated_seconds(
                solver, size, iterations, kernel, engine, rows.dtype, where.device
            ),
            iterations=iterations,
            device=where.device,
            device_bytes=there,
        )

    def check_memory(self, X: Any, *, targets: int = 1) -> None:
        """Refuse what does not fit in ``memory_limit``, without reading or measuring anything.

        Parameters are those of `plan`, which refuses the same and says what is needed; a fit does
        so once it has looked for missing values.

        Raises
        ------
        ValueError
            The message says what would fit.
        """
        choices.check_settings(self)
        rows = as_rows(X)
        engine = self._engine_of_fit(rows)
        Placement.of(engine, *self._chosen(rows, as_count(targets, "targets")), self._limit())

    def _engine_of_fit(self, rows: RowSource) -> Engine:
        """Return the engine that will compute with these rows."""
        kernel = choices.kernel(self.kernel, self.lengthscale)
        return choose_engine(self.engine, dtype=rows.dtype, kernel=kernel, sparse=rows.sparse)

    def _chosen(self, rows: RowSource, targets: int) -> tuple[Solver[Any, Any], Size]:
        n, d = rows.shape
        selector = choices.selector(self.landmarks, n, not rows.random_access)
        # a selector that is given a penalty says how many once it has selected
        m = n if selector is None else choices.count(selector, n) or 1
        fits = penalty_path.fits(self.cv) if isinstance(self.penalty, str) else 0.0
        once = rows.random_access and not rows.sparse
        full, dense, itemsize = selector is None, not rows.sparse, rows.dtype.itemsize
        chooses = selector if isinstance(selector, Selector) else None
        size = Size(n, d, targets, m, itemsize, full, once, dense, fits, chooses)
        solver = choices.solver(self.solver, size, self._limit())
        solver.check_type(FullProblem if size.full else NystromProblem)
        if not isinstance(self.penalty, str):
            solver.check_penalty(self.penalty)
        return solver, size
