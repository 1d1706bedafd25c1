"""The pages of the papers are those of the committed records, and bounds are bounds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from benchmarks.full import full_generated, full_sets
from benchmarks.landmarks import flatness
from benchmarks.lib import results
from benchmarks.papers import item, page, papers, plot
from benchmarks.papers.item import Outcome, Scale
from benchmarks.papers.rls import figures as rls

import gramian
from gramian import approximations, landmarks, solvers
from gramian._arrays import RandomStream
from gramian.kernels import Gaussian
from gramian.landmarks import Landmarks, RecursiveRLS, Uniform
from gramian.operators import KernelOperator

ROOT = Path(__file__).parents[2]


def records(name: str) -> list[results.Row]:
    return results.read(f"papers_{name}")[papers.RECORDS]


@pytest.mark.parametrize("name", papers.ITEMS)
def test_each_item_has_a_record_with_a_verdict(name):
    rows = records(name)
    assert sorted(row["item"] for row in rows) == sorted(i.name for i in papers.ITEMS[name]())
    for row in rows:
        assert row["verdict"] in get_args(item.Verdict)
        assert row["why"] or row["verdict"] == "reproduced", row["item"]
        assert row["our value"] or row["verdict"] == "not possible", row["item"]


def test_there_are_at_least_sixty_items_in_all():
    assert sum(len(records(name)) for name in papers.ITEMS) >= 60


@pytest.mark.parametrize("name", papers.ITEMS)
def test_each_claim_that_is_not_reproduced_has_an_item_that_tests_the_cause(name):
    rows = records(name)
    for row in rows:
        if row["verdict"] == "not reproduced":
            figure = row["item"].split(":")[0]
            causes = [other for other in rows if other["item"].startswith(f"{figure}: cause")]
            assert "explained" in [other["verdict"] for other in causes], row["item"]


@pytest.mark.parametrize("name", papers.ITEMS)
def test_items_that_the_paper_has_not_are_explanations_and_no_others_are(name):
    for row in records(name):
        ours = row["value of the paper"] == "not in the paper"
        assert ours == (row["verdict"] in ("explained", "not explained")), row["item"]


def test_a_cause_that_is_not_found_is_not_explained():
    verdicts = [item.judge_cause("1", found, "a", "b") for found in (True, False)]
    assert [(v.verdict, v.why) for v in verdicts] == [("explained", "a"), ("not explained", "b")]


def test_a_page_names_the_processor_of_each_measured_item():
    rows = [
        {"measured": "A, 2026-11-28", "CPU s": 1.0},
        {"measured": "B, 2026-11-29", "CPU s": 2.0},
        {"measured": "A, 2026-11-28", "CPU s": 0.1},
        {"measured": "C, 2026-11-30", "CPU s": 0.0},
    ]
    assert page.places_of(rows) == ["A, 2026-11-28 (2 items)", "B, 2026-11-29 (1 item)"]


@pytest.mark.parametrize("name", papers.ITEMS)
def test_the_page_is_written_from_the_records(name, monkeypatch, tmp_path):
    monkeypatch.setattr(page, "FOLDER", tmp_path)
    drawn = []
    monkeypatch.setattr(
        page, "draw", lambda record, folder: drawn.extend(dict(plot.pictures(record)))
    )
    page.write_page(name, records(name), results.read(f"papers_{name}")[papers.PLOTS])
    committed = (ROOT / "docs" / "papers" / f"{name}.md").read_text()
    written = (tmp_path / f"{name}.md").read_text()
    assert written.rsplit("Measured on", 1)[0] == committed.rsplit("Measured on", 1)[0]
    assert re.findall(r"\]\(plots/([^)]+)\)", committed) == drawn


@pytest.mark.parametrize("name", papers.ITEMS)
def test_the_plots_of_a_page_are_small_pictures_with_alternative_texts(name):
    text = (ROOT / "docs" / "papers" / f"{name}.md").read_text()
    found = re.findall(r"!\[([^]]*)\]\(([^)]+)\)", text)
    assert len(found) >= 5
    for alt, path in found:
        assert len(alt) > 20
        picture = (ROOT / "docs" / "papers" / path).read_text()
        assert "<svg" in picture
        assert len(picture) < 100_000


def test_each_plot_belongs_to_a_page():
    files = {path.name for path in (ROOT / "docs" / "papers" / "plots").iterdir()}
    texts = "".join(path.read_text() for path in (ROOT / "docs" / "papers").glob("*.md"))
    assert files == set(re.findall(r"\]\(plots/([^)]+)\)", texts))


@pytest.mark.parametrize("name", papers.ITEMS)
def test_the_files_that_a_page_links_to_exist(name):
    text = (ROOT / "docs" / "papers" / f"{name}.md").read_text()
    paths = re.findall(r"\]\(\.\./\.\./([^)]+)\)", text)
    assert len([path for path in paths if path.startswith("src/")]) >= 4
    assert any(path.startswith("benchmarks/results/") for path in paths)
    assert [path for path in paths if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("name", papers.ITEMS)
def test_the_departures_are_in_classes_that_exist(name):
    for _, owner in page.PAPERS[name].algorithms.values():
        modules = (gramian, approximations, landmarks, solvers)
        assert any(hasattr(module, owner) for module in modules), owner


def test_a_plot_has_the_same_bytes_each_time_and_few_points(tmp_path):
    points = [(i, i**2) for i in range(1, 1001)]
    panels = [
        plot.Panel("x", "y", {"a": points, "b (dotted)": points[:2]}, log="xy"),
        plot.Panel("x", "", {"c": [(0, 1), (0, 2), (0, 4)]}, ranges=True),
    ]
    record = plot.Plot("figure 1", "A parabola", panels).record("paper", "item")
    assert record["file"] == "paper_figure_1.svg"
    kept = record["panels"][0]["lines"]["a"]
    assert len(kept) <= plot.MOST_POINTS + 1
    assert kept[-1] == [1000, 1e6]
    files = [file for file, _ in plot.pictures(record)]
    assert files == ["paper_figure_1_1.svg", "paper_figure_1_2.svg"]
    drawn = []
    for folder in ("one", "two"):
        plot.draw(record, tmp_path / folder)
        drawn.append([(tmp_path / folder / file).read_bytes() for file in files])
    assert drawn[0] == drawn[1]
    assert b">a</text>" in drawn[0][0]


def test_each_panel_is_a_picture_of_its_own_two_of_which_fit_on_a_page(tmp_path):
    panels = [plot.Panel("x", "y", {"a": [(1, 1), (2, 4)]}, title=f"panel {i}") for i in range(3)]
    widths = {}
    for count in (1, 3):
        record = plot.Plot(f"figure {count}", "Lines", panels[:count]).record("paper", "item")
        plot.draw(record, tmp_path)
        for i, (file, alt) in enumerate(plot.pictures(record)):
            picture = (tmp_path / file).read_text()
            assert f">panel {i}</text>" in picture
            assert alt == ("Lines" if count == 1 else f"Lines: panel {i}")
            widths[count] = float(re.search('width="([0-9.]+)pt"', picture)[1])
    # 700 pixels are the text of a page in a window of 1,280.
    assert 2 * widths[3] * 96 / 72 < 700 < 2 * widths[1] * 96 / 72


def test_the_projection_cost_is_bounded_for_random_and_for_leading_subspaces():
    scale, k = Scale("", quick=True), 10
    epsilon = float(re.findall(r"epsilon ([\d.]+)", rls.projection_cost(scale).ours)[0])
    K, _ = rls.kernel_of_rows(scale, "nycflights", 1000)
    dense = K.dense()
    tail = np.linalg.eigvalsh(dense)[:-k].sum()
    worst = 0.0
    for seed in range(3):
        rng = RandomStream(seed)
        penalty = 0.5 * tail / k / len(dense)
        F = rls.features_of(K, RecursiveRLS(penalty=penalty).select(K, rng=rng).points)
        gap = dense - F @ F.T
        random = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(dense), k)))[0]
        for Q in (random, np.linalg.eigh(gap)[1][:, -k:], np.linalg.eigh(dense)[1][:, -k:]):
            cost = np.trace(dense) - np.trace(Q.T @ dense @ Q)
            kept = np.trace(F @ F.T) - np.trace(Q.T @ F @ F.T @ Q) + np.trace(gap)
            assert cost * (1 - 1e-9) <= kept <= (1 + epsilon + 5e-4) * cost
            worst = max(worst, kept / cost - 1)
    assert worst > 0.1 * epsilon


def test_a_quick_run_writes_nothing(monkeypatch, capsys):
    outcome = Outcome("1", "in kind", "a cause")
    monkeypatch.setitem(papers.ITEMS, "rls", lambda: [item.Item("one", "2", lambda _: outcome)])
    monkeypatch.setattr(results, "write", lambda *_, **__: pytest.fail("written"))
    monkeypatch.setattr(papers, "write_page", lambda *_: pytest.fail("written"))
    assert papers.main(["rls", "--quick"]) == 0
    assert "verdict=in kind" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        papers.main(["falcon"])


def test_norms_of_differences_are_the_largest_eigenvalues():
    X = np.random.default_rng(0).standard_normal((150, 3))
    K = KernelOperator(Gaussian(1.0), X, X)
    K = KernelOperator(K.kernel, K.rows, K.rows)
    residuals, expected = [], []
    for m in (10, 40):
        points = Uniform(m).select(K, rng=RandomStream(m)).points
        residuals.append(flatness.Residual.build(K, points))
        F = rls.features_of(K, points)
        expected.append(np.linalg.eigvalsh(K.dense() - F @ F.T)[-1])
    found = flatness.residual_norms(K, residuals, 30)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_unevenness_is_one_of_equal_scores_and_grows_with_their_spread():
    X = np.zeros((4, 1))
    # Landmarks drawn with probabilities p have the weights 1 / (n p).
    draws = np.random.default_rng(0).choice(2, 20_000, p=[0.75, 0.25])
    p = np.where(draws == 0, 0.75 / 50, 0.25 / 50)
    uneven = flatness.unevenness(Landmarks(X, 1 / (100 * p)))
    assert uneven == pytest.approx(100 * (50 * (0.75 / 50) ** 2 + 50 * (0.25 / 50) ** 2), rel=0.02)
    assert flatness.unevenness(Landmarks(X, np.ones(4))) == 1


def test_generated_rows_are_the_same_in_any_block_and_have_deviation_one():
    rows = full_generated.GeneratedRows(20_000, 3)
    whole = rows.take(np.arange(20_000))
    blocks = [block for _, block in rows.blocks(777)]
    np.testing.assert_array_equal(np.concatenate(blocks), whole)
    np.testing.assert_allclose(whole.mean(axis=0), 0, atol=0.03)
    np.testing.assert_allclose(np.cov(whole.T), np.eye(3), atol=0.03)
    later = full_generated.GeneratedRows(5, 3, 19_995)
    np.testing.assert_array_equal(later.take(np.arange(5)), whole[-5:])


def test_seconds_to_the_least_error_are_of_the_first_look_within_a_percent():
    looks = {"A": [(1, 2.0, 0.5), (2, 1.005, 5e-3)], "B": [(1, 1.5, 0.1), (3, 1.0, 0.05)], "C": []}
    keys = ("seconds", "error", "residual", "iteration")
    curves = [
        {"set": "x", "n": 9, "d": 1, "method": name,
         "curve": [dict(zip(keys, (*look, 4), strict=True)) for look in of]}
        for name, of in looks.items()
    ]  # fmt: skip
    lines = {row["method"]: row for row in full_sets.summary(curves)}
    assert [lines[name]["to the least error"] for name in looks] == [2, 3, "-"]
    assert [lines[name]["to residual 0.01"] for name in looks] == [2, "-", "-"]
    assert lines["B"]["last residual"] == "5.0e-02"
