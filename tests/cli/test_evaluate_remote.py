"""`evaluate` of rows that pretend to be elsewhere: the figures of rows here, made of sums."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from remote import Remote
from sklearn import metrics as sk

from gramian import KernelModel
from gramian.cli.metrics.answers import ALL_BINS
from gramian.data import RemoteColumns, Table, as_table
from gramian.model import Model
from gramian.model.evaluation.class_sums import Classified
from gramian.model.evaluation.coverage import Covering
from gramian.model.evaluation.ranks import Ranks
from gramian.model.uncertainty.probabilities import LogOdds

OWN = ("--lengthscale", "2", "--landmarks", "20")
RNG = np.random.default_rng(3)
METRICS = [
    *("error", "accuracy", "balanced_accuracy", "macro_f1"),
    *("auc", "log_loss", "brier", "calibration_error"),
]


class RemoteDescription(Table):
    """A table whose numbers and labels are elsewhere."""

    remote = True

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
            patched.setattr(Model, "table", lambda _model, path: RemoteDescription(path))
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
    assert len(expected["confusion"]["largest"]) == 20
    same(there(model, data), expected)


def test_a_regression(there, report, fit, train, fresh, save):
    model = fit(train, *OWN)
    same(there(model, fresh), report("evaluate", model, fresh))
    for name in ("rmse", "mae", "r2"):
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


@pytest.mark.parametrize("loss", ["quantile:0.1,0.9", "quantile:0.8"])
def test_quantiles(there, report, fit, train, fresh, loss):
    model = fit(train, *OWN, "--loss", loss)
    expected = report("evaluate", model, fresh)
    same(there(model, fresh), expected)
    y = pq.read_table(fresh)["y"].to_numpy()
    X = np.column_stack(pq.read_table(fresh).select(list("abc")))
    values = KernelModel.load(model).predict(X).numpy()
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
    monkeypatch.setattr(Model, "table", lambda _model, path: RemoteDescription(path))
    same(report("evaluate", model, fresh), expected)


def test_a_picture(there, report, fit, save, tmp_path):
    pytest.importorskip("matplotlib")
    data = labelled(save, "two")
    model = fit(data, *OWN)
    here, elsewhere = tmp_path / "here.png", tmp_path / "there.png"
    report("evaluate", model, data, "--reliability", here)
    there(model, data, "--reliability", elsewhere)
    assert elsewhere.read_bytes() == here.read_bytes()


# --- sums ----------------------------------------------------------------------------------------


class TestRanks:
    def ranks(self, values, marked, most):
        """Merge those of parts, as on a cluster."""
        cuts = [0, 70, 71, 300, len(values)]
        parts = [
            Ranks.of(torch.tensor(values[a:b]), torch.tensor(marked[a:b]), most)
            for a, b in pairwise(cuts)
        ]
        found = parts[0]
        for part in parts[1:]:
            found = found.merge(part, most)
        return found

    @pytest.mark.parametrize("scale", [1e-30, 1.0, 1e200])
    def test_the_area_is_exact_while_each_value_has_its_bin(self, scale):
        values = np.append(RNG.standard_normal(500).round(2), [0.0, -0.0, -1e-300]) * scale
        marked = RNG.random(503) < 0.3
        found = self.ranks(values, marked, 1000)
        assert found.dropped == 0
        assert found.area() == (pytest.approx(sk.roc_auc_score(marked, values), rel=1e-13), 0.0)

    @pytest.mark.parametrize("most", [2, 5, 40, 200])
    @pytest.mark.parametrize("offset", [0.0, -0.98, 1e6])
    def test_bins_bound_the_error(self, most, offset):
        marked = RNG.random(900) < 0.2
        values = offset + 0.01 * (RNG.standard_normal(900) + marked)
        found = self.ranks(values, marked, most)
        assert most / 4 < len(found.bins) <= most  # bits are dropped no further than is needed
        area, off = found.area()
        assert 0 < off < 4 / most
        assert abs(area - sk.roc_auc_score(marked, values)) <= off
        assert int(found.counts.sum()) == 900

    def test_one_kind_has_no_area(self):
        assert np.isnan(self.ranks(RNG.random(400), np.ones(400, bool), 99).area()[0])

    def test_what_is_no_number_has_no_place(self):
        with pytest.raises(ValueError, match="predictions hold NaN"):
            self.ranks(np.append(RNG.random(400), np.nan), RNG.random(401) < 0.5, 99)

    @pytest.mark.parametrize("n", [1, 2, 7, 301])
    def test_shares_of_parts(self, n):
        values, marked = RNG.permutation(n) - 3.5, RNG.random(n) < 0.5
        found = Ranks.of(torch.tensor(values), torch.tensor(marked)).shares(3)
        thirds = [part for part in np.array_split(np.argsort(values), 3) if len(part)]
        assert found == pytest.approx([marked[part].mean() for part in thirds])

    def test_equal_values_go_to_both_sides_in_proportion(self):
        marked = torch.tensor([True, False, True, False, True, True])
        found = Ranks.of(torch.tensor([1.0, 2, 2, 2, 2, 3]), marked).shares(3)
        assert found == [pytest.approx((1 + 0.5) / 2), 0.5, pytest.approx((0.5 + 1) / 2)]

    def test_of_the_parts_of_many_classes_the_bins_are_few(self):
        folding = Classified(50, torch.arange(50), LogOdds(), 50, max_bins=64)
        values = torch.tensor(RNG.standard_normal((4000, 50)))
        true = torch.tensor(RNG.integers(0, 50, 4000))
        found = folding.merge(
            folding(0, values[:900], true[:900]), folding(900, values[900:], true[900:])
        )
        assert max(len(one.bins) for one in found.ranks) <= 64
        whole = folding(0, values, true)
        assert torch.equal(found.counts, whole.counts)
        assert found.chances.logs == pytest.approx(whole.chances.logs)
        assert all(
            torch.equal(a.counts, b.counts) for a, b in zip(found.ranks, whole.ranks, strict=True)
        )


def test_thirds_by_bins_are_near_those_of_all_widths():
    y = torch.tensor(RNG.standard_normal(20_000))
    half = torch.tensor(RNG.gamma(2, 1, 20_000))
    ends = torch.stack([-half, half], dim=1)
    exact, few = Covering(ALL_BINS)(0, ends, y), Covering(500)(0, ends, y)
    assert len(few.ranks.bins) <= 500
    assert few.ranks.shares(3) == pytest.approx(exact.ranks.shares(3), abs=3e-3)
    assert few.ranks.shares(3) != exact.ranks.shares(3)


def test_areas_that_may_be_off_are_said(there, fit, save, monkeypatch):
    data = labelled(save, "two", n=300)
    model = fit(data, *OWN)
    assert there(model, data)["remark"] is None
    monkeypatch.setattr(Classified, "_bins", 20)
    assert "auc may be off by up to 0." in there(model, data)["remark"]
