"""Models predict what the formula says, and come back from their file unchanged or not at all."""

from __future__ import annotations

import json
import math
import os
import pickletools
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from close import assert_close
from safetensors.numpy import safe_open, save_file

from gramian import KernelModel, kernels
from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian._files import tensors as _tensors
from gramian._files.tensors import write_tensors
from gramian.data import LinearMap, QuantileMap, Standardizer, as_rows
from gramian.engines.tiled_engine import TiledEngine
from gramian.operators import KernelOperator
from gramian.problems import FullProblem
from gramian.solvers import Direct, solve

M, D, T = 7, 3, 2
NAMES = ("height", "weight", "Größe")


def normal(*shape: int, dtype: np.dtype = np.float64, seed: int = 0) -> np.ndarray:
    return RandomStream(seed).standard_normal(shape, dtype)


NEW = normal(11, D, seed=1)


def model(**changes: Any) -> KernelModel:
    plain = KernelModel(kernels.Gaussian(1.5), normal(M, D), normal(M, T, seed=2))
    return replace(plain, **changes)


class TestPredict:
    def test_the_formula(self):
        expected = kernels.Gaussian(1.5)(NEW, normal(M, D)) @ normal(M, T, seed=2)
        assert_close(model().predict(NEW), expected)

    def test_scale_and_shift(self):
        shift, scale = (
            xp.to_float64(np.array([1.0, -2.0], dtype=np.float32)),
            xp.to_float64(np.array([10.0, 0.5], dtype=np.float32)),
        )
        expected = shift + scale * model().predict(NEW)
        changed = model(target_shift=shift, target_scale=scale)
        assert_close(changed.predict(NEW), expected)
        assert np.array_equal(shift, xp.to_float64(np.array([1.0, -2.0], dtype=np.float32)))

    def test_rows_are_standardized_like_those_of_training(self):
        X = 100 + 7 * normal(50, D, seed=3)
        standardizer = Standardizer.fit(as_rows(X))
        changed = model(standardizer=standardizer)
        expected = model().predict((X - X.mean(0)) / X.std(0))
        assert_close(changed.predict(X), expected)

    def test_in_float64_whatever_the_centers_are(self, dtype):
        narrow = model(
            centers=xp.cast(normal(M, D), dtype), coef=xp.cast(normal(M, T, seed=2), dtype)
        )
        assert narrow.predict(xp.cast(NEW, dtype)).dtype == np.float64

    @pytest.mark.parametrize(
        "as_input",
        [
            np.asarray,
            lambda x: x.tolist(),
            lambda x: pd.DataFrame(x),
            lambda x: scipy.sparse.csr_array(x),
            lambda x: as_rows(x),
        ],
    )
    def test_any_kind_of_rows(self, as_input):
        assert_close(model().predict(as_input(NEW)), model().predict(NEW))

    def test_blocks_do_not_matter(self):
        engine = TiledEngine(tile_bytes=512, threads=1)
        X = normal(500, D, seed=5)
        small = model().predict(X, engine=engine, memory_bytes=20_000)
        assert_close(small, model().predict(X))

    def test_labels(self):
        values = model().predict(NEW)
        several = model(classes=("no", "yes"))
        assert several.predict_labels(NEW) == [("no", "yes")[i] for i in values.argmax(1)]
        two = model(coef=normal(M, 1), classes=(False, True))
        assert two.predict_labels(NEW) == (two.predict(NEW)[:, 0] > 0).tolist()

    def test_a_regression_has_no_labels(self):
        with pytest.raises(ValueError, match="regression and has no classes; use predict"):
            model().predict_labels(NEW)


