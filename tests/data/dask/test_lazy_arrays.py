"""Predictions of dask collections: lazy dask arrays, whatever computes them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gramian import KernelPCA, KernelRidge, KernelRidgeClassifier, NystromTransformer

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("distributed")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 3)).astype(np.float32)
CHUNKS = (120, 100, 80)
PARTS = da.from_array(X, chunks=(CHUNKS, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
GIVEN = {"lengthscale": 2.0, "penalty": 1e-3, "landmarks": 30, "random_state": 0}


def check(found, expected, lengths=CHUNKS) -> None:
    assert isinstance(found, da.Array)
    assert (found.dtype, found.ndim) == (expected.dtype, expected.ndim)
    assert isinstance(found._meta, np.ndarray)
    np.testing.assert_array_equal(found.chunks[0], lengths)
    computed = found.compute(scheduler="synchronous")
    if computed.dtype.kind == "f":
        np.testing.assert_allclose(computed, expected, atol=1e-5)
    else:
        assert np.array_equal(computed, expected)


@pytest.mark.parametrize("targets", [1, 2])
def test_regression(targets):
    y = np.sin(X[:, :targets]).squeeze()
    est = KernelRidge("gaussian", **GIVEN).fit(X, y)
    check(est.predict(PARTS), est.predict(X))


def test_nothing_is_computed_before(monkeypatch):
    est = KernelRidge("gaussian", **GIVEN).fit(X, X[:, 0])

    def loaded(block):
        raise AssertionError("a block was computed")

    found = est.predict(PARTS.map_blocks(loaded, dtype=np.float32, meta=X[:0]))
    assert found.shape == (300,)


def test_classes():
    labels = np.where(X[:, 0] > 0, "up", "down")
    est = KernelRidgeClassifier("gaussian", **GIVEN).fit(X, labels)
    check(est.predict(PARTS), est.predict(X))
    check(est.predict_proba(PARTS), est.predict_proba(X))
    check(est.decision_function(PARTS), est.decision_function(X))


def test_frames_with_an_empty_partition():
    est = KernelRidge("gaussian", **GIVEN).fit(FRAME, np.sin(X[:, 0]))
    frame = dd.from_pandas(FRAME, npartitions=3)
    few = frame[frame["a"] > float(FRAME["a"].max()) - 1e-3]
    found = est.predict(few)
    assert np.isnan(found.chunks[0]).all()
    expected = est.predict(FRAME[FRAME["a"] > FRAME["a"].max() - 1e-3])
    np.testing.assert_allclose(found.compute(scheduler="synchronous"), expected, atol=1e-5)


@pytest.mark.parametrize("kind", [KernelPCA, NystromTransformer])
def test_features(kind):
    given = {"kernel": "gaussian", "lengthscale": 2.0, "landmarks": 30, "random_state": 0}
    est = kind(**given, n_components=4).fit(X)
    check(est.transform(PARTS), est.transform(X))


def test_a_matrix_is_asked_for():
    est = KernelRidge("gaussian", **GIVEN).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="all features in one chunk"):
        est.predict(da.from_array(X, chunks=(100, 1)))
