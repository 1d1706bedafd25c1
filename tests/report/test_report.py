"""`write_report` in Python: its numbers have closed forms, or are scikit-learn's."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.inspection import partial_dependence
from sklearn.metrics import average_precision_score, roc_auc_score

from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeCV
from gramian.data import as_table
from gramian.report import pictures, write_report
from gramian.report.class_curves import ClassCurve, GroupErrors, curves_of, group_columns
from gramian.report.dependence import Dependence
from gramian.report.drawing import as_image, legend_above
from gramian.report.explained_rows import ExplainedRow
from gramian.scoring.predictions import Predictions
from gramian.scoring.table import METRIC_TABLE
from gramian.scoring.truth import truth_of

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any

SETTINGS = {"engine": "auto", "memory_bytes": 10**8}
KERNEL = {"kernel": "gaussian", "lengthscale": 1.0, "penalty": 1e-3, "landmarks": None}


def made_table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.integers(0, 3, n).astype(float)})
    table["kind"] = rng.choice(["oak", "elm"], n, p=[0.7, 0.3])
    table["y"] = np.sin(table["a"]) + table["b"] + (table["kind"] == "oak")
    return table


class TestDependence:
    def of(self, model, table, column, shown=(0,)) -> Dependence:
        truth = truth_of(model.model_, "model", table, None)
        return Dependence.of(
            model.model_, truth, column, np.arange(len(table)), list(shown), SETTINGS
        )

    @pytest.mark.parametrize("column", ["a", "b"])
    def test_of_numbers_is_that_of_scikit_learn(self, column):
        table = made_table(80).drop(columns="kind")
        model = KernelRidge(**KERNEL).fit(table, "y")
        curve = self.of(model, table, column)
        expected = partial_dependence(
            model, table[["a", "b"]], [column], custom_values={column: np.array(curve.values)},
            kind="average", method="brute",
        )  # fmt: skip
        np.testing.assert_allclose(curve.means[:, 0], expected["average"][0], rtol=1e-5)
        assert curve.values == sorted(curve.values)
        assert len(curve.values) == (20 if column == "a" else 3)

    def test_of_classes_are_mean_probabilities(self):
        table = made_table(90)
        table["y"] = np.digitize(table["y"], [1, 2]).astype(str)
        model = KernelRidgeClassifier(**KERNEL).fit(table, "y")
        curve = self.of(model, table, "kind", (0, 2))
        assert (curve.values, curve.is_category) == (["oak", "elm"], True)
        expected = [
            model.predict_proba(table.assign(kind=kind)).mean(axis=0)[[0, 2]]
            for kind in ("oak", "elm")
        ]
        np.testing.assert_allclose(curve.means, expected, rtol=1e-6)

    def test_of_dates_times_and_gaps(self):
        rng, n = np.random.default_rng(1), 60
        table = pa.table({
            "time": [dt.time(int(h), 30) for h in rng.integers(0, 24, n)],
            "wait": [None if k % 9 == 0 else dt.timedelta(hours=k) for k in range(n)],
            "price": [Decimal(k) / 100 for k in range(n)],
            "day": [dt.date(2020, 1, 1) + dt.timedelta(days=k) for k in range(n)],
            "one": pa.array(["same"] * n),
            "y": rng.normal(size=n),
        })  # fmt: skip
        model = KernelRidge(**KERNEL).fit(table, "y", columns=["time", "wait", "price", "day"])
        labels = {k: self.of(model, table, k).label for k in ("time", "wait", "price", "day")}
        assert labels == {
            "time": "time in hours", "wait": "wait in hours", "price": "price", "day": "day"
        }  # fmt: skip
        assert self.of(model, table, "wait").values[0] >= 1
        assert all(v % 1 == 0.5 for v in self.of(model, table, "time").values)

    def test_a_column_of_one_value_has_none(self):
        table = made_table(50).assign(b=1.0)
        model = KernelRidge(**KERNEL).fit(made_table(50), "y")
        assert self.of(model, table, "b") is None


class TestCurves:
    def test_they_follow_their_definitions(self):
        rng = np.random.default_rng(0)
        is_class, chance = rng.random(200) < 0.3, rng.random(200).round(1)
        curve = ClassCurve.of("x", is_class, chance)
        assert curve.area == pytest.approx(roc_auc_score(is_class, chance))
        assert np.trapezoid(curve.roc[1], curve.roc[0]) == pytest.approx(curve.area)
        assert curve.average_precision == pytest.approx(average_precision_score(is_class, chance))
        best = chance == chance.max()
        share, lift = (part[0] for part in curve.lift)
        assert share == pytest.approx(best.mean())
        assert lift == pytest.approx(is_class[best].mean() / is_class.mean())
        assert (curve.lift[0][-1], curve.lift[1][-1]) == (1, pytest.approx(1))

    @pytest.mark.parametrize(
        ("k", "shown"), [(2, ["0", "1"]), (3, ["0", "1", "2"]), (9, list("45678"))]
    )
    def test_both_of_two_classes_and_the_largest_of_many(self, k, shown):
        y = np.repeat(np.arange(k), np.arange(k) + 2)
        chances = np.full((len(y), k), 1 / k)
        curves = curves_of(Predictions(y, y, classes=tuple(range(k)), chances=chances))
        assert [curve.label for curve in curves] == shown
        assert all(len(curve.roc[0]) <= 400 for curve in curves)

    def test_a_class_without_rows_has_no_curve(self):
        y = np.array([0, 0, 1])
        answers = Predictions(y, y, classes=(0, 1, 2), chances=np.full((3, 3), 1 / 3))
        assert [curve.label for curve in curves_of(answers)] == ["0", "1"]


def drawn(draw) -> Axes:
    """Return axes after `draw` has drawn on them as on the page."""
    shown = []
    as_image(lambda ax: (draw(ax), shown.append(ax)), 3.0)
    return shown[0]


class TestPictures:
    def test_labels_of_contributions_do_not_meet_the_names_of_columns(self):
        values = {"a = 1": -60_000.0, "b = 2": 41_000.0, "c = 3": -100.0}
        row = ExplainedRow("t", 0, 1.0, 0.0, 0.0, "y", values, [])
        texts = drawn(lambda ax: pictures.contributions(ax, None, row)).texts
        assert [text.get_text() for text in texts] == ["-60,000", "41,000", "-100"]
        assert [text.xy[0] for text in texts] == [0, 41_000, 0]

    @pytest.mark.parametrize(
        ("names", "columns"), [("abc", 3), (["a long name of a class"] * 3, 1)]
    )
    def test_long_names_of_a_legend_are_below_each_other(self, names, columns):
        def draw(ax: Axes) -> None:
            for name in names:
                ax.plot([0, 1], label=name)
            legend_above(ax)

        assert drawn(draw).get_legend()._ncols == columns

    def test_large_numbers_of_axes_have_commas(self):
        ax = drawn(lambda ax: ax.plot([0, 2000], [0, 500_000]))
        ax.figure.canvas.draw()
        assert "500,000" in [text.get_text() for text in ax.get_yticklabels()]
        assert "2000" in [text.get_text() for text in ax.get_xticklabels()]


class TestGroups:
    def test_errors_are_those_of_the_rows(self):
        table = made_table(200).assign(kind=[*"abcdefghij"] * 20)
        table.loc[:39, "kind"] = None
        y = np.asarray(table["y"])
        groups = GroupErrors.of("kind", as_table(table), Predictions(y, y + 1), METRIC_TABLE["mae"])
        assert groups.names == ["missing", *"abcdefg", "others"]
        assert groups.rows == [40, *[16] * 7, 48]
        assert groups.values == pytest.approx([1] * 9)
        assert sorted(np.concatenate(groups.indices)) == list(range(200))

    @pytest.mark.parametrize("classes", [["oak", "elm"], None], ids=["classes", "numbers"])
    def test_label_of_the_axis_is_within_the_picture_next_to_long_names(self, classes):
        group = GroupErrors("pay", ["Credit card (automatic)"], [np.arange(3)], [0.2])
        study: Any = SimpleNamespace(
            classes=classes,
            errors={"error": 0.2},
            metric="error",
            title="share of wrong labels",
            residuals=np.arange(3.0),
        )
        ax = drawn(lambda ax: pictures.group_errors(ax, study, group))
        canvas = FigureCanvasAgg(ax.figure)
        canvas.draw()
        label = ax.xaxis.label.get_window_extent(canvas.get_renderer())
        assert 0 <= label.x0 < label.x1 <= ax.figure.bbox.width

    def test_columns_are_categories_or_the_one_that_is_named(self):
        table = as_table(made_table(20))
        assert group_columns(table, ["a", "kind", "b", "gone"], None) == ["kind"]
        assert group_columns(table, [], "b") == ["b"]
        with pytest.raises(ValueError, match="groups must be a column of the table, not 'knd'"):
            group_columns(table, [], "knd")


class TestRowsOfTheTraining:
    @pytest.fixture(autouse=True)
    def _few_studies(self, monkeypatch):
        monkeypatch.setattr("gramian.report.write.fill_template", lambda study: "")
        monkeypatch.setattr("gramian.report.write.numbers_of", lambda study: {
            "remark": study.training_warning
        })  # fmt: skip

    def remark(self, model, table, tmp_path, **more):
        return write_report(model, table, tmp_path / "page.html", **more)["remark"]

    @pytest.mark.parametrize("more", [{}, {"metric": "learned"}, {"landmarks": 40}], ids=str)
    def test_centers_are_recognised(self, more, tmp_path):
        train, test = made_table(150), made_table(150, 1)
        model = KernelRidge(**{**KERNEL, **more}, random_state=0).fit(train, "y")
        assert self.remark(model, test, tmp_path) is None
        assert "centers of the model" in self.remark(model, train, tmp_path)
        half = pd.concat([train[:75], test[:75]])
        assert "centers of the model" in self.remark(model, half, tmp_path)

    def test_rows_of_the_training_table_are_counted(self, tmp_path):
        train, test = made_table(150), made_table(150, 1)
        model = KernelRidge(**KERNEL).fit(train, "y")
        assert self.remark(model, test, tmp_path, train=train) is None
        both = pd.concat([train[:10], test])
        remark = self.remark(model, both, tmp_path, train=train)
        assert remark.startswith("10 of 160 rows are also rows of the training table")

    def test_equal_rows_are_no_evidence(self, tmp_path):
        train = made_table(150).drop(columns="a")
        model = KernelRidge(**KERNEL).fit(train, "y")
        assert self.remark(model, train, tmp_path) is None


class TestPage:
    @pytest.mark.parametrize("classes", [False, True])
    def test_of_an_estimator_and_a_frame(self, classes, tmp_path):
        train, test = made_table(150), made_table(60, 1)
        if classes:
            train, test = (t.assign(y=np.where(t["y"] > 1, "<high>", "low")) for t in (train, test))
        kind = KernelRidgeClassifier if classes else KernelRidge
        model = kind(**KERNEL, conformal="split", random_state=0).fit(train, "y")
        numbers = write_report(model, test, tmp_path / "page.html", train=train)
        text = (tmp_path / "page.html").read_text("utf-8")
        assert f"y, predicted by {kind.__name__}" in text
        assert "On 60 rows of the table" in text
        assert "<high>" not in text
        wrong = model.predict(test) != test["y"] if classes else model.predict(test) - test["y"]
        metric = "error" if classes else "rmse"
        expected = np.mean(wrong) if classes else np.sqrt(np.mean(np.square(wrong)))
        assert numbers[metric] == pytest.approx(expected)
        assert numbers["effective_dimension"] > 1
        assert set(numbers["groups"]["kind"]) == {"oak", "elm"}

    def test_of_a_search_and_of_rows_without_names(self, tmp_path):
        X = np.random.default_rng(0).normal(size=(90, 3))
        model = KernelRidgeCV(budget=2e4, random_state=0).fit(X[:60], X[:60, 0])
        table = pd.DataFrame(X[60:], columns=list("abc")).assign(y=X[60:, 0])
        numbers = write_report(model, table, tmp_path / "page.html", target="y")
        assert numbers["rmse"] == pytest.approx(
            np.sqrt(np.mean((model.predict(X[60:]) - X[60:, 0]) ** 2))
        )
        assert numbers["effective_dimension"] is not None
        assert b"image/svg" in (tmp_path / "page.html").read_bytes()

    def test_refusals(self, tmp_path):
        table = made_table(50)
        model = KernelRidge(**KERNEL).fit(table, "y")
        with pytest.raises(ValueError, match="out must be a file that ends in"):
            write_report(model, table, tmp_path / "page.pdf")
        with pytest.raises(ValueError, match="the table must have at least 20 rows"):
            write_report(model, table[:5], tmp_path / "page.html")
        two = KernelRidge(**KERNEL).fit(table.assign(z=table["y"] ** 2), ["y", "z"])
        with pytest.raises(ValueError, match="a report requires a model of one output"):
            write_report(two, table.assign(z=0.0), tmp_path / "page.html")
        array = KernelRidge(**KERNEL).fit(table[["a", "b"]].to_numpy(), table["y"])
        with pytest.raises(ValueError, match="does not record the name of its target; give target"):
            write_report(array, table[["a", "b", "y"]], tmp_path / "page.html")
