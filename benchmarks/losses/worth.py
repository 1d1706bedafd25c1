"""Worth: quantiles that do not cross, and each loss beside squared errors on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramian import KernelRidge
from gramian import _arrays as xp
from gramian.losses import Expectile, Gamma, Huber, Loss, Poisson, Quantile

from ..lib.results import Row
from ..lib.sets import Split, data_set
from ..lib.timing import clock
from .cases import read

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
CROSSED = ("house_16h", "california_housing", "beijing_pm25", "nycflights")
ROWS, QUICK_ROWS = 4_000, 400
LANDMARKS, FEW = 500, 200
"""Of fits that are compared, and of those with many levels."""

FAR = 10.0
"""Factor of the twentieth of the targets that are wrong, where some are."""


def crossing(folder: str, quick: bool, known: set[str]) -> Iterator[Row]:
    """Yield how many test rows have quantiles that cross, before and after they are sorted."""
    for name in CROSSED:
        path = None if name in known else data_set(folder, name)
        if path is None:
            continue
        split = read(path, QUICK_ROWS if quick else ROWS)
        with clock() as took:
            model = _model(loss=Quantile(LEVELS), landmarks=FEW).fit(split.X, split.y)
        found = model.predict(split.X_test)
        values = replace(model.model_, link=None).predict(split.X_test)
        low, high = found[:, 0] <= split.y_test, split.y_test <= found[:, -1]
        row: Row = {"set": name, "rows": len(split.X), "test rows": len(found)}
        row |= {"levels": len(LEVELS), "rows that cross": crossed(found)}
        row |= {"before sorting": crossed(values)}
        row |= {"within 0.05 to 0.95": float((low & high).mean())}
        yield row | {"cpu_s": took.cpu}


def _model(landmarks: int = LANDMARKS, **settings: Any) -> KernelRidge:
    return KernelRidge(landmarks=landmarks, random_state=0, **settings)


def crossed(values: np.ndarray) -> int:
    """Return the number of rows whose values do not increase."""
    return int((np.diff(values, axis=1) < 0).any(axis=1).sum())


@dataclass(frozen=True)
class Question:
    """A loss on a set, and how squared errors answer the same.

    Attributes
    ----------
    name : str
    loss : Loss
    what : str
        How squared errors are used.
    there, back : callable
        Of targets, before a fit by squared errors, and of its predictions.
    shift : callable, optional
        A constant from the errors of rows that were held out, which is added to predictions.
    far : bool
        Whether some targets of the training rows are wrong.
    """

    name: str
    loss: Loss
    what: str = "as it is"
    there: Callable[[np.ndarray], np.ndarray] = np.positive
    back: Callable[[np.ndarray], np.ndarray] = np.positive
    shift: Callable[[np.ndarray], float] | None = None
    far: bool = False


def _expectile(errors: np.ndarray, level: float = 0.9) -> float:
    y = errors[:, None]
    return float(Expectile(level).constant(y, np.ones(len(y), np.float64))[0])


def _at_least(floor: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda found: np.maximum(found, floor)


QUESTIONS = (
    Question("house_16h", Huber()),
    Question("house_16h", Huber(), far=True),
    Question("california_housing", Huber(), far=True),
    Question("house_16h", Quantile(0.5)),
    *(
        Question(name, Quantile(0.9), "plus a quantile", shift=lambda e: float(np.quantile(e, 0.9)))
        for name in ("house_16h", "california_housing", "nycflights")
    ),
    Question("house_16h", Expectile(0.9), "plus an expectile", shift=_expectile),
    Question("beijing_pm25", Poisson(), "at least 1", back=_at_least(1.0)),
    Question("beijing_pm25", Poisson(), "of the logarithm", np.log, np.exp),
    Question("california_housing", Gamma(), "at least 10,000", back=_at_least(1e4)),
    Question("california_housing", Gamma(), "of the logarithm", np.log, np.exp),
)


def held_out(folder: str, quick: bool) -> Iterator[Row]:
    """Yield the mean loss of test rows, by that loss and by squared errors."""
    for question in QUESTIONS:
        path = data_set(folder, question.name)
        if path is not None:
            yield compared(question, read(path, QUICK_ROWS if quick else ROWS))


def compared(question: Question, split: Split) -> Row:
    """Fit both, and return their mean losses of test rows."""
    y = split.y.copy()
    if question.far:
        wrong = np.random.default_rng(1).random(len(y)) < 0.05
        y[wrong] *= FAR
    with clock() as ours:
        found = _model(loss=question.loss).fit(split.X, y)
    with clock() as theirs:
        other = _squared(question, split.X, y, split.X_test)
    row: Row = {"set": question.name + (", wrong targets" if question.far else "")}
    row |= {"loss": repr(question.loss), "squared errors": question.what}
    each = (found.predict(split.X_test), other)
    figures = [_mean_loss(question.loss, prediction, split) for prediction in each]
    row |= {"by the loss": figures[0], "by squared errors": figures[1]}
    row |= {"ratio": figures[0] / figures[1]}
    for what, prediction in zip(("by the loss", "by squared errors"), each, strict=True):
        row[f"MAE {what}"] = float(np.abs(prediction - split.y_test).mean())
    return row | {"CPU s, loss": ours.cpu, "CPU s, squares": theirs.cpu}


def _squared(question: Question, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    y = question.there(y)
    if question.shift is None:
        return question.back(_model().fit(X, y).predict(X_test))
    learn = len(y) * 4 // 5
    model = _model().fit(X[:learn], y[:learn])
    found: Any = model.predict(X_test) + question.shift(y[learn:] - model.predict(X[learn:]))
    return found


def _mean_loss(loss: Loss, prediction: np.ndarray, split: Split) -> float:
    """Return the mean loss in units of the loss; of a log link the mean deviance."""
    y = split.y_test[:, None]
    f = np.asarray(prediction, np.float64).reshape(-1, 1)
    if isinstance(loss, Poisson | Gamma):
        best = loss.values(np.log(y), y)
        return float(2 * (loss.values(np.log(f), y) - best).mean())
    unit = loss.unit(split.y[:, None], xp.to_float64(np.ones(len(split.y), np.float32)))
    return float(loss.for_unit(unit).values(f / unit, y / unit).mean())
