"""What the benchmarks share: the data sets and their digests, results, and who imports whom."""

from __future__ import annotations

import ast
import gzip
import importlib
import io
import json
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramian._arrays import RandomStream
from gramian.data import sample_path

ROOT = Path(__file__).parents[2]
OPTIONS = {"quick": False, "fresh": False, "forget": []}


@pytest.fixture
def benchmarks(monkeypatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.{name}")


@pytest.fixture
def data(benchmarks) -> ModuleType:
    return benchmarks("data")


@pytest.fixture
def results(benchmarks, monkeypatch, tmp_path) -> ModuleType:
    results = benchmarks("lib.results")
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    return results


def written(path: Path, compression: str = "zstd", **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path, compression=compression)
    return path


# --- data sets -----------------------------------------------------------------------------------


def test_the_digest_is_of_values_and_not_of_the_file(data, tmp_path):
    def digest(compression: str = "zstd", **change: Any) -> str:
        columns = {"x": np.arange(9.0), "s": ["a", "b", "c"] * 3, "split": np.zeros(9, np.int8)}
        path = written(tmp_path / "x.parquet", compression, **columns | change)
        return data.values_digest(pq.read_table(path))

    assert digest() == digest("snappy") == digest(s=pa.array(["a", "b", "c"] * 3, "large_string"))
    others = {"split": np.zeros(9, np.uint8)}, {"s": ["a", "b", "d"] * 3}, {"x": -np.ones(9)}
    assert len({digest(), *(digest(**other) for other in others)}) == 4
    for s in (["a", None, "c"] * 3, ["a\nb", "c", ""] * 3):
        with pytest.raises(ValueError, match="column 's' has"):
            digest(s=s)
    with pytest.raises(ValueError, match="column 'x' has"):
        digest(x=pa.array([None, *range(8)], "float64"))
    path = written(tmp_path / "x.parquet", s=["a", None])
    assert data.state(data.SOURCES[0], path).startswith("wrong: it cannot be read (column 's' has")


def test_a_set_is_missing_then_made_then_damaged(data, tmp_path, capsys):
    raw, folder = tmp_path / "raw", tmp_path / "data"
    raw.mkdir()
    source = next(source for source in data.SOURCES if source.name == "skin")
    lines = ["B\tG\tR\tI SKIN", *(f"{i}\t{2 * i}\t{255 - i}\t{1 + i % 2}" for i in range(20))]
    (raw / "Skin_NonSkin.txt").write_text("\r\n".join(lines) + "\r\n")
    i, tested = np.arange(20, dtype=np.uint8), np.random.default_rng(0).permutation(20)[:4]
    columns = {"B": i, "G": 2 * i, "R": 255 - i, "target": 1 + i.astype(np.int32) % 2}
    expected = pa.table(columns | {"split": np.isin(i, tested).astype(np.int8)})
    few = (
        data.Source(source.convert, source.files, "a page", "none", data.values_digest(expected)),
    )

    assert data.main([str(folder)], few) == 1
    assert "missing" in (said := capsys.readouterr().out)
    assert "from: a page" in said
    assert data.main([str(folder), "--from", str(raw)], few) == 0
    assert pq.read_table(folder / "skin.parquet").equals(expected)
    plain = {"compression": "none", "use_dictionary": False, "column_encoding": "PLAIN"}
    pq.write_table(expected, folder / "skin.parquet", **plain)
    assert data.main([str(folder)], few) == 0
    content = bytearray((folder / "skin.parquet").read_bytes())
    content[content.index(np.arange(20, dtype="<i4").tobytes()) + 8] ^= 4
    (folder / "skin.parquet").write_bytes(content)
    assert data.main([str(folder)], few) == 1
    assert "wrong: SHA-256" in capsys.readouterr().out
    (folder / "skin.parquet").write_bytes(content[:-9])
    assert data.main([str(folder)], few) == 1
    assert "wrong: it cannot be read" in capsys.readouterr().out


def test_every_set_has_its_own_digest_and_source(data):
    assert len({source.digest for source in data.SOURCES}) == len(data.SOURCES)
    for source in data.SOURCES:
        assert len(bytes.fromhex(source.digest)) == 32
        assert source.files
        assert source.origin


def test_sparse_lines_and_idx_files_are_read(benchmarks, tmp_path):
    conversions = benchmarks("lib.conversions")
    (tmp_path / "a9a").write_text("-1 3:1 123:1 \n+1 1:1 \n")
    (tmp_path / "a9a.t").write_text("+1 2:1 3:1\n")
    adult = conversions.adult_a9a(tmp_path)
    assert adult["target"].tolist() == [-1, 1, 1]
    assert adult["split"].tolist() == [0, 0, 1]
    ones = [
        (i, int(name[1:]))
        for i, row in adult.iterrows()
        for name in row[:123][row[:123] == 1].index
    ]
    assert ones == [(0, 3), (0, 123), (1, 1), (2, 2), (2, 3)]
    head = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3])
    (tmp_path / "idx.gz").write_bytes(gzip.compress(head + bytes(range(6))))
    assert conversions.read_idx(tmp_path / "idx.gz").tolist() == [[0, 1, 2], [3, 4, 5]]
    (tmp_path / "idx.gz").write_bytes(gzip.compress(b"\0\0\x0d" + head[3:] + bytes(range(6))))
    with pytest.raises(ValueError, match="is not an IDX file of bytes"):
        conversions.read_idx(tmp_path / "idx.gz")


