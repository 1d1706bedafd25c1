"""KernelRidge against scikit-learn and against closed forms, and what it keeps after a fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import sklearn.kernel_ridge
from formulas import suited
from plain import PLAIN
from scipy.spatial.distance import cdist, pdist
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from tensors import as_tensor

from gramian import KernelModel, KernelRidge, kernels
from gramian.data import as_rows
from gramian.landmarks import RecursiveRLS, Uniform
from gramian.solvers import PCG, ASkotch, Direct, Falkon

N, D = 80, 3
NAMES = ["first", "second", "third"]


def data(n: int = N, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)


X, Y = data()
NEW, _ = data(20, seed=1)


def gaussian(x: np.ndarray, z: np.ndarray, lengthscale: float) -> np.ndarray:
    return np.exp(-cdist(x, z, "sqeuclidean") / (2 * lengthscale**2))


def raw(**settings: Any) -> KernelRidge:
    """The function of scikit-learn's KernelRidge: nothing is centered or scaled."""
    return KernelRidge(**(PLAIN | settings), standardize=False)


class TestAgainstScikitLearn:
    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            ({"kernel": "gaussian", "lengthscale": 1.5}, {"kernel": "rbf", "gamma": 1 / 4.5}),
            ({"kernel": "l1_laplacian", "lengthscale": 2.0}, {"kernel": "laplacian", "gamma": 0.5}),
            ({"kernel": "linear"}, {"kernel": "linear"}),
            ({"kernel": "polynomial"}, {"kernel": "poly", "degree": 3, "coef0": 1}),
        ],
    )
    @pytest.mark.parametrize("solver", ["direct", "pcg"])
    def test_all_rows(self, ours, theirs, solver):
        penalty = 1e-2
        est = raw(**ours, penalty=penalty, solver=solver, tol=1e-11, max_iter=500)
        other = sklearn.kernel_ridge.KernelRidge(alpha=N * penalty, **theirs)
        expected = other.fit(X, Y).predict(NEW)
        np.testing.assert_allclose(est.fit(X, Y).predict(NEW), expected, rtol=1e-7, atol=1e-7)

    @pytest.mark.parametrize("solver", ["direct", "pcg"])
    def test_sample_weight(self, solver):
        weight = np.random.default_rng(2).uniform(0.5, 3, N)
        est = raw(lengthscale=1.5, penalty=1e-2, solver=solver, tol=1e-11, max_iter=500)
        other = sklearn.kernel_ridge.KernelRidge(
            alpha=1e-2 * weight.sum(), kernel="rbf", gamma=1 / 4.5
        )
        expected = other.fit(X, Y, sample_weight=weight).predict(NEW)
        actual = est.fit(X, Y, sample_weight=weight).predict(NEW)
        np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-7)

    @pytest.mark.parametrize("solver", ["falkon", "direct"])
    def test_landmarks(self, solver):
        features = Nystroem("rbf", gamma=1 / 4.5, n_components=25, random_state=0).fit(X)
        ridge = Ridge(alpha=N * 1e-3, fit_intercept=False).fit(features.transform(X), Y)
        expected = ridge.predict(features.transform(NEW))
        est = raw(
            lengthscale=1.5, penalty=1e-3, landmarks=features.components_, solver=solver, tol=1e-12
        )
        actual = est.fit(X, Y).predict(NEW)
        # scikit-learn cuts no eigenvalue of K_mm below 1e-12: that is what it leaves.
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)

    def test_the_score_is_that_of_every_regressor(self):
        est = KernelRidge(**PLAIN).fit(X, Y)
        residual = ((Y - est.predict(X)) ** 2).sum() / ((Y - Y.mean()) ** 2).sum()
        assert est.score(X, Y) == pytest.approx(1 - residual)


