"""Which rows a fit learns from: those held out, folds of splitters and of pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import ArrayRows, as_rows, open_rows
from gramian.fitting import FitSettings, TrainingData
from gramian.fitting.held_out import splits
from gramian.fitting.held_out.folds import share
from gramian.fitting.held_out.validation import divide
from gramian.fitting.inputs.training_data import classes_of, coded_data
from gramian.fitting.plans import solver_choice
from gramian.fitting.settings.generators import Generators

N = 40
X = np.random.default_rng(0).standard_normal((N, 2))
Y = X[:, 0] + 1
LABELS = np.array(["a", "b", "c", "c"])[np.arange(N) % 4]

GIVEN: dict[str, Any] = {
    "kernel": "gaussian",
    "lengthscale": "median",
    "penalty": 1e-4,
    "landmarks": 20,
    "standardize": True,
    "standardize_target": None,
    "cv": None,
    "solver": "auto",
    "max_iter": 100,
    "tol": 1e-8,
    "engine": "torch",
    "memory_limit": None,
    "callbacks": (),
    "warm_start": False,
    "centers_file": None,
    "early_stopping": True,
    "validation_fraction": 0.1,
    "patience": 5,
    "time_limit": None,
}


def settings(**changes: Any) -> FitSettings:
    return FitSettings(**(GIVEN | changes))


def path(cv: Any, **changes: Any) -> FitSettings:
    given = {"penalty": "auto", "landmarks": "bless_r", "early_stopping": False}
    return settings(**(given | changes), cv=cv)


def data(**changes: Any) -> TrainingData:
    return replace(TrainingData(as_rows(X), Y[:, None]), **changes)


def generators(seed: int = 0, folds: bool = True) -> Generators:
    return Generators.from_random_state(np.random.RandomState(seed), folds=folds)


def rng(seed: int = 0) -> RandomStream:
    return RandomStream(seed)


class TestShare:
    @pytest.mark.parametrize(("n", "fraction", "count"), [(40, 0.1, 4), (2, 0.1, 1), (5, 0.99, 4)])
    def test_so_many_rows_and_one_stays(self, n, fraction, count):
        for seed in range(20):
            held = share(n, fraction, rng(seed), None)
            assert len(held) == count
            assert bool((xp.diff(held) > 0).all())
            assert 0 <= int(held[0]) <= int(held[-1]) < n

    def test_every_row_has_its_turn(self):
        often = xp.bincount(np.concatenate([share(20, 0.25, rng(seed)) for seed in range(400)]))
        assert 60 < int(often.min()) <= int(often.max()) < 140

    def test_classes_keep_their_shares(self):
        classes = np.array([0] * 60 + [1] * 30 + [2] * 10)
        for seed in range(20):
            counts = xp.bincount(classes[share(100, 0.2, rng(seed), classes)], minlength=3)
            assert np.abs(counts - np.array([12, 6, 2])).max() <= 1

    def test_no_class_is_held_out_whole(self):
        classes = np.array([0] * 8 + [1, 2])
        for seed in range(50):
            held = share(10, 0.5, rng(seed), classes)
            assert 3 <= len(held) <= 5
            assert classes[held].max() == 0


class TestHeldOut:
    def test_the_parts_are_all_rows(self):
        parts = divide(settings(validation_fraction=0.25), data(), generators())
        assert parts.held_out is not None
        held, index = parts.held_out.data, parts.held_out.index
        assert (len(held.rows), len(parts.train.rows)) == (10, 30)
        np.testing.assert_array_equal(held.rows.take(np.arange(10)), X[index])
        assert np.array_equal(held.targets[:, 0], Y[index])
        together = xp.sort(np.concatenate([held.targets, parts.train.targets]), axis=0)
        assert np.array_equal(together[:, 0], np.sort(Y))

    def test_weights_go_with_their_rows_and_those_of_zero_are_in_neither(self):
        weights = xp.to_float64(np.arange(N)) - 9
        weights[:10] = 0
        parts = divide(settings(validation_fraction=0.2), data(weights=weights), generators())
        assert parts.held_out is not None
        held = parts.held_out
        assert held.data.weights is not None
        assert parts.train.weights is not None
        assert (len(held.data.weights), len(parts.train.weights)) == (6, 24)
        assert np.array_equal(held.data.weights, weights[10:][held.index])
        assert float(parts.train.weights.min()) > 0

    def test_each_class_has_its_share(self):
        coded = coded_data(as_rows(X), LABELS, classes_of(LABELS))
        parts = divide(settings(validation_fraction=0.2), coded, generators())
        assert parts.held_out is not None
        counts = np.unique(LABELS[parts.held_out.index], return_counts=True)[1]
        assert counts.tolist() == [2, 2, 4]

    def test_the_draws_of_others_are_what_they_were(self):
        one, two = generators(3, folds=False), generators(3)
        for name in ("kernel", "landmarks", "solver"):
            assert getattr(one, name).seed == getattr(two, name).seed
        assert one.held_out is None
        assert one.encoding is None
        with pytest.raises(ValueError, match="early stopping needs a random generator"):
            divide(settings(), data(), one)

    def test_small_parts_of_a_file_are_kept_in_memory(self, tmp_path, monkeypatch):
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), tmp_path / "x.parquet")
        streamed = data(rows=open_rows(tmp_path / "x.parquet"))
        parts = divide(settings(), streamed, generators())
        assert parts.held_out is not None
        assert isinstance(parts.held_out.data.rows, ArrayRows)
        assert not parts.train.rows.random_access
        np.testing.assert_array_equal(
            parts.held_out.data.rows.take(np.arange(4)), X[parts.held_out.index]
        )
        for most, limit in ((0, None), (1 << 20, 64)):
            monkeypatch.setattr("gramian.fitting.held_out.validation.HELD_BYTES", most)
            again = divide(settings(memory_limit=limit), streamed, generators()).held_out
            assert again is not None
            assert not again.data.rows.random_access

    def test_too_few_rows(self):
        with pytest.raises(ValueError, match="holds out rows, but 1 rows are too few"):
            divide(
                settings(), TrainingData(as_rows(X[:1]), np.ones((1, 1), np.float32)), generators()
            )


class TestSplitters:
    @pytest.mark.parametrize(
        "cv",
        [
            KFold(4),
            KFold(3, shuffle=True, random_state=0),
            RepeatedKFold(n_splits=2, n_repeats=2, random_state=0),
            ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=0),
            TimeSeriesSplit(4),
        ],
        ids=lambda cv: type(cv).__name__,
    )
    def test_folds_are_those_of_scikit_learn(self, cv):
        folds = divide(path(cv), data(), generators()).folds
        assert folds is not None
        for fold, (train, test) in zip(folds, cv.split(X), strict=True):
            assert fold.validation.tolist() == sorted(test.tolist())
            assert fold.train.tolist() == sorted(train.tolist())

    def test_classes_are_told(self):
        coded = coded_data(as_rows(X), LABELS, classes_of(LABELS))
        folds = divide(path(StratifiedKFold(2)), coded, generators()).folds
        expected = list(StratifiedKFold(2).split(X, LABELS))
        assert folds is not None
        assert [f.validation.tolist() for f in folds] == [test.tolist() for _, test in expected]

    @pytest.mark.parametrize("form", [list, tuple, iter])
    def test_pairs(self, form):
        groups = np.arange(N) // 10
        pairs = list(GroupKFold(4).split(X, Y, groups))
        folds = divide(path(form(pairs)), data(), generators()).folds
        assert folds is not None
        assert [f.validation.tolist() for f in folds] == [test.tolist() for _, test in pairs]

    def test_a_splitter_splits_what_is_there(self):
        weights = xp.to_float64(np.ones(N, np.float32))
        weights[:10] = 0
        given = path(KFold(3), early_stopping=True, validation_fraction=0.2)
        folds = divide(given, data(weights=weights), generators()).folds
        assert folds is not None
        assert np.concatenate([fold.validation for fold in folds]).tolist() == list(range(24))

    def test_numbers_of_pairs_are_those_of_all_rows(self):
        weights = np.ones(N, np.float32)
        weights[:10] = 0
        pairs = [(list(range(25)), list(range(25, 40))), (list(range(20, 40)), list(range(20)))]
        given = path(pairs, early_stopping=True, validation_fraction=0.2)
        parts = divide(given, data(weights=xp.to_float64(weights)), generators())
        assert parts.held_out is not None
        assert parts.folds is not None
        held = {10 + int(i) for i in parts.held_out.index}
        stays = [i for i in range(10, N) if i not in held]
        for fold, (train, test) in zip(parts.folds, pairs, strict=True):
            assert [stays[i] for i in fold.validation] == [i for i in test if i in stays]
            assert [stays[i] for i in fold.train] == [i for i in stays if i in train]

    @pytest.mark.parametrize(
        ("cv", "fits"),
        [
            (None, 0.8),
            (5, 4.0),
            (KFold(7), 7.0),
            (TimeSeriesSplit(3), 3.0),
            ([(range(10), range(10, 20)), (range(20), range(20, 40))], 0.75),
        ],
    )
    def test_a_plan_knows_the_number_of_fits(self, cv, fits):
        given = path(cv if not isinstance(cv, list) else [tuple(map(list, p)) for p in cv])
        assert solver_choice.fits_per_level(given, N) == pytest.approx(fits)
        assert solver_choice.solver_and_size(given, as_rows(X), 1)[1].fits == pytest.approx(fits)

    def test_a_given_penalty_needs_no_folds(self):
        assert divide(settings(cv=KFold(900)), data(), generators()).folds is None

    @pytest.mark.parametrize(
        ("cv", "message"),
        [
            ([([0], [])], "split 0 of cv: rows to test on are missing"),
            ([([0], [1]), ([], [1])], "split 1 of cv: rows to train on are missing"),
            ([([0, 40], [1])], "train on must be between 0 and 39, not 40"),
            ([([0], [-1])], "test on must be between 0 and 39, not -1"),
            ([([0, 3, 3], [1])], "train on contain row 3 twice"),
            ([([0.5], [1])], "train on must be a list of row numbers, not"),
            ([([True, False], [1])], "train on must be a list of row numbers, not"),
            ([([0], [[1]])], "test on must be a list of row numbers"),
            ([(["a"], [1])], "train on must be row numbers, not"),
            (KFold(41), r"cv=KFold\(.*cannot split these rows: .*41"),
            (GroupKFold(3), "cannot split these rows: .*if the splitter needs groups"),
            (StratifiedKFold(3), "cannot split these rows: .*'continuous'"),
        ],
        ids=str,
    )
    def test_what_is_no_split_is_refused(self, cv, message):
        with pytest.raises(ValueError, match=message):
            divide(path(cv), data(), generators())

    def test_a_plan_of_unknown_groups_is_refused(self):
        with pytest.raises(ValueError, match="if the splitter needs groups, give its pairs"):
            solver_choice.fits_per_level(path(LeaveOneGroupOut()), N)

    def test_a_splitter_without_splits(self):
        class Empty:
            def split(self, X: Any, y: Any = None) -> Any:
                return iter(())

            def get_n_splits(self, X: Any = None) -> int:
                return 0

        with pytest.raises(ValueError, match="must yield at least one split"):
            splits.folds_of(Empty(), data())

    @pytest.mark.parametrize("part", ["train", "test"])
    def test_a_split_of_rows_that_have_no_weight(self, part):
        weights = xp.to_float64(np.ones(N, np.float32))
        weights[:10] = 0
        pair = (list(range(10)), list(range(10, 40)))
        cv = [pair if part == "train" else pair[::-1]]
        with pytest.raises(
            ValueError,
            match=f"split 0 of cv has no row to {part} on: all its rows have weight zero",
        ):
            divide(path(cv), data(weights=weights), generators())

    @pytest.mark.parametrize("cv", [0, 1, 2.5, True, "five", [1, 2], [], [(1, 2, 3)], iter(())])
    def test_what_is_no_cv_is_refused_at_once(self, cv):
        with pytest.raises(
            ValueError, match="cv must be None, a number of folds of at least 2, a sp"
        ):
            path(cv)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"early_stopping": "auto"}, "early_stopping must be True or False, not 'auto'"),
        ({"validation_fraction": 0}, "validation_fraction must be between 0 and 1, not 0"),
        ({"validation_fraction": 1.0}, "validation_fraction must be between 0 and 1"),
        ({"validation_fraction": None}, "validation_fraction must be between 0 and 1, not None"),
        ({"patience": 0}, "patience must be a whole number of at least 1"),
        ({"time_limit": 0}, "time_limit must be positive and finite, not 0"),
        ({"time_limit": "1h"}, "time_limit must be positive and finite, not '1h'"),
    ],
)
def test_settings_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        settings(**changes)
