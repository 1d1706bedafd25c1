"""`gramian report`: the numbers of the page are those of the estimator; it needs no network."""

from __future__ import annotations

import base64
import html.parser
import re
import shutil
import stat
import subprocess
import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gramian as library
from gramian.data import as_rows
from gramian.report.studies import landmark_numbers

pytest.importorskip("matplotlib")


def made_table(n, seed, labels=False, text=False):
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-3, 3, (2, n))
    y = 100 + 10 * np.sin(x) + 0.5 * z + rng.standard_normal(n)
    columns = {"x": x, "<z>": z, "y": np.where(y > 100, "high", "low") if labels else y}
    if text:
        columns["kind"] = rng.choice(["a", "b", "c"], n)
    return pa.table(columns)


@pytest.fixture
def files(tmp_path):
    """Write tables of a regression, and return their paths."""
    train, test = tmp_path / "train.parquet", tmp_path / "test.parquet"
    pq.write_table(made_table(300, 0), train)
    pq.write_table(made_table(150, 1), test)
    return train, test, tmp_path


@pytest.fixture
def fitted(files, gramian):
    """Return a function that fits a model to the training table."""
    train, _test, folder = files

    def fit(*more):
        out = folder / "y.model"
        given = "--lengthscale" in more
        kernel = ["--kernel", "gaussian", *(() if given else ("--lengthscale", "1"))]
        done = gramian("fit", train, "--target", "y", *kernel, "--penalty", "1e-4", *more,
                       "--out", out)  # fmt: skip
        assert done.code == 0, done.err
        return out

    return fit


def features(path):
    table = pq.read_table(path)
    return np.stack([table["x"], table["<z>"]], axis=1), np.asarray(table["y"])


def test_numbers_are_those_of_the_estimator(files, fitted, report):
    train, test, folder = files
    model, page = fitted("--landmarks", "50"), folder / "page.html"
    found = report("report", model, test, "--train", train, "--out", page)
    est = library.load(model)
    (X, y), (X_train, y_train) = features(test), features(train)
    predicted = est.predict(pq.read_table(test))
    assert found["rows"] == found["compared_on_rows"] == 150
    assert np.isclose(found["rmse"], np.sqrt(np.mean((predicted - y) ** 2)))
    assert np.isclose(found["rmse_there"], found["rmse"])
    assert np.isclose(found["rmse_of_mean"], np.sqrt(np.mean((y_train.mean() - y) ** 2)))
    assert np.isclose(found["rmse_of_constant_there"], found["rmse_of_mean"])
    linear = make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-3, 1e6, 19)))
    off = linear.fit(X_train, y_train).predict(X) - y
    assert np.isclose(found["rmse_of_linear_ridge"], np.sqrt(np.mean(off**2)))
    importances = dict(zip(["x", "<z>"], est.feature_importances_, strict=True))
    assert found["importances"] == pytest.approx(importances)
    rows = est.model_.prepare_rows(as_rows(X_train))
    dimension = library.effective_dimension(est.kernel_, rows, 1e-4, "exact")
    assert np.isclose(found["effective_dimension"], dimension)
    assert [row["landmarks"] for row in found["learning_curve"]] == [25, 50, 100]
    assert found["learning_curve"][-1]["rmse"] < found["rmse_of_linear_ridge"]
    text = page.read_text("utf-8")
    assert f"{found['rmse']:.5g}" in text
    bars = pictures_of(text)["Errors of the model, linear ridge and a constant"]
    assert f"{found['rmse_of_linear_ridge']:.5g}" in bars


@pytest.mark.slow  # several fits for each page
def test_learning_curve_is_of_direct_fits(files, fitted, report):
    train, test, folder = files
    model = fitted("--landmarks", "50")
    found = report("report", model, test, "--train", train, "--out", folder / "p.html")
    est = library.load(model)
    prepared = [est.model_.prepare_rows(as_rows(features(path)[0])) for path in (train, test)]
    rows, new = prepared
    least = min(row["rmse"] for row in found["learning_curve"])
    full = library.KernelRidge(est.kernel_, penalty=1e-4, landmarks=None, standardize=False)
    full.set_params(standardize_target=True).fit(rows, features(train)[1])
    exact = np.sqrt(np.mean((full.predict(new) - features(test)[1]) ** 2))
    assert least == pytest.approx(exact, rel=0.02)


