"""Ranks: areas under ROC curves and coverage by width, from bins of values."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn import metrics as sk

from gramian.scoring.cluster import _measure_ranks
from gramian.scoring.coverage import Covering
from gramian.scoring.ranks import ALL_BINS, Ranks
from gramian.scoring.table import METRIC_TABLE

RNG = np.random.default_rng(3)


def area(ranks: Ranks) -> float:
    return _measure_ranks(METRIC_TABLE["auc"], [ranks])


class TestRanks:
    def ranks(self, values, marked, most):
        """Merge those of parts, as on a cluster."""
        cuts = [0, 70, 71, 300, len(values)]
        parts = [
            Ranks.of(np.array(values[a:b]), np.array(marked[a:b]), most) for a, b in pairwise(cuts)
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
        assert (found.dropped, found.area_error) == (0, 0.0)
        assert area(found) == pytest.approx(sk.roc_auc_score(marked, values), rel=1e-13)

    @pytest.mark.parametrize("most", [2, 5, 40, 200])
    @pytest.mark.parametrize("offset", [0.0, -0.98, 1e6])
    def test_bins_bound_the_error(self, most, offset):
        marked = RNG.random(900) < 0.2
        values = offset + 0.01 * (RNG.standard_normal(900) + marked)
        found = self.ranks(values, marked, most)
        assert most / 4 < len(found.bins) <= most  # bits are dropped no further than is needed
        assert 0 < found.area_error < 4 / most
        assert abs(area(found) - sk.roc_auc_score(marked, values)) <= found.area_error
        assert int(found.counts.sum()) == 900

    @pytest.mark.parametrize("kind", [False, True])
    def test_one_kind_has_no_area(self, kind):
        assert not self.ranks(RNG.random(400), np.full(400, kind), 99).has_both

    def test_what_is_no_number_has_no_place(self):
        with pytest.raises(ValueError, match="predictions hold NaN"):
            self.ranks(np.append(RNG.random(400), np.nan), RNG.random(401) < 0.5, 99)

    @pytest.mark.parametrize("n", [1, 2, 7, 301])
    def test_shares_of_parts(self, n):
        values, marked = RNG.permutation(n) - 3.5, RNG.random(n) < 0.5
        found = Ranks.of(np.array(values), np.array(marked)).shares(3)
        thirds = [part for part in np.array_split(np.argsort(values), 3) if len(part)]
        assert found == pytest.approx([marked[part].mean() for part in thirds])

    def test_equal_values_go_to_both_sides_in_proportion(self):
        marked = np.array([True, False, True, False, True, True])
        found = Ranks.of(np.array([1.0, 2, 2, 2, 2, 3], dtype=np.float32), marked).shares(3)
        assert found == [pytest.approx((1 + 0.5) / 2), 0.5, pytest.approx((0.5 + 1) / 2)]


def test_thirds_by_bins_are_near_those_of_all_widths():
    y = np.array(RNG.standard_normal(20_000))
    half = np.array(RNG.gamma(2, 1, 20_000))
    ends = np.stack([-half, half], axis=1)
    exact, few = Covering(ALL_BINS)(0, ends, y), Covering(500)(0, ends, y)
    assert len(few[1].bins) <= 500
    assert few[1].shares(3) == pytest.approx(exact[1].shares(3), abs=3e-3)
    assert few[1].shares(3) != exact[1].shares(3)
