"""Base of the methods of a fit, their inputs, and problems from landmarks of any origin."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream
from ..._parameters.types import FileLike, LandmarksLike
from ...data import Cast, RowSource, as_rows, check_finite, gather_rows, store_rows
from ...kernels import Kernel
from ...landmarks import Landmarks
from ...model import KernelModel, Probabilities
from ...operators import Engine, KernelOperator
from ...problems import FullProblem, NystromProblem, Problem
from ...search import Split
from ...solvers import Result, Solver, State
from ...solvers.loop.loop import row_of
from ..held_out.validation import HeldValues
from ..inputs.scaling import PathRow, Scaling
from ..inputs.training_data import HeldOut, TrainingData
from ..plans.memory import FitSize
from ..plans.placement import PlacedData
from ..result import Fitted
from ..settings import landmarks as landmark_settings
from ..settings.generators import Generators
from ..settings.settings import FitSettings


@dataclass(frozen=True, eq=False)
class Prepared:
    """Settings and data of a fit, before the choice of landmarks and of the penalty of a path.

    - `user_settings`: settings of the user, with a number as tolerance.
    - `settings`: settings with values in place of "auto".
    - `data`: mapped rows and scaled targets, without held-out rows.
    - `scaling`: maps of features and targets to `data`.
    - `ends`: the time of `time.monotonic` at which the fit must end.
    - `held_out`: held-out rows for early stopping.
    - `folds`: folds of a path of penalties, if a splitter or pairs define them.
    - `probabilities`: map to probabilities of classes, fitted to the held-out rows of the choices.
    - `before`: earlier fit from which this fit starts.
    """

    user_settings: FitSettings
    settings: FitSettings
    data: TrainingData
    scaling: Scaling
    kernel: Kernel
    solver: Solver[Any, Any]
    engine: Engine
    size: FitSize
    ends: float
    held_out: HeldOut | None = None
    folds: Sequence[Split] | None = None
    probabilities: Probabilities | None = None
    before: Fitted | None = None

    def place(self) -> PlacedData:
        """Place the data where the fit computes.

        The caller alone may keep a reference to the data, because the data may move to a device.
        """
        return PlacedData.place(
            self.data, self.kernel, self.engine, self.solver, self.size, self.settings.limit
        )

    def build_fitted(
        self, start: Start, result: Result, model: KernelModel, best: State | None = None
    ) -> Fitted:
        """Return the outcome of a run of the solver; `best` is the state to keep, if any."""
        # A fit that continues an earlier one has its metric, and learns none.
        learned = self.scaling.features.learned if self.before is None else self.before.learned
        return Fitted(
            model=model,
            settings=self.user_settings.with_values(callbacks=()),
            solver=self.solver,
            engine=start.engine,
            penalty=start.penalty,
            path=self.scaling.path(start.path),
            path_ended_at_best=start.ended_at_best,
            index=None if start.landmarks is None else start.landmarks.index,
            iteration=result.state.iteration,
            reason=result.reason,
            history=result.history,
            solver_settings=dict(getattr(result.state, "settings", {})),
            metrics=row_of(result.state if best is None else best),
            best_iteration=None if best is None else best.iteration,
            held_out=None if self.held_out is None else self.held_out.index,
            learned=learned,
        )


@dataclass(frozen=True, eq=False)
class Start:
    """A problem, and the inputs of its solver.

    - `landmarks`: None if all rows are centers.
    - `engine`: engine of the products with all rows.
    - `solver`: after a path of penalties, a `FactoredFalkon` with the factor of the best level.
    - `state`: the state to start from.
    - `path`: a row for each penalty that was tried; None if the penalty was given.
    - `ended_at_best`: whether the last penalty of the path was the best one.
    - `held_values`: classification only: predictions of held-out rows at the best penalty.
    """

    problem: Problem
    landmarks: Landmarks | None
    penalty: float
    engine: Engine
    solver: Solver[Any, Any]
    state: State | None = None
    path: list[PathRow] | None = None
    ended_at_best: bool = False
    held_values: HeldValues | None = None


class Method(ABC):
    """Method of a fit, which makes a problem of prepared data, and a model of the solution."""

    estimates_time: ClassVar[bool] = False
    """Whether the fit warns beforehand if it is expected to take long."""

    def before(
        self, settings: FitSettings, data: TrainingData, fitted: Fitted | None
    ) -> Fitted | None:
        """Return the earlier fit from which this fit starts; None by default."""
        return None

    def for_choices(
        self, settings: FitSettings, data: TrainingData
    ) -> tuple[FitSettings, TrainingData]:
        """Return the settings and data for choosing kernel, lengthscale and penalty."""
        return settings, data

    def after_choices(
        self, settings: FitSettings, data: TrainingData
    ) -> tuple[FitSettings, TrainingData]:
        """Return settings and data of the fit, from the settings and data of the choices."""
        return settings, data

    @abstractmethod
    def start(self, prepared: Prepared, rng: Generators) -> Start:
        """Return the problem of prepared data, with landmarks and a penalty."""

    @abstractmethod
    def model(
        self,
        prepared: Prepared,
        start: Start,
        coef: Float[Array, "m t"],
        held_values: HeldValues | None,
    ) -> KernelModel:
        """Return the model with given coefficients, for features and targets in the user's units.

        `held_values` are predictions of held-out rows, if there are any.
        """

    def diagnosis(self, prepared: Prepared, start: Start, result: Result) -> str | None:
        """Return a warning if the fit explains little of the targets; None by default."""
        return None


def choose_landmarks(
    K: KernelOperator, given: LandmarksLike, rng: RandomStream
) -> Landmarks | None:
    """Return the landmarks of the parameter `given`; None if all rows are centers."""
    selector = landmark_settings.selector(given, K.shape[0], not K.rows.random_access)
    if isinstance(selector, RowSource):
        return given_points(selector, K)
    return None if selector is None else selector.select(K, rng=rng)


def given_points(points: RowSource, K: KernelOperator) -> Landmarks:
    """Return the points that the user gave as landmarks, in a mapped file if they exceed memory."""
    if points.shape[1] != K.rows.shape[1]:
        raise ValueError(
            f"the landmarks have {points.shape[1]} features, but X has {K.rows.shape[1]}"
        )
    check_finite(points, "landmarks")
    # Tiles need rows and centers of one type.
    alike = points if points.dtype == K.dtype else Cast(points, K.dtype)
    m = len(points)
    points_taken = gather_rows(alike, xp.arange(m), K.host_bytes)
    return Landmarks(points_taken, xp.ones(m, xp.float64))


def kept_in_file(found: Landmarks | None, path: FileLike) -> Landmarks | None:
    """Write landmarks to the file at `path`, and return them mapped from this file."""
    if path is None:
        return found
    if found is None:
        raise ValueError(
            f"centers_file={str(path)!r} stores landmarks, but landmarks=None takes all rows as "
            "centers; give landmarks, or leave centers_file out"
        )
    return replace(found, points=store_rows(as_rows(xp.to_host(found.points)), Path(path)))


def problem_of(
    K: KernelOperator,
    data: TrainingData,
    found: Landmarks | None,
    penalty: float,
    penalties: tuple[float, ...] | None = None,
    *,
    spare_bytes: int = 0,
) -> FullProblem | NystromProblem:
    """Return the Nystrom problem of landmarks, or the full problem if landmarks are None.

    Factors of the kernel matrix, if any, are kept in memory up to `spare_bytes`.
    """
    problem: FullProblem | NystromProblem
    if found is None:
        problem = FullProblem(K, data.targets, penalty, data.weights)
    else:
        problem = nystrom_problem(K, data, found, penalty)
    if spare_bytes:
        problem = replace(problem, K=problem.K.with_factors(spare_bytes))
    return problem if penalties is None else replace(problem, penalties=penalties)


def nystrom_problem(
    K: KernelOperator, data: TrainingData, found: Landmarks, penalty: float
) -> NystromProblem:
    """Return the Nystrom problem whose centers are the given landmarks."""
    weight = found.weight
    # Preconditioners estimate sums over rows from landmarks: each counts by the weight of its row.
    if data.weights is not None and found.index is not None:
        weight = weight * xp.to_host(data.weights[found.index] / data.weights.mean())
    centers = K.against(K.on_device(found.points))
    return NystromProblem(
        centers, data.targets, penalty, data.weights, weight, found.coverage, found.index
    )
