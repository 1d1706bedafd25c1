"""Tables in the estimators: named once, encoded where they need it, and within scikit-learn."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from plain import PLAIN
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeCV, TableEncoder, load
from gramian.callbacks import Validate
from gramian.data import ReadWarning
from gramian.solvers import Falkon

RNG = np.random.default_rng(0)
N = 160
FRAME = pd.DataFrame(
    {
        "size": RNG.gamma(5, 20, N).round(1),
        "town": RNG.choice(["Aachen", "Bonn", "Köln"], N),
        "street": [f"Weg {i}" for i in RNG.integers(0, 40, N)],
        "sold": pd.date_range("2015-01-01", periods=N, freq="7D"),
        "garden": RNG.random(N) < 0.4,
    }
)
FRAME["price"] = 3 * FRAME["size"] + 90 * (FRAME["town"] == "Köln") + RNG.normal(0, 5, N)
GAPS = FRAME.assign(size=FRAME["size"].where(RNG.random(N) > 0.1))


def regressor(**settings: Any) -> KernelRidge:
    return KernelRidge(**(PLAIN | {"penalty": 1e-3, "random_state": 0} | settings))


def with_value(value: float) -> pd.DataFrame:
    """Return the numbers with another value of the column a in row 3."""
    return NUMBERS.assign(a=NUMBERS["a"].where(NUMBERS.index != 3, value))


class TestNames:
    def test_the_target_and_all_others(self) -> None:
        est = regressor().fit(FRAME, "price")
        assert est.feature_names_in_.tolist() == list(FRAME.columns[:-1])
        assert est.n_features_in_ == 5
        assert est.model_.target == ("price",)
        assert est.score(FRAME) == est.score(FRAME, "price") == est.score(FRAME, FRAME["price"])
        assert est.score(FRAME) > 0.9

    def test_some_columns(self) -> None:
        est = regressor().fit(FRAME, "price", columns=["town", "size"])
        assert est.feature_names_in_.tolist() == ["town", "size"]
        assert np.array_equal(est.predict(FRAME), est.predict(FRAME[["size", "town"]]))

    def test_several_targets(self) -> None:
        both = FRAME.assign(rent=FRAME["price"] / 200)
        est = regressor().fit(both, ("price", "rent"))
        assert est.predict(both).shape == (N, 2)
        assert est.score(both) > 0.9

    def test_values_beside_a_table_of_text(self) -> None:
        est = regressor().fit(FRAME.drop(columns="price"), FRAME["price"])
        np.testing.assert_array_equal(
            est.predict(FRAME), regressor().fit(FRAME, "price").predict(FRAME)
        )
        with pytest.raises(ValueError, match="score requires y"):
            est.score(FRAME)

    def test_gaps_of_a_frame_of_numbers_are_filled(self) -> None:
        est = regressor().fit(GAPS[["size"]], FRAME["price"])
        assert est.model_.centers.shape[1] == 2  # the number, and whether it was there
        assert np.isfinite(est.predict(GAPS)).all()

    def test_frames_of_numbers_follow_scikit_learn(self) -> None:
        numbers = pd.DataFrame({"a": FRAME["size"], "b": FRAME["size"] ** 2})
        est = regressor().fit(numbers, FRAME["price"])
        with pytest.raises(ValueError, match="feature names"):
            est.predict(numbers[["b", "a"]])
        named = regressor().fit(numbers.assign(y=FRAME["price"]), "y")
        np.testing.assert_array_equal(named.predict(numbers[["b", "a"]]), est.predict(numbers))
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            np.testing.assert_array_equal(named.predict(numbers.to_numpy()), est.predict(numbers))

    def test_weights_go_with_rows(self) -> None:
        counts = RNG.integers(0, 3, N).astype(float)
        some = FRAME[counts > 0]
        weighted = regressor().fit(FRAME, "price", sample_weight=(counts > 0).astype(float))
        np.testing.assert_allclose(
            weighted.predict(FRAME), regressor().fit(some, "price").predict(FRAME), rtol=1e-9
        )


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"copy": FRAME["price"]}, "column 'copy' equals the target in every row"),
            ({"more": [[1.0] * (1 + k % 2) for k in range(N)]}, "more"),
        ],
    )
    def test_columns_that_cannot_be_learned_from(self, change: Any, words: str) -> None:
        with pytest.raises((ValueError, TypeError), match=words):
            regressor().fit(FRAME.assign(**change), "price")

    def test_identifiers_are_left_out_at_the_first_try(self) -> None:
        ids = [f"H{i}" for i in range(N)]
        with pytest.warns(UserWarning, match=r"columns left out: id, key \(a different text"):
            est = regressor().fit(FRAME.assign(id=ids, key=ids), "price")
        assert "id" in est.feature_names_in_
        np.testing.assert_array_equal(
            est.predict(FRAME), regressor().fit(FRAME, "price").predict(FRAME)
        )
        named = regressor().fit(FRAME.assign(id=ids), "price", columns=["size", "id"])
        assert "id (mean)" in named.model_.encoding.feature_names

    def test_a_copy_of_labels(self) -> None:
        with pytest.raises(ValueError, match="column 'where' equals the target"):
            KernelRidgeClassifier(**PLAIN).fit(FRAME.assign(where=FRAME["town"]), "town")

    def test_names(self) -> None:
        with pytest.raises(ValueError, match=r"has no column prize.*did you mean price"):
            regressor().fit(FRAME, "prize")
        with pytest.raises(ValueError, match="column price cannot be a feature and the target"):
            regressor().fit(FRAME, "price", columns=["size", "price"])
        with pytest.raises(TypeError, match="names columns, but X of type ndarray has none"):
            regressor().fit(FRAME.to_numpy(), "price")

    def test_text_for_a_regression(self) -> None:
        with pytest.raises(TypeError, match=r"holds text, such as .* use KernelRidgeClassifier"):
            regressor().fit(FRAME, "town")

    def test_rows_without_names_at_prediction(self) -> None:
        est = regressor().fit(FRAME, "price")
        with pytest.raises(TypeError, match="a path or a table with the columns size, town"):
            est.predict(FRAME.to_numpy())

    def test_the_last_fit_is_kept(self) -> None:
        est = regressor().fit(FRAME, "price")
        before = est.predict(FRAME)
        with pytest.raises(ValueError, match="has no column"):
            est.fit(FRAME[["size", "price"]], "rent")
        np.testing.assert_array_equal(est.predict(FRAME), before)


class TestWithinScikitLearn:
    def test_a_search_over_frames(self) -> None:
        search = GridSearchCV(regressor(), {"penalty": [1e-4, 1e-1]}, cv=3)
        search.fit(FRAME.drop(columns="price"), FRAME["price"])
        assert search.best_params_ == {"penalty": 1e-4}
        assert search.best_estimator_.score(FRAME, "price") > 0.9

    @pytest.mark.slow
    def test_in_other_processes(self) -> None:
        X, y = GAPS.drop(columns="price"), FRAME["price"]
        one, two = (cross_val_score(regressor(), X, y, cv=3, n_jobs=jobs) for jobs in (1, 2))
        np.testing.assert_allclose(one, two, rtol=1e-8)

    def test_in_a_pipeline_with_other_transformers(self) -> None:
        X, y = FRAME.drop(columns="price"), FRAME["price"]
        columns = ColumnTransformer(
            [("table", TableEncoder(random_state=0), ["town", "street", "sold"])],
            remainder="passthrough",
        )
        columns.set_output(transform="pandas")
        pipeline = make_pipeline(columns, regressor())
        assert pipeline.fit(X, y).score(X, y) > 0.9
        assert "table__town=Köln" in pipeline[0].transform(X).columns

    def test_copies(self) -> None:
        est = regressor().fit(FRAME, "price")
        again = pickle.loads(pickle.dumps(est))
        np.testing.assert_array_equal(again.predict(FRAME), est.predict(FRAME))
        assert clone(est).get_params() == est.get_params()


class TestClasses:
    @pytest.mark.parametrize("target", ["town", "garden"])
    @pytest.mark.parametrize("weight", [None, "balanced"])
    def test_labels_come_back(self, target: str, weight: Any, tmp_path: Path) -> None:
        frame = FRAME.assign(price=FRAME["price"] + 500 * FRAME["garden"])
        est = KernelRidgeClassifier(
            penalty=1e-3,
            class_weight=weight,
            random_state=0,
            kernel="gaussian",
            lengthscale="median",
        )
        est.fit(frame, target)
        assert est.score(frame) > 0.6
        assert est.classes_.tolist() == sorted(frame[target].unique())
        est.save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        assert isinstance(loaded, KernelRidgeClassifier)
        assert loaded.score(frame) == est.score(frame)
        np.testing.assert_array_equal(loaded.predict(frame), est.predict(frame))

    def test_polars_labels(self) -> None:
        frame = pl.from_pandas(FRAME)
        est = KernelRidgeClassifier(
            penalty=1e-3, random_state=0, kernel="gaussian", lengthscale="median"
        ).fit(frame, "town")
        assert est.score(frame) == KernelRidgeClassifier(
            penalty=1e-3, random_state=0, kernel="gaussian", lengthscale="median"
        ).fit(frame.drop("town"), FRAME["town"]).score(FRAME, FRAME["town"])


NUMBERS = pd.DataFrame({"a": 100 * FRAME["size"] + 50, "b": RNG.standard_normal(N)})
NUMBERS["y"] = np.sin(NUMBERS["a"] / 1e4) + NUMBERS["b"]


class TestGoingOn:
    @pytest.mark.parametrize(
        "second",
        [
            NUMBERS.assign(a=NUMBERS["a"].where(NUMBERS.index != 3)),  # encoded, of other width
            NUMBERS[["b", "a", "y"]],
            NUMBERS.assign(b=NUMBERS["b"] > 0),
        ],
        ids=["gap", "swapped", "boolean"],
    )
    def test_a_warm_start_needs_the_same_features(self, second: pd.DataFrame) -> None:
        cold = regressor(landmarks=60).fit(second, "y").score(second)
        warm = regressor(landmarks=60, warm_start=True).fit(NUMBERS, "y").fit(second, "y")
        assert warm.score(second) == pytest.approx(cold, abs=1e-6)

    def test_a_warm_start_with_the_same_encoding(self) -> None:
        # With a factor of all rows one iteration would be enough from zero, too.
        given = {"landmarks": 60, "solver": Falkon("landmarks"), "tol": 1e-8}
        est = regressor(**given, warm_start=True).fit(FRAME, "price")
        from_zero = est.n_iter_
        est.fit(FRAME, "price")
        assert est.n_iter_ <= from_zero / 3

    def test_parts_of_tables_are_refused(self) -> None:
        est = regressor(solver="eigenpro3", landmarks=20)
        for given in ((FRAME, "price"), (FRAME.drop(columns="price"), FRAME["price"])):
            with pytest.raises(ValueError, match="partial_fit requires X of numbers"):
                est.partial_fit(*given)
        est.fit(FRAME, "price")
        before = est.predict(FRAME)
        with pytest.raises(ValueError, match="the encoding of a table needs all rows"):
            est.partial_fit(FRAME[["size"]], FRAME["price"])
        np.testing.assert_array_equal(est.predict(FRAME), before)
        named = regressor(solver="eigenpro3", landmarks=20).fit(NUMBERS, "y")
        named.partial_fit(NUMBERS[["a", "b"]], NUMBERS["y"])
        assert named.model_.target == ("y",)

    def test_a_model_that_was_loaded(self, tmp_path: Path) -> None:
        regressor(landmarks=20).fit(NUMBERS, "y").save(tmp_path / "model")
        est = load(tmp_path / "model").set_params(solver="eigenpro3", landmarks=5)
        with pytest.raises(ValueError, match="cannot continue a loaded model"):
            est.partial_fit(NUMBERS[["a", "b"]], NUMBERS["y"])
        with pytest.raises(ValueError, match="not a regression"):
            KernelRidgeClassifier(**PLAIN).with_model(est.model_)


class TestHeldOutTables:
    def test_columns_are_taken_by_name(self) -> None:
        orders = (NUMBERS[["a", "b"]], NUMBERS[["b", "a"]], NUMBERS)
        errors = [
            regressor(landmarks=20, callbacks=[Validate(held, NUMBERS["y"].to_numpy())])
            .fit(NUMBERS, "y")
            .history_[-1]["valid_rmse"]
            for held in orders
        ]
        assert errors[0] == errors[1] == errors[2] < 0.2

    def test_as_many_targets_as_the_fit(self) -> None:
        both = NUMBERS.assign(z=3 * NUMBERS["y"])
        est = regressor(landmarks=20, callbacks=[Validate(both, both["y"].to_numpy())])
        with pytest.raises(ValueError, match="Validate must have shape \\(160, 2\\)"):
            est.fit(both, ("y", "z"))

    @pytest.mark.parametrize("row", [0, 3, 80])
    def test_a_gap_may_be_held_out(self, row: int) -> None:
        holed = NUMBERS.assign(a=NUMBERS["a"].where(NUMBERS.index != row))
        est = regressor(early_stopping=True, validation_fraction=0.5, solver="falkon", landmarks=20)
        assert est.fit(holed, "y").model_.encoding.feature_names == ("a", "a missing", "b")
        assert est.validation_error_ < 1


class TestOtherInput:
    def test_landmarks_of_an_encoded_table_are_a_table(self) -> None:
        frame = FRAME.assign(street="Weg")
        points = frame[:30]
        est = regressor(landmarks=points).fit(frame, "price")
        assert est.score(frame) > 0.8
        with pytest.raises(TypeError, match="landmarks must be a table with the columns of X"):
            regressor(landmarks=np.zeros((5, 4))).fit(frame, "price")

    def test_what_cannot_be_predicted_is_refused(self) -> None:
        est = regressor().fit(NUMBERS, "y")
        with pytest.raises(ValueError, match=r"the first is inf in row 3, column 'a'"):
            est.predict(with_value(np.inf))

    @pytest.mark.parametrize("named", [True, False])
    def test_gaps_of_new_numbers_are_the_medians_of_training(
        self, named: bool, tmp_path: Path
    ) -> None:
        est = regressor()
        est = est.fit(NUMBERS, "y") if named else est.fit(NUMBERS[["a", "b"]], NUMBERS["y"])
        expected = est.predict(with_value(NUMBERS["a"].median())[["a", "b"]])
        est.save(tmp_path / "m.model")
        for model in (est, load(tmp_path / "m.model")):
            with pytest.warns(UserWarning, match=r"gaps in columns .* training: 'a' 1;") as caught:
                found = model.predict(with_value(np.nan)[["a", "b"]])
            assert len(caught) == 1
            np.testing.assert_array_equal(found, expected)

    def test_gaps_of_new_numbers_in_a_search(self) -> None:
        est = KernelRidgeCV(budget="1 s", random_state=0).fit(NUMBERS, "y")
        with pytest.warns(UserWarning, match=r"training: 'a' 1;"):
            found = est.predict(with_value(np.nan))
        np.testing.assert_array_equal(found, est.predict(with_value(NUMBERS["a"].median())))

    def test_nan_in_arrays_is_refused_in_words_of_tables(self) -> None:
        X = with_value(np.nan)[["a", "b"]].to_numpy()
        remedy = r"row 3, column 0; drop these rows, fill the gaps, or fit to a table"
        with pytest.raises(ValueError, match=remedy):
            regressor().fit(X, NUMBERS["y"])
        est = regressor().fit(NUMBERS[["a", "b"]].to_numpy(), NUMBERS["y"])
        with pytest.raises(ValueError, match=remedy):
            est.predict(X)

    def test_labels_in_a_column(self) -> None:
        labels = (FRAME["price"] > 300).to_numpy().astype(int)
        est = KernelRidgeClassifier(random_state=0, **PLAIN)
        flat = est.fit(FRAME.drop(columns="price"), labels).predict(FRAME)
        with pytest.warns(DataConversionWarning):
            column = est.fit(FRAME.drop(columns="price"), labels[:, None]).predict(FRAME)
        np.testing.assert_array_equal(flat, column)

    def test_a_matrix_by_numbers(self, tmp_path: Path) -> None:
        np.save(tmp_path / "m.npy", NUMBERS.to_numpy())
        est = regressor().fit(tmp_path / "m.npy", "2")
        assert est.score(tmp_path / "m.npy") > 0.9
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            assert est.predict(NUMBERS[["a", "b"]].to_numpy()).shape == (N,)

    def test_polars_with_values_beside(self) -> None:
        frame = pl.from_pandas(GAPS[["size"]])
        est = regressor().fit(frame, FRAME["price"])
        assert est.model_.encoding is not None
        reader = pl.from_pandas(FRAME.drop(columns="price")).to_arrow().to_reader()
        assert regressor().fit(reader, FRAME["price"]).score(FRAME, "price") > 0.9

    def test_plans_take_what_fits_take(self) -> None:
        est, X = KernelRidgeClassifier(**PLAIN), NUMBERS[["a", "b"]]
        labels = ["u", "v"] * (N // 2)
        memory = est.plan(X).memory_bytes
        assert est.plan(X.to_numpy(), labels).memory_bytes == memory
        assert est.plan(X, labels).memory_bytes == memory

    def test_one_name_is_no_list_of_names(self) -> None:
        with pytest.raises(TypeError, match="columns must be a list of names"):
            regressor().fit(NUMBERS, "y", columns="a")


@pytest.mark.filterwarnings("ignore:.*digits are read as codes in post")
class TestFilesOfFewRows:
    """A file to predict may hold only such levels as look like something else."""

    LEVELS = FRAME.assign(
        alley=RNG.choice(["NA", "Grvl", "Pave"], N),
        zone=RNG.choice(["A", "1", "2"], N),
        post=RNG.choice(["01234", "11234", "99999"], N),
        heated=RNG.choice(["yes", "maybe"], N),
    )

    def test_levels_stay_levels(self, tmp_path: Path) -> None:
        frame = self.LEVELS.assign(
            price=self.LEVELS["price"] + 200 * (self.LEVELS["alley"] == "NA")
        )
        frame.to_csv(tmp_path / "all.csv", index=False)
        with pytest.warns(ReadWarning, match="digits are read as codes in post"):
            est = regressor().fit(tmp_path / "all.csv", "price")
        expected = est.predict(frame)
        for row in range(0, N, 16):
            frame[row : row + 1].to_csv(tmp_path / "one.csv", index=False)
            found = est.predict(tmp_path / "one.csv")
            np.testing.assert_allclose(found, expected[row : row + 1], rtol=1e-9)

    @pytest.mark.filterwarnings("ignore:.*digits are read as codes in post")
    @pytest.mark.parametrize("target", ["zone", "heated", "post"])
    def test_labels_stay_labels(self, target: str, tmp_path: Path) -> None:
        self.LEVELS.to_csv(tmp_path / "all.csv", index=False)
        est = KernelRidgeClassifier(random_state=0, **PLAIN).fit(tmp_path / "all.csv", target)
        for row in (0, 1, 2):
            self.LEVELS[row : row + 1].to_csv(tmp_path / "one.csv", index=False)
            assert est.score(tmp_path / "one.csv") in (0.0, 1.0)
