"""Path of a single penalty, by conjugate gradient with any preconditioner.

Several shifts share a preconditioner of columns of K; a single shift may use any preconditioner,
such as one of blocks.
"""

from __future__ import annotations

import math

from ..._arrays import RandomStream
from ...paths import FullPath
from ...paths.full import PATH_RANK
from ...preconditioners import blocks_of_rows
from ...preconditioners.block_cholesky import estimate_coupling
from ...problems import FullProblem
from ...solvers import PCG
from ..clock import Clock
from .path_points import store_entries

FEW_FEATURES = 4
"""Largest number of features for which PCG's rule chooses the preconditioner.

CPU seconds of cells of real sets, setup included, until the held-out loss falls no more, by columns
and by PCG's rule. Two or three features: 4,000 rows of bathy_celt 0.38 and 0.09, 19,000 4.9 and 1.6
(l1, 1/16 of the median, of which columns solve no system of 38,000 rows); 9,500 rows of airs_co2
1.03 and 0.69 (l1, 1/8), 0.50 and 0.39 (Gaussian, 1/2); 10,000 and 23,500 rows of skin 1.1 and 0.6,
6.9 and 2.9 (Matern 3/2, 1/4). Eight features (nycflights) and 27 (beijing_pm25), the median:
columns take half to four fifths.
"""

NARROW_COUPLING_RATIO = 1.0
"""Coupling of cells below which PCG's rule also serves more features: the ratio of K's mass outside
cells to its mass within."""

CELL_ROWS_PER_ROOT = 4
"""Rows of a cell over sqrt(n), as in PCG's rule."""

INVERSE_BYTES = 1 << 28
"""Memory of a preconditioner that PCG's rule chooses."""


def path_of_one(
    problem: FullProblem, *, rng: RandomStream, clock: Clock, rank: int = PATH_RANK
) -> FullPath:
    """Return a `FullPath` with the problem's penalty alone.

    PCG's rule chooses the preconditioner for few features or a narrow kernel; otherwise it is made
    of `rank` random columns of K.
    """
    if _by_rule(problem, rng):
        inverse = PCG(preconditioner="auto", memory_bytes=INVERSE_BYTES).build(problem, rng)
        if inverse is not None:
            return FullPath.with_inverse(problem, inverse, **store_entries(clock))
    return FullPath.build(problem, [problem.penalty], rng=rng, rank=rank, **store_entries(clock))


def _by_rule(problem: FullProblem, rng: RandomStream) -> bool:
    """Return whether PCG's rule applies: dense rows with few features, or a narrow kernel."""
    n, d = problem.K.rows.shape
    if problem.K.rows.sparse:
        return False
    if d <= FEW_FEATURES:
        return True
    blocks = blocks_of_rows(problem.K, CELL_ROWS_PER_ROOT * math.isqrt(n), rng=rng)
    return estimate_coupling(problem.K, blocks, rng=rng) < NARROW_COUPLING_RATIO