class TestRefusals:
    def test_number_of_features(self):
        with pytest.raises(ValueError, match="X has 2 features, but the model was trained on 3"):
            model().predict(NEW[:, :2])

    def test_names_of_features(self):
        frame = pd.DataFrame(NEW, columns=["height", "Größe", "weight"])
        with pytest.raises(
            ValueError, match=r"'Größe' where the model expects 'weight'.*height, we"
        ):
            model(feature_names=NAMES).predict(as_rows(frame))

    def test_columns_of_a_table_are_taken_by_name(self):
        frame = pd.DataFrame(NEW, columns=list(NAMES))
        others = frame[list(NAMES[::-1])].assign(more="text")
        named = model(feature_names=NAMES)
        assert_close(named.predict(others), named.predict(NEW))
        with pytest.raises(ValueError, match=f"the table has no column {NAMES[0]}"):
            named.predict(frame.drop(columns=NAMES[0]))

    def test_names_need_not_be_given(self):
        named = model(feature_names=NAMES)
        assert_close(named.predict(NEW), model().predict(NEW))
        frame = pd.DataFrame(NEW, columns=list(NAMES))
        assert_close(named.predict(frame), model().predict(NEW))
        assert_close(model().predict(frame), model().predict(NEW))

    def test_a_memory_that_is_no_size(self):
        assert_close(model().predict(NEW, memory_bytes="1GB"), model().predict(NEW))
        with pytest.raises(ValueError, match="memory_bytes='much' is not a size"):
            model().predict(NEW, memory_bytes="much")

    def test_centers_and_coefficients_of_different_number(self):
        with pytest.raises(ValueError, match="each of the 7 centers, not 6 rows"):
            model(coef=normal(M - 1, T))


KERNELS = [
    kernels.Gaussian(0.7),
    kernels.Gaussian((1.0, 2.0, 1 / 3)),
    kernels.L1Laplacian(2.5),
    kernels.RationalQuadratic(1.1, alpha=0.3),
    kernels.Polynomial(degree=2, coef0=0.1, lengthscale=(1.0, 0.1, 7.0)),
    2.5 * kernels.Matern52(1.0)
    + kernels.Linear() * (kernels.Laplacian(3.0) + kernels.Matern12(1e-3)),
]

SHIFTS = xp.to_float64(np.array([[1.0, -2.0], [10.0, 0.1]], dtype=np.float32))

MATRIX = LinearMap(matrix=normal(D, 2, seed=8))
SCALES = LinearMap(scales=np.array([0.0, 2.0, 0.3], dtype=np.float32))
QUANTILES = QuantileMap.fit(3 * normal(40, D, seed=9), rng=RandomStream(0))
STANDARDIZER = Standardizer.fit(as_rows(normal(30, D) * 3 + 9))

MAPPED: dict[str, Callable[[], KernelModel]] = {
    "quantiles": lambda: model(quantiles=QUANTILES),
    "a matrix": lambda: model(
        centers=normal(M, 2), metric=MATRIX, importances=np.ones(D, np.float32) / D
    ),
    "scales": lambda: model(metric=SCALES, feature_names=NAMES),
    "all maps": lambda: model(
        centers=normal(M, 2),
        standardizer=STANDARDIZER,
        quantiles=QUANTILES,
        metric=MATRIX,
        target_shift=SHIFTS[0],
        target_scale=SHIFTS[1],
    ),
}

MODELS: dict[str, Callable[[], KernelModel]] = {
    "plain": model,
    "float32": lambda: model(
        centers=xp.cast(normal(M, D), np.float32), coef=xp.cast(normal(M, T), np.float32)
    ),
    "sparse": lambda: model(centers=scipy.sparse.csr_array(np.eye(M, D))),
    "scaled": lambda: model(target_shift=SHIFTS[0], target_scale=SHIFTS[1]),
    "scaled by one tensor": lambda: model(target_shift=SHIFTS[1], target_scale=SHIFTS[1]),
    "a view": lambda: model(coef=normal(M, 2 * T)[:, ::2]),
    "standardized": lambda: model(standardizer=Standardizer.fit(as_rows(normal(30, D) * 3 + 9))),
    "named": lambda: model(feature_names=NAMES),
    "one center": lambda: model(centers=normal(1, D), coef=normal(1, 1)),
    "informed": lambda: model(info={"version": "0.1", "rows": 7, "error": 0.25, "text": "ü"}),
    **{f"kernel {i}": lambda k=k: model(kernel=k) for i, k in enumerate(KERNELS)},
    "strings": lambda: model(classes=("no", "ja ✓")),
    "integers": lambda: model(classes=(-3, 2**60)),
    "numbers": lambda: model(classes=(0.1, math.pi)),
    "booleans": lambda: model(coef=normal(M, 1), classes=(False, True)),
    **MAPPED,
}


