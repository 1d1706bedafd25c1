"""Metrics and maps in the estimators: what is learned is kept, wherever rows come from."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from correlated import Correlated
from plain import PLAIN
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gramian
from gramian import KernelRidge, KernelRidgeClassifier
from gramian import _arrays as xp
from gramian.callbacks import Checkpoint, Validate
from gramian.data import LinearMap, QuantileMap, as_rows, sample_path
from gramian.fitting.inputs import features
from gramian.fitting.plans.placement import PlacedData
from gramian.metric import metrics


@dataclass
class Told:
    """A callback that keeps what it is told."""

    stages: list[str]

    def __call__(self, problem: Any, state: Any) -> None:
        pass

    def stage(self, name: str) -> None:
        self.stages.append(name)


N, D = 150, 4
R = np.random.default_rng(3).standard_normal((D, 3))
MAPS = {
    "quantile": {"standardize": "quantile"},
    "matrix": {"metric": R},
    "scales": {"metric": [1.0, 0.5, 0.0, 2.0], "standardize": False},
    "learned": {"metric": Correlated(), "standardize": "quantile"},
}


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) ** 3 * [1, 10, 0.1, 1] + [0, 5, 0, 1]
    return X, np.sin(X[:, 0]) + X[:, 1] / 20


def ridge(**settings: object) -> KernelRidge:
    return KernelRidge(**(PLAIN | {"penalty": 1e-3, "random_state": 0} | settings))


class TestFit:
    @pytest.mark.parametrize("name", MAPS)
    def test_it_is_a_fit_to_mapped_rows(self, name, data):
        X, y = data
        est = ridge(**MAPS[name]).fit(X, y)
        model = est.model_
        mapped = model.prepare_rows(as_rows(X)).take(np.arange(N))
        plain = ridge(standardize=False, standardize_target=est.standardize is not False)
        plain.fit(mapped, y)
        assert plain.kernel_ == est.kernel_  # the median of mapped rows
        np.testing.assert_array_equal(plain.predict(mapped), est.predict(X))

    @pytest.mark.parametrize("name", MAPS)
    def test_saved_and_loaded_to_the_bit(self, name, data, tmp_path):
        X, y = data
        est = ridge(**MAPS[name]).fit(X, y)
        est.save(tmp_path / "m")
        loaded = gramian.load(tmp_path / "m")
        for again in (loaded, pickle.loads(pickle.dumps(est))):
            np.testing.assert_array_equal(again.predict(X), est.predict(X))
            np.testing.assert_array_equal(again.gradient(X), est.gradient(X))
            np.testing.assert_array_equal(again.feature_importances_, est.feature_importances_)
            np.testing.assert_array_equal(again.metric_, est.metric_)
        assert clone(est).get_params()["metric"] is not None or name == "quantile"

    @pytest.mark.parametrize("settings", [{}, {"landmarks": 30}, {"solver": "pcg"}])
    def test_of_rows_that_are_not_held_in_memory(self, settings, data, monkeypatch):
        X, y = data
        held = ridge(**MAPS["learned"], **settings).fit(X, y)
        monkeypatch.setattr(features, "in_memory", lambda rows, limit: (rows, 0))
        passed = ridge(**MAPS["learned"], **settings).fit(X, y)
        np.testing.assert_allclose(passed.predict(X), held.predict(X), rtol=1e-6, atol=1e-6)

    def test_float32_and_one_feature_and_constant_columns(self, dtype, data):
        X, y = (xp.cast(np.asarray(each), dtype) for each in data)
        X[:, 2] = 7.0
        for settings in ({"standardize": "quantile"}, {"metric": Correlated()}):
            est = ridge(**settings).fit(X, y)
            assert est.model_.centers.dtype == dtype
            assert np.isfinite(est.predict(X)).all()
            assert est.feature_importances_[2] < 1e-3
            one = ridge(**settings).fit(X[:, :1], y)
            np.testing.assert_allclose(one.feature_importances_, [1.0])
            assert one.gradient(X[:5, :1]).shape == (5, 1)

    def test_weights_of_zero_are_no_rows(self, data):
        X, y = data
        weights = np.arange(N) % 3 > 0
        half = ridge(**MAPS["learned"]).fit(X[weights], y[weights])
        est = ridge(**MAPS["learned"]).fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(est.metric_, half.metric_)
        np.testing.assert_allclose(est.predict(X), half.predict(X))

    def test_a_weight_is_a_repeated_row(self, data):
        X, y = data
        counts = np.arange(N) % 3 + 1
        weighted = ridge(metric=Correlated(chance=0.0)).fit(X, y, sample_weight=counts)
        repeated = ridge(metric=Correlated(chance=0.0)).fit(X.repeat(counts, 0), y.repeat(counts))
        np.testing.assert_allclose(weighted.metric_, repeated.metric_, rtol=1e-6)

    def test_what_is_placed_has_the_features_of_the_map(self, data, monkeypatch):
        seen = []
        place = PlacedData.place

        def looked_at(*given: Any) -> PlacedData:
            seen.append(given[4].d)
            return place(*given)

        monkeypatch.setattr(PlacedData, "place", looked_at)
        ridge(metric=R).fit(*data)
        assert seen == [3]

    def test_callbacks_are_told(self, data):
        told = Told([])
        ridge(metric=Correlated(), callbacks=[told]).fit(*data)
        assert told.stages.index("learning a metric") < told.stages.index("choosing landmarks")

    def test_landmarks_and_held_out_rows_are_in_the_units_of_the_rows(self, data):
        X, y = data
        look = Validate(X[:50], y[:50])
        est = ridge(**MAPS["learned"], landmarks=X[:40], callbacks=[look]).fit(X, y)
        expected = est.model_.prepare_rows(as_rows(X[:40])).take(np.arange(40))
        assert np.array_equal(est.model_.centers.take(np.arange(40)), expected)
        error = np.sqrt(np.mean((est.predict(X[:50]) - y[:50]) ** 2))
        assert est.history_[-1]["valid_rmse"] == pytest.approx(error, rel=1e-6)

    def test_classes(self, data):
        X, y = data
        est = KernelRidgeClassifier(
            metric=Correlated(),
            penalty=1e-3,
            random_state=0,
            kernel="gaussian",
            lengthscale="median",
        )
        est.fit(X, y > 0)
        assert est.score(X, y > 0) > 0.8
        assert est.gradient(X).shape == (N, D)
        assert np.argmax(est.feature_importances_) in (0, 1)
        three = np.digitize(y, [-0.5, 0.5])
        assert est.fit(X, three).gradient(X).shape == (N, 3, D)


@pytest.mark.filterwarnings("ignore:stopped after max_iter")
class TestGoingOn:
    def test_a_warm_start_keeps_the_map(self, data):
        X, y = data
        est = ridge(**MAPS["learned"], landmarks=30, warm_start=True).fit(X, y)
        before = est.model_
        est.fit(X + 1, y)
        assert est.model_.metric is before.metric
        assert est.model_.quantiles is before.quantiles
        assert est.metric_history_ is not None
        est.set_params(metric=Correlated(chance=0.5)).fit(X, y)
        assert est.model_.metric is not before.metric

    def test_partial_fit_keeps_the_first_map(self, data):
        X, y = data
        est = ridge(**MAPS["learned"], landmarks=30, solver="eigenpro3")
        est.partial_fit(X, y)
        before, error = est.model_, np.mean((est.predict(X) - y) ** 2)
        est.partial_fit(X, y)
        assert est.model_.metric is before.metric
        assert est.model_.quantiles is before.quantiles
        assert np.array_equal(est.model_.importances, before.importances)
        assert est.metric_history_ is not None
        assert np.mean((est.predict(X) - y) ** 2) < error

    def test_a_checkpoint_goes_on(self, data, tmp_path):
        X, y = data
        saved = {"callbacks": [Checkpoint(tmp_path / "c")], "landmarks": 30, "tol": 0}
        ridge(**MAPS["learned"], **saved, max_iter=3).fit(X, y)
        est = ridge(**MAPS["learned"], **saved, max_iter=6).fit(X, y)
        assert est.history_[0]["iteration"] == 3
        del saved["callbacks"]
        whole = ridge(**MAPS["learned"], **saved, max_iter=6).fit(X, y)
        np.testing.assert_array_equal(est.predict(X), whole.predict(X))

    def test_early_stopping_and_a_path_of_penalties(self, data):
        X, y = data
        for more in ({"early_stopping": True, "landmarks": 30}, {"penalty": "auto"}):
            est = ridge(**(MAPS["learned"] | more)).fit(X, y)
            assert est.score(X, y) > 0.5


class TestSparse:
    def test_factors_are_taken(self, data):
        X, y = data
        X = np.where(X > 0, X, 0)
        factors = np.array([1.0, 0.5, 0.0, 2.0])
        sparse = ridge(metric=factors).fit(scipy.sparse.csr_array(X), y)
        assert sparse.model_.centers.sparse
        dense = ridge(metric=factors, standardize=False, standardize_target=True).fit(X, y)
        np.testing.assert_allclose(sparse.predict(X), dense.predict(X), rtol=1e-6)

    def test_a_matrix_and_quantiles_are_refused(self, data):
        X, y = scipy.sparse.csr_array(data[0]), data[1]
        with pytest.raises(ValueError, match="matrix would fill the zeros of sparse rows"):
            ridge(metric=R).fit(X, y)
        with pytest.raises(ValueError, match="set standardize=True or False, or pass dense rows"):
            ridge(standardize="quantile").fit(X, y)

    def test_there_are_no_importances(self, data):
        est = ridge().fit(scipy.sparse.csr_array(data[0]), data[1])
        assert not hasattr(est, "feature_importances_")


class TestTables:
    @pytest.fixture
    def frame(self) -> pd.DataFrame:
        frame = pd.read_parquet(sample_path("california_housing")).drop(columns="split")[:200]
        rng = np.random.default_rng(0)
        frame["region"] = rng.choice(["north", "south", "east"], len(frame))
        frame["same"] = "x"
        return frame

    @pytest.mark.parametrize("metric", [None, Correlated()])
    def test_importances_are_those_of_columns(self, metric, frame):
        est = ridge(metric=metric, standardize="quantile").fit(frame, "target")
        names = est.feature_names_in_.tolist()
        assert est.feature_importances_.shape == (len(names),)
        assert est.feature_importances_.sum() == pytest.approx(1)
        assert est.feature_importances_[names.index("same")] == 0
        shares = est.model_.feature_importances()
        one_hot = [i for i, n in enumerate(est.model_.encoding.feature_names) if "region" in n]
        assert len(one_hot) == 3
        region = est.feature_importances_[names.index("region")]
        assert region == pytest.approx(shares[one_hot].sum())

    def test_gradients_are_those_of_encoded_features(self, frame):
        est = ridge(standardize="quantile").fit(frame, "target")
        width = est.model_.encoding.width
        assert est.gradient(frame).shape == (200, width)

    def test_indicators_pass_the_quantiles(self, frame):
        est = ridge(standardize="quantile").fit(frame, "target")
        names = est.model_.encoding.feature_names
        mapped = {names[i] for i in est.model_.quantiles.columns.tolist()}
        assert "median_income" in mapped
        assert not any("region" in name for name in mapped)

    def test_held_out_rows_of_a_table_are_mapped(self, frame):
        look = Validate(frame[:50], frame["target"][:50])
        est = ridge(metric=Correlated(), standardize="quantile", callbacks=[look], landmarks=50)
        est.fit(frame, "target")
        error = np.sqrt(np.mean((est.predict(frame[:50]) - frame["target"][:50]) ** 2))
        assert est.history_[-1]["valid_rmse"] == pytest.approx(error, rel=1e-6)


class TestAttributes:
    def test_the_map_that_was_given(self, data):
        X, y = data
        assert ridge().fit(X, y).metric_ is None
        assert ridge().fit(X, y).metric_history_ is None
        np.testing.assert_array_equal(ridge(metric=R).fit(X, y).metric_, R)
        given = LinearMap(scales=np.ones(D, np.float32))
        assert ridge(metric=given).fit(X, y).model_.metric is given

    def test_what_was_learned(self, data, monkeypatch):
        X, y = data
        monkeypatch.setitem(metrics._classes, "learned", Correlated)
        est = ridge(metric="learned").fit(X, y)
        assert est.metric_.shape == (D,)
        np.testing.assert_allclose(est.feature_importances_, est.metric_ / est.metric_.sum())
        expected = {"round": 0, "error": 1.0, "penalty": 0.1, "lengthscale": None}
        assert est.metric_history_ == [expected]
        other = ridge(metric="learned", random_state=1).fit(X, y)
        assert not np.array_equal(other.metric_, est.metric_)  # it has drawn

    def test_gradients_are_slopes_of_predictions(self, data):
        X, y = data
        est = ridge(metric=R, landmarks=30).fit(X, np.column_stack([y, 2 * y]))
        step = np.array([0, 1e-3, 0, 0])
        slope = (est.predict(X + step) - est.predict(X - step)) / 2e-3
        np.testing.assert_allclose(est.gradient(X)[:, :, 1], slope, atol=1e-5, rtol=1e-5)

    def test_before_a_fit_there_is_nothing(self):
        est = KernelRidge(**PLAIN)
        for name in ("metric_", "feature_importances_"):
            assert not hasattr(est, name)
        with pytest.raises(NotFittedError):
            est.gradient([[1.0]])

    def test_importances_follow_the_fit(self, data):
        X, y = data
        est = ridge(landmarks=50).fit(X, y)
        first = est.feature_importances_
        assert est.feature_importances_ is first
        assert est.fit(X[:, ::-1], y).feature_importances_ is not first

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"metric": "xrfm"}, "unknown metric 'xrfm'"),
            ({"metric": [["a"]]}, r"metric must be None, the name of a metric"),
            ({"metric": np.ones((2, 2, 2))}, "metric must be None, the name of a metric"),
            ({"metric": [1.0, np.nan, 1, 1]}, "scales of a linear map must be finite"),
            ({"metric": np.ones(3)}, "the metric maps 3 features, but X has 4"),
            ({"standardize": "quantiles"}, "standardize must be True, False, 'quantile' or"),
            ({"standardize": 1}, "standardize must be True, .* or 'auto', not 1"),
        ],
    )
    def test_what_is_refused(self, settings, message, data):
        with pytest.raises(ValueError, match=message):
            ridge(**settings).fit(*data)

    def test_the_sample_of_quantiles_is_that_of_the_seed(self, data, monkeypatch):
        X, y = data
        monkeypatch.setattr("gramian.data.maps.quantile_map.MOST_ROWS", 50)
        maps = [ridge(standardize="quantile", random_state=i).fit(X, y) for i in (0, 0, 1)]
        a, b, c = (est.model_.quantiles.quantiles for est in maps)
        assert np.array_equal(a, b)
        assert not np.array_equal(a, c)
        assert isinstance(maps[0].model_.quantiles, QuantileMap)