class TestWeights:
    def test_a_whole_weight_is_a_repeated_row_and_zero_is_none(self):
        counts = np.random.default_rng(3).integers(0, 4, N)
        Z = X[counts > 0][:15]
        for settings in ({}, {"landmarks": Z}, {"solver": "pcg", "max_iter": 500}):
            est = KernelRidge(
                lengthscale=1.5, penalty=1e-2, tol=1e-12, **({"kernel": "gaussian"} | settings)
            )
            weighted = est.fit(X, Y, sample_weight=counts).predict(NEW)
            repeated = est.fit(X.repeat(counts, axis=0), Y.repeat(counts)).predict(NEW)
            np.testing.assert_allclose(weighted, repeated, rtol=1e-7, atol=1e-8)

    def test_rows_of_weight_zero_are_no_landmarks(self):
        weight = np.ones(N)
        weight[10:] = 0
        est = KernelRidge(landmarks=10, random_state=0, **PLAIN).fit(X, Y, sample_weight=weight)
        assert sorted(est.landmark_index_) == list(range(10))

    def test_a_landmark_weighs_what_its_row_does(self):
        # All rows are landmarks: with their weights the factor of landmarks is the inverse. "auto"
        # would build the factor of rows.
        weight = np.random.default_rng(2).uniform(0.1, 10, N)
        solver = Falkon(preconditioner_penalty=None)
        est = KernelRidge(
            lengthscale=1.5, penalty=1e-3, landmarks=N, solver=solver, tol=1e-8, kernel="gaussian"
        )
        assert est.fit(X, Y, sample_weight=weight).n_iter_ <= 2

    def test_one_number_for_all_rows(self):
        one, none = (
            KernelRidge(**PLAIN).fit(X, Y, sample_weight=w).predict(NEW) for w in (3.0, None)
        )
        np.testing.assert_allclose(one, none, rtol=1e-8)


class TestTargets:
    @pytest.mark.parametrize("settings", [{}, {"landmarks": 20}, {"solver": "pcg", "penalty": 0.1}])
    def test_several_are_as_many_single_ones(self, settings):
        Y2 = np.stack([Y, 100 * X[:, 2], np.zeros(N)], axis=1)
        est = KernelRidge(random_state=0, tol=1e-11, **(PLAIN | settings))
        together = est.fit(X, Y2).predict(NEW)
        assert together.shape == (20, 3)
        assert est.dual_coef_.shape[1] == 3
        for j in range(3):
            alone = est.fit(X, Y2[:, j]).predict(NEW)
            assert est.dual_coef_.ndim == alone.ndim == 1
            np.testing.assert_allclose(together[:, j], alone, rtol=1e-7, atol=1e-7)

    def test_a_column_stays_a_column(self):
        assert KernelRidge(**PLAIN).fit(X, Y[:, None]).predict(NEW).shape == (20, 1)

    @pytest.mark.parametrize(
        "as_input", [list, pd.Series, np.float32, lambda y: (100 * y).astype(int)]
    )
    def test_any_kind(self, as_input):
        y = as_input(Y)
        est = KernelRidge(**PLAIN).fit(X, y)
        np.testing.assert_allclose(
            est.predict(NEW),
            KernelRidge(**PLAIN).fit(X, np.asarray(y, float)).predict(NEW),
            rtol=1e-7,
        )


def parquet(x: np.ndarray, folder: Path) -> Path:
    columns = dict(zip(NAMES, x.T, strict=True))
    pq.write_table(pa.table(columns), folder / "x.parquet", row_group_size=17)
    return folder / "x.parquet"


def npy(x: np.ndarray, folder: Path) -> str:
    np.save(folder / "x.npy", x)
    return str(folder / "x.npy")


