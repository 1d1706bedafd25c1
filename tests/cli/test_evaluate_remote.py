"""`evaluate` of rows that pretend to be elsewhere: the figures of rows here, made of sums."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from remote import Remote
from sklearn import metrics as sk

from gramian import KernelModel
from gramian.data import RemoteColumns, Table, as_table
from gramian.model import Model
from gramian.scoring.reductions import ClassMeans

OWN = ("--lengthscale", "2", "--landmarks", "20")
METRICS = [
    *("error", "accuracy", "balanced_accuracy", "macro_f1"),
    *("auc", "log_loss", "brier", "calibration_error"),
]


class RemoteDescription(Table):
    """A table whose numbers and labels are elsewhere."""

    remote = True
    takes_encoding = False

    def __init__(self, path: Path) -> None:
        self.where, self.table = str(path), pq.read_table(path)
        self.schema, self.num_rows = self.table.schema, self.table.num_rows

    def batches(self, columns, size):
        raise AssertionError("rows are read here")

    def take(self, columns, index):
        raise AssertionError("rows are read here")

    def _column(self, name: str) -> np.ndarray:
        return self.table[name].to_numpy(zero_copy_only=False)

    def rows(self, names: tuple[str, ...]) -> Remote:
        X = np.stack([self._column(name) for name in names], axis=1)
        return Remote.of(X, names=tuple(names))

    def remote_columns(self, names: list[str]) -> RemoteColumns:
        y, labels = self._column(names[0]), None
        if y.dtype.kind == "O":
            labels, y = np.unique(y.astype(str), return_inverse=True)
        numbers = y.astype(np.float64)[:, None]
        kind = None if labels is not None else y.dtype
        return RemoteColumns(Remote.of(numbers), flat=True, labels=labels, kind=kind)


@pytest.fixture
def there(report, monkeypatch):
    """Return a function that evaluates elsewhere: nothing but sums may come here."""

    def run(*arguments: object) -> Any:
        def refused(*_arguments: object, **_settings: object) -> None:
            raise AssertionError("numbers of all rows came here")

        with monkeypatch.context() as patched:
            patched.setattr(Model, "table", lambda _model, path, *_: RemoteDescription(path))
            for owner in (Remote, RemoteColumns):
                for name in ("map", "take", "here", "__array__", "__getitem__", "positive"):
                    if hasattr(owner, name):
                        patched.setattr(owner, name, refused)
            return report("evaluate", *arguments)

    return run


def same(found: Any, expected: Any) -> None:
    """Compare two reports: the same names in the same order, and numbers to rounding."""
    assert json.dumps(_shape(found)) == json.dumps(_shape(expected))
    for one, other in zip(_numbers(found), _numbers(expected), strict=True):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-9)


def _shape(report: Any) -> Any:
    if isinstance(report, dict):
        return {name: _shape(part) for name, part in report.items()}
    if isinstance(report, list):
        return [_shape(part) for part in report]
    return None if isinstance(report, float) else report


def _numbers(report: Any) -> list[float]:
    if isinstance(report, dict):
        return [number for part in report.values() for number in _numbers(part)]
    return [report] if isinstance(report, float) else []


def labelled(save, kind: str, name: str = "labelled.parquet", n: int = 61, seed: int = 0) -> Path:
    draw = np.random.default_rng(seed)
    labels = {
        "two": np.array(["left", "right"])[draw.integers(0, 2, n)],
        "three": np.array(["a", "b", "c"])[draw.integers(0, 3, n)],
        "truth": draw.random(n) < 0.4,
        "numbers": np.array([1, 5, 7])[draw.integers(0, 3, n)],
    }
    return save(name, n, seed, y=labels[kind])


@pytest.mark.parametrize("kind", ["two", "three", "truth", "numbers"])
def test_classes(there, report, fit, save, kind):
    more = ("--task", "classification") if kind == "numbers" else ()
    model = fit(labelled(save, kind), *OWN, *more)
    new = labelled(save, kind, "new.parquet", 40, 7)
    expected = report("evaluate", model, new)
    same(there(model, new), expected)
    assert np.sum(expected["confusion"]["matrix"]) == 40
    assert 0.2 < expected["auc"] < 1
    for name in METRICS:
        one = there(model, new, "--metric", name)
        same(one, report("evaluate", model, new, "--metric", name))
        assert one[name] == pytest.approx(expected[name], rel=1e-6)


def test_classes_that_are_new_and_classes_that_are_alone(there, report, fit, save):
    model = fit(labelled(save, "three"), *OWN)
    for name, y in {
        "new": ["b", "zero", "a", "b", "a", "another", "c", "c", "zero"],
        "alone": ["b"] * 9,
        "none": ["zero"] * 9,
    }.items():
        data = save(f"{name}.parquet", n=9, y=y)
        expected = report("evaluate", model, data)
        same(there(model, data), expected)
        assert ("class without training rows" in expected["remark"]) == (name != "alone")
    assert expected["auc"] is None


def test_many_classes_show_their_largest_confusions(there, report, fit, save):
    y = np.arange(161) % 23
    data = save(n=161, y=y)
    model = fit(data, *OWN, "--task", "classification")
    expected = report("evaluate", model, data)
    # Only local rows are recognised as rows of the training.
    assert "rows of the training" in expected["remark"]
    expected["remark"] = None
    assert len(expected["confusion"]["largest"]) == 20
    same(there(model, data), expected)


def test_a_regression(there, report, fit, train, fresh, save):
    model = fit(train, *OWN)
    same(there(model, fresh), report("evaluate", model, fresh))
    for name in ("rmse", "mae", "r2", "relative_error", "smape"):
        one = (model, fresh, "--metric", name)
        same(there(*one), report("evaluate", *one))
    equal = save("equal.parquet", n=9, y=np.full(9, 3.5))
    found = there(model, equal)
    same(found, report("evaluate", model, equal))
    assert found["remark"] == "all targets are 3.5: r2 is undefined"


@pytest.mark.parametrize("method", ["split", pytest.param("cv+", marks=pytest.mark.slow)])
def test_intervals(there, report, fit, save, method, monkeypatch):
    monkeypatch.setattr("remote.ENVELOPE", 24_000 if method == "cv+" else 6000)  # several models
    data = save(n=150)
    model = fit(data, *OWN, "--conformal", method)
    fresh = save("fresh.parquet", n=50, seed=4)
    expected = report("evaluate", model, fresh)
    assert 0.3 < expected["intervals_of_0.9"]["coverage"] <= 1
    assert "coverage_of_wide" in expected["intervals_of_0.9"]
    same(there(model, fresh), expected)


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_sets(there, report, fit, save, method, monkeypatch):
    monkeypatch.setattr("remote.ENVELOPE", 14_000 if method == "cv+" else 4096)  # several models
    model = fit(labelled(save, "three", n=150), *OWN, "--conformal", method)
    fresh = save("fresh.parquet", n=40, seed=4, y=np.array(["a", "b", "c", "x"])[np.arange(40) % 4])
    expected = report("evaluate", model, fresh)
    assert 1 < expected["sets_of_0.9"]["classes"] <= 3
    assert 0.3 < expected["sets_of_0.9"]["coverage"] <= 0.75
    same(there(model, fresh), expected)


def test_a_metric_without_mergeable_form_gathers_predictions(report, fit, train, fresh, error):
    model = fit(train, *OWN)
    name = "neg_mean_absolute_percentage_error"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Model, "table", lambda _model, path, *_: RemoteDescription(path))
        found = report("evaluate", model, fresh, "--metric", name)
        same(found, report("evaluate", model, fresh, "--metric", name))
        limited = (model, fresh, "--metric", name, "--memory-limit", "100")
        assert f"{name} needs all predictions in the memory" in error("evaluate", *limited)
    assert found[name] == pytest.approx(report("evaluate", model, fresh, "--metric", name)[name])


@pytest.mark.parametrize("loss", ["quantile:0.1,0.9", "quantile:0.8"])
def test_quantiles(there, report, fit, train, fresh, loss):
    model = fit(train, *OWN, "--loss", loss)
    expected = report("evaluate", model, fresh)
    same(there(model, fresh), expected)
    y = pq.read_table(fresh)["y"].to_numpy()
    X = np.column_stack(pq.read_table(fresh).select(list("abc")))
    values = KernelModel.load(model).predict(X)
    for level, column in zip(json.loads(f"[{loss.partition(':')[2]}]"), values.T, strict=True):
        pinball = expected[f"quantile_{level}"]["pinball"]
        assert pinball == pytest.approx(sk.mean_pinball_loss(y, column, alpha=level), rel=1e-6)


def test_rows_of_an_encoding_are_read_here(report, fit, save, monkeypatch):
    data = labelled(save, "three")
    model = fit(save("text.parquet", b=["x", "y"] * 30 + ["z"], y=pq.read_table(data)["y"]), *OWN)
    fresh = save("fresh.parquet", n=20, b=["x", "z"] * 10, y=["a", "b", "c", "new"] * 5)
    expected = report("evaluate", model, fresh)
    here = as_table(fresh)
    monkeypatch.setattr(RemoteDescription, "batches", lambda _table, *given: here.batches(*given))
    monkeypatch.setattr(Model, "table", lambda _model, path, *_: RemoteDescription(path))
    same(report("evaluate", model, fresh), expected)


def test_a_picture(there, report, fit, save, tmp_path):
    pytest.importorskip("matplotlib")
    data = labelled(save, "two")
    model = fit(data, *OWN)
    here, elsewhere = tmp_path / "here.png", tmp_path / "there.png"
    report("evaluate", model, data, "--reliability", here)
    there(model, data, "--reliability", elsewhere)
    assert elsewhere.read_bytes() == here.read_bytes()


def test_areas_that_may_be_off_are_said(there, fit, save, monkeypatch):
    data = labelled(save, "two", n=300)
    model = fit(data, *OWN)
    assert there(model, data)["remark"] is None
    monkeypatch.setattr(ClassMeans, "_bins", 20)
    assert "auc may be off by up to 0." in there(model, data)["remark"]
