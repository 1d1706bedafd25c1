"""The functions that measure a GPU, at toy size in Triton's interpreter, so that they run there."""

from __future__ import annotations

import math
from argparse import Namespace
from pathlib import Path
from types import ModuleType

import pytest
import torch

from gramian.engines.triton_engine import is_installed
from gramian.operators import TritonEngine

pytestmark = pytest.mark.skipif(not is_installed(), reason="triton is not installed")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def gpu(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    from benchmarks.gpu import gpu

    return gpu


@pytest.mark.slow
def test_rates_and_errors_of_every_contender(gpu):
    table = gpu.rate_table(DEVICE, 50, 60, 1, dims=(9,))
    assert [(row["product"], row["t"]) for row in table] == [
        (product, t) for product in ("matvec", "normal", "symmetric") for t in (1, 10)
    ]
    for row in table:
        for name in gpu.contenders(DEVICE):
            assert row[name] > 0
            assert row[f"error {name}"] < 1e-5


def test_floors_are_known_for_the_cards_we_name(gpu):
    for flops in gpu.FLOPS_PER_CLOCK.values():
        assert list(flops) == list(gpu.PRECISIONS)
        assert flops["ieee"] < flops["3xtf32"] < flops["3xbf16"]


@pytest.mark.slow
def test_whole_fits_and_a_fit_in_less_memory(gpu):
    engine = TritonEngine(DEVICE, tuned=False)
    table = gpu.fit_table(engine, 1e-5, 20, passes=1)
    assert [row["fit"] for row in table] == ["FALKON", "ASkotch", "EigenPro 3"]
    for row in table:
        assert math.isfinite(row["RMSE"])
        assert row["seconds"] > 0
    whole, limited = gpu.limit_table(engine, 60, 4, 9, 100_000_000, 20)
    assert whole["distance of predictions"] == 0
    assert limited["distance of predictions"] < 1e-5


def test_without_a_card_it_says_so(gpu, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    gpu.main(Namespace(quick=True))
    assert "There is no GPU that torch could use" in capsys.readouterr().out