INPUTS: dict[str, Callable[[np.ndarray, Path], Any]] = {
    "list": lambda x, folder: x.tolist(),
    "columns first": lambda x, folder: np.asfortranarray(x),
    "DataFrame": lambda x, folder: pd.DataFrame(x, columns=NAMES),
    "DataFrame without names": lambda x, folder: pd.DataFrame(x),
    "sparse": lambda x, folder: scipy.sparse.csr_array(x),
    "sparse columns": lambda x, folder: scipy.sparse.csc_matrix(x),
    "tensor": lambda x, folder: x,
    "Arrow": lambda x, folder: pa.table(dict(zip(NAMES, x.T, strict=True))),
    "Parquet": parquet,
    "npy": npy,
    "row source": lambda x, folder: as_rows(x),
}


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("landmarks", [None, 20])
def test_it_does_not_matter_what_holds_the_rows(kind, landmarks, tmp_path):
    est = raw(landmarks=landmarks, random_state=0, tol=1e-11)  # sparse rows are not standardised
    expected = est.fit(X, Y).predict(NEW)
    (tmp_path / "train").mkdir()
    est.fit(INPUTS[kind](X, tmp_path / "train"), Y)
    actual = est.predict(INPUTS[kind](NEW, tmp_path))
    np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-8)
    assert est.n_features_in_ == D


class TestFeatureNames:
    @pytest.mark.parametrize("kind", ["DataFrame", "Arrow", "Parquet"])
    def test_they_are_kept_in_the_estimator_and_in_the_model(self, kind, tmp_path):
        est = KernelRidge(**PLAIN).fit(INPUTS[kind](X, tmp_path), Y)
        assert est.feature_names_in_.tolist() == NAMES
        assert est.model_.feature_names == tuple(NAMES)

    @pytest.mark.parametrize("kind", ["DataFrame", "Arrow", "Parquet"])
    def test_others_are_refused(self, kind, tmp_path):
        est = KernelRidge(**PLAIN).fit(pd.DataFrame(X, columns=NAMES), Y)
        columns = dict(zip(NAMES, X.T, strict=True))
        swapped = {name: columns[name] for name in ("second", "first", "third")}
        inputs = {"DataFrame": pd.DataFrame(swapped), "Arrow": pa.table(swapped)}
        if kind == "Parquet":
            pq.write_table(pa.table(swapped), tmp_path / "x.parquet")
            inputs["Parquet"] = tmp_path / "x.parquet"
        with pytest.raises(ValueError, match=r"[fF]eature"):
            est.predict(inputs[kind])

    def test_they_are_forgotten_by_a_fit_without_names(self):
        est = KernelRidge(**PLAIN).fit(pd.DataFrame(X, columns=NAMES), Y)
        est.fit(X, Y)
        assert not hasattr(est, "feature_names_in_")
        assert est.model_.feature_names is None


