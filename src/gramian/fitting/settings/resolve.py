"""Resolution of settings for given rows: kernel, metric, engine, solver and size."""

from __future__ import annotations

import reprlib
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch

from ... import kernels, losses, solvers
from ... import metric as metrics
from ..._errors import SETTING_FORM, UNKNOWN_FORM, ParameterError, Text, TextError
from ..._parameter_types import KernelLike, Lengthscale, LossLike, MetricLike, SolverLike
from ..._sparse import dense
from ...data import LinearMap, RowSource
from ...kernels import Kernel
from ...kernels.base import kernels as registry
from ...landmarks import Selector
from ...losses import Loss
from ...metric import Metric
from ...operators import Engine, choose_engine
from ...problems import FullProblem, NystromProblem
from ...solvers import BLOCK_BYTES, Falkon, Newton, Solver
from ..choice import selection
from ..held_out import splits
from ..held_out.folds import HELD_OUT
from ..plans.machine import machine_memory
from ..plans.memory import FitSize, dense_bytes, least_blocks
from .settings import FitSettings

ALL_ROWS = 10_000
"""Rows up to which landmarks="auto" takes all rows as centers."""

DIRECT_ROWS = 10_000
"""Rows up to which solver="auto" factorises the full kernel matrix."""

PCG_ROWS = 400_000
"""Rows up to which it takes PCG: an iteration is 8e10 kernel evaluations there."""

LEAST_RANK = 100
"""Columns that the preconditioner of PCG must have room for."""

STAND_IN = "matern32"
"""The kernel that a plan reckons with, and whose metric is learned, for kernel="auto"."""

PCG_FROM = 3_000
"""Rows above which solver="auto" takes PCG where the penalty is chosen: it is not tiny then."""

TINY_SHIFT = 9e-3
"""Rows times the penalty, below which PCG takes longer than Direct."""

ALL_ROWS_OF_CHOICE = 30_000
"""Rows up to which landmarks="auto" takes all where the penalty is chosen."""

ALL_ROWS_OF_LOSS = 2_000
"""The same for another loss than the square, where each Newton step factorises their matrix."""

MEDIAN_SAMPLE = 1000
"""Rows from which the median heuristic is computed."""


def kernel(given: KernelLike, lengthscale: Lengthscale) -> Kernel:
    """Return the kernel of that name with that lengthscale, or the kernel object itself.

    For "auto" one stands in that costs as much as others: what is chosen takes its place.
    """
    if isinstance(given, Kernel):
        if not (isinstance(lengthscale, str) and lengthscale in ("median", "auto")):
            problem = "has no effect on a kernel object"
            remedy = "give the kernel its own lengthscale, or the kernel's name"
            raise ParameterError("lengthscale", lengthscale, problem, remedy, SETTING_FORM)
        return given
    if isinstance(lengthscale, str) and lengthscale == "auto":
        lengthscale = "median"
    if given == "auto":
        given = STAND_IN
    if given == "precomputed":
        raise ValueError(
            "kernel='precomputed' is one of KernelRidge, KernelRidgeClassifier, KernelPCA, "
            "KernelKMeans and NystromTransformer, fitted to all rows at once"
        )
    if callable(given) and not isinstance(given, type):
        raise ValueError(
            "a kernel that is a function is one of KernelRidge, KernelRidgeClassifier, KernelPCA, "
            "KernelKMeans and NystromTransformer, fitted to all objects at once"
        )
    if not isinstance(given, str) or given not in registry or given in kernels.COMPOSITE:
        known = f"auto, {', '.join(kernels.names())}, or a kernel object"
        hint = kernels.hint(given).removeprefix("; ") if isinstance(given, str) else ""
        raise ParameterError("kernel", given, known, hint, UNKNOWN_FORM)
    return kernels.make(given, lengthscale=lengthscale)


def metric(given: MetricLike) -> Metric | LinearMap | None:
    """Return the metric that is to be learned, or the map that was given, if any.

    Raises
    ------
    ValueError
        If it is none of these: the message says what is known.
    """
    if given is None or isinstance(given, Metric | LinearMap):
        return given
    if isinstance(given, str):
        return metrics.make(given)
    array = np.asarray(given)
    if array.dtype.kind not in "iuf" or array.ndim not in (1, 2):
        raise ValueError(
            f"metric={reprlib.repr(given)} is none of: None, the name of a metric "
            f"({', '.join(metrics.names())}), an object that learns one, a matrix of shape (d, k), "
            "a number for each of d features"
        )
    return LinearMap.of(array.astype(np.float64))


