"""PCG: preconditioned conjugate gradient on the full problem."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import check_count_or_auto
from ..lowrank import pivoted_cholesky, randomized_nystrom
from ..preconditioners import BlockCholesky, BlockLowRank, LowRankInverse, blocks_of_rows
from ..preconditioners.low_rank import BLOCK_BYTES
from ..problems import FullProblem
from .base import Solver, State, drawn_seed, solvers
from .conjugate_gradient import CGState, conjugate_gradient, no_gain
from .cost import ProblemSize

logger = logging.getLogger("gramian")

PRECONDITIONERS = ("rpcholesky", "nystrom", "greedy", "none", "cells", "nystrom+cells")

CELLS = ("cells", "nystrom+cells")
"""Those that factorise blocks of K."""

PER_TRUE_RESIDUAL = 7
"""Iterations with float32 rows in which the residual drops tenfold, about."""

MOST_CELL_ROWS = 2000
"""Rows of a cell at most, if chosen."""

Inverse = LowRankInverse | BlockCholesky | BlockLowRank

MOST_RANK = 1000
"""Rank at most if it is chosen: r² memory and r³ work stay out of sight."""


@dataclass(kw_only=True)
class PCGState(CGState):
    """A state of conjugate gradient, the seed of its preconditioner and the precision of products.

    Attributes
    ----------
    seed : int
        Whoever goes on builds the same preconditioner from it.
    wide : bool
        Whether products run in float64.
    """

    seed: int = 0
    wide: bool = False


@solvers.register("pcg")
@dataclass(frozen=True)
class PCG(Solver[FullProblem, PCGState]):
    r"""Conjugate gradient on (K + N penalty W⁻¹) coef = y, K never stored.

    Products run in the dtype of the rows. With float32 rows the iterate is float64 and the true
    residual is computed in float64 each time the recursive one has dropped tenfold. If that shows
    that it has not even halved, products run in float64 from there on, at about twice the cost;
    they do so from the start if the penalty is below what float32 can tell
    (`FullProblem.needs_float64`). ``metrics["wide"]`` is 1 then.

    Parameters
    ----------
    preconditioner : str, default="rpcholesky"
        The low-rank F F' of P = F F' + N penalty W⁻¹: ``"rpcholesky"`` [1]_, from r columns of K;
        ``"nystrom"`` [2]_, from one product with r random vectors, n² kernel evaluations;
        ``"greedy"``, pivoted Cholesky with the largest pivots; ``"none"``.
    rank : int or "auto", default="auto"
        r. "auto": n / 10, at most 1,000 and what fits into `memory_bytes`; fewer where the trace
        that is left falls below N penalty, so that P is within a factor of two.
    memory_bytes : int, default=2**29
        For the factor, if its rank is automatic.

    Notes
    -----
    Cost per iteration: n² / 2 kernel evaluations (see `KernelOperator`) and 4 n r operations per
    target; memory: 8 n r bytes and four vectors of n numbers per target. The number of iterations
    grows like the square root of the largest eigenvalue of K that P misses over N penalty.
    "rpcholesky" needs random access to be fast; products pass over any row source.

    References
    ----------
    .. [1] Diaz, Epperly, Frangella, Tropp, Webber, *Robust, randomized preconditioning for kernel
       ridge regression*, 2023, arXiv:2304.12465.
    .. [2] Frangella, Tropp, Udell, *Randomized Nystrom preconditioning*, SIAM J. Matrix Anal.
       Appl. 44, 2023.
    """

    preconditioner: str = "rpcholesky"
    rank: Any = "auto"  # int or "auto", checked below
    memory_bytes: int = 1 << 29
    cell_rows: Any = "auto"  # int or "auto", checked below
    problem_types: ClassVar[tuple[type, ...]] = (FullProblem,)
    state_type: ClassVar[type] = PCGState

    def __post_init__(self) -> None:
        if self.preconditioner not in PRECONDITIONERS:
            raise ValueError(
                f"preconditioner must be one of {', '.join(PRECONDITIONERS)}, not "
                f"{self.preconditioner!r}"
            )
        check_count_or_auto(self.rank, "rank")
        check_count_or_auto(self.cell_rows, "cell_rows")

    def iterate(
        self,
        problem: FullProblem,
        state: State | None = None,
        *,
        rng: torch.Generator | None = None,
    ) -> Iterator[PCGState]:
        seed = state.seed if isinstance(state, PCGState) else drawn_seed(rng)
        before = isinstance(state, PCGState) and state.wide
        needed = problem.needs_float64
        P = self.build(problem.double() if needed else problem, torch.Generator().manual_seed(seed))
        if not (before or needed or problem.K.dtype == torch.float64):
            state = yield from _while_it_gains(problem, state, P, seed)
        yield from _states(problem.double(), state, P, seed)

    def build(self, problem: FullProblem, rng: torch.Generator) -> Inverse | None:
        """Return the preconditioner, None for "none"."""
        K, ridge, kind = problem.K, problem.ridge, self.preconditioner
        if kind == "none":
            return None
        factor = None if kind == "cells" else self._factor(problem, rng)
        if factor is not None and kind not in CELLS:
            return LowRankInverse.build(factor, ridge)
        blocks = blocks_of_rows(K, self.most_cell_rows(K.shape[0], K.dtype.itemsize), rng=rng)
        if factor is None:
            return BlockCholesky.build(K, blocks, ridge)
        return BlockLowRank.build(K, blocks, factor, ridge)

    def _factor(self, problem: FullProblem, rng: torch.Generator) -> Float[Tensor, "n r"]:
        rank = self.most(problem.K.shape[0])
        if self.preconditioner == "nystrom":
            return _nystrom(problem, rank, rng)
        method = "greedy" if self.preconditioner == "greedy" else "accelerated"
        target = problem.shift if self.rank == "auto" else 0.0
        return pivoted_cholesky(problem.K, rank, target=target, method=method, rng=rng).factor

    def most(self, n: int) -> int:
        """Return the rank for n rows, an automatic one before the spectrum is known."""
        if self.preconditioner in ("none", "cells"):
            return 0
        if self.rank != "auto":
            return min(int(self.rank), n)
        fits = self._memory() // (self._number_bytes() * n)
        return max(1, min(n // 10 + 1, MOST_RANK, fits))

    def most_cell_rows(self, n: int, itemsize: int) -> int:
        """Return the rows of a cell for n rows, at most; 0 if there are no cells."""
        if self.preconditioner not in CELLS:
            return 0
        if self.cell_rows != "auto":
            return min(int(self.cell_rows), n)
        return max(1, min(n, MOST_CELL_ROWS, self._memory() // (itemsize * n)))

    def _memory(self) -> int:
        """Return the bytes for the factor, and for cells."""
        both = self.preconditioner == "nystrom+cells"
        return self.memory_bytes // 2 if both else self.memory_bytes

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        n, r = size.n, self.most(size.n)
        s = self.most_cell_rows(n, size.itemsize)
        # the factor and R, and blocks of its rows while it is made and factorised
        factor = self._number_bytes() * n * r + 8 * r * r + 2 * min(8 * n * r, BLOCK_BYTES)
        # blocks, and one of them in float64 with its entries, and what splits are found from
        cells = n * s * size.itemsize + 8 * s * (2 * s + r)
        split = min(n, SAMPLE_ROWS) * size.d * size.itemsize if s else 0
        return size.vector_bytes + factor + max(cells, split)

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        n = size.n
        product = n * (n + 1) // 2 if size.pairs_once else n * n
        residuals = iterations // PER_TRUE_RESIDUAL if size.itemsize < 8 else 0
        setup = n * (self.most(n) + self.most_cell_rows(n, size.itemsize))
        return (iterations + residuals) * product + setup

    def operations(self, size: ProblemSize, iterations: int) -> float:
        r, s = float(self.most(size.n)), float(self.most_cell_rows(size.n, size.itemsize))
        return size.n * (2 * r**2 + s**2 / 3 + 3 * r * s)

    def bytes_read(self, size: ProblemSize) -> float:
        s = self.most_cell_rows(size.n, size.itemsize)
        return size.n * (16.0 * self.most(size.n) + size.itemsize * s)

    def _number_bytes(self) -> int:
        """Return the bytes per entry of the factor, with copies on the way to it."""
        return 40 if self.preconditioner == "nystrom" else 8


def _while_it_gains(
    problem: FullProblem, state: State | None, P: Inverse | None, seed: int
) -> Generator[PCGState, None, State | None]:
    """Yield the states with float32 products; return where they gain nothing any more."""
    for s in _states(problem, state, P, seed):
        if isinstance(state, PCGState) and no_gain(state, s):
            logger.info("K in float32 is too coarse for this penalty: float64 from here")
            return State(s.iteration, s.coef, s.metrics)
        state = s
        yield s
    return state


def _states(
    problem: FullProblem, state: State | None, P: Inverse | None, seed: int
) -> Iterator[PCGState]:
    """Yield the states of conjugate gradient with products in the dtype of the rows."""
    exact, float64 = problem.double(), problem.K.dtype == torch.float64

    def residual(x: Tensor) -> Tensor:
        return exact.rhs - exact.apply(x)

    for cg in conjugate_gradient(
        problem.apply,
        problem.rhs.to(problem.K.dtype),
        state=state,
        precondition=None if P is None else lambda r: P @ r,
        exact_residual=None if float64 else residual,
    ):
        metrics = {**cg.metrics, "wide": int(float64)}
        known = {f.name: getattr(cg, f.name) for f in fields(CGState)} | {"metrics": metrics}
        yield PCGState(**known, seed=seed, wide=float64)


def _nystrom(problem: FullProblem, rank: int, rng: torch.Generator) -> Float[Tensor, "n r"]:
    K = problem.K
    trace = float(K.diag().double().sum())
    found = randomized_nystrom(
        K.__matmul__, K.shape[0], rank, trace, dtype=K.dtype, device=K.device, rng=rng
    )
    # what is far below the ridge changes nothing but the cost
    kept = int((found.values > 1e-3 * float(problem.ridge.min())).sum())
    return found.factor[:, :kept]
