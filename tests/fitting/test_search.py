"""The order of a search of many rows: a sample, cells, and the sample again where these lose."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from gramian.fitting.search import fit as automatic
from gramian.fitting.search import larger_fit


class Told:
    """A search that says which steps it makes."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def sampled_steps(self):
        yield "screen"

    def whole_steps(self):
        yield "fit"

    def steps(self):
        yield "cells"


@pytest.mark.parametrize("wins", [True, False])
def test_the_sample_is_fitted_whole_where_cells_are_no_better(wins, monkeypatch):
    monkeypatch.setattr(automatic, "members_of_cells", lambda _: ["a member"] if wins else [])
    found = list(automatic._by_cells(Told(), Told()))
    assert found == ["screen", "cells"] + ([] if wins else ["fit"])


@pytest.mark.parametrize(("loss", "count"), [(0.9, 1), (1.0, 0), (float("nan"), 0)])
def test_cells_are_taken_where_their_error_is_below_that_of_the_sample(loss, count, monkeypatch):
    for name in ("importances", "CellCenters"):
        monkeypatch.setattr(larger_fit, name, lambda *_: None)
    by_cells = MagicMock(models=[MagicMock()], weights=[1.0])
    by_cells.squared_error.return_value, by_cells.search.best_stem.return_value.loss = loss, 1.0
    assert len(larger_fit.members_of_cells(by_cells)) == count
