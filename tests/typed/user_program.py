"""What a user writes, with types that mypy and pyright have to agree with; see test_typed.py."""

from __future__ import annotations

import numpy as np

import gramian
from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeCV, NystromTransformer
from gramian.callbacks import Checkpoint, Validate
from gramian.kernels import Gaussian, Matern32
from gramian.kernels.base import kernels
from gramian.landmarks import BlessR, RecursiveRLS
from gramian.losses import Quantile
from gramian.plots import ConvergenceDisplay, ReliabilityDisplay
from gramian.solvers import Falkon


def fitted(X: np.ndarray, y: np.ndarray) -> KernelRidge:
    """Fit with objects of each layer."""
    kernel = Gaussian(2.0) + 0.5 * Matern32(1.0).on([0, 1])
    model = KernelRidge(
        kernel,
        penalty=1e-6,
        landmarks=RecursiveRLS(100),
        solver=Falkon(),
        standardize="quantile",
        memory_limit="1GB",
        callbacks=[Checkpoint("fit.state"), Validate(X, y)],
        random_state=0,
    )
    return model.fit(X, y)


def used(X: np.ndarray, y: np.ndarray) -> float:
    """Use what fits return."""
    model = fitted(X, y)
    plan = model.plan(X)
    seconds: float = plan.seconds
    importances: np.ndarray = model.feature_importances_
    searched = KernelRidgeCV(budget="10 s").fit("houses.csv", "price")
    score: float = searched.score("houses.csv")
    quantiles = KernelRidge(loss=Quantile((0.1, 0.9)), landmarks=BlessR(50)).fit(X, y)
    features: np.ndarray = NystromTransformer(landmarks=50).fit(X).transform(X)
    chances: np.ndarray = KernelRidgeClassifier().fit(X, y > 0).predict_proba(X)
    shown: ReliabilityDisplay = ReliabilityDisplay.from_predictions(y > 0, chances)
    ConvergenceDisplay.from_estimator(model, x="seconds").plot()
    model.save("model")
    loaded = gramian.load("model")
    total = float(loaded.model_.predict(X).sum()) + float(quantiles.predict(X).sum())
    return total + seconds + score + float(importances.sum() + features.sum() + shown.share.sum())


def registered() -> type[Gaussian]:
    """Register a class of one's own: a checker still knows what it is, and so its parameters."""
    return kernels.register("wide")(Gaussian)


def wrong(X: np.ndarray, y: np.ndarray) -> None:
    """Make mistakes that a checker has to find: each is an error of its own line."""
    KernelRidge(max_iter="many")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    plan: str = KernelRidge().plan(X)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    KernelRidge(tol=float(plan))
