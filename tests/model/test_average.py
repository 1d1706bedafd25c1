"""An average of models predicts the mean, and all of it is in one file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from close import assert_close
from plain import PLAIN
from safetensors.numpy import safe_open

import gramian
from gramian import AverageModel, KernelModel, KernelRidge, KernelRidgeClassifier, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian._files.tensors import write_tensors
from gramian.data import LinearMap, as_rows
from gramian.model import load_model

X = np.random.default_rng(0).standard_normal((120, 3))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2
WEIGHTS = (0.3, 0.7)
METRIC = LinearMap(matrix=RandomStream(0).standard_normal((3, 2), np.float32))


def fitted(kind: type = KernelRidge, y: Any = Y, X: Any = X, **settings: Any) -> KernelModel:
    return kind(**(PLAIN | {"penalty": 1e-3, "random_state": 0} | settings)).fit(X, y).model_


def average(**changes: Any) -> AverageModel:
    models = (
        fitted(metric=METRIC, standardize="quantile"),
        fitted(kernel="l1_laplacian", landmarks=20),
    )
    return replace(AverageModel(WEIGHTS, models, {"rows": 120}), **changes)


class TestMean:
    def test_of_values_gradients_and_importances(self):
        both = average()
        one, two = both.models
        for found, first, second in (
            (both.predict(X), one.predict(X), two.predict(X)),
            (both.gradient(X), one.gradient(X), two.gradient(X)),
            (both.feature_importances(), one.feature_importances(), two.feature_importances()),
        ):
            assert_close(found, 0.3 * first + 0.7 * second)
        assert (both.features, both.outputs, both.parts) == (3, 1, (one, two))

    def test_of_classes(self):
        y = np.array(["a", "b", "c"])[np.digitize(Y, [0, 1])]
        models = [fitted(KernelRidgeClassifier, y, kernel=k) for k in ("gaussian", "laplacian")]
        both = AverageModel((0.5, 0.5), tuple(models))
        values = models[0].predict(X) + models[1].predict(X)
        assert both.predict_labels(X) == [both.classes[i] for i in values.argmax(1)]

    @pytest.mark.parametrize("weights", [(0.3, 0.6), (1.0,), (-0.5, 1.5), (np.nan, 1.0), (True, 0)])
    def test_weights_that_are_none(self, weights):
        with pytest.raises(
            ValueError, match=r"2 models requires as many weights, .* the sum 1, not"
        ):
            average(weights=weights)

    def test_models_that_do_not_belong_together(self):
        both = average()
        one, two = both.models
        frame = pd.DataFrame(X, columns=list("abc")).assign(d=np.arange(120) % 3 > 1, y=Y)
        encoded = [fitted(X=frame[:n], y="y") for n in (120, 100)]
        for models, message in (
            (
                (one, fitted(X=X[:, :2])),
                "the same numbers of features and targets, not 2 to 1 and 3 to 1",
            ),
            ((one, fitted(y=np.column_stack([Y, Y]))), "not 3 to 1 and 3 to 2"),
            ((one, replace(two, feature_names=("a", "b", "c"))), "the same feature_names"),
            ((one, replace(two, classes=(False, True))), "the same classes"),
            ((one, replace(two, target=("y",))), "the same target"),
            (encoded, "the same encoding"),
        ):
            with pytest.raises(ValueError, match=message):
                AverageModel(WEIGHTS, tuple(models))


class TestFile:
    def test_it_comes_back_to_the_bit(self, tmp_path):
        both = average()
        both.save(tmp_path / "m")
        for found in (AverageModel.load(tmp_path / "m"), load_model(tmp_path / "m")):
            assert np.array_equal(found.predict(X), both.predict(X))
            assert found.weights == both.weights
            assert found.info == {"rows": 120}
        found.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()

    def test_an_encoding_is_there_once(self, tmp_path):
        levels = [f"level {i % 240}" for i in range(480)]  # enough levels to be encoded by means
        frame = pd.DataFrame({"a": np.tile(X[:, 0], 4), "b": levels, "y": np.tile(Y, 4)})
        models = tuple(fitted(X=frame, y="y", kernel=k) for k in ("gaussian", "laplacian"))
        both = AverageModel(WEIGHTS, models)
        both.save(tmp_path / "m")
        with safe_open(tmp_path / "m", "np") as file:
            names = [name for name in file.keys() if "encoding" in name]  # noqa: SIM118
            assert names
            assert all(name.startswith("encoding.") for name in names)
        found = AverageModel.load(tmp_path / "m")
        assert found.models[0].encoding is found.models[1].encoding
        assert np.array_equal(found.predict(frame), both.predict(frame))
        again = gramian.load(tmp_path / "m")
        assert again.score(frame) == pytest.approx(again.score(frame, frame["y"]))
        assert again.gradient(frame).shape == (480, found.encoding.width)
        assert again.feature_importances_.shape == (2,)

    def test_each_kind_says_what_reads_the_other(self, tmp_path):
        both = average()
        both.save(tmp_path / "m")
        both.models[0].save(tmp_path / "one")
        with pytest.raises(ValueError, match=r"an average of 2 models: read it with AverageModel"):
            KernelModel.load(tmp_path / "m")
        with pytest.raises(
            ValueError, match=r"a single model, not an average; read it with Kernel"
        ):
            AverageModel.load(tmp_path / "one")
        assert isinstance(load_model(tmp_path / "one"), KernelModel)

    @pytest.mark.parametrize(
        "change",
        [
            lambda header, tensors: header.update(weights=[0.5, 0.6]),
            lambda header, tensors: header.update(weights=[1.0]),
            lambda header, tensors: header.update(weights="half"),
            lambda header, tensors: header.pop("weights"),
            lambda header, tensors: header.update(members=[]),
            lambda header, tensors: header.update(members="two"),
            lambda header, tensors: header["members"].pop(),
            lambda header, tensors: header["members"][0].update(more=1),
            lambda header, tensors: header["members"][0].update(quantiles=None),
            lambda header, tensors: header["members"][1]["kernel"].update(lengthscale="median"),
            lambda header, tensors: header["members"][1].update(standardizer=None),
            lambda header, tensors: header.update(kernel={"name": "gaussian"}),
            lambda header, tensors: header.update(classes=["a"]),
            lambda header, tensors: tensors.pop("1.coef"),
            lambda header, tensors: tensors.pop("0.metric.matrix"),
            lambda header, tensors: xp.fill_(tensors["1.coef"], np.nan),
            lambda header, tensors: tensors["0.centers"].__setitem__((0, 0), np.nan),
            lambda header, tensors: (
                tensors.update({"2.coef": np.ones(1, np.float32)}),
                header["parts"].append("2.coef"),
            ),
        ],
    )
    def test_damage_is_refused_even_with_the_right_digest(self, change, tmp_path):
        path = tmp_path / "m"
        average().save(path)
        rewrite(path, lambda header, tensors: None)
        AverageModel.load(path)
        rewrite(path, change)
        with pytest.raises(ValueError, match="damaged gramian model"):
            load_model(path)

    def test_a_flipped_byte_is_noticed(self, tmp_path):
        path = tmp_path / "m"
        average().save(path)
        content = bytearray(path.read_bytes())
        content[-5] ^= 1
        path.write_bytes(content)
        with pytest.raises(ValueError, match="digest does not match its contents"):
            load_model(path)

    def test_what_could_not_be_loaded_is_not_saved(self, tmp_path):
        one, two = average().models
        broken = replace(two, coef=two.coef * np.nan)
        with pytest.raises(ValueError, match="coef must hold finite numbers"):
            AverageModel(WEIGHTS, (one, broken)).save(tmp_path / "m")
        assert not (tmp_path / "m").exists()


class TestEstimators:
    def test_it_stands_in_for_a_fit(self, tmp_path):
        both = average()
        both.save(tmp_path / "m")
        for est in (gramian.load(tmp_path / "m"), KernelRidge(**PLAIN).with_model(both)):
            np.testing.assert_array_equal(est.predict(X), both.predict(X)[:, 0])
            assert est.kernel_ == tuple(one.kernel for one in both.models)
            assert [len(coef) for coef in est.dual_coef_] == [120, 20]
            assert est.metric_[0].shape == (3, 2)
            assert est.metric_[1] is None
            assert est.n_features_in_ == 3
            assert est.score(X, Y) > 0.5
            est.save(tmp_path / "again")
            assert isinstance(load_model(tmp_path / "again"), AverageModel)

    def test_an_engine_must_cover_all_kernels(self):
        both = average()
        assert isinstance(both.models[1].kernel, kernels.L1Laplacian)
        est = KernelRidge(**PLAIN).with_model(both)

        class OfDistances:
            def covers(self, kernel: kernels.Kernel, **_: Any) -> bool:
                return isinstance(kernel, kernels.Radial)

        est.engine_ = OfDistances()
        assert est._engine_of_prediction(as_rows(X)) == "auto"
        est.with_model(both.models[0]).engine_ = engine = OfDistances()
        assert est._engine_of_prediction(as_rows(X)) is engine


def rewrite(path: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], Any]) -> None:
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["gramian"])
        tensors = {name: xp.copy(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    change(header, tensors)
    write_tensors(path, tensors, {"gramian": json.dumps(header)})
