"""The order of a search of many rows: a sample, cells, and the sample again where these lose."""

from __future__ import annotations

import pytest

from gramian.fitting import automatic

pytestmark = pytest.mark.usefixtures("unchecked")


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
