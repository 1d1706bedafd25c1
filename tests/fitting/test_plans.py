"""What a plan says is what a fit then does."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from plain import PLAIN
from sklearn.exceptions import ConvergenceWarning

from gramian import KernelRidge, KernelRidgeClassifier, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian._linalg.spectrum import spectrum_operations
from gramian.data import ArrayRows, Spread, as_rows
from gramian.engines import choose_engine
from gramian.fitting.choice.choose import choice_work, compare_recipes
from gramian.fitting.choice.held_out import HeldOutChoice
from gramian.fitting.inputs.training_data import TrainingData
from gramian.fitting.plans import calibration, remote
from gramian.fitting.plans.memory import FitSize
from gramian.fitting.plans.result import Plan
from gramian.fitting.settings.settings import FitSettings
from gramian.landmarks import RPCholesky
from gramian.paths.work import Work
from gramian.problems import NystromProblem
from gramian.solvers import (
    PCG,
    EigenPro2,
    EigenPro3,
    Falkon,
    ProblemSize,
    SketchySAGA,
    Solver,
    State,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 3))
Y = np.sin(X[:, 0])


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the speed of this machine once instead of for a fifth of a second."""
    once = calibration.measure_seconds
    monkeypatch.setattr(calibration, "measure_seconds", lambda work: once(work, budget=1e-9))


def forget_speeds() -> None:
    calibration.device_speed.cache_clear()
    calibration._measured_pair_seconds.cache_clear()
    calibration._start_seconds.cache_clear()


