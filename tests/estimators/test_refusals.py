"""Input that cannot be used is refused in words: what was seen, what was expected, what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from plain import PLAIN
from tensors import as_tensor

from gramian import KernelRidge, KernelRidgeClassifier, kernels
from gramian.data import ParquetRows, Standardizer, as_rows
from gramian.solvers import Falkon

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = np.sin(X[:, 0])
both = pytest.mark.parametrize("estimator", [KernelRidge, KernelRidgeClassifier])


def target(estimator: type) -> np.ndarray:
    return Y if estimator is KernelRidge else Y > 0


def with_entry(value: float, row: int = 17, column: int = 1) -> np.ndarray:
    x = X.copy()
    x[row, column] = value
    return x


def with_target(kind: str, y: np.ndarray, folder: Path) -> Any:
    """Return X with one more column, the target, in one of the forms that rows come in."""
    table = pa.table(dict(zip("abcy", [*X.T, y], strict=True)))
    whole = np.column_stack([X, y])
    pq.write_table(table, folder / "x.parquet", row_group_size=17)
    np.save(folder / "x.npy", whole)
    return {
        "Parquet": folder / "x.parquet",
        "Arrow": table,
        "rows": as_rows(folder / "x.parquet"),
        "frame": pd.DataFrame(whole, columns=list("abcy")),
        "mixed frame": pd.DataFrame(dict(zip("abcy", [*X.T, y], strict=True))),
        "npy": folder / "x.npy",
        "array": whole,
        "tensor": whole,
    }[kind]


@both
class TestTargetAmongTheFeatures:
    """`KernelRidge().fit("train.parquet", y)` would learn to copy a column of that file."""

    @pytest.mark.parametrize("kind", ["Parquet", "Arrow", "rows", "frame", "mixed frame", "npy"])
    def test_is_refused_by_name(self, estimator, kind, tmp_path):
        y = target(estimator)
        named = "column 3" if kind == "npy" else "column 'y'"
        with pytest.raises(ValueError, match=rf"contains the target: {named} equals .*columns="):
            estimator(**PLAIN).fit(with_target(kind, y, tmp_path), y)

    @pytest.mark.parametrize("kind", ["array", "tensor"])
    def test_is_taken_from_an_array(self, estimator, kind, tmp_path):
        y = target(estimator)
        assert estimator(**PLAIN).fit(with_target(kind, y, tmp_path), y).n_features_in_ == 4

    @pytest.mark.parametrize("kind", ["Parquet", "frame"])
    def test_one_other_row_is_enough(self, estimator, kind, tmp_path):
        y, other = target(estimator), target(estimator).copy()
        other[-1] = ~y[-1] if y.dtype == bool else 1 + y[-1]
        assert estimator(**PLAIN).fit(with_target(kind, other, tmp_path), y).n_features_in_ == 4


@pytest.mark.parametrize("narrow", ["file", "target", "both"])
def test_a_target_in_another_precision_is_found(narrow, tmp_path):
    y = Y.astype(np.float32) if narrow != "file" else Y
    column = Y.astype(np.float32) if narrow != "target" else Y
    pq.write_table(
        pa.table({"a": X[:, 0].astype(column.dtype), "t": column}), tmp_path / "x.parquet"
    )
    with pytest.raises(ValueError, match="column 't'"):
        KernelRidge(**PLAIN).fit(tmp_path / "x.parquet", y)


def test_one_of_several_targets_is_found(tmp_path):
    with pytest.raises(ValueError, match="column 'y'"):
        KernelRidge(**PLAIN).fit(with_target("Parquet", Y, tmp_path), np.column_stack([Y + 1, Y]))


def test_a_target_that_does_not_vary_equals_nothing(tmp_path):
    ones = np.ones(len(X))
    assert (
        KernelRidge(**PLAIN).fit(with_target("Parquet", ones, tmp_path), ones).n_features_in_ == 4
    )


def test_a_standardised_feature_may_equal_a_standardised_target(tmp_path):
    x = np.linspace(-1, 1, 40, dtype=np.float32)
    pq.write_table(pa.table({"a": x}), tmp_path / "x.parquet")
    rows = Standardizer.fit(as_rows(tmp_path / "x.parquet")).apply(as_rows(tmp_path / "x.parquet"))
    assert KernelRidge(**PLAIN).fit(rows, rows.take(np.arange(40))).n_features_in_ == 1


def test_looking_for_the_target_is_no_pass_of_its_own(tmp_path, monkeypatch):
    passes, read = [], ParquetRows.blocks
    monkeypatch.setattr(ParquetRows, "blocks", lambda *a: passes.append(1) or read(*a))
    with pytest.raises(ValueError, match="contains the target"):
        KernelRidge(**PLAIN).fit(with_target("Parquet", Y, tmp_path), Y)
    assert len(passes) == 1


@both
class TestRows:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_not_finite(self, estimator, value):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            estimator(**PLAIN).fit(with_entry(value), target(estimator))
        est = estimator(**PLAIN).fit(X, target(estimator))
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            est.predict(with_entry(value))

    @pytest.mark.parametrize(("value", "word"), [(np.nan, "1 NaN"), (np.inf, "1 inf")])
    @pytest.mark.parametrize("kind", ["tensor", "Arrow", "Parquet", "npy"])
    def test_not_finite_by_row_and_column(self, estimator, value, word, kind, tmp_path):
        x = with_entry(value)
        table = pa.table(dict(zip(["a", "b", "c"], x.T, strict=True)))
        pq.write_table(table, tmp_path / "x.parquet")
        np.save(tmp_path / "x.npy", x)
        inputs = {
            "tensor": x,
            "Arrow": table,
            "Parquet": tmp_path / "x.parquet",
            "npy": tmp_path / "x.npy",
        }
        column = "'b'" if kind in ("Arrow", "Parquet") else "1"
        message = rf"X contains {word}.* in row 17, column {column}.*drop these rows"
        with pytest.raises(ValueError, match=message):
            estimator(**PLAIN).fit(inputs[kind], target(estimator))
        est = estimator(**PLAIN).fit(X, target(estimator))
        with pytest.raises(ValueError, match=message):
            est.predict(inputs[kind])

    @pytest.mark.parametrize("as_input", [np.asarray, as_tensor])
    def test_empty(self, estimator, as_input):
        with pytest.raises(ValueError, match=r"(?i)0 (sample|rows)"):
            estimator(**PLAIN).fit(as_input(np.empty((0, 3))), np.empty(0))
        with pytest.raises(ValueError, match=r"(?i)0 (feature|columns)"):
            estimator(**PLAIN).fit(as_input(np.empty((40, 0))), target(estimator))

    @pytest.mark.parametrize("as_input", [np.asarray, as_tensor, list])
    def test_one_dimension(self, estimator, as_input):
        with pytest.raises(ValueError, match=r"(?i)reshape.*\(-1, 1\)"):
            estimator(**PLAIN).fit(as_input(X[:, 0]), target(estimator))

    @pytest.mark.parametrize("as_input", [np.asarray, as_tensor, scipy.sparse.csr_array])
    def test_other_features_at_predict(self, estimator, as_input):
        est = estimator(**PLAIN).fit(X, target(estimator))
        for d in (1, 2, 4):
            with pytest.raises(
                ValueError, match=f"X has {d} features, but {estimator.__name__} is expecting 3"
            ):
                est.predict(as_input(np.ones((5, d))))

    def test_other_names_at_predict(self, estimator):
        est = estimator(**PLAIN).fit(pd.DataFrame(X, columns=["a", "b", "c"]), target(estimator))
        with pytest.raises(ValueError, match="feature names should match"):
            est.predict(pd.DataFrame(X, columns=["a", "b", "d"]))
        with pytest.raises(
            ValueError, match=r"features c, b, a, but the training rows had a, b, c"
        ):
            est.predict(pa.table(dict(zip("cba", X.T, strict=True))))

    def test_no_targets(self, estimator):
        with pytest.raises(ValueError, match=r"y cannot be None|requires y"):
            estimator(**PLAIN).fit(X, None)

    @pytest.mark.parametrize("as_input", [np.asarray, as_tensor])
    def test_another_number_of_targets(self, estimator, as_input):
        with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[40, 39\]"):
            estimator(**PLAIN).fit(as_input(X), target(estimator)[:-1])

    def test_text(self, estimator):
        frame = pd.DataFrame({"a": ["x", "y"] * 20, "b": X[:, 0]})
        with pytest.raises(ValueError, match="could not convert string to float"):
            estimator(**PLAIN).fit(frame.to_numpy(), target(estimator))
        assert estimator(**PLAIN).fit(frame, target(estimator)).model_.encoding is not None

    def test_a_missing_file(self, estimator, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"nothing\.npy"):
            estimator(**PLAIN).fit(tmp_path / "nothing.npy", target(estimator))

    @pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
    def test_weights_that_cannot_be(self, estimator, weight):
        with pytest.raises(ValueError, match=r"sample_weight|sample weights"):
            estimator(**PLAIN).fit(X, target(estimator), sample_weight=[weight] + [1.0] * 39)

    def test_weights_of_another_number(self, estimator):
        with pytest.raises(ValueError, match="sample_weight"):
            estimator(**PLAIN).fit(X, target(estimator), sample_weight=np.ones(39))

    def test_weights_that_are_all_zero(self, estimator):
        with pytest.raises(ValueError, match="zero"):
            estimator(**PLAIN).fit(X, target(estimator), sample_weight=np.zeros(40))


class TestTargets:
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    @pytest.mark.parametrize("as_input", [np.asarray, as_tensor])
    def test_not_finite(self, value, as_input):
        y = Y.copy()
        y[3] = value
        with pytest.raises(ValueError, match="Input y contains"):
            KernelRidge(**PLAIN).fit(as_input(X), y)

    @pytest.mark.parametrize("as_input", [np.asarray, as_tensor])
    def test_text(self, as_input):
        with pytest.raises(ValueError, match=r"such as .a., .* use KernelRidgeClassifier"):
            KernelRidge(**PLAIN).fit(as_input(X), ["a"] * 40)

    @pytest.mark.parametrize(
        ("size", "dtype", "words"),
        [
            (
                1e-300,
                np.float64,
                "is 1e-300 in size, .* round to 0: with float64 rows .*1e-140 and",
            ),
            (1e200, np.float64, "is 1e.200 in size, .* overflow: with float64 rows .*and 1e.140"),
            (1e-40, np.float32, "round to 0: with float32 rows .*1e-25 and"),
            (1e38, np.float32, "overflow: with float32 rows"),
        ],
    )
    @pytest.mark.parametrize("settings", [{}, {"landmarks": 5}])
    def test_numbers_too_small_or_large_for_products(self, settings, size, dtype, words):
        y = np.stack([Y, size * Y / np.abs(Y).max()], axis=1)
        with pytest.raises(ValueError, match=f"column 1 of y .*{words}.*divide column 1 of y by"):
            KernelRidge(**(PLAIN | settings)).fit(X.astype(dtype), y)
        with pytest.raises(ValueError, match=f"of y .*{words}.*divide y by"):
            KernelRidge("gaussian", **({"lengthscale": "median", "penalty": 1e-6} | settings)).fit(
                X.astype(dtype), y[:, 1]
            )

    def test_small_numbers_that_are_not_too_small(self):
        for size, dtype in ((1e-139, np.float64), (1e139, np.float64), (1e-24, np.float32)):
            x, expected = (
                X.astype(dtype),
                KernelRidge(penalty=1e-3, kernel="gaussian", lengthscale="median")
                .fit(X, Y)
                .predict(X),
            )
            found = (
                KernelRidge(penalty=1e-3, kernel="gaussian", lengthscale="median")
                .fit(x, size * Y)
                .predict(x)
            )
            np.testing.assert_allclose(found / size, expected, atol=1e-4)

    def test_features_whose_squares_overflow(self):
        for settings in ({}, {"landmarks": 5}, {"landmarks": 5, "solver": "direct"}):
            with pytest.raises(ValueError, match=r"not finite: products or squares .*rescale"):
                KernelRidge(
                    "linear",
                    standardize=False,
                    **({"lengthscale": "median", "penalty": 1e-6} | settings),
                ).fit(1e200 * X, Y)
            with pytest.raises(ValueError, match=r"column 0 has numbers so large that their squ"):
                KernelRidge(
                    "linear", **({"lengthscale": "median", "penalty": 1e-6} | settings)
                ).fit(1e200 * X, Y)


SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"penalty": 0}, r"Direct needs a positive penalty, not 0; .*stops early: eigenpro1"),
    ({"penalty": -1e-6}, r"penalty must be finite and at least 0, not -1e-06; .*alpha / n"),
    ({"penalty": np.nan}, "penalty must be finite"),
    ({"penalty": np.inf}, "penalty must be finite"),
    ({"penalty": "small"}, "penalty must be finite and at least 0, not 'small'"),
    ({"penalty": None}, "penalty must be finite"),
    ({"penalty": True}, "penalty must be finite"),
    ({"lengthscale": 0}, "lengthscale must be positive and finite, not 0"),
    ({"lengthscale": -2.0}, "lengthscale must be positive"),
    ({"lengthscale": np.inf}, "lengthscale must be positive"),
    ({"lengthscale": [1.0, -1.0, 1.0]}, "lengthscale must be positive"),
    ({"lengthscale": [1.0, 1.0]}, "the kernel has 2 lengthscales, but X has 3 features"),
    ({"lengthscale": "mean"}, "lengthscale='mean' is neither a number"),
    ({"lengthscale": None}, "lengthscale=None is neither a number"),
    ({"kernel": "gausian"}, "unknown kernel 'gausian'; known: .*gaussian"),
    ({"kernel": 3}, "unknown kernel 3"),
    (
        {"kernel": kernels.Gaussian(1.0), "lengthscale": 2.0},
        "lengthscale=2.0 has no effect on a kernel object",
    ),
    ({"kernel": kernels.Gaussian(1.0), "lengthscale": np.ones(3)}, "has no effect on a kernel"),
    ({"kernel": kernels.Gaussian((1.0, 2.0))}, "2 lengthscales, but X has 3 features"),
    ({"landmarks": 0}, "number of landmarks must be a whole number of at least 1, not 0"),
    ({"landmarks": -5}, "number of landmarks must be a whole number"),
    ({"landmarks": True}, "landmarks must be None, a whole number, 'auto', .*, not True"),
    ({"landmarks": 2.5}, "landmarks must be .*, not 2.5"),
    ({"landmarks": 20.0}, "landmarks must be .*, not 20.0"),
    ({"landmarks": "random"}, "unknown selector of landmarks 'random'; known: .*uniform"),
    ({"landmarks": np.ones(3)}, "landmarks must be None"),
    ({"landmarks": np.ones((4, 2))}, "the landmarks have 2 features, but X has 3"),
    ({"landmarks": np.full((4, 3), np.nan)}, "landmarks contains 12 NaN"),
    ({"landmarks": np.ones((0, 3))}, "0 rows"),
    ({"landmarks": ...}, "landmarks must be None"),
    ({"solver": "gauss"}, "unknown solver 'gauss'; known: askotch, direct, eigenpro1, .*pcg"),
    ({"solver": "newton"}, "solver='newton' minimises only losses other than the square"),
    ({"solver": Falkon}, 'unknown solver "<class'),
    ({"solver": None}, "unknown solver 'None'"),
    ({"max_iter": 0}, "max_iter must be a whole number of at least 1, not 0"),
    ({"max_iter": -1}, "max_iter must be a whole number"),
    ({"max_iter": 2.5}, "max_iter must be a whole number"),
    ({"max_iter": "10"}, "max_iter must be a whole number of at least 1, not '10'"),
    ({"max_iter": True}, "max_iter must be a whole number"),
    ({"tol": -1e-3}, "tol must be a finite number of at least 0, or 'auto', not -0.001"),
    ({"tol": np.nan}, "tol must be a finite number"),
    ({"tol": np.inf}, "tol must be a finite number"),
    ({"tol": None}, "tol must be a finite number"),
    ({"engine": "abacus"}, "unknown engine 'abacus'; known: auto, native"),
    ({"memory_limit": "some"}, "memory_limit='some' is not a size"),
    ({"callbacks": None}, "callbacks must be a list of callables"),
    ({"callbacks": print}, "callbacks must be a list of callables"),
    ({"callbacks": ["progress"]}, "callbacks must be a list of callables"),
    ({"random_state": "seed"}, "cannot be used to seed"),
]


@both
@pytest.mark.parametrize(("settings", "message"), SETTINGS, ids=lambda value: str(value)[:50])
def test_settings(estimator, settings, message):
    with pytest.raises(ValueError, match=message):
        estimator(**(PLAIN | settings)).fit(X, target(estimator))


@both
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (settings, message)
        for settings, message in SETTINGS
        if "random_state" not in settings and "X has 3" not in message
    ],
    ids=lambda value: str(value)[:50],
)
def test_plans_refuse_what_fits_refuse(estimator, settings, message):
    with pytest.raises(ValueError, match=message):
        estimator(**(PLAIN | settings)).plan(X)


class TestOddButUsable:
    """Data that are strange and still have an answer."""

    @pytest.mark.parametrize("settings", [{}, {"landmarks": 5}, {"solver": "pcg", "penalty": 1.0}])
    def test_constant_features(self, settings):
        wide = np.concatenate([X, np.full((40, 2), 3.0)], axis=1)
        # distances do not change, so neither does the median heuristic
        expected = KernelRidge(random_state=0, tol=1e-11, **(PLAIN | settings)).fit(X, Y).predict(X)
        actual = (
            KernelRidge(random_state=0, tol=1e-11, **(PLAIN | settings)).fit(wide, Y).predict(wide)
        )
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-8)

    @pytest.mark.parametrize("settings", [{}, {"landmarks": 5}, {"solver": "pcg", "penalty": 1.0}])
    @pytest.mark.parametrize("name", ["gaussian", "linear", "laplacian"])
    def test_nothing_but_constant_features(self, settings, name):
        x = np.full((40, 3), 2.0)
        est = KernelRidge(name, **({"lengthscale": "median", "penalty": 1e-6} | settings)).fit(x, Y)
        # As exact as a sum of n coefficients (y - mean) / (n penalty) in float64 can be.
        rounding = np.finfo(float).eps * np.abs(Y - Y.mean()).mean() / est.penalty
        np.testing.assert_allclose(est.predict(x[:2]), Y.mean(), rtol=1e-12, atol=rounding)
        est.set_params(standardize=False).fit(x, Y)
        # all rows are one: the answer is the mean, shrunk by the penalty over k(x, x)
        k = 12.0 if name == "linear" else 1.0
        expected = Y.mean() * k / (k + est.penalty)
        np.testing.assert_allclose(est.predict(x[:2]), expected, rtol=1e-5)

    def test_features_that_are_all_zero(self):
        for settings in ({}, {"landmarks": 5}, {"landmarks": 5, "solver": "direct"}):
            est = KernelRidge(
                "linear",
                standardize=False,
                **({"lengthscale": "median", "penalty": 1e-6} | settings),
            ).fit(np.zeros((40, 3)), Y)
            np.testing.assert_array_equal(est.predict(X), np.zeros(40))

    @pytest.mark.parametrize("landmarks", [None, 15])
    def test_repeated_rows(self, landmarks):
        est = KernelRidge(
            landmarks=landmarks,
            penalty=1e-3,
            random_state=0,
            tol=1e-12,
            kernel="gaussian",
            lengthscale="median",
        )
        x, y = np.concatenate([X[:10]] * 4), np.concatenate([Y[:10]] * 4)
        if landmarks:
            once = KernelRidge(
                landmarks=X[:10], penalty=1e-3, tol=1e-12, kernel="gaussian", lengthscale="median"
            ).fit(X[:10], Y[:10])
        else:
            once = KernelRidge(penalty=1e-3, kernel="gaussian", lengthscale="median").fit(
                X[:10], Y[:10]
            )
        np.testing.assert_allclose(est.fit(x, y).predict(X), once.predict(X), rtol=1e-6, atol=1e-8)

    @pytest.mark.parametrize("settings", [{}, {"landmarks": 1}, {"solver": "pcg"}])
    def test_one_row(self, settings):
        est = KernelRidge(
            penalty=0.5, **({"kernel": "gaussian", "lengthscale": "median"} | settings)
        ).fit(X[:1], [3.0])
        assert est.predict(X[1:3]).tolist() == [3.0, 3.0]
        est.set_params(standardize=False).fit(X[:1], [3.0])
        assert est.predict(X[:1]) == pytest.approx(3 / 1.5)

    def test_one_row_of_many_features(self):
        est = KernelRidge(landmarks=2, random_state=0, **PLAIN).fit(
            np.arange(2000.0).reshape(2, 1000), [0, 1]
        )
        np.testing.assert_allclose(
            est.predict(np.arange(2000.0).reshape(2, 1000)), [0, 1], atol=1e-4
        )

    @pytest.mark.parametrize("settings", [{}, {"landmarks": 5}, {"solver": "pcg"}])
    def test_targets_that_are_all_zero(self, settings):
        est = KernelRidge(**(PLAIN | settings)).fit(X, np.zeros(40))
        assert est.stop_reason_ == "converged"
        assert not est.predict(X).any()

    @pytest.mark.parametrize("offset", [1e3, 1e6])
    def test_features_far_from_zero(self, offset, dtype):
        # exact in both precisions: a shift changes nothing for a kernel of the distance
        x = np.round(X * 4) / 4
        wide = (x + offset).astype(np.float32 if dtype == np.float32 else np.float64)
        expected = (
            KernelRidge(penalty=1e-2, kernel="gaussian", lengthscale="median").fit(x, Y).predict(x)
        )
        np.testing.assert_allclose(
            KernelRidge(penalty=1e-2, kernel="gaussian", lengthscale="median")
            .fit(wide, Y)
            .predict(wide),
            expected,
            atol=1e-4,
        )


@pytest.mark.parametrize("kind", ["frame", "frame with its target", "texts beside", "objects"])
def test_whole_numbers_that_are_rounded_are_followed_by_a_warning(kind):
    """Before scikit-learn makes one matrix of all columns, and where columns are encoded."""
    frame = pd.DataFrame({"a": X[:, 0], "id": 2**60 + np.arange(40), "y": Y})
    given: Any = (frame[["a", "id"]], Y)
    if kind == "frame with its target":
        given = (frame, "y")
    elif kind == "texts beside":
        given = (frame.assign(word=list("pq") * 20), "y")
    elif kind == "objects":
        given = (np.array([[x, 2**70 + i] for i, x in enumerate(X[:, 0])], dtype=object), Y)
    column = "1" if kind == "objects" else "'id'"
    with pytest.warns(UserWarning, match=f"column {column} holds whole numbers beyond"):
        KernelRidge(**PLAIN).fit(*given)


class Foreign:
    """An array of a library that NumPy reads by DLPack alone."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


