"""The pages of the papers are those of the committed records, and bounds are bounds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from benchmarks.lib import results
from benchmarks.papers import item, page, papers, rls
from benchmarks.papers.item import Outcome, Scale

from gramian._arrays import RandomStream
from gramian.landmarks import RecursiveRLS

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


@pytest.mark.parametrize("name", papers.ITEMS)
def test_the_page_is_written_from_the_records(name, monkeypatch, tmp_path):
    monkeypatch.setattr(page, "FOLDER", tmp_path)
    page.write_page(name, records(name))
    committed = (ROOT / "docs" / "papers" / f"{name}.md").read_text()
    written = (tmp_path / f"{name}.md").read_text()
    assert written.rsplit("Measured on", 1)[0] == committed.rsplit("Measured on", 1)[0]


@pytest.mark.parametrize("name", papers.ITEMS)
def test_the_files_of_a_page_exist(name):
    text = (ROOT / "docs" / "papers" / f"{name}.md").read_text()
    paths = re.findall(r"`(src/[^`]+)`", text)
    assert paths
    assert all((ROOT / path).exists() for path in paths)


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