class TestMaps:
    def test_one_after_the_other(self):
        every = MAPPED["all maps"]()
        x = QUANTILES.scores(STANDARDIZER.scale_numbers(NEW)) @ MATRIX.matrix
        expected = SHIFTS[0] + SHIFTS[1] * model(centers=normal(M, 2)).predict(x)
        assert_close(every.predict(NEW), expected)
        assert (every.features, every.outputs, every.centers.shape[1]) == (D, T, 2)

    def test_rows_have_the_features_of_before_the_metric(self):
        with pytest.raises(ValueError, match="X has 2 features, but the model was trained on 3"):
            MAPPED["a matrix"]().predict(NEW[:, :2])

    def test_sparse_rows(self):
        sparse = scipy.sparse.csr_array(NEW)
        assert_close(MAPPED["scales"]().predict(sparse), MAPPED["scales"]().predict(NEW))
        for name in ("a matrix", "quantiles"):
            with pytest.raises(ValueError, match="would fill the zeros of sparse rows"):
                MAPPED[name]().predict(sparse)


class TestGradient:
    @pytest.mark.parametrize("name", ["plain", "scaled", "standardized", "kernel 1", *MAPPED])
    def test_it_is_the_slope_of_the_predictions(self, name):
        given, step = MODELS[name](), 1e-5
        found = given.gradient(NEW)
        assert (found.shape, found.dtype) == ((11, T, D), np.float64)
        for j in range(D):
            h = step * xp.to_float64(np.eye(D, dtype=np.float32))[j]
            slope = (given.predict(NEW + h) - given.predict(NEW - h)) / (2 * step)
            assert_close(found[:, :, j], slope, atol=1e-6, rtol=1e-5)

    def test_float32_rows_and_one_feature(self, dtype):
        one = KernelModel(
            kernels.Laplacian(2.0), xp.cast(normal(M, 1), dtype), xp.cast(normal(M, 1), dtype)
        )
        x = xp.cast(normal(5, 1, seed=4), dtype)
        exact = KernelModel(
            kernels.Laplacian(2.0), xp.to_float64(xp.cast(normal(M, 1), dtype)), one.coef
        )
        found = one.gradient(x, memory_bytes="100MB", engine=TiledEngine(threads=1))
        assert_close(found, exact.gradient(xp.to_float64(x)), atol=1e-5, rtol=1e-4)

    def test_a_table_by_its_names(self):
        frame = pd.DataFrame(NEW, columns=list(NAMES))[list(NAMES[::-1])]
        named = model(feature_names=NAMES)
        assert_close(named.gradient(frame), model().gradient(NEW))


class TestImportances:
    def test_those_of_a_learned_metric(self):
        shares = np.array([0.5, 0.2, 0.3], dtype=np.float32)
        found = model(importances=shares).feature_importances()
        assert_close(found, xp.to_float64(shares))

    def test_else_shares_of_the_squared_gradients(self):
        scaled = model(target_scale=SHIFTS[1], standardizer=STANDARDIZER)
        squares = np.square(model().gradient(normal(M, D)) * SHIFTS[1][:, None]).mean(0).sum(0)
        assert_close(scaled.feature_importances(), squares / squares.sum())

    def test_of_what_the_metric_maps(self):
        mapped = MAPPED["a matrix"]()
        mapped = replace(mapped, importances=None)
        found = mapped.feature_importances()
        gradients = model(centers=normal(M, 2)).gradient(normal(M, 2)) @ MATRIX.matrix.T
        squares = np.square(gradients).mean(0).sum(0)
        assert_close(found, squares / squares.sum())
        assert replace(mapped, metric=SCALES, centers=normal(M, D)).feature_importances()[0] == 0

    def test_of_a_constant(self):
        flat = model(coef=xp.to_float64(np.zeros((M, T), np.float32)))
        assert np.array_equal(flat.feature_importances(), xp.to_float64(np.zeros(D, np.float32)))