def test_incomplete_hours_and_winds_of_beijing(benchmarks, tmp_path):
    conversions = benchmarks("lib.conversions")
    rows = pd.DataFrame({"No": range(4), "year": 2013, "PM2.5": [4.0, None, 5.0, 6.0]})
    rows["PM10"], rows["SO2"] = [None, 1.0, 2.0, 3.0], ["1", "2", " ", "4"]
    rows["wd"], rows["station"] = ["E", "E", "N", "SW"], "Dongsi"
    rows.to_csv(tmp_path / "PRSA_Data_Dongsi_20130301-20170228.csv", index=False)
    found = conversions.beijing_pm25(tmp_path)
    assert found["target"].tolist() == [4.0, 6.0]  # PM10 may be missing, all else not
    np.testing.assert_allclose(found["wd_sin"], [1.0, -(0.5**0.5)], atol=1e-7)
    np.testing.assert_allclose(found["wd_cos"], [0.0, -(0.5**0.5)], atol=1e-7)
    assert found["st_Dongsi"].tolist() == [1, 1]


# --- results -------------------------------------------------------------------------------------


def test_results_are_read_as_written_and_equal_ones_have_equal_bytes(results, tmp_path):
    tables = {"A": [{"x": 1.5, "s": "±"}], "Hidden": [{"y": 7654321}]}
    results.write("some", tables, "Notes.", hidden=("Hidden",))
    path = tmp_path / "results" / "some.json.gz"
    first = path.read_bytes()
    assert first[4:8] == bytes(4)  # no time in the header
    assert results.read("some") == tables
    results.write("some", tables, "Notes.", hidden=("Hidden",))
    assert path.read_bytes() == first
    text = (tmp_path / "results" / "some.md").read_text()
    assert "| 1.5 | ± |" in text
    assert "7654321" not in text
    assert results.read("other") == {}


def test_an_interrupted_run_goes_on_and_rows_can_be_forgotten(benchmarks, results):
    Tables = benchmarks("lib.tables").Tables

    def opened(**change: Any) -> Any:
        return Tables("some", ("A", "B"), "Notes.", Namespace(**OPTIONS | change))

    tables = opened()
    tables.add("A", {"file": "csv", "bugs": 1}, {"file": "npy", "bugs": 2})
    tables.add("B", {"file": "csv", "n": 3}, {"solver": "pcg"})
    assert opened().has("A", file="npy", bugs=2)
    some = opened(forget=["file=csv", "n=9"])
    assert (some["A"], some["B"]) == ([{"file": "npy", "bugs": 2}], [{"solver": "pcg"}])
    some.add("A", {"file": "csv", "bugs": 0})
    assert [row["bugs"] for row in opened()["A"]] == [2, 0]
    assert opened(fresh=True)["A"] == opened(quick=True)["A"] == []


def test_the_settings_that_others_use_are_in_the_results(benchmarks):
    chosen = benchmarks("lib.settings").chosen
    for name in benchmarks("lib.sets").NAMES:
        lengthscale, penalty = chosen(name, "2000")
        assert lengthscale > 0
        assert 0 < penalty < 1


# --- kernels and trees together -------------------------------------------------------------------