def kernel_for(kernel: Kernel, rows: RowSource, rng: torch.Generator, name: str = "X") -> Kernel:
    """Return the kernel for these rows: with as many features, and with its median computed."""
    check_features(kernel, rows, name)
    n = rows.shape[0]
    drawn = torch.randint(n, (MEDIAN_SAMPLE,), generator=rng)
    sample = rows.take(torch.arange(n) if n <= MEDIAN_SAMPLE else drawn.unique())
    kernel.check_layout(sample)
    return kernel.resolve(dense(sample))


def check_features(kernel: Kernel, rows: RowSource, name: str = "X") -> None:
    """Raise ValueError if a kernel is one of another number of features."""
    if kernel.dim not in (None, rows.shape[1]):
        each = isinstance(getattr(kernel, "lengthscale", None), tuple)
        says = f"has {kernel.dim} lengthscales" if each else f"takes {kernel.dim} features"
        subject = Text("{X}") if name == "X" else name
        raise TextError("the kernel {}, but {} has {} features", says, subject, rows.shape[1])


def automatic(settings: FitSettings, n: int) -> FitSettings:
    """Return settings in which landmarks="auto" has become all rows, where it means that.

    All rows up to 10,000, if the solver takes them: landmarks save little there, and cost accuracy.
    Up to 30,000 where the penalty is chosen, as PCG then ends after few iterations.
    All rows of any number, if it takes nothing else. Up to 2,000 with another loss than the square.
    """
    if not (isinstance(settings.landmarks, str) and settings.landmarks == "auto"):
        return settings
    if settings.is_nonlinear:
        few = n <= ALL_ROWS_OF_LOSS and settings.centers_file is None
        return replace(settings, landmarks=None) if few else settings
    given = settings.solver
    most = ALL_ROWS_OF_CHOICE if settings.chooses_penalty else ALL_ROWS
    if isinstance(given, str) and given == "auto":
        everything = n <= most and settings.centers_file is None
    else:
        found = given if isinstance(given, Solver) else solvers.make(str(given))
        few = n <= ALL_ROWS or not found.takes(NystromProblem)
        everything = found.takes(FullProblem) and few
    return replace(settings, landmarks=None) if everything else settings


def engine_for(settings: FitSettings, rows: RowSource, found: Kernel | None = None) -> Engine:
    """Return the engine that computes with these rows; `found` is the kernel, if it is known."""
    found = kernel(settings.kernel, settings.lengthscale) if found is None else found
    given, dtype, sparse = settings.engine, rows.dtype, rows.sparse
    return rows.there(partial(choose_engine, given, dtype=dtype, kernel=found, sparse=sparse))


def solver_and_size(
    settings: FitSettings, rows: RowSource, targets: int
) -> tuple[Solver[Any, Any], FitSize]:
    """Return the solver of a fit to these rows, and the size that its cost depends on.

    Raises
    ------
    ValueError
        If the solver cannot solve such problems, or not with this penalty.
    """
    n = len(rows)
    found = selection.selector(settings.landmarks, n, not rows.random_access)
    # a selector that is given a penalty says how many once it has selected
    m = n if found is None else selection.count(found, n) or 1
    other = loss(settings.loss) if settings.is_nonlinear else None
    size = FitSize(
        n,
        rows.width,
        targets if other is None else other.outputs(targets),
        m,
        rows.dtype.itemsize,
        full=found is None and other is None,
        pairs_once=rows.random_access and not rows.sparse,
        dense=not rows.sparse,
        targets_here=not rows.remote,
        fits=fits_per_level(settings, n) if settings.searches_penalty else 0.0,
        selector=found if isinstance(found, Selector) else None,
    )
    if isinstance(found, Selector):
        found.check_rows(rows)
    if other is not None:
        return newton(settings.solver), size
    chosen = solver(settings.solver, size, settings.limit, _direct_rows(settings))
    chosen.check_type(FullProblem if size.full else NystromProblem)
    chosen.check_rows(rows)
    if not isinstance(settings.penalty, str):
        chosen.check_penalty(settings.one_penalty)
    if settings.penalties is not None:
        chosen.check_penalties()
    return chosen, size


def _direct_rows(settings: FitSettings) -> int:
    return PCG_FROM if settings.chooses_penalty else DIRECT_ROWS