class TestKernels:
    def test_the_median_lengthscale(self):
        est = raw().fit(X, Y)
        distances = np.sort(pdist(X))
        # of an even number of distances, the lower one of the two in the middle
        assert est.kernel_.lengthscale == pytest.approx(distances[(len(distances) - 1) // 2])

    @pytest.mark.parametrize("lengthscale", [[1.0, 2.0, 3.0], (1, 2, 3), np.array([1.0, 2.0, 3.0])])
    def test_one_lengthscale_per_feature(self, lengthscale):
        each = raw(lengthscale=lengthscale).fit(X, Y).predict(NEW)
        scaled = raw(lengthscale=1.0).fit(X / [1, 2, 3], Y).predict(NEW / [1, 2, 3])
        np.testing.assert_allclose(each, scaled, rtol=1e-7)

    def test_a_kernel_object(self):
        kernel = kernels.Gaussian(1.5) + 0.1 * kernels.Linear()
        est = raw(kernel=kernel, penalty=1e-2).fit(X, Y)

        def K(x: np.ndarray, z: np.ndarray) -> np.ndarray:
            return gaussian(x, z, 1.5) + 0.1 * x @ z.T

        expected = K(NEW, X) @ np.linalg.solve(K(X, X) + 0.01 * N * np.eye(N), Y)
        np.testing.assert_allclose(est.predict(NEW), expected, rtol=1e-8)
        assert est.kernel_ == kernel

    @pytest.mark.parametrize("name", kernels.names())
    def test_every_kernel_by_name(self, name):
        for landmarks in (None, 20):
            est = KernelRidge(
                name, landmarks=landmarks, penalty=1e-3, random_state=0, lengthscale="median"
            )
            (rows,) = suited(kernels.make(name), X)
            error = Y - est.fit(rows, Y).predict(rows)
            assert (error**2).sum() < (Y**2).sum()  # better than the zero function
            assert type(est.kernel_) is type(kernels.make(name))


class TestIterations:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_where_rounding_leaves_no_direction_it_says_so_and_is_no_worse_than_zero(self, dtype):
        rng = np.random.default_rng(0)
        X = (rng.standard_normal((9, 3)) + 1e3).astype(dtype)  # entries of 1e24, a penalty of 2
        model = raw(
            kernel=kernels.Polynomial(0.05, degree=3), penalty=0.2, solver="pcg", max_iter=200
        )
        with pytest.warns(ConvergenceWarning, match=r"off by an estimated .*rounding leaves no"):
            model.fit(X, rng.standard_normal(9))
        assert model.n_iter_ < 200
        assert model.history_[-1]["rel_residual"] <= 1 + 1e-6

    def test_those_of_block_methods_are_counted_by_passes(self):
        with pytest.warns(ConvergenceWarning, match="max_iter=3"):
            est = KernelRidge(solver=ASkotch(block=len(X) // 4), max_iter=3, tol=0.0, **PLAIN).fit(
                X, Y
            )
        assert est.n_iter_ == 12
        assert est.history_[-1]["passes"] == pytest.approx(3)


class TestLandmarks:
    @pytest.mark.parametrize("landmarks", [7, np.int32(7), Uniform(7)])
    def test_a_number_of_rows(self, landmarks):
        est = raw(landmarks=landmarks, random_state=0).fit(X, Y)
        assert len(set(est.landmark_index_)) == 7
        centers = est.model_.centers.take(np.arange(7))
        np.testing.assert_array_equal(centers, X[est.landmark_index_])
        assert isinstance(est.solver_, Falkon)

    def test_all_that_say_so_choose_the_same(self):
        fits = [
            KernelRidge(landmarks=z, random_state=0, **PLAIN).fit(X, Y) for z in (7, Uniform(7))
        ]
        np.testing.assert_array_equal(fits[0].landmark_index_, fits[1].landmark_index_)

    @pytest.mark.parametrize("landmarks", ["auto", "uniform"])
    def test_a_name(self, landmarks):
        n = 400
        Xn, Yn = data(n)
        est = KernelRidge(
            landmarks=landmarks, solver="falkon", random_state=0, max_iter=400, **PLAIN
        )
        est.fit(Xn, Yn)
        assert len(est.landmark_index_) == int(np.ceil(np.sqrt(n) * np.log(n)))

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_auto_is_the_recursion_where_rows_have_random_access(self, tmp_path):
        Xn, Yn = data(400)
        m = int(np.ceil(np.sqrt(400) * np.log(400)))
        settings = {"random_state": 0, "max_iter": 2, "tol": 1.0, "solver": "falkon"}
        auto = KernelRidge(landmarks="auto", **(PLAIN | settings)).fit(Xn, Yn)
        named = KernelRidge(landmarks=RecursiveRLS(m, accelerated=True), **(PLAIN | settings)).fit(
            Xn, Yn
        )
        np.testing.assert_array_equal(auto.landmark_index_, named.landmark_index_)
        table = pa.table({f"x{j}": column for j, column in enumerate(Xn.T)})
        pq.write_table(table, tmp_path / "x.parquet")
        auto = KernelRidge(landmarks="auto", **(PLAIN | settings)).fit(tmp_path / "x.parquet", Yn)
        named = KernelRidge(landmarks=m, **(PLAIN | settings)).fit(Xn, Yn)
        np.testing.assert_array_equal(auto.landmark_index_, named.landmark_index_)

    @pytest.mark.parametrize(
        "as_input",
        [
            lambda z: z,
            lambda z: z.tolist(),
            lambda z: z.astype(np.float32),
            as_tensor,
            pd.DataFrame,
            scipy.sparse.csr_array,
        ],
    )
    def test_points(self, as_input):
        Z = data(12, seed=5)[0].astype(np.float32).astype(float)
        est = raw(landmarks=as_input(Z), lengthscale=1.5, penalty=1e-2, tol=1e-12).fit(X, Y)
        K, K_mm = gaussian(X, Z, 1.5), gaussian(Z, Z, 1.5)
        coef = np.linalg.solve(K.T @ K + 0.01 * N * K_mm, K.T @ Y)
        np.testing.assert_allclose(est.predict(NEW), gaussian(NEW, Z, 1.5) @ coef, rtol=1e-6)
        assert est.landmark_index_ is None

    def test_more_points_than_rows(self):
        Z = data(100, seed=5)[0]
        est = KernelRidge(landmarks=Z, penalty=1e-2, kernel="gaussian", lengthscale="median").fit(
            X[:30], Y[:30]
        )
        assert est.model_.coef.shape == (100, 1)

    def test_more_than_rows_is_a_warning_then_all_rows(self):
        est = KernelRidge(landmarks=N + 1, random_state=0, tol=1e-11, **PLAIN)
        with pytest.warns(UserWarning, match="81 landmarks were asked for but there are 80 rows"):
            est.fit(X, Y)
        assert sorted(est.landmark_index_) == list(range(N))
        np.testing.assert_allclose(
            est.predict(NEW), KernelRidge(**PLAIN).fit(X, Y).predict(NEW), rtol=1e-5
        )


class TestRandomState:
    def test_the_same_seed_the_same_fit(self):
        fits = [KernelRidge(landmarks=10, random_state=s, **PLAIN).fit(X, Y) for s in (0, 0, 1)]
        np.testing.assert_array_equal(fits[0].predict(NEW), fits[1].predict(NEW))
        assert set(fits[0].landmark_index_) != set(fits[2].landmark_index_)

    def test_a_generator_moves_on(self):
        state = np.random.RandomState(0)
        first, second = (
            KernelRidge(landmarks=10, random_state=state, **PLAIN).fit(X, Y) for _ in range(2)
        )
        assert set(first.landmark_index_) != set(second.landmark_index_)

    def test_nobody_elses_random_numbers_are_touched(self):
        np.random.seed(5)  # noqa: NPY002 - the global generator is what is watched
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        KernelRidge(landmarks=10, random_state=0, **PLAIN).fit(X, Y).predict(NEW)
        KernelRidge(landmarks=10, random_state=0, **PLAIN).plan(X)
        assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


class TestSolvers:
    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            ({}, Direct),
            ({"landmarks": 10}, Falkon),
            ({"landmarks": "auto"}, Direct),
            ({"landmarks": "auto", "solver": "falkon"}, Falkon),
            ({"landmarks": X[:5]}, Falkon),
            ({"solver": "pcg", "penalty": 1.0}, PCG),
            ({"solver": "direct", "landmarks": 10}, Direct),
            ({"solver": Falkon(refine=True), "landmarks": 10}, Falkon),
        ],
    )
    def test_which_one(self, settings, expected):
        assert type(KernelRidge(**(PLAIN | settings)).fit(X, Y).solver_) is expected

    def test_all_rows_without_the_memory_for_their_matrix(self):
        # 2,500 rows: the matrix takes 50 MB, and blocks of rows 50 MB
        Xn, Yn = data(2500)
        small, large = (
            KernelRidge(
                penalty=1.0, tol=0.1, memory_limit=limit, kernel="gaussian", lengthscale="median"
            )
            for limit in ("90MB", "120MB")
        )
        assert type(small.fit(Xn, Yn).solver_) is PCG
        assert large.plan(Xn).solver == "direct"

    def test_solvers_that_do_not_go_with_the_landmarks(self):
        with pytest.raises(ValueError, match=r"Falkon solves NystromProblem.*needs landmarks"):
            KernelRidge(solver="falkon", landmarks=None, **PLAIN).fit(X, Y)
        with pytest.raises(ValueError, match="PCG solves FullProblem"):
            KernelRidge(solver="pcg", landmarks=10, **PLAIN).fit(X, Y)

    def test_what_a_fit_leaves(self):
        est = KernelRidge(landmarks=10, random_state=0, **PLAIN).fit(X, Y)
        assert est.stop_reason_ == "converged"
        assert est.history_[-1]["rel_residual"] <= 1e-6
        assert est.n_iter_ == est.history_[-1]["iteration"]
        assert est.kernel_ == est.model_.kernel
        direct = KernelRidge(max_iter=1, **PLAIN).fit(X, Y)
        assert (direct.stop_reason_, direct.n_iter_) == ("converged", 1)

    def test_too_few_iterations_are_a_warning(self):
        est = KernelRidge(solver="pcg", max_iter=3, **PLAIN)
        with pytest.warns(
            ConvergenceWarning, match=r"max_iter=3 .*off by an estimated .*raise max_iter"
        ):
            est.fit(X, Y)
        assert (est.stop_reason_, est.n_iter_) == ("max_iterations", 3)
        assert np.isfinite(est.predict(NEW)).all()


class TestWarmStart:
    @pytest.mark.parametrize(
        ("settings", "again"),  # FALKON takes three steps to see how small its eigenvalues are
        [
            ({"landmarks": 30, "solver": Falkon(preconditioner_penalty=None)}, 3),
            ({"solver": "pcg", "max_iter": 400}, 1),
        ],
    )
    def test_sooner_at_the_same_answer(self, settings, again):
        est = KernelRidge(
            warm_start=True,
            penalty=1e-3,
            tol=1e-9,
            random_state=0,
            **({"kernel": "gaussian", "lengthscale": "median"} | settings),
        )
        first = est.fit(X, Y).predict(NEW)
        cold = est.n_iter_
        est.fit(X, Y)
        assert est.n_iter_ == again < cold
        np.testing.assert_allclose(est.predict(NEW), first, rtol=1e-6)
        est.set_params(penalty=1.1e-3).fit(X, Y)
        assert 1 < est.n_iter_ < cold

    def test_the_landmarks_stay(self):
        est = KernelRidge(landmarks=10, warm_start=True, **PLAIN).fit(X, Y)  # no random_state
        index = est.landmark_index_
        np.testing.assert_array_equal(est.fit(X, Y).landmark_index_, index)

    def test_unless_others_are_asked_for(self):
        est = KernelRidge(landmarks=10, warm_start=True, random_state=0, **PLAIN).fit(X, Y)
        assert len(est.set_params(landmarks=20).fit(X, Y).dual_coef_) == 20
        assert len(est.set_params(landmarks=X[:5]).fit(X, Y).dual_coef_) == 5
        assert len(est.set_params(landmarks=X[:6]).fit(X, Y).dual_coef_) == 6
        assert len(est.set_params(landmarks=None).fit(X, Y).dual_coef_) == N
        assert len(est.set_params(landmarks=10).fit(X, Y).dual_coef_) == 10

    def test_row_numbers_are_those_of_these_rows_or_none(self):
        est = KernelRidge(landmarks=10, warm_start=True, random_state=0, **PLAIN).fit(X, Y)
        index = est.landmark_index_
        assert est.fit(X[::-1].copy(), Y[::-1]).landmark_index_ is None
        est = KernelRidge(landmarks=10, warm_start=True, random_state=0, **PLAIN).fit(X, Y)
        np.testing.assert_array_equal(est.fit(X, 2 * Y).landmark_index_, index)

    @pytest.mark.parametrize("settings", [{"landmarks": 10}, {}])
    def test_from_other_shapes_it_starts_anew(self, settings):
        est = KernelRidge(warm_start=True, random_state=0, **(PLAIN | settings)).fit(X, Y)
        assert est.fit(X, np.stack([Y, Y], axis=1)).predict(NEW).shape == (20, 2)
        assert est.fit(X[:50], Y[:50]).predict(NEW).shape == (20,)
        assert est.fit(X[:, :2], Y).predict(NEW[:, :2]).shape == (20,)


class TestFailedFits:
    @pytest.mark.parametrize(
        ("settings", "args"),
        [
            ({"penalty": -1.0}, (X[:, :2], Y)),
            ({"kernel": "nonsense"}, (X[:, :2], Y)),
            ({"solver": "falkon", "landmarks": None}, (X[:, :2], Y)),
            ({"memory_limit": 1000}, (X[:, :2], Y)),
            ({}, (X[:, :2], Y[:-1])),
            ({}, (np.full((4, 2), np.nan), np.zeros(4))),
            ({}, (pd.DataFrame(X[:, :2], columns=["a", "b"]), np.full(N, np.inf))),
            ({"callbacks": [lambda problem, state: 1 / 0]}, (X[:, :2], Y)),
        ],
    )
    def test_the_last_fit_is_kept_whole(self, settings, args):
        est = KernelRidge(random_state=0, **PLAIN).fit(pd.DataFrame(X, columns=NAMES), Y)
        new = pd.DataFrame(NEW, columns=NAMES)
        expected, kept = est.predict(new), dict(vars(est))
        with pytest.raises((ValueError, ZeroDivisionError)):
            est.set_params(**settings).fit(*args)
        est.set_params(**{name: kept[name] for name in settings})
        assert vars(est).keys() == kept.keys()
        assert all(vars(est)[name] is value for name, value in kept.items())
        np.testing.assert_array_equal(est.predict(new), expected)

    def test_control_c_too(self):
        def interrupt(problem: Any, state: Any) -> None:
            raise KeyboardInterrupt

        est = KernelRidge(**PLAIN).fit(X, Y)
        with pytest.raises(KeyboardInterrupt):
            est.set_params(callbacks=[interrupt]).fit(X[:, :1], Y)
        assert est.predict(NEW).shape == (20,)

    def test_without_a_last_fit_there_is_none(self):
        est = KernelRidge(penalty=-1.0, kernel="gaussian", lengthscale="median")
        with pytest.raises(ValueError, match="penalty"):
            est.fit(X, Y)
        assert not hasattr(est, "n_features_in_")
        with pytest.raises(NotFittedError):
            est.predict(X)


class TestModel:
    @pytest.mark.parametrize("landmarks", [None, 10])
    def test_it_predicts_without_the_estimator(self, landmarks, tmp_path):
        est = KernelRidge(landmarks=landmarks, random_state=0, **PLAIN).fit(X, Y)
        est.model_.save(tmp_path / "model")
        loaded = KernelModel.load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict(NEW)[:, 0], est.predict(NEW))

    def test_float32_stays_float32(self):
        est = KernelRidge(landmarks=10, random_state=0, **PLAIN).fit(X.astype(np.float32), Y)
        assert est.model_.centers.dtype == np.float32
        assert est.predict(NEW.astype(np.float32)).dtype == np.float64

    def test_the_users_arrays_are_not_written_to(self):
        kept, targets, weight = X.copy(), Y.copy(), np.linspace(0, 2, N)
        for array in (kept, targets, weight):
            array.flags.writeable = False
        for settings in ({}, {"landmarks": 10}, {"solver": "pcg", "penalty": 1.0}):
            KernelRidge(random_state=0, **(PLAIN | settings)).fit(kept, targets, weight).predict(
                kept
            )
        np.testing.assert_array_equal(kept, X)