@pytest.fixture
def unit_speed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Let each measurement take a second, without a call; yield the list of measurements."""
    forget_speeds()
    measured: list[object] = []

    def measure(work: object, **budget: float) -> float:
        measured.append(work)
        return 1.0

    monkeypatch.setattr(calibration, "measure_seconds", measure)
    yield measured
    forget_speeds()


def test_speeds_are_measured_once_for_similar_plans(unit_speed):
    counts = []
    settings = PLAIN | {"lengthscale": "median"}
    for kernel, x in [
        ("gaussian", X),
        ("gaussian", X),
        ("gaussian", X[:140]),
        ("laplacian", X),
        ("gaussian", X[:, :2]),
        ("gaussian", X.astype(np.float32)),
    ]:
        KernelRidge(**(settings | {"kernel": kernel})).plan(x)
        counts.append(len(unit_speed))
    # Two speeds of the machine, and two of products, for each kernel, number of features and dtype.
    assert counts == [4, 4, 4, 6, 8, 10]


class TestFields:
    def test_direct(self):
        plan = KernelRidge(**PLAIN).plan(X)
        assert (plan.solver, plan.landmarks, plan.iterations) == ("direct", None, 1)

    def test_falkon(self):
        plan = KernelRidge(landmarks=20, max_iter=7, **PLAIN).plan(X)
        assert (plan.solver, plan.landmarks, plan.iterations) == ("falkon", 20, 7)
        assert KernelRidge(landmarks=20, **PLAIN).plan(X).iterations == 20  # as in the paper

    def test_all_rows_are_too_many_to_factorise(self):
        est = KernelRidge(landmarks=None, **PLAIN)
        assert est.plan(np.zeros((10_001, 1), np.float32)).solver == "pcg"
        assert est.plan(np.zeros((400_001, 1), np.float32)).solver == "askotch"
        est.set_params(memory_limit="150MB")
        tight = est.plan(np.zeros((200_000, 1), np.float32))
        assert tight.solver == "askotch"  # no room for 100 columns

    def test_automatic_landmarks_are_all_rows_up_to_ten_thousand(self):
        small, large = (
            KernelRidge(**PLAIN).plan(np.zeros((n, 1), np.float32)) for n in (10_000, 10_001)
        )
        assert (small.solver, small.landmarks) == ("pcg", None)
        some = math.ceil(10_001**0.5 * math.log(10_001))
        assert (large.solver, large.landmarks) == ("falkon", some)

    @pytest.mark.parametrize("solver", ["pcg", "askotch", "eigenpro2"])
    def test_solvers_of_all_rows_get_all_rows(self, solver):
        plan = KernelRidge(solver=solver, **PLAIN).plan(np.zeros((20_000, 1), np.float32))
        assert (plan.solver, plan.landmarks) == (solver, None)

    def test_the_estimate_of_rounding_is_counted(self):
        est = KernelRidge(
            landmarks=20,
            lengthscale=0.1,
            max_iter=2,
            tol=0.0,
            random_state=0,
            kernel="gaussian",
            penalty=1e-6,
        )
        x = X.astype(np.float32)
        with pytest.warns(ConvergenceWarning):
            counted = est.fit(x, Y).history_[-1]["kernel_evaluations"]
        assert est.plan(x).kernel_evaluations == counted

    def test_what_eigenpro_takes_of_the_blocks_is_in_the_peak(self):
        x = np.zeros((3000, 3), np.float32)
        plan = KernelRidge(
            solver="eigenpro2", penalty=0, kernel="gaussian", lengthscale="median"
        ).plan(x)
        assert plan.memory_bytes > 25 * 2000**2  # the eigenvectors of 2,000 rows

    @pytest.mark.parametrize("settings", [{}, {"landmarks": 30}, {"solver": "pcg"}])
    def test_numbers_are_positive_and_the_text_names_them(self, settings):
        plan = KernelRidge(**(PLAIN | settings)).plan(X)
        assert plan.seconds > 0
        assert plan.memory_bytes > 8 * 150
        for part in (plan.solver, "kernel evaluations", "iterations", "about", " s "):
            assert part in str(plan)
        assert ("30 landmarks" if settings.get("landmarks") else "all rows") in str(plan) or (
            "landmarks" not in settings
        )

    def test_more_work_takes_longer_and_more_memory(self):
        small, large = (
            KernelRidge(landmarks=m, **PLAIN).plan(X, targets=t) for m, t in ((10, 1), (140, 5))
        )
        assert large.kernel_evaluations > small.kernel_evaluations
        assert large.memory_bytes > small.memory_bytes

    def test_landmarks_beyond_the_rows_are_all_rows(self):
        assert KernelRidge(landmarks=1000, **PLAIN).plan(X).landmarks == 150
        assert (
            KernelRidge(landmarks=np.zeros((1000, 3)), **PLAIN).plan(X).landmarks == 1000
        )  # points

    def test_of_anything_that_holds_rows(self, tmp_path):
        pq.write_table(pa.table(dict(zip("abc", X.T, strict=True))), tmp_path / "x.parquet")
        inputs = [
            X.tolist(),
            X,
            scipy.sparse.csr_array(X),
            tmp_path / "x.parquet",
        ]
        evaluations = [KernelRidge(landmarks=9, **PLAIN).plan(x).kernel_evaluations for x in inputs]
        assert len(set(evaluations[:3])) == 1
        # The factor of rows in a file is one of landmarks, without a pass over the rows.
        assert evaluations[3] == evaluations[0] - 150 * 9

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("form", ["file", "sparse"])
    def test_the_factor_of_all_rows_is_counted_where_it_is_built(self, form, tmp_path):
        pq.write_table(pa.table(dict(zip("abc", X.T, strict=True))), tmp_path / "x.parquet")
        x = as_rows(tmp_path / "x.parquet") if form == "file" else scipy.sparse.csr_array(X)
        est = KernelRidge(
            landmarks=9, max_iter=2, tol=0.0, random_state=0, **(PLAIN | {"standardize": False})
        )
        counted = est.fit(x, Y).history_[-1]["kernel_evaluations"]
        assert est.plan(x).kernel_evaluations == counted

    def test_of_a_classifier(self):
        assert KernelRidgeClassifier(landmarks=9, **PLAIN).plan(X, targets=4).solver == "falkon"

    def test_of_many_features(self):
        wide = scipy.sparse.random_array((20, 50_000), density=1e-4, format="csr", rng=0)
        assert KernelRidge(landmarks=5, **PLAIN).plan(wide).seconds > 0
        some = kernels.Gaussian(1.0).on([3, 40_000]) + kernels.Linear((2.0,) * 50_000)
        plain = {"penalty": 1e-3, "landmarks": 5}
        assert KernelRidge(some, lengthscale="median", **plain).plan(wide).seconds > 0

    @pytest.mark.usefixtures("unit_speed")
    @pytest.mark.parametrize(("kernel", "more"), [("linear", 1.0), ("gaussian", 4.0)])
    def test_landmarks_cost_nothing_where_no_entry_is_computed(self, kernel, more, monkeypatch):
        monkeypatch.setattr(Falkon, "operations", lambda *given: 0.0)
        monkeypatch.setattr(Falkon, "bytes_read", lambda *given: 0.0)
        x, settings = np.zeros((1_000_000, 3), np.float32), {"lengthscale": 1.0, "penalty": 1e-3}
        plans = [KernelRidge(kernel, landmarks=m, **settings).plan(x) for m in (1000, 4000)]
        assert plans[1].kernel_evaluations > 3.9 * plans[0].kernel_evaluations
        assert plans[1].seconds / plans[0].seconds == pytest.approx(more, rel=0.6)

    def test_what_is_kept_of_wide_rows_is_planned(self):
        wide = scipy.sparse.random_array((20_000, 50_000), density=1e-3, format="csr", rng=0)
        settings = {"landmarks": 50, "lengthscale": 1.0, "penalty": 1e-3}
        linear, other = (KernelRidge(k, **settings).plan(wide) for k in ("linear", "gaussian"))
        kept = 12 * wide.nnz
        assert kept < linear.memory_bytes - other.memory_bytes < 1.2 * kept

    def test_nothing_is_fitted(self):
        est = KernelRidge(**PLAIN)
        est.plan(X)
        assert vars(est) == vars(KernelRidge(**PLAIN))


@dataclass(frozen=True)
class Hungry(Solver[NystromProblem, State]):
    """A solver of somebody else, with a matrix of 3 n m numbers."""

    problem_types: ClassVar[tuple[type, ...]] = (NystromProblem,)

    def iterate(self, problem: Any, state: Any = None, *, rng: Any = None) -> Iterator[State]:
        yield State(
            0, xp.to_float64(np.zeros((problem.K.shape[1], problem.targets.shape[1]), np.float32))
        )

    def peak_bytes(self, size: ProblemSize, *, mapped: bool = False) -> int:
        return size.vector_bytes + 24 * size.n * size.m

    def evaluations(self, size: ProblemSize, iterations: int) -> int:
        return 7 * size.n * size.m * iterations

    def operations(self, size: ProblemSize, iterations: int) -> float:
        return 1e3


class TestASolverOfSomebodyElse:
    def test_its_own_figures_are_in_the_plan(self):
        x = np.zeros((20_000, 3), np.float32)
        plan = KernelRidge(solver=Hungry(), landmarks=500, max_iter=3, **PLAIN).plan(x)
        assert plan.kernel_evaluations == 7 * 20_000 * 500 * 3
        assert 24 * 20_000 * 500 < plan.memory_bytes < 1.2 * 24 * 20_000 * 500
        assert plan.solver == "Hungry"

    def test_a_limit_holds_for_it(self):
        x = np.zeros((20_000, 3), np.float32)
        with pytest.raises(ValueError, match=r"memory_limit is 200.* at most [\d,]+ landmarks fit"):
            KernelRidge(solver=Hungry(), landmarks=500, memory_limit="200MB", **PLAIN).plan(x)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"landmarks": 20},
        {"landmarks": 20, "solver": "direct"},
        {"landmarks": X[:7]},
        {"solver": PCG("none")},
        {"landmarks": 20, "solver": Falkon(preconditioner_penalty=1e-2)},
    ],
)
@pytest.mark.parametrize("max_iter", [1, 5])
def test_kernel_evaluations_are_those_of_the_fit(settings, max_iter):
    est = KernelRidge(
        lengthscale=1.0,
        max_iter=max_iter,
        tol=0.0,
        random_state=0,
        **({"kernel": "gaussian", "penalty": 1e-6} | settings),
    )
    predicted = est.plan(X).kernel_evaluations
    assert est.fit(X, Y).history_[-1]["kernel_evaluations"] == predicted


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", ["rpcholesky", "nystrom", "greedy"])
def test_kernel_evaluations_of_a_preconditioner_are_nearly_those_of_the_fit(kind, form):
    est = KernelRidge(
        solver=PCG(kind),
        lengthscale=1.0,
        max_iter=9,
        tol=0.0,
        random_state=0,
        kernel="gaussian",
        penalty=1e-6,
    )
    predicted = est.plan(form(X)).kernel_evaluations
    fitted = est.fit(form(X), Y).history_[-1]["kernel_evaluations"]
    assert 0.8 * predicted <= fitted <= 1.25 * predicted


class TestMemoryLimit:
    """An error says what would fit, and that fits; one more does not."""

    def most(self, est: KernelRidge, x: Any) -> int:
        with pytest.raises(ValueError, match=r"memory_limit is .*at most [\d,]+") as planned:
            est.plan(x)
        with pytest.raises(ValueError, match=r"at most [\d,]+") as fitted:
            est.fit(x, np.zeros(len(x)))
        assert str(planned.value) == str(fitted.value)
        found = re.search(r"at most ([\d,]+)", str(planned.value))
        assert found is not None
        return int(found[1].replace(",", ""))

    @pytest.mark.parametrize("solver", ["falkon", "direct"])
    @pytest.mark.parametrize(("d", "limit"), [(3, 50_700_000), (100, 52_000_000)])
    def test_landmarks(self, solver, d, limit):
        x = RNG.standard_normal((2000, d))
        est = KernelRidge(
            landmarks=1500, solver=solver, memory_limit=limit, random_state=0, **PLAIN
        )
        most = self.most(est, x)
        assert 1 < most < 1500
        est.set_params(landmarks=most, tol=0.1, penalty=1.0).fit(x, x[:, 0])
        assert len(est.dual_coef_) == most
        assert est.plan(x).memory_bytes <= limit
        with pytest.raises(ValueError, match="at most"):
            est.set_params(landmarks=most + 1).plan(x)

    def test_landmarks_whose_selection_grows_with_the_rows(self):
        x = RNG.standard_normal((20_000, 3))
        est = KernelRidge(landmarks=RPCholesky(200), memory_limit="60MB", random_state=0, **PLAIN)
        most = self.most(est, x)  # 8 n m bytes
        assert 1 < most < 200
        assert est.set_params(landmarks=RPCholesky(most)).plan(x).memory_bytes <= 60e6

    def test_rows(self):
        x = RNG.standard_normal((1000, 3))
        est = KernelRidge(
            solver="direct",
            memory_limit="52MB",
            penalty=1.0,
            kernel="gaussian",
            lengthscale="median",
        )
        most = self.most(est, x)
        assert 1 < most < 1000
        est.fit(x[:most], x[:most, 0])
        with pytest.raises(ValueError, match="use landmarks, or solver='pcg', or at most"):
            est.plan(x[: most + 1])

    def test_too_little_for_anything(self):
        for settings in ({}, {"landmarks": 10}, {"solver": "pcg"}):
            with pytest.raises(
                ValueError, match=r"memory_limit is 1 MB; .* needs .* raise the limit"
            ):
                KernelRidge(memory_limit="1MB", **(PLAIN | settings)).plan(X)

    def test_the_least_that_is_named_is_enough(self):
        est = KernelRidge(landmarks=1, memory_limit="1MB", **PLAIN)
        with pytest.raises(ValueError, match="needs") as error:
            est.plan(X)
        found = re.search(r"needs ([\d.]+) MB", str(error.value))
        assert found is not None
        # it is rounded to three digits
        est.set_params(memory_limit=int(float(found[1]) * 1.005e6)).fit(X, Y)

    @pytest.mark.parametrize("limit", ["lots", -5, 0, "12 parsecs", None])
    def test_a_limit_that_is_none(self, limit):
        est = KernelRidge(memory_limit=limit, **PLAIN)
        if limit is None:
            est.fit(X, Y)
        else:
            with pytest.raises(ValueError, match=r"memory_limit=.* is not a size"):
                est.fit(X, Y)

    def test_it_holds_for_predictions(self):
        est = KernelRidge(landmarks=20, random_state=0, **PLAIN).fit(X, Y)
        expected = est.predict(X)
        est.set_params(memory_limit="60MB")
        np.testing.assert_allclose(est.predict(X), expected, rtol=1e-9)

    def test_flattened_directions_are_at_most_a_tenth_of_the_subsample(self):
        x = np.zeros((4000, 3), np.float32)  # a subsample of 2,000: 200 directions, not 300
        plans = [
            KernelRidge(landmarks=3000, solver=EigenPro3(rank=rank), **PLAIN).plan(x)
            for rank in ("auto", 200, 300)
        ]
        auto, same, more = (plan.memory_bytes for plan in plans)
        assert auto == same
        assert more - same == 16 * 3000 * 100 + 4 * 4000 * 100  # of centers and of rows

    def test_refused_before_anything_is_read(self):
        class Unread(ArrayRows):
            def blocks(self, size):
                raise RuntimeError("rows are read")

            take = blocks

        est = KernelRidge(landmarks=20, memory_limit="20MB", **PLAIN)
        with pytest.raises(ValueError, match=r"20 landmarks need .* memory_limit is 20 MB"):
            est.check_memory(Unread(X))
        assert est.set_params(memory_limit="100MB").check_memory(Unread(X)) is None
        with pytest.raises(ValueError, match="PCG solves FullProblem"):
            est.set_params(solver="pcg").check_memory(Unread(X))


class TestTables:
    FRAME = pd.DataFrame(
        {"town": ["a", "b", "c", "d"] * 30, "x": X[:120, 0], "y": np.arange(120.0), "z": 1.0}
    )

    def test_columns_are_counted_as_they_are_encoded(self):
        est = KernelRidge(landmarks=20, **PLAIN)
        named = est.plan(self.FRAME, "y")
        fitted = est.fit(self.FRAME, "y").model_
        assert fitted.centers.shape[1] == 5  # four levels and a number; z does not vary
        assert named.memory_bytes == est.plan(np.zeros((120, 5))).memory_bytes
        assert est.plan(self.FRAME.drop(columns="y")).memory_bytes == named.memory_bytes

    def test_classes_are_counted(self):
        est = KernelRidgeClassifier(landmarks=20, **PLAIN)
        plan, other = est.plan(self.FRAME, "town"), est.plan(np.zeros((120, 3)), targets=4)
        assert plan.memory_bytes == other.memory_bytes


class TestChoice:
    """The plan counts the work of the choice of kernel, lengthscale and penalty."""

    @staticmethod
    def held_out_evaluations(settings: FitSettings, x: np.ndarray, landmarks: int | None) -> int:
        """Return the kernel evaluations of a choice by held-out rows."""
        targets = xp.asarray(np.sin(x[:, :1]) + 0.1 * RNG.standard_normal((len(x), 1)))
        data = TrainingData(as_rows(x), targets)
        _, comparison = compare_recipes(settings, data, landmarks=landmarks, rng=RandomStream(0))
        assert isinstance(comparison, HeldOutChoice)
        return comparison.clock.meter.evaluations

    def test_evaluations_of_fits_with_landmarks_are_exact(self):
        x = RNG.standard_normal((1500, 3)).astype(np.float32)
        settings = FitSettings(kernel="gaussian", lengthscale=1.0, landmarks=40)
        work = choice_work(settings, as_rows(x), ProblemSize(1500, 3, 1, 40, 4, full=False))
        assert work.evaluations == self.held_out_evaluations(settings, x, 40)
        assert work.double_evaluations == 0

    @pytest.mark.parametrize(("n", "least"), [(1500, 1.0), (3000, 0.1)])
    def test_evaluations_with_all_rows_as_centers(self, n, least):
        x = RNG.standard_normal((n, 3)).astype(np.float32)
        settings = FitSettings(kernel="gaussian", lengthscale=1.0, landmarks=None)
        work = choice_work(settings, as_rows(x), ProblemSize(n, 3, 1, n, 4, full=True))
        planned = work.evaluations + work.double_evaluations
        # Exact for factorisations. Iterations depend on the data: a smooth function of three
        # features needs few.
        assert least * planned <= self.held_out_evaluations(settings, x, None) <= planned

    @pytest.mark.parametrize("n", [150, 700, 1500, 20_000])
    @pytest.mark.parametrize("landmarks", [None, 100])
    def test_each_choice_adds_work(self, n, landmarks):
        rows, m = as_rows(np.zeros((n, 3), np.float32)), landmarks or n
        size = ProblemSize(n, 3, 1, m, 4, full=landmarks is None)
        given = {"kernel": "gaussian", "lengthscale": 1.0, "landmarks": landmarks}

        def operations(**settings: Any) -> float:
            return choice_work(FitSettings(**(given | settings)), rows, size).operations

        nothing = operations(penalty=1e-6)
        penalty = operations()
        lengthscale = operations(lengthscale="auto")
        everything = operations(lengthscale="auto", kernel="auto")
        assert 0 == nothing < penalty < lengthscale < everything
        assert operations(cv=5) > penalty
        assert operations(lengthscale="likelihood") > 0

    def test_the_sample_bounds_the_work(self):
        settings = FitSettings(kernel="gaussian", lengthscale=1.0, landmarks=500)
        works = [
            choice_work(
                settings,
                as_rows(np.zeros((n, 3), np.float32)),
                ProblemSize(n, 3, 1, 500, 4, full=False),
            )
            for n in (20_000, 200_000)
        ]
        assert works[0] == works[1]

    @pytest.mark.usefixtures("unit_speed")
    def test_seconds_and_memory_of_the_choice_are_in_the_plan(self):
        x = np.zeros((20_000, 3), np.float32)
        fixed = {"kernel": "gaussian", "lengthscale": 1.0, "landmarks": 300}
        plans = [KernelRidge(penalty=penalty, **fixed).plan(x) for penalty in (1e-6, "auto")]
        size = ProblemSize(20_000, 3, 1, 300, 4, full=False)
        work = choice_work(FitSettings(**fixed), as_rows(x), size)
        kernel = kernels.Gaussian(1.0)
        seconds = calibration.work_seconds(work, 3, kernel, choose_engine("auto", dtype=xp.float32))
        assert seconds > 0
        assert plans[1].seconds - plans[0].seconds == pytest.approx(seconds, rel=1e-6)
        assert plans[0].memory_bytes < plans[1].memory_bytes
        assert plans[1].memory_bytes == max(plans[0].memory_bytes, int(work.peak_bytes))
        assert plans[1].kernel_evaluations == plans[0].kernel_evaluations

    @pytest.mark.usefixtures("unit_speed")
    @pytest.mark.parametrize("n", [20_000, 80_000])
    def test_one_cell_chooses_for_all(self, n):
        x, cell = np.zeros((n, 3), np.float32), as_rows(np.zeros((1500, 3), np.float32))
        fixed = {"kernel": "gaussian", "lengthscale": 1.0}
        given, auto = (KernelRidge(penalty=p, cells=1500, **fixed).plan(x) for p in (1e-6, "auto"))
        work = choice_work(FitSettings(**fixed), cell, ProblemSize(1500, 3, 1, 1500, 4, full=True))
        engine = choose_engine("auto", dtype=xp.float32)
        seconds = calibration.work_seconds(work, 3, kernels.Gaussian(1.0), engine)
        assert seconds > 0
        assert auto.seconds - given.seconds == pytest.approx(seconds, rel=1e-6)

    def test_work_adds_up_and_its_peak_is_a_maximum(self):
        work = Work(1.0, 2.0, 3.0, 4.0, 5.0)
        assert work + Work(10.0, 20.0, 30.0, 40.0, 1.0) == Work(11.0, 22.0, 33.0, 44.0, 5.0)
        assert work * 2 == Work(2.0, 4.0, 6.0, 8.0, 5.0)
        assert work * 0 == Work()


class TestWorkOfSolvers:
    SIZE = ProblemSize(20_000, 10, 1, 1000, 4, full=False)

    def test_falkon_counts_the_search_for_its_penalty(self):
        automatic, given = (Falkon(preconditioner_penalty=p) for p in ("landmarks", 1e-3))
        added = automatic.operations(self.SIZE, 20) - given.operations(self.SIZE, 20)
        assert added == spectrum_operations(1000)

    def test_falkon_counts_strips_of_a_factor_of_all_rows(self):
        few = replace(self.SIZE, m=200)  # cheap enough to sum all rows
        assert Falkon().flexible_bytes(self.SIZE, 1 << 30) == 0
        assert Falkon().flexible_bytes(few, 1 << 30) > 3 * 8 * 200 * 10_000
        assert Falkon().operations(few, 20) > 3 * 20_000 * 200**2

    def test_sketchysaga_counts_the_choice_of_its_damping(self):
        automatic, given = (SketchySAGA(damping=damping) for damping in ("auto", 1.0))
        probed = 7 * 2048 * 4 * 1000 * 500
        assert automatic.operations(self.SIZE, 1) - given.operations(self.SIZE, 1) > probed

    def test_a_batch_of_eigenpro2_has_two_products(self):
        size = replace(self.SIZE, m=20_000, full=True)
        assert EigenPro2(batch=500).steps(size, 3) == 2 * 3 * 20_000 / 500

    def test_a_path_has_more_steps_and_factors(self):
        path = FitSize(20_000, 10, 1, 1000, 4, full=False, fits=0.8)
        once = replace(path, fits=0.0)
        solver = Falkon()
        assert path.steps(solver, 20) > 15 * once.steps(solver, 20)
        assert path.operations(solver, 20) == 3 * once.operations(solver, 20)


def test_a_pass_over_remote_rows_opens_and_scales_them(monkeypatch):
    monkeypatch.setattr(remote, "TASK_SECONDS", 0.0)
    spread = Spread(2, 4, 10, mean=lambda ask: 0.0, seconds_to_read=lambda: 8.0)
    size = FitSize(20_000, 10, 1, 1000, 4, full=False)
    one = Plan("falkon", 1000, 0, 10**9, 0.0, iterations=3)
    kernel, dtype = kernels.Gaussian(1.0), xp.float32
    engine = choose_engine("auto", dtype=dtype)
    seconds = remote.remote_seconds(one, spread, dtype, size, kernel, engine)
    assert seconds == 8.0 * (4 * remote.READS_PER_PASS + remote.PASSES_BEFORE_FIT) / 4