@both
class TestMaskedAndForeignValues:
    def test_masked_values_are_refused(self, estimator):
        y, mask = target(estimator), np.arange(40) % 8 == 0
        with pytest.raises(ValueError, match=r"y is a masked array with 5 masked values.*leave"):
            estimator(**PLAIN).fit(X, np.ma.array(y, mask=mask))
        with pytest.raises(ValueError, match="sample_weight is a masked array"):
            estimator(**PLAIN).fit(X, y, np.ma.array(np.ones(40), mask=mask))
        masked_rows = np.ma.array(X, mask=np.repeat(mask[:, None], 3, axis=1))
        with pytest.raises(TypeError, match="filled"):
            estimator(**PLAIN).fit(masked_rows, y)
        with pytest.raises(TypeError, match="filled"):
            estimator(**PLAIN).fit(X, y).predict(masked_rows)

    def test_a_mask_that_hides_nothing_changes_nothing(self, estimator):
        y = target(estimator)
        plain = estimator(**PLAIN).fit(X, y).predict(X)
        assert np.array_equal(estimator(**PLAIN).fit(np.ma.array(X), y).predict(X), plain)
        assert np.array_equal(estimator(**PLAIN).fit(X, np.ma.array(y)).predict(X), plain)

    def test_targets_and_weights_by_dlpack(self, estimator):
        y, weights = target(estimator), RNG.random(40)
        expected = estimator(**PLAIN).fit(X, y, weights).predict(X)
        given = estimator(**PLAIN).fit(X, Foreign(y), Foreign(weights)).predict(X)
        assert np.array_equal(given, expected)


def test_partial_fit_refuses_masked_targets():
    est = KernelRidge(solver="eigenpro3", landmarks=10, **PLAIN).partial_fit(X, Y)
    with pytest.raises(ValueError, match="y is a masked array"):
        est.partial_fit(X, np.ma.array(Y, mask=Y > 0))