@pytest.mark.slow  # several fits for each page
@pytest.mark.parametrize("landmarks", ["none", "50"])
def test_residual_of_the_training_is_small_if_solved_and_large_if_not(
    landmarks, files, fitted, report
):
    train, test, folder = files
    settings = ("--landmarks", landmarks, "--solver", "direct")
    solved = report("report", fitted(*settings), test, "--train", train, "--out", folder / "p.html")
    assert solved["rel_residual"] < 1e-8
    other = folder / "other.parquet"
    pq.write_table(made_table(300, 5), other)
    wrong = report("report", folder / "y.model", test, "--train", other, "--out", folder / "p.html")
    assert wrong["rel_residual"] > 0.01


@pytest.mark.slow
def test_residual_is_not_claimed_for_other_rows(files, fitted, report):
    train, test, folder = files
    out = folder / "p.html"
    found = report("report", fitted(), test, "--out", out)
    assert found["rel_residual"] is None
    assert found["compared_on_rows"] == 30  # a fifth: linear ridge learns from the others
    assert "give the training table (<code>--train</code>, in Python" in out.read_text("utf-8")
    model = fitted("--conformal", "split")
    found = report("report", model, test, "--train", train, "--out", out)
    assert found["rel_residual"] is None
    assert "the model was fitted to 240 rows, but the table has 300" in out.read_text("utf-8")
    assert found["intervals_of_0.9"]["coverage"] > 0.8


def test_page_is_one_file_that_asks_nobody(files, fitted, report):
    _train, test, folder = files
    page = folder / "page.html"
    report("report", fitted("--conformal", "split"), test, "--out", page)
    text = page.read_text("utf-8")
    assert "http" not in text
    assert "@import" not in text
    assert "<script" not in text
    loaded = re.findall(r'(?:src|href|url)\s*=?\s*[("\']+([^"\')]*)', text)
    assert all(address.startswith("data:image/svg+xml;base64,") for address in loaded)
    assert len(pictures_of(text)) == 14
    Closed().feed(text)


def pictures_of(text):
    """Return the names and the SVG of the pictures of a page."""
    pictures = {}
    for alt, data in re.findall(
        r'<img alt="([^"]+)" src="data:image/svg\+xml;base64,([^"]+)"', text
    ):
        svg = base64.b64decode(data).decode()
        assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
        loaded = re.findall(r'(?:href="|url\()([^")]*)', svg)
        assert all(address.startswith(("#", "data:image/png;base64,")) for address in loaded)
        pictures[alt] = svg
    return pictures


@pytest.mark.slow
def test_text_between_backticks_is_code(files, fitted, report):
    train, test, folder = files
    page = folder / "page.html"
    report("report", fitted(), test, "--train", train, "--out", page)
    text = page.read_text("utf-8")
    assert "`" not in text
    assert "<code>gramian fit --conformal split</code>" in text


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (1, [1]), (2, [1]), (8, [1, 2, 4]), (60, [7, 14, 28]), (199, [24, 48, 96]),
        (200, [25, 50, 100]), (10_000, [25, 50, 100, 200, 400, 800, 1600]),
    ],
)  # fmt: skip
def test_learning_curves_of_few_rows_have_three_points(rows, expected):
    assert landmark_numbers(rows) == expected


