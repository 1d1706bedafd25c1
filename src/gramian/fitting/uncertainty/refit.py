"""Refit of a model to other rows or targets, with the same kernel, maps, centers and ridge."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._parameters.types import LandmarksLike, SolverLike
from ...data import ArrayRows, as_rows, gather_rows
from ...losses import Quantile
from ...model import AverageModel, BlendModel, KernelPart, Model
from ...model.file.format import CENTER_BYTES
from ..choice.choose import NOISY_TOLERANCE as NOISY
from ..fit import fit
from ..held_out.folds import labels
from ..inputs.training_data import TrainingData
from ..plans.solver_choice import PCG_FROM, TINY_SHIFT
from ..result import Fitted
from ..settings import landmarks as landmark_settings
from ..settings.generators import Generators
from ..settings.settings import FitSettings

MOST_ITERATIONS = 100
"""Iterations of a spread."""


@dataclass(frozen=True, eq=False)
class Refit:
    """Configuration of a fitted model, by which it is refitted to other rows or targets.

    - `shifts`: N times the penalty of each kernel model in the model.
    - `settings`: settings of engine, memory, loss and iterations; other settings are ignored.
    - `row_count`: number of rows of the fit of the model; if it equals the number of centers, all
      rows are centers.
    - `fresh`: whether to select new landmarks.
    """

    model: Model
    shifts: tuple[float, ...]
    settings: FitSettings
    row_count: int
    rng: Generators
    fresh: bool = False

    @classmethod
    def of_fit(
        cls,
        model: Model,
        fitted: Fitted,
        settings: FitSettings,
        data: TrainingData,
        rng: Generators,
    ) -> Refit:
        """Return the refit of a fitted model, with as many iterations as early stopping kept.

        - `model`: the present model of the fit.
        - `settings`: settings of the fit.
        - `data`: data of the fit, including rows that the fit itself has held out.
        """
        if settings.penalties is not None:
            raise ValueError(
                "intervals need a fit with one penalty for all targets; give penalty as one number"
            )
        # Rows that the fit has held out by itself are still among these data.
        shown = fitted.held_out is not None and data.held_out is None
        n = len(data.targets) - (
            len(fitted.held_out) if shown and fitted.held_out is not None else 0
        )
        if fitted.best_iteration is not None:
            # Early stopping regularises by its iterations: refits repeat
            # their number, without validation.
            passes = fitted.best_iteration / fitted.solver.iterations_per_pass(n)
            settings = replace(settings, max_iter=max(1, math.ceil(passes)))
        return cls(model, (fitted.penalty * data.total,), settings, n, rng)

    def to_fewer(self, data: TrainingData) -> Refit:
        """Return the refit for a model fitted to a part of the rows.

        New landmarks are selected among these rows, unless they were given as points.
        """
        fresh = replace(self, fresh=True).fit_rows(data)
        return replace(self, model=fresh, row_count=len(data.targets))

    def fit_rows(self, data: TrainingData) -> Model:
        """Return the model fitted to other rows.

        - `data`: rows with the features and targets of the training data of the model.

        Raise ValueError, FloatingPointError as in `fit`.
        """
        parts = tuple(
            self._part(part, shift / data.total, data, self.settings)
            for part, shift in zip(self.model.parts, self.shifts, strict=True)
        )
        model = self.model.kernel_model if isinstance(self.model, BlendModel) else self.model
        refitted: Model = parts[0]
        if isinstance(model, AverageModel):
            refitted = replace(model, models=parts, info={}, conformal=None)
        if isinstance(self.model, BlendModel):
            X = data.rows.take(xp.arange(len(data.rows)))
            trees = self.model.trees.refit(X, data.targets, data.weights, coded=data.coded)
            return replace(self.model, kernel_model=refitted, trees=trees, info={}, conformal=None)
        return refitted

    def fit_targets(
        self, data: TrainingData, targets: Float[Array, "n t"], penalty: float
    ) -> KernelPart:
        """Refit the kernel model with the largest weight to other targets, by squared errors.

        - `penalty`: penalty per row; with cells, per row of a cell.
        """
        part = self._heaviest_part
        shift, full = penalty * data.total, len(part.centers) >= self.row_count
        if part.cells is not None:
            # All cells share one ridge: it is set by the largest of them.
            shift, full = penalty * float(xp.diff(part.cells.starts).max()), False
        settings = replace(
            self.settings, loss="squared", tol=NOISY, early_stopping=False, max_iter=MOST_ITERATIONS
        )
        numeric_data = replace(data, targets=targets, classes=None, target=None)
        pcg = full and len(targets) > PCG_FROM and shift > TINY_SHIFT
        solver = "pcg" if pcg else "auto"
        return self._part(part, shift / data.total, numeric_data, settings, solver)

    def fit_quantile(self, data: TrainingData, level: float) -> KernelPart:
        """Fit a quantile with the kernel of the model of the largest weight, by the pinball loss.

        The penalty is chosen by the pinball loss. The centers are the landmarks of the model;
        without any, or with cells, sqrt(n) log(n) random rows.

        - `level`: between 0 and 1.
        """
        part = replace(self._heaviest_part, cells=None)
        settings = replace(
            self.settings,
            loss=Quantile(level),
            penalty="auto",
            landmarks=None,
            cells=None,
            solver="auto",
            callbacks=(),
            warm_start=False,
            early_stopping=False,
            max_iter=MOST_ITERATIONS,
        )
        return self._part(part, "auto", data, settings, "auto")

    def class_numbers(self, data: TrainingData) -> Int[Array, " n"] | None:
        """Return the index of the class of each row; None for a regression."""
        return labels(data.targets) if data.coded else None

    @property
    def _heaviest_part(self) -> KernelPart:
        """The kernel model with the largest weight, with numbers as targets."""
        # Of an average, the heaviest model gives kernel and maps.
        number = max(range(len(self.shifts)), key=lambda i: self.model.shares[i])
        part = self.model.parts[number]
        return replace(part, classes=None, link=None, target=None, probabilities=None)

    def _part(
        self,
        part: KernelPart,
        penalty: float | Literal["auto"],
        data: TrainingData,
        settings: FitSettings,
        solver: SolverLike | None = None,
    ) -> KernelPart:
        rows = part.prepare_rows(data.rows)
        # Otherwise each pass would map the rows again.
        if rows.fits() and not rows.sparse:
            rows = as_rows(gather_rows(rows, xp.arange(len(rows)), CENTER_BYTES))
        mapped_data = replace(
            data, rows=rows, encoding=None, medians=None, feature_names=None, held_out=None
        )
        settled = settle_settings(settings, part, penalty, self.row_count)
        if self.fresh and settled.landmarks is not None:
            settled = replace(settled, landmarks=landmarks_again(settings, part, len(data.targets)))
        if settled.landmarks is None and settled.is_nonlinear and penalty == "auto":
            # Newton's method with all rows as centers takes 3 to 4 times as long for 800 rows, and
            # the pinball loss of sqrt(n) log(n) landmarks is the same.
            settled = replace(settled, landmarks="uniform")
        if solver is None:  # one that is stopped early regularises by that
            stopped = settings.early_stopping or penalty == 0
            solver = settings.solver if stopped else "auto"
        refitted = fit(
            replace(settled, solver=solver), mapped_data, rng=self.rng, diagnose=False
        ).model
        return replace(
            part,
            centers=part.centers if same_centers(part, refitted) else refitted.centers,
            coef=refitted.coef,
            target_shift=refitted.target_shift,
            target_scale=refitted.target_scale,
            cells=refitted.cells,
            link=refitted.link,
            info={},
            variance=None,
            conformal=None,
        )


REFIT_TOLERANCE = 1e-4
"""Relative residual of iterative fits, where none was given."""


def settle_settings(
    settings: FitSettings, part: KernelPart, penalty: float | Literal["auto"], whole: int
) -> FitSettings:
    """Return settings of a fit to prepared rows, with values in place of "auto"."""
    landmarks: Any = None
    if part.cells is None and len(part.centers) < whole:
        landmarks = next(part.centers.blocks(len(part.centers)))[1]
        # A tensor is taken as points; sparse centers keep their source.
        landmarks = landmarks if not xp.is_sparse(landmarks) else part.centers
    cells = None if part.cells is None else int(xp.diff(part.cells.starts).max())
    return replace(
        settings,
        kernel=part.kernel,
        lengthscale="median",
        penalty=penalty,
        landmarks=landmarks,
        standardize=False,
        # The rows are mapped already; targets are scaled by their own mean and deviation.
        standardize_target=True,
        metric=None,
        cells=cells,
        cv=None,
        tol=REFIT_TOLERANCE if isinstance(settings.tol, str) else settings.tol,
        callbacks=(),
        warm_start=False,
        centers_file=None,
        early_stopping=False,
        time_limit=None,
    )


def landmarks_again(settings: FitSettings, part: KernelPart, n: int) -> LandmarksLike:
    """Return ``landmarks`` for a refit, which are the centers if the user gave points."""
    landmarks, m = settings.landmarks, min(len(part.centers), n)
    if landmark_settings.are_points(landmarks):
        return part.centers
    # A number or a name selects again; along a path, only the number that was chosen is left.
    named = not (landmarks is None or (isinstance(landmarks, str) and landmarks == "auto"))
    return landmarks if named and not settings.searches_penalty and m < n else m


def same_centers(part: KernelPart, found: KernelPart) -> bool:
    """Return whether two models have equal centers, which a file then stores once."""
    a, b = part.centers, found.centers
    if a.shape != b.shape or not (isinstance(a, ArrayRows) and isinstance(b, ArrayRows)):
        return False
    return all(
        xp.array_equal(xp.cast(x, y.dtype), y)
        for (_, x), (_, y) in zip(a.blocks(1 << 16), b.blocks(1 << 16), strict=True)
    )
