"""Standard deviations on the command line: found at the fit, written beside predictions."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from gramian import KernelModel, KernelRidge
from gramian.model import load_model

SEARCHED = ("--budget", "3000000")
ONE_FIT = ("--landmarks", "none", "--kernel", "gaussian", "--lengthscale", 2, "--penalty", 1e-4)


@pytest.mark.parametrize("asked", [SEARCHED, ONE_FIT], ids=["search", "one fit"])
@pytest.mark.parametrize("keep", [(), ("--keep", "a")], ids=["alone", "beside"])
def test_a_column_beside_the_predictions(report, train, fresh, tmp_path, asked, keep):
    report("fit", train, "--target", "y", *asked, "--std", "--out", tmp_path / "m")
    model, out = load_model(tmp_path / "m"), tmp_path / "p.parquet"
    report("predict", tmp_path / "m", fresh, "--std", "--out", out, *keep)
    found = pq.read_table(out).to_pydict()
    assert list(found) == [*keep[1:], "prediction", "prediction_std"]
    X = np.asarray(pq.read_table(fresh).select(["a", "b", "c"]))
    np.testing.assert_allclose(found["prediction"], model.predict(X)[:, 0], rtol=1e-12)
    np.testing.assert_allclose(found["prediction_std"], model.deviations(X)[:, 0], rtol=1e-9)


def test_they_are_those_of_the_estimator(report, train, fresh, tmp_path):
    report("fit", train, "--target", "y", *ONE_FIT, "--std", "--out", tmp_path / "m")
    report("predict", tmp_path / "m", fresh, "--std", "--out", tmp_path / "p.parquet")
    X, y = (np.asarray(pq.read_table(train).select(names)) for names in (["a", "b", "c"], ["y"]))
    settings = {"landmarks": None, "lengthscale": 2.0, "penalty": 1e-4, "standardize": True}
    est = KernelRidge("gaussian", **settings).fit(X, y[:, 0])
    new = np.asarray(pq.read_table(fresh).select(["a", "b", "c"]))
    found = pq.read_table(tmp_path / "p.parquet")["prediction_std"].to_numpy()
    np.testing.assert_allclose(found, est.predict(new, return_std=True)[1], rtol=1e-5)


def test_a_file_without_names(report, fit, train, tmp_path):
    model = fit(train, *ONE_FIT[:-2], "--std")
    report("predict", model, train, "--std", "--out", tmp_path / "p.npy")
    assert np.load(tmp_path / "p.npy").shape == (61, 2)


def test_a_model_without_them(error, fit, train, tmp_path):
    model = fit(train)
    said = error("predict", model, train, "--std", "--out", tmp_path / "p.csv")
    assert "has no standard deviations" in said
    assert "--std to gramian fit" in said
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--loss", "huber"), "--loss"),
        (("--early-stopping",), "--early-stopping"),
        (("--cells", 30), "--cells"),
        (("--task", "classification", "--landmarks", 9), "this is a classification"),
        (("--task", "classification", *SEARCHED), "this is a classification"),
    ],
)
def test_what_has_none_is_refused_before_the_fit(error, save, tmp_path, more, said):
    table = save("few.parquet", y=np.arange(61) % 2)
    out = tmp_path / "m"
    assert said in error("fit", table, "--target", "y", "--std", *more, "--out", out)
    assert not out.exists()


def test_classes_have_none(error, fit, save, tmp_path):
    table = save("labelled.parquet", y=np.array(["a", "b"])[np.arange(61) % 2])
    said = error("predict", fit(table), table, "--std", "--out", tmp_path / "p.csv")
    assert "--std requires a regression" in said


def test_a_model_is_kept_when_there_are_none(gramian, train, tmp_path):
    out = tmp_path / "m"
    fit = ("fit", train, "--target", "y", "--out", out, "--std", "--landmarks", 20)
    done = gramian(*fit, "--solver", "falkon", "--max-iter", 1, "--tol", 1e-30)
    assert done.code != 0
    assert "holds the model without standard deviations" in done.err
    assert "--solver direct" in done.err
    assert load_model(out).parts[0].variance is None


def test_a_column_of_that_name_is_not_kept(error, fit, save, tmp_path, monkeypatch):
    table = save("again.parquet", prediction_std=np.arange(61.0))
    model = fit(table, *ONE_FIT[:-2], "--features", "a,b,c", "--std")
    out = tmp_path / "p.parquet"
    monkeypatch.setattr(KernelModel, "predict", None)  # it is refused before any work
    said = error("predict", model, table, "--std", "--keep", "prediction_std", "--out", out)
    assert "prediction_std" in said
    assert not out.exists()