def solver_for(chosen: FitSettings, asked: FitSettings, size: FitSize) -> Solver[Any, Any]:
    """Return the solver once the penalty is chosen: PCG is slow where it turned out tiny.

    Parameters
    ----------
    chosen : FitSettings
        With values.
    asked : FitSettings
    size : FitSize
    """
    if chosen.is_nonlinear:
        return newton(asked.solver)
    if chosen.searches_penalty:
        return solver(asked.solver, size, chosen.limit)
    tiny = chosen.one_penalty * size.n < TINY_SHIFT
    rows = DIRECT_ROWS if tiny or not asked.chooses_penalty else PCG_FROM
    found = solver(asked.solver, size, chosen.limit, rows)
    found.check_penalty(chosen.one_penalty)
    return found


def storing(
    found: Solver[Any, Any],
    size: FitSize,
    limit: int | None,
    engine: Engine,
    kernel: Kernel,
    workers: int = 1,
) -> Solver[Any, Any]:
    """Return a solver that keeps kernel entries, if that pays and there is memory.

    Half of what the rest leaves of a limit, a quarter of the machine's without one; of several
    workers each has its part. Kernels whose matrix has two thin factors need no entries.
    """
    if not engine.on_host or not size.targets_here:
        return found
    if kernel.bilinear and not found.closed_form:
        return found
    return found.storing(size, spare_bytes(found, size, limit, workers))


def spare_bytes(found: Solver[Any, Any], size: FitSize, limit: int | None, workers: int = 1) -> int:
    """Return half of what a solver and blocks of rows leave, for what is kept to save seconds."""
    memory = machine_memory() // 2 if limit is None else limit
    free = memory // workers - dense_bytes(found, size) - BLOCK_BYTES
    return max(0, free // 2)


def fits_per_level(settings: FitSettings, n: int) -> float:
    """Return the fits of one level of a path, in units of one fit to all rows."""
    if settings.names_folds:
        return splits.count_of(settings.cv, n)
    return 1 - 1 / HELD_OUT if settings.cv is None else float(cast("int", settings.cv)) - 1.0


def solver(
    given: SolverLike, size: FitSize, limit: int | None, direct_rows: int = DIRECT_ROWS
) -> Solver[Any, Any]:
    """Return the solver; "auto": Falkon with landmarks; without, see `full_solver`."""
    if isinstance(given, Solver):
        return given
    pcg = solvers.PCG() if limit is None else solvers.PCG(memory_bytes=limit // 4)
    if given == "auto":
        return full_solver(size, limit, pcg, direct_rows) if size.full else solvers.Falkon()
    return pcg if given == "pcg" else solvers.make(str(given))


def newton(given: SolverLike) -> Newton:
    """Return the solver of another loss than the square; `FitSettings` has refused any other."""
    return given if isinstance(given, Newton) else Newton()


def loss(given: LossLike) -> Loss:
    """Return the loss that a parameter means; `FitSettings` has refused what is none."""
    return given if isinstance(given, Loss) else losses.make(given)


def full_solver(
    size: FitSize, limit: int | None, pcg: solvers.PCG, direct_rows: int = DIRECT_ROWS
) -> Solver[Any, Any]:
    """Return the solver for all rows as centers: Direct, PCG or ASkotch.

    Direct up to 10,000 rows if it fits. Then PCG, if its preconditioner has 100 columns in a
    quarter of the memory, up to 400,000 rows. Else ASkotch, if rows can be read in any order.

    Measured, in CPU seconds: on 32,561 rows of adult_a9a PCG with 1,000 columns passes ASkotch
    after 40 s and has a residual of 0.022 after 50, ASkotch 0.060; on 196,046 rows of skin ASkotch
    is ahead for the first 90 s (0.061 against 2.5 % wrong labels, PCG after 15 iterations), and
    PCG is what converges; with 500,000 rows PCG ended its first iteration when ASkotch was two
    thirds of its way from 0.97 to 0.10.
    Where between them the best limit lies was not measured.
    """
    need = dense_bytes(solvers.Direct(), size) + least_blocks(size)
    if size.n <= direct_rows and (limit is None or need <= limit):
        return solvers.Direct()
    few = pcg.most(size.n) < min(LEAST_RANK, size.n)
    return solvers.ASkotch() if size.pairs_once and (few or size.n > PCG_ROWS) else pcg


def path_solver(found: Solver[Any, Any]) -> Falkon:
    """Return the solver of a path of penalties; `FitSettings` has refused any other."""
    return cast("Falkon", found)
