"""Tables in the estimators: named once, encoded where they need it, and within scikit-learn."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from gramian import KernelRidge, KernelRidgeClassifier, TableEncoder, load

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
    return KernelRidge(**({"penalty": 1e-3, "random_state": 0} | settings))


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
        with pytest.raises(ValueError, match="score needs y"):
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
            ({"id": [f"H{i}" for i in range(N)]}, "column 'id' has a different text in every row"),
            ({"more": [[1.0]] * N}, "more"),
        ],
    )
    def test_columns_that_cannot_be_learned_from(self, change: Any, words: str) -> None:
        with pytest.raises((ValueError, TypeError), match=words):
            regressor().fit(FRAME.assign(**change), "price")

    def test_a_copy_of_labels(self) -> None:
        with pytest.raises(ValueError, match="column 'where' equals the target"):
            KernelRidgeClassifier().fit(FRAME.assign(where=FRAME["town"]), "town")

    def test_names(self) -> None:
        with pytest.raises(ValueError, match=r"has no column prize.*did you mean price"):
            regressor().fit(FRAME, "prize")
        with pytest.raises(ValueError, match="column price cannot be a feature and the target"):
            regressor().fit(FRAME, "price", columns=["size", "price"])
        with pytest.raises(TypeError, match="columns are named, but an object of type ndarray"):
            regressor().fit(FRAME.to_numpy(), "price")

    def test_text_for_a_regression(self) -> None:
        with pytest.raises(TypeError, match=r"holds text, such as .* use KernelRidgeClassifier"):
            regressor().fit(FRAME, "town")

    def test_rows_without_names_at_prediction(self) -> None:
        est = regressor().fit(FRAME, "price")
        with pytest.raises(TypeError, match="fitted to a table with the columns size, town"):
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
        est = KernelRidgeClassifier(penalty=1e-3, class_weight=weight, random_state=0)
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
        est = KernelRidgeClassifier(penalty=1e-3, random_state=0).fit(frame, "town")
        assert est.score(frame) == KernelRidgeClassifier(penalty=1e-3, random_state=0).fit(
            frame.drop("town"), FRAME["town"]
        ).score(FRAME, FRAME["town"])