class Recalls:
    """Predicts 1 for rows that it was fitted to, and 0 for others."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Recalls:
        self.seen = set(X[:, 0].tolist())
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.array([float(x in self.seen) for x in X[:, 0].tolist()])


def test_no_value_that_is_learned_from_is_of_a_row_that_was_fitted(benchmarks):
    fits, sets = benchmarks("tables.stacking_fits"), benchmarks("tables.accuracy_sets")
    X = np.arange(20, dtype=np.float32)[:, None]
    table = sets.Table(X, X[:, 0].astype(float), X[:8] + 0.5, X[:8, 0].astype(float), labels=False)
    sides = fits.parts(table)
    model, both = fits.out_of_fold(lambda labels: Recalls(), table, sides)
    assert (len(model.seen), len(both.test)) == (20, 8)
    assert not both.train.any()
    assert sorted(np.concatenate([held for _, held in sides])) == list(range(20))
    column = replace(both, train=X[:, 0] / 2, test=X[:8, 0] / 4)
    train, test = fits.wider(table, column)
    np.testing.assert_array_equal(train, np.hstack([X, X / 2]))
    np.testing.assert_array_equal(test, np.hstack([X[:8] + 0.5, X[:8] / 4]))


def test_weights_and_stack_are_chosen_by_held_out_rows(benchmarks):
    fits, sets = benchmarks("tables.stacking_fits"), benchmarks("tables.accuracy_sets")
    y, wrong = np.arange(20.0), np.tile([1.0, -1.0], 10)
    table = sets.Table(y[:, None], y, y[:, None], y, labels=False)
    ours, theirs = (fits.Both(y + k * wrong, y + k * wrong, 5.0, 10.0) for k in (1.0, -3.0))
    found = fits.Found(table)
    fits.weighted(found, ours, theirs, np.arange(4))
    error = {row["contender"]: row["error"] for row in found.rows}
    assert error == pytest.approx(
        {"kernel": 1, "trees": 3, "mean": 1, "held-out weight": 0, "stack": 0}, abs=1e-9
    )
    assert [row["cpu_s"] for row in found.rows] == [5, 5, 10, 14, 30]
    assert [row.get("weights") for row in found.rows[3:]] == ["0.75", "0.75, 0.25"]


def test_combinations_are_compared_with_the_better_member(benchmarks):
    stacking = benchmarks("tables.stacking")
    errors = {"pol": (2.0, 1.0, 0.5), "magic": (0.1, 0.4, 0.1)}
    rows = [
        {"set": name, "contender": contender, "error": error, "cpu_s": 3.0}
        for name, found in errors.items()
        for contender, error in zip(("kernel", "trees", "stack"), found, strict=True)
    ]
    kernel, trees, stack = stacking.summary(rows)
    assert kernel["error / better member, geometric mean"] == pytest.approx(2**0.5)
    assert (trees["worst"], trees["there"]) == (pytest.approx(4), "magic")
    assert stack["error / kernel, geometric mean"] == pytest.approx(0.5)
    assert (stack["better by 1%"], stack["worse by 1%"]) == (1, 0)
    assert stacking.side_by_side(rows)[1] == {
        "set": "magic", "kernel": "0.1 / 3", "trees": "0.4 / 3", "stack": "0.1 / 3"
    }  # fmt: skip


# --- mixed tables --------------------------------------------------------------------------------


class FramesSeen:
    """A model that keeps the features that it is fitted to, and asked to predict."""

    def fit(self, X, y):
        self.fitted = X

    def predict(self, X):
        self.predicted = X
        return np.zeros(len(X))


@pytest.mark.parametrize("is_one_hot", [True, False])
def test_filled_columns_have_no_gaps(benchmarks, is_one_hot):
    mixed = benchmarks("tables.mixed_tensors")
    levels = pd.Categorical(["a", "b", "a", None])
    train = pd.DataFrame({"x": [1.0, 2, 6, np.nan], "z": [3.0, 3, 4, 4], "level": levels})
    test = pd.DataFrame({"x": [np.nan, 5], "z": [np.nan, 1], "level": levels[[1, 3]]})
    seen = FramesSeen()
    model = mixed.FilledModel(seen, is_one_hot=is_one_hot).fit(train, np.array([0, 1, 1, 0]))
    model.predict(test)
    if is_one_hot:
        np.testing.assert_array_equal(seen.fitted[3], [2, 4, 1, 0, 0])
        np.testing.assert_array_equal(seen.predicted, [[2, 3.5, 1, 0, 1], [5, 1, 0, 0, 0]])
    else:
        assert list(seen.predicted) == ["x", "z", "x is missing", "level"]
        assert seen.predicted["level"].dtype == "category"
        np.testing.assert_array_equal(seen.predicted["x"], [2, 5])
    assert list(model.classes_) == [0, 1]


def test_fit_beyond_its_seconds_is_recorded(benchmarks, monkeypatch, capfd):
    mixed = benchmarks("tables.mixed")

    def fit_forever(*arguments):
        while True:
            pass

    monkeypatch.setattr(mixed, "CPU_LIMIT_SECONDS", 1)
    monkeypatch.setattr(mixed, "fit_once", fit_forever)
    monkeypatch.setitem(sys.modules, "catboost", ModuleType("catboost"))
    monkeypatch.setattr(sys, "stdin", io.StringIO('["AER.Guns", "mean", 0, "folder"]\n'))
    mixed.serve_fits()
    assert json.loads(capfd.readouterr().out) == {"failed": "more than 1 CPU seconds"}


# --- accuracy beside others ----------------------------------------------------------------------


@pytest.fixture
def fits(benchmarks) -> list[dict[str, Any]]:
    """Return rows of three contenders on two sets; one has failed, one is right everywhere."""
    sets = {"pol": (1.0, 2.0, 4.0), "magic": (0.0, 0.1, None)}
    names = ("gramian default", "lightgbm", "xrfm")
    rows = []
    for name, errors in sets.items():
        for contender, error in zip(names, errors, strict=True):
            row = {"set": name, "contender": contender, "seed": 0, "cap": 20_000}
            found = {"error": error, "cpu_s": 3.0, "test rows": 50}
            rows.append(row | ({"failed": "time"} if error is None else found))
    return rows


def test_columns_rows_and_classes_of_a_table(benchmarks, tmp_path):
    sets = benchmarks("tables.accuracy_sets")
    n = 50
    columns = {name: np.full(n, -1.0) for name in ("fold", "y_gap", "n_atoms", "R0x", "F12z")}
    target, split = np.repeat([7, 3, 5], [30, 15, 5]), np.repeat([0, 1, 2], [40, 9, 1])
    X = np.arange(n, dtype=np.float32)
    columns |= {"x": X, "station_id": np.arange(n), "target": target, "split": split}
    table = sets.load(written(tmp_path / "magic.parquet", **columns), cap=None)
    assert table.labels
    np.testing.assert_array_equal(table.X[:, 0], X[:40])
    np.testing.assert_array_equal(table.X_test[:, 0], X[40:49])
    np.testing.assert_array_equal(table.y, np.repeat([1, 0], [30, 10]))
    np.testing.assert_array_equal(table.y_test, np.repeat([0, 2], [5, 4]))  # 5: not in training
    few = sets.load(tmp_path / "magic.parquet", cap=10, seed=3)
    kept = np.random.default_rng(3).permutation(40)[:10]
    np.testing.assert_array_equal(few.X[:, 0], X[kept])
    np.testing.assert_array_equal(few.X_test, table.X_test)
    columns["target_temp100"] = np.arange(n) / 2
    ocean = sets.load(written(tmp_path / "argo_temp.parquet", **columns))
    assert (ocean.X.shape, ocean.y[3], ocean.labels) == ((40, 1), 1.5, False)


def test_errors_are_compared_where_both_have_one(benchmarks, fits):
    report = benchmarks("tables.accuracy_report")
    grid = report.Grid.of(fits, "tables", "20000")
    assert grid.sets == ["pol", "magic"]
    assert report.side_by_side(grid)[1]["xrfm"] == "failed"
    lightgbm, xrfm = report.duels(grid)
    assert (lightgbm["sets"], lightgbm["better, %"], xrfm["sets"]) == (2, 100, 1)
    ratio = np.sqrt(1 / 2 * 0.01 / 0.1)  # no error on 50 rows: half a wrong label
    assert lightgbm["error ratio, geometric mean"] == pytest.approx(ratio)
    assert (lightgbm["there"], xrfm["worst ratio"]) == ("pol", 0.25)
    asked = report.as_asked(grid)
    assert [row["set"] for row in asked] == ["pol", "magic"]
    assert asked[0]["gramian default"] == "1 / 3"
    assert report.Grid.of(fits, "molecules", "20000").sets == []


def test_ranks_and_critical_difference_are_those_of_the_paper(benchmarks, tmp_path):
    report = benchmarks("tables.accuracy_report")
    q = {2: 1.960, 5: 2.728, 10: 3.164}  # table 5 a of Demsar (2006)
    for k, value in q.items():
        n = 30
        expected = value * np.sqrt(k * (k + 1) / (6 * n))
        assert report.critical_difference(k, n) == pytest.approx(expected, abs=2e-3)
    assert report.critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)  # its example
    error = np.array([[1.0, 2.0, 2.0], [1.0, 3.0, np.inf]] * 6)
    ranks = report.Ranks.of(["a", "b", "c"], error)
    np.testing.assert_allclose(ranks.mean, [1.0, 2.25, 2.75])
    assert ranks.groups() == [(1, 2)]  # the difference to the first is above 0.96
    assert ranks.p < 0.01
    assert [row["contender"] for row in report.ranked(ranks)] == ["a", "b", "c"]
    plots = benchmarks("tables.accuracy_plots")
    plots.critical_difference(ranks, tmp_path / "ranks.png")
    finite = np.where(np.isfinite(error), error, 4.0)
    grid = report.Grid(["s"] * 12, ["a", "b", "c"], finite, np.ones_like(finite))
    plots.error_by_seconds(grid, tmp_path / "seconds.png")
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("ranks.png", "seconds.png"))


def test_one_fit_has_error_seconds_and_log_loss(benchmarks, tmp_path):
    fit = benchmarks("tables.accuracy_fit")
    energy = fit.Job(str(sample_path("energy")), "mean", 0, 100)
    row = fit.fitted(energy)
    table = benchmarks("tables.accuracy_sets").load(sample_path("energy"), 100)
    assert row["error"] == pytest.approx(np.sqrt(((table.y_test - table.y.mean()) ** 2).mean()))
    assert (row["rows"], row["test rows"]) == (100, len(table.y_test))
    assert energy.key == {"set": "energy", "contender": "mean", "seed": 0, "cap": 100}
    target, split = np.tile([0, 0, 0, 1], 10), np.repeat([0, 1], [32, 8])
    path = written(tmp_path / "magic.parquet", x=np.arange(40.0), target=target, split=split)
    row = fit.fitted(fit.Job(str(path), "mean", 0, None))
    assert row["error"] == 0.25
    assert row["log loss"] == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))


def test_classes_that_were_not_seen_have_no_probability(benchmarks):
    fit, sets = benchmarks("tables.accuracy_fit"), benchmarks("tables.accuracy_sets")
    X, y = np.zeros((2, 1)), np.array([0, 2])
    table = sets.Table(X, y, X, np.array([2, 3]), True)

    class Two:
        classes_ = y

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            return np.array([[0.4, 0.6], [1.0, 0.0]])

    found = fit.shares(Two(), table)
    np.testing.assert_array_equal(found, [[0.4, 0, 0.6, 0], [1, 0, 0, 0]])
    loss = -np.log([0.6, fit.LEAST_SHARE]).mean()
    assert fit.log_loss(found, table.y_test) == pytest.approx(loss)


@pytest.mark.slow
def test_a_fit_that_fails_or_takes_too_long_is_a_row(benchmarks):
    fit = benchmarks("tables.accuracy_fit")
    job = fit.Job(str(sample_path("energy")), "mean", 0, None)
    row = fit.in_own_process(job, 60)
    assert row["set"] == "energy"
    assert row["cpu_s"] < row["wall_s"] + 1
    assert fit.in_own_process(replace(job, contender="no"), 60)["failed"] == "KeyError: 'no'"
    assert fit.in_own_process(job, 1)["failed"] == "more than 1 CPU s"


def test_only_what_is_asked_for_is_measured(benchmarks, capsys):
    command, accuracy = benchmarks("__main__"), benchmarks("tables.accuracy")

    def asked(*only: str) -> list[tuple[str, str]]:
        arguments = [part for text in only for part in ("--only", text)]
        options = command.parse(["accuracy", "--data", "nowhere", *arguments])
        return [(Path(job.path).stem, job.contender) for job in accuracy.jobs(options)]

    assert asked("set=energy", "contender=xrfm", "contender=mean") == [
        ("energy", "mean"),
        ("energy", "xrfm"),
    ]
    assert asked("set=pol") == []  # there is no such folder
    assert "pol.parquet" in capsys.readouterr().out
    assert len(asked("set=energy")) == len(benchmarks("tables.accuracy_contenders").CONTENDERS)


def test_a_missing_peer_is_named_with_the_extra_that_has_it(benchmarks):
    package = benchmarks("tables.accuracy_contenders").package
    assert package("json").loads("1") == 1
    with pytest.raises(ImportError, match=r"no_such_peer cannot be imported .*'\.\[bench\]'"):
        package("no_such_peer")


# --- probabilities -------------------------------------------------------------------------------


def test_scores_of_probabilities(benchmarks):
    scores = benchmarks("tables.probabilities").scores
    two = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    found = scores(two, np.array([0, 1, 0]))
    assert found["brier"] == pytest.approx((0.2**2 + 0.4**2 + 0.7**2) / 3)
    assert found["calibration"] == pytest.approx((0.2 + 0.4 + 0.7) / 3)
    assert found["auc"] == 0.5
    three = np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.5, 0.5, 0.0]])
    found = scores(three, np.array([0, 1, 0]))  # the third class is not there: no area
    assert found["auc"] == 1
    assert found["brier"] == pytest.approx((2 * 0.4**2 + 2 * 0.3**2 + 2 * 0.5**2) / 3)


def test_contenders_have_the_classes_that_they_take(benchmarks, tmp_path):
    command, bench = benchmarks("__main__"), benchmarks("tables.probabilities")
    for name in ("magic", "usps"):
        (tmp_path / f"{name}.parquet").touch()

    def jobs(*arguments: str) -> list[Any]:
        given = ["probabilities", "--data", str(tmp_path), *arguments]
        only = ("--only", "set=magic", "--only", "set=usps")
        return list(bench.jobs(command.parse([*given, *only])))

    both = {(Path(job.path).stem, job.contender): job.cap for job in jobs()}
    assert ("magic", "gramian logistic") in both
    assert ("usps", "gramian logistic") not in both
    assert ("usps", "gramian softmax") in both
    assert (both["usps", "svc"], both["usps", "gramian default"]) == (5_000, 20_000)
    (one,) = jobs("--quick")
    assert (one.contender, one.cap) == ("gramian default", 500)
    rows = [job.key | {"auc": 0.98761} for job in jobs("--only", "contender=svc")]
    rows[1] = {**jobs()[1].key, "failed": "time"}
    assert bench.side_by_side(rows, "auc")[0] == {"set": "magic", "svc": "0.9876"}
    assert "failed" in bench.side_by_side(rows, "auc")[1].values()


# --- losses --------------------------------------------------------------------------------------


def test_an_interior_point_finds_quantiles_with_a_bound(benchmarks):
    dense, losses = benchmarks("losses.dense"), benchmarks("losses.minima")
    rng = RandomStream(0)
    F = rng.standard_normal((60, 4), np.float64)
    y = F[:, 0] + rng.standard_normal(60, np.float64)
    found = dense.quantile(F, y, 0.3, 1e-3)
    loss = losses.Quantile(0.3)

    def value(b: np.ndarray) -> float:
        return float(loss.values(F @ b[:, None], y[:, None]).mean() + 1e-3 / 2 * np.square(b).sum())

    assert value(found.b) == pytest.approx(found.least, abs=1e-9)
    others = found.b + 1e-3 * rng.standard_normal((50, 4), np.float64)
    assert all(value(b) > value(found.b) for b in others)


def test_methods_reach_the_same_objective(benchmarks, tmp_path):
    minima, losses = benchmarks("losses.minima"), benchmarks("losses.losses")
    rng = np.random.default_rng(0)
    X, split = rng.uniform(-1, 1, (150, 2)), np.repeat([0, 1], [120, 30])
    target = (X[:, 0] + 0.3 * rng.standard_normal(150) > 0).astype(int)
    written(tmp_path / "magic.parquet", a=X[:, 0], b=X[:, 1], target=target, split=split)
    fit = next(fit for fit in minima.logistic(str(tmp_path), True) if fit.asked.penalty == 1e-3)
    rows = list(fit.measured({"gramian float32"}))
    assert {row["method"] for row in rows} >= {"gramian", "sklearn lbfgs", "dense Newton"}
    assert "gramian float32" not in {row["method"] for row in rows}
    (line,) = losses.side_by_side(rows, "above")
    assert all(float(line[name]) < 1e-6 for name in ("gramian", "sklearn lbfgs", "dense Newton"))
    (line,) = losses.side_by_side(rows, "steps")
    assert (line["set"], line["rows"], line["penalty"]) == ("magic", 120, "0.001")
    assert line["dense Newton"].endswith(" / 1")
    (line,) = losses.side_by_side(rows, "held")
    assert float(line["dense Newton"].split(" / ")[1]) < 0.3


def test_rows_that_cross_are_counted(benchmarks):
    crossed = benchmarks("losses.worth").crossed
    assert crossed(np.array([[0.0, 1, 2], [0, 2, 1], [1, 1, 1], [3, 2, 1]])) == 2


# --- many rows -----------------------------------------------------------------------------------


@pytest.fixture
def rows(benchmarks, tmp_path, monkeypatch) -> Any:
    """Return the benchmark; a folder with a set of two classes stands for all sets."""
    many = benchmarks("tables.many_rows")
    x = np.random.default_rng(0).uniform(-1, 1, 120)
    target, split = (x > 0).astype(int), np.repeat([0, 1], [90, 30])
    written(tmp_path / "magic.parquet", x=x, target=target, split=split)
    monkeypatch.setattr(many, "SETS", ("magic",))
    monkeypatch.setattr(many, "KEPT", tmp_path / "kept")
    return many


def test_rare_budgets_are_measured_only_by_name(benchmarks, rows, tmp_path):
    command, contenders = benchmarks("__main__"), benchmarks("tables.many_rows_contenders")

    def asked(*arguments: str) -> list[str]:
        options = command.parse(["many_rows", "--data", str(tmp_path), *arguments])
        return [job.contender for job in rows.jobs(options)]

    rare = [contenders.name_of(budget) for budget in contenders.ON_REQUEST]
    assert asked() == [name for name in contenders.MANY_ROWS if name not in rare]
    assert asked("--only", f"contender={rare[-1]}") == [rare[-1]]
    assert asked("--only", "set=pol") == []
    assert asked("--quick") == list(rows.QUICK["contender"])
    options = command.parse(["many_rows", "--data", str(tmp_path), "--work", "there"])
    assert {job.kept for job in rows.jobs(options)} >= {"there/magic xgboost.npz"}
    assert {job.cap for job in rows.jobs(options)} == {None}


def test_one_model_takes_what_a_search_on_some_rows_chooses(benchmarks, rows, tmp_path):
    fit, contenders = benchmarks("tables.accuracy_fit"), benchmarks("tables.many_rows_contenders")
    table = benchmarks("tables.accuracy_sets").load(tmp_path / "magic.parquet", None)
    model = contenders.OneModel(True, 0, "falkon", 20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contenders, "CHOICE_ROWS", 45)
        patch.setattr(contenders, "CHOICE", 10**6)  # evaluations: the same at any speed
        model.fit(table.X, table.y)
        few = np.random.default_rng(0).permutation(90)[:45]
        search = contenders.searched(10**6)(True, 0).fit(table.X[few], table.y[few])
    chosen = search.best_params_
    assert model.penalty == pytest.approx(chosen["penalty"] / 2)  # rows times penalty stays
    assert (model.kernel, model.lengthscale) == (chosen["kernel"], chosen["lengthscale"])
    assert len(model.landmark_index_) == 20
    assert fit.error(model.predict(table.X_test), table) < 0.2
    assert model.facts["end"] in ("converged", "no_progress")
    assert model.facts["residual"] < 0.01
    assert chosen["kernel"] in model.facts["chosen"]
    shares = model.predict_proba(table.X_test)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert shares.min() >= contenders.LEAST_SHARE / 2
    np.testing.assert_array_equal(shares.argmax(axis=1), model.predict(table.X_test))
    model.model = Namespace(decision_function=lambda X: X)
    codes = np.array([[1.0, -0.5, -0.5], [0.4, 0.2, -0.6]])
    expected = [[1, 0, 0], [0.6, 1.4 / 3, -0.2 / 3]]
    clipped = np.clip(expected, contenders.LEAST_SHARE, 1)
    np.testing.assert_allclose(model.predict_proba(codes), clipped / clipped.sum(1)[:, None])


def test_a_search_says_what_it_logs_as_a_warning(benchmarks):
    contenders = benchmarks("tables.many_rows_contenders")
    model = contenders.Search(False, 0, "1 s")
    X = np.random.default_rng(0).standard_normal((60, 2))
    logger = contenders.logging.getLogger("gramian")
    fit, handlers = model.model.fit, list(logger.handlers)

    def warn(X: np.ndarray, y: np.ndarray) -> Any:
        logger.warning("a cell is bad")
        return fit(X, y)

    model.model.fit = warn
    model.fit(X, X[:, 0])
    assert (model.facts["warnings"], model.facts["last warning"]) == (1, "a cell is bad")
    assert logger.handlers == handlers
    trials = [{"step": step, "seconds": s} for step, s in (("a", 1.0), ("b", 2.0), ("a", 0.5))]
    assert contenders.by_step(trials) == "a 1.5, b 2"


def test_no_class_is_held_back_whole_from_trees_that_stop(benchmarks, monkeypatch):
    contenders = benchmarks("tables.many_rows_contenders")
    y = np.repeat([0, 1, 2], [30, 29, 1])
    _, held = contenders.parts(y, 0)
    y[held[0]], y[-1] = 2, 1  # its only row would be held back
    seen = {}

    class Trees:
        best_iteration = 4

        def set_params(self, **given: Any) -> Any:
            return self

        def fit(self, X: np.ndarray, y: np.ndarray, **more: Any) -> None:
            seen["fit"], seen["held"] = y, more["eval_set"][0][1]

    monkeypatch.setattr(contenders, "xgboost", lambda labels, seed: Trees())
    model = contenders.StoppedXgboost(True, 0).fit(np.zeros((60, 1)), y)
    assert set(seen["fit"]) == {0, 1, 2}
    assert set(seen["held"]) <= {0, 1}
    assert len(seen["fit"]) + len(seen["held"]) == 60
    assert model.facts == {"trees": 5}


def test_kept_predictions_are_averaged(benchmarks, tmp_path):
    mean_of = benchmarks("tables.many_rows_means").mean_of
    rng = np.random.default_rng(0)
    truth, first, second = tmp_path / "truth.npz", tmp_path / "a.npz", tmp_path / "b.npz"
    y, noise = rng.standard_normal((2, 4000))
    np.savez(first, prediction=y + noise, truth=y)
    np.savez(second, prediction=y - 3 * noise, truth=y)
    found = mean_of(first, second)
    assert found["of ours"] == pytest.approx(0.75)
    assert found["chosen weight"] == pytest.approx(0, abs=1e-12)
    assert found["half and half"] == pytest.approx(np.sqrt((noise**2).mean()))
    classes = rng.integers(0, 3, 400)
    np.savez(truth, prediction=np.eye(3)[classes], truth=classes)
    np.savez(second, prediction=np.eye(3)[(classes + 1) % 3] * 1.1, truth=classes)
    wrong = mean_of(truth, second)
    assert (wrong["half and half"], wrong["chosen weight"], wrong["of ours"]) == (1.0, 0.0, 1.0)
    assert mean_of(truth, truth)["chosen weight"] == 0.0


def test_predictions_are_kept_and_reported(benchmarks, rows, results, tmp_path):
    fit = benchmarks("tables.accuracy_fit")
    kept = tmp_path / "kept"
    kept.mkdir()
    path, fits = str(tmp_path / "magic.parquet"), []
    for contender in ("gramian cv 60 s", "lightgbm_5000"):
        job = fit.Job(path, "mean", 0, None, str(rows.file_of(kept, "magic", contender)))
        fits.append(job.key | fit.fitted(job) | {"contender": contender})
    with np.load(kept / "magic lightgbm_5000.npz") as file:
        assert file["prediction"].shape == (30, 2)
    options = Namespace(**OPTIONS)
    tables = benchmarks("lib.tables").Tables("many_rows", rows.TITLES, rows.NOTES, options)
    tables.add(rows.FITS, *fits)
    rows.report(tables, kept)
    (mean,) = tables[rows.MEANS]
    assert mean["half and half"] == mean["ours"] == f"{fits[0]['error']:.4g}"
    rows.report(tables, tmp_path)  # predictions are gone
    assert tables[rows.MEANS] == [mean]
    (both,) = tables[rows.BOTH]
    assert both["gramian cv 60 s"].startswith(f"{fits[0]['error']:.4g} / ")


def test_what_was_asked_for_is_reached_in_time(rows):
    row = {"set": "beijing_pm25", "contender": "gramian cv 60 s", "error": 17.9, "cpu_s": 60.0}
    better = row | {"contender": "gramian cv 300 s", "error": 16.1, "cpu_s": 200.0}
    late = better | {"error": 16.0, "cpu_s": 300.0}
    trees = row | {"contender": "lightgbm_5000", "error": 15.0}
    first, second, third = rows.wanted([row, better, late, trees])
    assert (first["reached"], second["reached"]) == ("17.9", "16.1")
    assert second["by"] == "gramian cv 300 s"
    assert "reached" not in third


# --- the search ----------------------------------------------------------------------------------


def test_the_grid_finds_the_best_cell_and_counts_every_fit(benchmarks):
    grid = benchmarks("tables.search_grid")
    X = np.random.default_rng(0).standard_normal((80, 2)).astype(np.float32)
    table = benchmarks("tables.accuracy_sets").Table(X, X[:, 0].astype(float), X, X[:, 0], False)
    cut = grid.Cut.of(table, 0, quick=True)
    assert (cut.fit, len(cut.held_out().y_test)) == (64, 16)
    ((train, held),) = cut.splitter().split()
    np.testing.assert_array_equal(cut.table.X[held], cut.held_out().X_test)
    np.testing.assert_array_equal(cut.table.X[train], cut.held_out().X)
    found = grid.grid(cut, 0)
    cells = len(grid.KERNELS) * len(grid.MULTIPLES) * len(grid.PENALTIES)
    one = grid.plain(False, 0, lengthscale=1.0, penalty=1e-3).fit(X[:64], X[:64, 0])
    each = one.history_[-1]["kernel_evaluations"]
    assert found.evaluations == cells * (each + 16 * 64)
    assert found.settings["kernel"] == "gaussian"  # the smoothest, for a linear function
    assert found.error < 0.01


def test_columns_of_noise_are_permuted_columns(benchmarks):
    sets, fits = benchmarks("tables.accuracy_sets"), benchmarks("tables.search_fits")
    X = np.random.default_rng(0).standard_normal((200, 3)).astype(np.float32)
    table = fits.with_noise(sets.Table(X[:150], X[:150, 0], X[150:], X[150:, 0], False), 0)
    np.testing.assert_array_equal(table.X[:, :3], X[:150])
    np.testing.assert_array_equal(np.sort(table.X[:, 3:], axis=0), np.sort(X[:150], axis=0))
    np.testing.assert_array_equal(np.sort(table.X_test[:, 3:], axis=0), np.sort(X[150:], axis=0))
    assert np.abs(np.corrcoef(table.X.T)[:3, 3:]).max() < 0.3


def test_odd_tables_are_odd(benchmarks):
    odd = benchmarks("tables.search_odd")
    tables = {name: odd.odd(name, False, 0) for name in odd.TABLES}
    assert all(np.isfinite(table.X).all() for table in tables.values())
    assert len(tables["30 rows"].X) == 30
    assert tables["one feature"].X.shape[1] == 1
    assert np.ptp(tables["constant columns"].X, axis=0).tolist()[1:4] == [0, 0, 0]
    assert set(np.unique(tables["one-hot only"].X)) == {0, 1}
    assert np.ptp(tables["constant target"].y) == 0
    near = tables["near-duplicates"].X
    assert len(np.unique(near.round(4), axis=0)) < 0.2 * len(near)
    assert odd.odd("heavy tails", True, 0).y.mean() == pytest.approx(0.5, abs=0.05)


def test_searches_are_summed_up(benchmarks):
    search = benchmarks("tables.search")
    rows = [{"budget": 2.0, "of the budget": share} for share in (0.5, 1.05, 1.2)]
    (kept,) = search.kept(rows)
    assert (kept["searches"], kept["within 1.1"], kept["most, of the budget"]) == (3, 2, 1.2)
    rows = [{"set": "pol", "error": e, "chosen": c} for e, c in ((1.0, "a"), (3.0, "b"))]
    (spread,) = search.spread(rows)
    assert (spread["mean"], spread["deviation, %"], spread["different choices"]) == (2.0, 50.0, 2)


# --- the folders ---------------------------------------------------------------------------------


def test_every_benchmark_is_listed_and_can_be_run(benchmarks, capsys):
    command = benchmarks("__main__")
    with pytest.raises(SystemExit, match="0"):
        command.parse(["--help"])
    listing = capsys.readouterr().out
    for group, names in command.GROUPS.items():
        assert f"\n{group}:\n" in listing
        for name in names:
            assert f"\n  {name} " in listing
            tree = ast.parse((ROOT / "benchmarks" / group / f"{name}.py").read_text())
            assert ast.get_docstring(tree)
            functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
            assert "main" in functions
    with pytest.raises(SystemExit, match="2"):
        command.parse(["no_such_benchmark"])
    assert "no benchmark no_such_benchmark" in capsys.readouterr().err


def test_a_folder_of_benchmarks_imports_itself_and_lib_only(benchmarks):
    command = benchmarks("__main__")
    for path in (ROOT / "benchmarks").glob("*/*.py"):
        above = {"lib"} if path.parent.name != "lib" else set()
        if path.parent.name == "papers":  # it calls what other benchmarks measure
            above.add("landmarks")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                top = (node.module or "").split(".")[0]
                assert node.level == 1 or top in above, (path, ast.unparse(node))
    assert set(command.GROUPS) | {"lib", "papers", "results", "__pycache__"} >= {
        path.name for path in (ROOT / "benchmarks").iterdir() if path.is_dir()
    }
