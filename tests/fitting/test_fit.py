"""Fits without an estimator: settings and data in, a model and how it came about out."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from plain import PLAIN

from gramian import KernelRidge, KernelRidgeClassifier
from gramian import _arrays as xp
from gramian.data import as_rows
from gramian.fitting import FitSettings, Fitted, Generators, TrainingData, fit
from gramian.fitting.inputs.training_data import classes_of, coded_data
from gramian.fitting.partial_fit import partial_fit
from gramian.fitting.plans.placement import PlacedData
from gramian.fitting.plans.plan import plan
from gramian.kernels import Polynomial
from gramian.landmarks import BlessR
from gramian.solvers import Falkon, State

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 3))
Y = np.sin(X[:, 0]) + X[:, 1] + 5
LABELS = np.array(["a", "b", "c"])[(Y > 4.5).astype(int) + (Y > 5.5)]


def settings(**changes: Any) -> FitSettings:
    given: dict[str, Any] = {
        "kernel": "gaussian",
        "lengthscale": 2.0,
        "penalty": 1e-4,
        "landmarks": 20,
        "standardize": True,
        "standardize_target": None,
        "cv": None,
        "solver": "auto",
        "max_iter": 100,
        "tol": 1e-8,
        "engine": "torch",
        "memory_limit": None,
        "callbacks": (),
        "warm_start": False,
        "centers_file": None,
        "early_stopping": False,
        "validation_fraction": 0.1,
        "patience": 5,
        "time_limit": None,
    }
    return FitSettings(**(given | changes))


def data(X: np.ndarray = X, y: np.ndarray = Y) -> TrainingData:
    return TrainingData(as_rows(X), y[:, None])


def rng(seed: int = 0) -> Generators:
    return Generators.from_random_state(np.random.RandomState(seed))


def centers(found: Fitted) -> np.ndarray:
    rows: np.ndarray = found.model.centers.take(np.arange(len(found.model.coef)))
    return rows


def fitted(given: FitSettings, on: TrainingData | None = None, **more: Any) -> Fitted:
    return fit(given, data() if on is None else on, rng=rng(), **more)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"landmarks": None},
        {"landmarks": "auto", "lengthscale": "median"},
        pytest.param({"landmarks": BlessR(m=20), "penalty": "auto"}, marks=pytest.mark.slow),
        {"solver": "eigenpro3", "penalty": 0, "max_iter": 3},
    ],
    ids=["falkon", "full", "median", "path", "epochs"],
)
@pytest.mark.filterwarnings("ignore:the smallest penalty tried:UserWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_is_that_of_the_estimator(changes: dict[str, Any], dtype: type) -> None:
    est = KernelRidge(
        **(
            PLAIN
            | {"lengthscale": 2.0, "penalty": 1e-4, "landmarks": 20, "tol": 1e-8, "engine": "torch"}
            | changes
        ),
        random_state=0,
    ).fit(X.astype(dtype), Y)
    found = fitted(settings(**changes), data(X.astype(dtype)))
    assert np.array_equal(found.model.coef[:, 0], est.dual_coef_)
    assert found.penalty == est.penalty_
    assert (found.reason, max(found.iteration, 1)) == (est.stop_reason_, est.n_iter_)


def test_classes_are_coded_and_kept() -> None:
    classes = classes_of(LABELS)
    found = fitted(settings(), coded_data(as_rows(X), LABELS, classes))
    est = KernelRidgeClassifier(
        landmarks=20,
        lengthscale=2.0,
        penalty=1e-4,
        tol=1e-8,
        engine="torch",
        random_state=0,
        kernel="gaussian",
    ).fit(X, LABELS)
    assert found.model.classes == ("a", "b", "c")
    assert np.array_equal(found.model.coef, est.dual_coef_)


def test_one_class_is_refused() -> None:
    weights = (LABELS == "a").astype(float)
    with pytest.raises(ValueError, match="one class only, \\['a'\\]"):
        classes_of(LABELS, weights)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"penalty": -1.0}, "penalty must be finite"),
        ({"max_iter": 0}, "max_iter must be a whole number"),
        ({"tol": float("nan")}, "tol must be a finite number"),
        ({"callbacks": [1]}, "callbacks must be a list of callables"),
        ({"penalty": "auto", "cv": 1}, "cv must be None, a"),
        ({"penalty": "auto", "landmarks": "bless_r", "cv": 1}, "cv must be None, a"),
        ({"penalty": "auto", "landmarks": "bless_r", "solver": "pcg"}, "solver='falkon'"),
        ({"penalty": "auto", "landmarks": "bless_r", "warm_start": True}, "warm_start=True"),
    ],
)
def test_settings_are_checked_when_they_are_made(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings(**changes)
    with pytest.raises(ValueError, match=message):
        replace(settings(), **changes)


class TestTrainingData:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"targets": np.ones((119, 1), np.float32)}, "120 rows, but 119 targets"),
            ({"targets": np.full((120, 1), np.nan)}, "targets must be finite"),
            ({"weights": np.ones(121, np.float32)}, "120 rows, but 121 weights"),
            ({"weights": np.full((120,), -1.0, dtype=np.float32)}, "finite and not negative"),
            ({"weights": np.full((120,), np.inf)}, "finite and not negative"),
        ],
    )
    def test_is_checked(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            replace(data(), **changes)

    @pytest.mark.parametrize("landmarks", [None, 20])
    def test_rows_of_weight_zero_are_left_out(self, landmarks: int | None) -> None:
        weights = xp.to_float64(np.arange(120)).clip(max=1)  # the first row counts nothing
        given = replace(data(), weights=weights)
        found = fitted(settings(landmarks=landmarks), given)
        alone = fitted(settings(landmarks=landmarks), replace(data(X[1:], Y[1:])))
        assert np.allclose(found.model.coef, alone.model.coef, rtol=1e-6)
        streaming = settings(solver="eigenpro3", penalty=0, landmarks=119)
        rows = partial_fit(streaming, given, rng=rng()).index
        assert rows is not None
        assert int(rows.max()) < 119


def test_data_that_had_to_move_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    first: list[weakref.ref[Any]] = []
    held: list[bool] = []
    place = PlacedData.place

    def elsewhere(*arguments: Any) -> PlacedData:
        placed = place(*arguments)
        copied = replace(placed.data, targets=xp.copy(placed.data.targets))
        first.append(weakref.ref(copied.targets))
        return replace(placed, data=copied)

    def back(placed: PlacedData, m: int) -> PlacedData:
        return replace(placed, data=placed.unplaced_data)

    def look(problem: Any, state: State) -> None:
        gc.collect()
        held.append(first[0]() is not None)

    monkeypatch.setattr(PlacedData, "place", elsewhere)
    monkeypatch.setattr(PlacedData, "with_landmarks", back)
    fitted(settings(callbacks=[look], max_iter=2))
    assert held
    assert not any(held)


class TestAnEarlierFit:
    def test_is_gone_on_from(self) -> None:
        first = fitted(settings())
        second = fitted(settings(warm_start=True, tol=1e-6), before=first)
        assert np.array_equal(centers(second), centers(first))
        assert (first.iteration > 0, second.iteration) == (True, 0)

    def test_has_no_say_unless_it_is_asked_for(self) -> None:
        first = fitted(settings(landmarks=20))
        alone, after = fitted(settings()), fitted(settings(), before=first)
        assert np.array_equal(after.model.coef, alone.model.coef)

    @pytest.mark.parametrize("changes", [{"landmarks": 10}, {"landmarks": "auto"}])
    def test_with_other_landmarks_is_not(self, changes: dict[str, Any]) -> None:
        first = fitted(settings())
        alone = fitted(settings(**changes))
        after = fitted(settings(**changes, warm_start=True), before=first)
        assert np.array_equal(after.model.coef, alone.model.coef)

    def test_keeps_no_callbacks(self) -> None:
        class Large:
            def __call__(self, problem: Any, state: State) -> None:
                return None

        assert fitted(settings(callbacks=[Large()])).settings.callbacks == ()


class TestGoingOn:
    def test_passes_once_and_keeps_the_centers(self) -> None:
        given = settings(solver="eigenpro3", penalty=0)
        first = partial_fit(given, data(X[:60], Y[:60]), rng=rng())
        second = partial_fit(given, data(X[60:], Y[60:]), rng=rng(), before=first)
        assert second.model.centers is first.model.centers
        assert second.iteration == 2 * first.iteration > 0
        assert len(second.history) > len(first.history)

    def test_refuses_other_targets(self) -> None:
        given = settings(solver="eigenpro3", penalty=0)
        first = partial_fit(given, data(), rng=rng())
        two = TrainingData(as_rows(X), np.c_[Y, Y])
        with pytest.raises(ValueError, match="2 columns, but the first call had 1"):
            partial_fit(given, two, rng=rng(), before=first)

    def test_has_no_path_of_penalties(self) -> None:
        with pytest.raises(ValueError, match="has no path of penalties; give other landmarks"):
            partial_fit(settings(penalty="auto", landmarks="bless_r"), data(), rng=rng())


class TestWhatAFitFellShortOf:
    def test_nothing_if_it_converged(self) -> None:
        found = fitted(settings())
        assert found.reason == "converged"
        assert found.stall_warning() is found.iteration_warning() is found.end_of_path() is None

    def test_iterations(self) -> None:
        found = fitted(settings(max_iter=1, solver=Falkon(preconditioner_penalty=None)))
        error = found.history[-1]["prediction_error"]
        said = f"off by an estimated {100 * error:.2g} % of the standard deviation of the target"
        assert "max_iter=1 iterations" in str(found.iteration_warning())
        assert said in str(found.iteration_warning())
        assert found.stall_warning() is None

    def test_rounding(self) -> None:
        given = settings(
            kernel=Polynomial(0.05, degree=3),
            lengthscale="median",
            landmarks=None,
            standardize=False,
            penalty=0.2,
            solver="pcg",
        )
        found = fitted(given, data(X[:9] + 1e3, Y[:9]))  # entries of 1e24, a penalty of 2
        assert found.reason == "no_progress"
        assert "rounding leaves no direction" in str(found.stall_warning())
        assert found.iteration_warning() is None

    def test_a_path_that_ended_at_its_best(self) -> None:
        found = fitted(settings(penalty="auto", landmarks=BlessR(penalty=1e-1)))
        assert found.path is not None
        assert found.penalty == found.path[-1]["penalty"]
        assert "the smallest penalty tried, " in str(found.end_of_path())


def test_plan_measures_and_says() -> None:
    found = plan(settings(), as_rows(X))
    assert (found.solver, found.landmarks) == ("falkon", 20)
    assert found.kernel_evaluations > 120 * 20
    assert 0 < found.memory_bytes < 100e6