class TestFiles:
    @pytest.mark.parametrize("name", MODELS)
    def test_a_model_comes_back(self, name, tmp_path):
        saved = MODELS[name]()
        saved.save(tmp_path / "model")
        loaded = KernelModel.load(tmp_path / "model")
        assert np.array_equal(loaded.predict(NEW), saved.predict(NEW))
        assert loaded.kernel == saved.kernel
        assert loaded.centers.dtype == saved.centers.dtype
        assert loaded.centers.sparse == saved.centers.sparse
        assert loaded.feature_names == saved.feature_names
        assert loaded.info == saved.info
        assert loaded.classes == saved.classes
        if saved.classes is not None:
            assert [type(label) for label in loaded.classes] == [type(c) for c in saved.classes]
            assert loaded.predict_labels(NEW) == saved.predict_labels(NEW)

    def test_a_single_number_of_any_stride(self, tmp_path):
        ones = {
            "a": xp.expand(np.ones(3, np.float32), (1, 3))[:, 1],
            "b": xp.expand(np.ones(1, np.float32)[:1], 1),
        }
        ones["c"] = np.lib.stride_tricks.as_strided(np.arange(3), (1,), (0,))
        write_tensors(tmp_path / "x", ones, {})
        with safe_open(tmp_path / "x", "np") as f:
            assert all(np.array_equal(f.get_tensor(name), x) for name, x in ones.items())

    def test_saving_what_was_loaded_gives_the_same_file(self, tmp_path):
        MODELS["standardized"]().save(tmp_path / "a")
        KernelModel.load(tmp_path / "a").save(tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_centers_on_disk_move_into_the_file(self, tmp_path):
        np.save(tmp_path / "z.npy", normal(M, D))
        model(centers=tmp_path / "z.npy").save(tmp_path / "model")
        os.remove(tmp_path / "z.npy")
        loaded = KernelModel.load(tmp_path / "model")
        assert_close(loaded.predict(NEW), model().predict(NEW))

    def test_it_replaces_an_older_one(self, tmp_path):
        model().save(tmp_path / "model")
        model(kernel=kernels.Linear()).save(str(tmp_path / "model"))
        assert KernelModel.load(tmp_path / "model").kernel == kernels.Linear()
        assert os.listdir(tmp_path) == ["model"]

    def test_nothing_is_pickled(self, tmp_path):
        for name in ("sparse", "strings", "standardized"):
            MODELS[name]().save(tmp_path / name)
            content = (tmp_path / name).read_bytes()
            with pytest.raises(ValueError, match=r"opcode|exhausted|expected"):
                list(pickletools.genops(content))
            with safe_open(tmp_path / name, framework="np") as file:
                json.loads(file.metadata()["gramian"])


class TestDamage:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        MODELS["standardized"]().save(tmp_path / "model")
        return tmp_path / "model"

    def test_a_file_cut_anywhere(self, path):
        whole = path.read_bytes()
        for length in [*range(0, 60, 7), *range(60, len(whole), 41), len(whole) - 1]:
            path.write_bytes(whole[:length])
            with pytest.raises(ValueError, match="not a gramian model, or was cut off"):
                KernelModel.load(path)

    def test_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"there is no model file .*nothing"):
            KernelModel.load(tmp_path / "nothing")

    def test_a_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="there is no model file"):
            KernelModel.load(tmp_path)

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"x,y\n1,2\n", b"\x80\x04]\x94."])
    def test_a_file_of_another_kind(self, content, tmp_path):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(ValueError, match="not a gramian model"):
            KernelModel.load(tmp_path / "file")

    def test_another_safetensors_file(self, tmp_path):
        save_file({"weight": np.zeros(3, np.float32)}, tmp_path / "net")
        with pytest.raises(ValueError, match="safetensors file but not a gramian model"):
            KernelModel.load(tmp_path / "net")

    @pytest.mark.parametrize("header", ["[]", "null", "3", '{"format": "new"}', "{}"])
    def test_a_header_that_is_none(self, header, tmp_path):
        save_file({"a": np.zeros(1, np.float32)}, tmp_path / "file", {"gramian": header})
        with pytest.raises(ValueError, match="not a gramian model"):
            KernelModel.load(tmp_path / "file")

    def test_a_newer_format(self, path):
        rewrite(path, lambda header, tensors: header.update(format=11, info={"version": "9.9"}))
        with pytest.raises(ValueError, match=r"format 11, written by gramian 9\.9.*upgrade"):
            KernelModel.load(path)

    def test_a_kernel_of_the_future(self, path):
        rewrite(path, lambda header, tensors: header.update(kernel={"name": "wendland"}))
        with pytest.raises(ValueError, match=r"unknown kernel 'wendland'; known: .*gaussian"):
            KernelModel.load(path)

    @pytest.mark.parametrize(
        "part", ["kernel", "centers", "standardizer", "quantiles", "classes", "info"]
    )
    def test_a_header_without_a_part(self, part, path):
        rewrite(path, lambda header, tensors: header.pop(part))
        with pytest.raises(ValueError, match=f"damaged gramian model.*{part}"):
            KernelModel.load(path)

    @pytest.mark.parametrize(
        "damage",
        [
            {"centers.col": np.array([0, 1, 99])},
            {"centers.col": np.array([0, 1])},
            {"centers.crow": np.array([0, 1, 2, 3, 3, 3, 3, 9])},
            {"centers.crow": np.array([0, 3])},
        ],
    )
    def test_sparse_centers_that_would_read_beyond_the_memory(self, damage, tmp_path):
        path = tmp_path / "model"
        MODELS["sparse"]().save(path)
        rewrite(path, lambda header, tensors: tensors.update(damage))
        with pytest.raises(ValueError, match="sparse centers of the model are damaged"):
            KernelModel.load(path)

    @pytest.mark.parametrize("part", ["coef", "centers"])
    def test_a_file_without_a_tensor(self, part, path):
        rewrite(path, lambda header, tensors: tensors.pop(part))
        with pytest.raises(ValueError, match=f"damaged gramian model.*{part}"):
            KernelModel.load(path)

    def test_parts_that_do_not_fit_together(self, path):
        rewrite(path, lambda header, tensors: tensors.update(coef=normal(M - 1, T)))
        with pytest.raises(ValueError, match="each of the 7 centers, not 6 rows"):
            KernelModel.load(path)

    def test_a_parameter_of_the_kernel_that_cannot_be(self, path):
        kernel = {"name": "gaussian", "lengthscale": -1.0}
        rewrite(path, lambda header, tensors: header.update(kernel=kernel))
        with pytest.raises(ValueError, match="lengthscale must be positive"):
            KernelModel.load(path)

    @pytest.mark.parametrize("mapped", [False, True])
    def test_any_flipped_bit_is_noticed(self, mapped, path, monkeypatch):
        if mapped:
            monkeypatch.setattr(_tensors, "READ_BYTES", 0)
        KernelModel.load(path)
        whole, rng = path.read_bytes(), random.Random(0)
        for at in rng.sample(range(8 * len(whole)), 150):
            damaged = bytearray(whole)
            damaged[at // 8] ^= 1 << (at % 8)
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=r"model"):
                KernelModel.load(path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda header, tensors: xp.fill_(tensors["coef"], math.nan),
            lambda header, tensors: tensors["coef"].__setitem__((0, 0), math.inf),
            lambda header, tensors: tensors["centers"].__setitem__((0, 0), math.nan),
            lambda header, tensors: tensors.update(coef=xp.cast(tensors["coef"], np.int32)),
            lambda header, tensors: tensors.update(coef=xp.contiguous(tensors["coef"][:, 0])),
            lambda header, tensors: tensors.update(coef=xp.copy(tensors["coef"][0, 0])),
            lambda header, tensors: tensors.update(centers=xp.cast(tensors["centers"], np.int32)),
            lambda header, tensors: tensors.update(
                centers=xp.contiguous(tensors["centers"][:, :1])
            ),
            lambda header, tensors: tensors.update(target_scale=-SHIFTS[1]),
            lambda header, tensors: tensors.update(target_scale=xp.copy(SHIFTS[1, :1])),
            lambda header, tensors: tensors.update(target_scale=xp.cast(SHIFTS[1], np.int32)),
            lambda header, tensors: tensors.update(target_shift=SHIFTS[1] * math.inf),
            lambda header, tensors: tensors.pop("target_scale"),
            lambda header, tensors: tensors.update(more=xp.copy(SHIFTS)),
            lambda header, tensors: header.update(standardizer=None),
            lambda header, tensors: header["standardizer"].update(scale=[1.0, 0.0, 1.0]),
            lambda header, tensors: header["standardizer"].update(mean=[1.0, math.nan, 1.0]),
            lambda header, tensors: header["standardizer"].update(mean=[1.0]),
            lambda header, tensors: header["standardizer"].update(mean="a"),
            lambda header, tensors: header.update(standardizer=3),
            lambda header, tensors: header.update(feature_names=["a", "b"]),
            lambda header, tensors: header.update(feature_names=[1, 2, 3]),
            lambda header, tensors: header.update(classes=["a"]),
            lambda header, tensors: header.update(classes=["a", "a"]),
            lambda header, tensors: header.update(classes=[[], {}]),
            lambda header, tensors: header.update(centers=[M, D]),
            lambda header, tensors: header.update(centers="many"),
            lambda header, tensors: header.update(info=[]),
            lambda header, tensors: header.update(kernel="gaussian"),
            lambda header, tensors: header.update(kernel={"name": ["gaussian"]}),
            lambda header, tensors: header.update(kernel={"name": "gaussian", "width": 1}),
            lambda header, tensors: header["kernel"].update(lengthscale="median"),
            lambda header, tensors: header["kernel"].update(lengthscale=[1.0, 2.0, 3.0]),
            lambda header, tensors: header.update(more=1),
            lambda header, tensors: header.update(parts=3),
            lambda header, tensors: header.update(quantiles=None),
            lambda header, tensors: header["quantiles"].update(features=D + 1),
            lambda header, tensors: header["quantiles"].update(more=1),
            lambda header, tensors: header.update(quantiles=[]),
            lambda header, tensors: tensors.pop("quantiles.mean"),
            lambda header, tensors: xp.fill_(tensors["quantiles.scale"], 0.0),
            lambda header, tensors: tensors["quantiles.quantiles"][0].__setitem__(5, 9.0),
            lambda header, tensors: tensors.update({"quantiles.more": xp.copy(SHIFTS)}),
            lambda header, tensors: tensors.pop("metric.matrix"),
            lambda header, tensors: tensors["metric.matrix"].__setitem__((0, 0), math.nan),
            lambda header, tensors: tensors.update({"metric.matrix": normal(D, 3)}),
            lambda header, tensors: tensors.update({"metric.matrix": normal(D + 1, 2)}),
            lambda header, tensors: tensors.update(
                {"metric.matrix": xp.cast(normal(D, 2), np.float32)}
            ),
            lambda header, tensors: tensors.update(
                {"metric.scales": xp.to_float64(np.ones(D, np.float32))}
            ),
            lambda header, tensors: tensors.update(importances=np.ones(D + 1, np.float32)),
            lambda header, tensors: xp.negative_(tensors["importances"]),
            lambda header, tensors: (
                tensors.update(more=xp.copy(SHIFTS)),
                header["parts"].append("more"),
            ),
        ],
    )
    def test_parts_that_cannot_be_even_with_the_right_digest(self, change, tmp_path):
        path = tmp_path / "model"
        model(
            centers=normal(M, 2),
            quantiles=QUANTILES,
            metric=MATRIX,
            importances=np.ones(D, np.float32) / D,
            standardizer=Standardizer.fit(as_rows(normal(30, D))),
            target_shift=SHIFTS[0],
            target_scale=SHIFTS[1],
            feature_names=NAMES,
            classes=("a", "b"),
        ).save(path)
        rewrite(path, lambda header, tensors: None)
        KernelModel.load(path)
        rewrite(path, change)
        with pytest.raises(ValueError, match="damaged gramian model"):
            KernelModel.load(path)

    @pytest.mark.parametrize("depth", [10**5, 10])
    def test_a_header_that_is_too_deep(self, depth, tmp_path):
        deep = "[" * depth + "]" * depth
        save_file({"a": np.zeros(1, np.float32)}, tmp_path / "file", {"gramian": deep})
        with pytest.raises(ValueError, match="not a gramian model"):
            KernelModel.load(tmp_path / "file")

    def test_a_complex_tensor(self, path):
        with safe_open(path, framework="np") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        save_file(tensors | {"coef": xp.cast(tensors["coef"], np.complex64)}, path, metadata)
        with pytest.raises(ValueError, match=r"must be one of BOOL, U8, .*, got C64"):
            KernelModel.load(path, verify=False)

    def test_a_file_of_before_there_were_digests(self, path):
        saved = KernelModel.load(path)
        with safe_open(path, framework="np") as file:
            header = json.loads(file.metadata()["gramian"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        assert header.pop("parts") == ["centers", "coef", "standardizer"]
        save_file(tensors, path, {"gramian": json.dumps(header)})
        with pytest.raises(ValueError, match="its digest is missing"):  # a newer file has one
            KernelModel.load(path)
        save_file(tensors, path, {"gramian": json.dumps(header | {"format": 1})})
        assert np.array_equal(KernelModel.load(path).predict(NEW), saved.predict(NEW))

    def test_a_file_of_before_there_were_metrics(self, path):
        saved = KernelModel.load(path)
        rewrite(path, lambda header, tensors: (header.pop("quantiles"), header.update(format=3)))
        assert np.array_equal(KernelModel.load(path).predict(NEW), saved.predict(NEW))
        rewrite(path, lambda header, tensors: header.update(format=4))
        with pytest.raises(ValueError, match="damaged gramian model: missing 'quantiles'"):
            KernelModel.load(path)

    def test_without_verification_the_parts_must_fit_all_the_same(self, path):
        content = bytearray(path.read_bytes())
        content[-1] ^= 1  # a digit of the last number
        path.write_bytes(content)
        with pytest.raises(ValueError, match="digest does not match its contents"):
            KernelModel.load(path)
        KernelModel.load(path, verify=False)
        rewrite(path, lambda header, tensors: tensors.update(coef=normal(M - 1, T)))
        with pytest.raises(ValueError, match="each of the 7 centers, not 6 rows"):
            KernelModel.load(path, verify=False)

    def test_small_models_do_not_depend_on_their_file_any_more(self, path):
        loaded = KernelModel.load(path)
        expected = loaded.predict(NEW)
        path.write_bytes(b"")  # where it were mapped: the end of this process
        assert np.array_equal(loaded.predict(NEW), expected)

    def test_what_could_not_be_loaded_is_not_saved(self, tmp_path):
        with pytest.raises(ValueError, match="target_scale must be positive"):
            model(target_scale=-SHIFTS[1]).save(tmp_path / "model")
        with pytest.raises(ValueError, match="coef must hold finite numbers"):
            model(coef=xp.to_float64(np.full((M, T), math.nan))).save(tmp_path / "model")
        assert os.listdir(tmp_path) == []


def rewrite(path: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], Any]) -> None:
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["gramian"])
        tensors = {name: xp.copy(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    change(header, tensors)
    write_tensors(path, tensors, {"gramian": json.dumps(header)})


@pytest.mark.parametrize("verify", [True, False])
def test_a_file_that_is_replaced_while_it_is_read(verify, monkeypatch, tmp_path):
    path, read = tmp_path / "model", _tensors._layout
    write_tensors(path, {"x": np.zeros(3, np.float32)}, {"which": "old"})

    def replaced(*arguments: Any) -> Any:
        monkeypatch.setattr(_tensors, "_layout", read)
        write_tensors(path, {"x": np.ones(3, np.float32)}, {"which": "new"})
        return read(*arguments)

    monkeypatch.setattr(_tensors, "_layout", replaced)
    found = _tensors.read_tensors(path, verify=verify)
    assert found.metadata == {"which": "new"}
    assert np.array_equal(found.tensors["x"], np.ones(3, np.float32))


def test_a_full_disk_leaves_the_old_model(full_disk, tmp_path):
    path = tmp_path / "model"
    model().save(path)
    with (
        full_disk(200),
        pytest.raises(OSError, match=r"could not write .*model: .*existing file is unchanged"),
    ):
        model(kernel=kernels.Linear()).save(path)
    assert KernelModel.load(path).kernel == model().kernel
    assert os.listdir(tmp_path) == ["model"]


CANCELLING = [  # kernel, penalty, features: coefficients some 1e6 times as large as the targets
    pytest.param(kernels.Matern52(1.0), 2e-9, 1, id="matern52"),
    pytest.param(kernels.Polynomial(1.0), 1e-6, 2, id="polynomial"),
    pytest.param(kernels.Gaussian(100.0), 1e-8, 2, id="flat"),
]


@pytest.mark.parametrize(("kernel", "penalty", "d"), CANCELLING)
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_float32_predictions_keep_what_an_exact_fit_found(kernel, penalty, d, offset):
    rng = RandomStream(0)
    X, new = (rng.standard_normal((n, d), np.float32) for n in (300, 50))
    noise = 0.1 * rng.standard_normal((300, 1), np.float64)
    y = xp.to_float64(np.sin(3 * X[:, :1])) + noise + offset
    problem = FullProblem(KernelOperator(kernel, X, X), y, penalty)
    model = problem.model(solve(problem, Direct()).state.coef)
    expected = kernel(xp.to_float64(new), xp.to_float64(X)) @ xp.to_float64(model.coef)
    close = 1e-3 * float(expected.std())
    assert_close(model.predict(new), expected, rtol=0, atol=close)
    narrow = KernelOperator(kernel, new, X) @ xp.to_float64(model.coef)
    assert float(np.abs(narrow - expected).max()) > 10 * close


def test_float32_predictions_of_an_ordinary_model_are_computed_in_float32():
    rng = RandomStream(0)
    X, new = (rng.standard_normal((n, 8), np.float32) for n in (300, 50))
    K = KernelOperator(kernels.Gaussian(3.0), X, X)
    problem = FullProblem(K, xp.to_float64(np.sin(X[:, :1])), 1e-3)
    model = problem.model(solve(problem, Direct()).state.coef)
    narrow = KernelOperator(K.kernel, new, X) @ xp.to_float64(model.coef)
    assert np.array_equal(model.predict(new), narrow)
    assert not np.array_equal(xp.to_float64(KernelOperator(K.kernel, new, X)) @ model.coef, narrow)