class Closed(html.parser.HTMLParser):
    """Fails if an element is closed that is not open."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.slow  # several fits for each page
def test_names_are_escaped_and_the_same_page_has_the_same_bytes(files, fitted, report):
    _train, test, folder = files
    model, page = fitted(), folder / "page.html"
    report("report", model, test, "--out", page)
    first = page.read_bytes()
    assert b"&lt;z&gt;" in first
    assert b"<z>" not in first
    page.chmod(0o600)
    report("report", model, test, "--out", page)
    assert page.read_bytes() == first
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert [path.name for path in folder.glob(".*")] == []


@pytest.mark.slow  # several fits for each page
def test_classes_and_text_columns(files, gramian, report):
    _train, _test, folder = files
    train, test, model = folder / "a.parquet", folder / "b.parquet", folder / "c.model"
    pq.write_table(made_table(300, 2, labels=True, text=True), train)
    pq.write_table(made_table(150, 3, labels=True, text=True), test)
    fit = gramian("fit", train, "--target", "y", "--kernel", "gaussian", "--solver", "direct",
                  "--conformal", "split", "--out", model)  # fmt: skip
    assert fit.code == 0, fit.err
    found = report("report", model, test, "--out", folder / "p.html", "--train", train)
    est = library.load(model)
    wrong = np.mean(est.predict(pq.read_table(test)) != np.asarray(pq.read_table(test)["y"]))
    assert found["error"] == pytest.approx(wrong)
    assert 0 < found["error_of_linear_ridge"] < found["error_of_majority"]
    assert found["sets_of_0.9"]["coverage"] > 0.8
    text = (folder / "p.html").read_text("utf-8")
    pictures = pictures_of(text)
    assert "probability of 'low'" in pictures["Reliability diagram"]
    assert f"low: area {found['auc']:.3f}" in pictures["ROC curve"]
    assert f"low: mean {found['average_precision']:.3f}" in pictures["Precision by recall"]
    assert {"Lift", "Errors by kind", "Partial dependence on kind"} <= set(pictures)
    truth, kinds = np.asarray(pq.read_table(test)["y"]), np.asarray(pq.read_table(test)["kind"])
    errors = {k: np.mean((est.predict(pq.read_table(test)) != truth)[kinds == k]) for k in "abc"}
    assert found["groups"]["kind"] == pytest.approx(errors)


def test_refusals_are_in_words_and_leave_no_page(files, fitted, gramian):
    train, test, folder = files
    model, page = fitted(), folder / "page.html"

    def refused(*arguments):
        done = gramian("report", model, *arguments)
        assert done.code == 2
        assert not page.exists()
        return done.err

    assert "--out must be a file that ends in .html, not" in refused(
        test, "--out", folder / "p.pdf"
    )
    assert "is a directory" in refused(test, "--out", folder)
    assert "price" in refused(test, "--out", page, "--target", "price")
    assert "--groups must be a column of" in refused(test, "--out", page, "--groups", "colour")
    few, flat = folder / "few.parquet", folder / "flat.parquet"
    pq.write_table(made_table(300, 0).slice(0, 10), few)
    assert "must have at least 20 rows for a report, not 10" in refused(few, "--out", page)
    table = made_table(50, 0)
    pq.write_table(table.set_column(2, "y", pa.array(np.full(50, 7.0))), flat)
    assert "all rows of" in refused(flat, "--out", page)
    assert (
        "would overwrite an input"
        in gramian("report", model, test, "--train", train, "--out", train).err
    )


@pytest.mark.parametrize("module", ["matplotlib.figure", "jinja2"])
def test_without_a_package_the_extra_is_named(module, files, fitted, gramian, monkeypatch):
    _train, test, folder = files
    model = fitted()
    monkeypatch.setitem(__import__("sys").modules, module, None)
    done = gramian("report", model, test, "--out", folder / "p.html")
    assert done.code == 2
    assert f"needs {module.split('.')[0]}" in done.err
    assert "pip install 'gramian[plots]'" in done.err


FRAME = """<iframe src="{page}" width="390" height="9000" onload="
  const shown = this.contentDocument, width = shown.documentElement.scrollWidth;
  const images = [...shown.images].filter(image => image.naturalWidth > 0).length;
  document.body.append(`width ${{width}}, pictures ${{images}}`);"></iframe>"""
"""A page at the width of a phone, with its width and the number of its pictures."""


@pytest.mark.slow  # a browser
def test_a_browser_shows_it_at_the_width_of_a_phone(files, fitted, report):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium here")
    _train, test, folder = files
    page, frame = folder / "page.html", folder / "frame.html"
    report("report", fitted("--conformal", "split"), test, "--out", page)
    frame.write_text(FRAME.format(page=page.as_uri()), "utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--allow-file-access-from-files", "--virtual-time-budget=5000", frame.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0
    assert f"width 390, pictures {page.read_text('utf-8').count('<img')}" in done.stdout
