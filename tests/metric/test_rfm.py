"""The recursive feature machine finds what a target depends on, and ends in time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian._arrays import RandomStream
from gramian.data import as_rows
from gramian.kernels import Gaussian, Kernel, L1Laplacian, Laplacian, Matern32
from gramian.metric import LearnedMetric, RecursiveFeatureMachine
from gramian.metric.base import draw_sample, split_held_out
from gramian.metric.outer_products import map_of
from gramian.paths.sample import Sample

MACHINE = RecursiveFeatureMachine(rounds=3, landmarks=300, rows=800, gradient_rows=400)
KERNELS = [Matern32("median"), Gaussian("0.5 median"), L1Laplacian("median")]


def learn(
    X: np.ndarray,
    Y: np.ndarray,
    kernel: Kernel = KERNELS[0],
    machine=MACHINE,
    seed: int = 0,
    **how: object,
) -> LearnedMetric:
    rng = RandomStream(seed)
    return machine.learn(kernel, as_rows(X), Y, rng=rng, **how)


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return RandomStream(seed).standard_normal((n, d), np.float64)


def four_of(X: np.ndarray) -> np.ndarray:
    return np.sin(1.5 * X[:, [0, 5, 9, 13]]).sum(axis=1, keepdims=True)


class TestWhatItFinds:
    @pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
    def test_four_of_twenty_features(self, kernel, dtype):
        X = xp.cast(rows(1000, 20), dtype)
        found = learn(X, four_of(X), kernel)
        assert set(found.importances.argsort(stable=True)[-4:].tolist()) == {0, 5, 9, 13}
        assert float(found.importances[[0, 5, 9, 13]].sum()) > 0.8
        errors = [each.error for each in found.rounds]
        assert min(errors) < 0.9 * errors[0]

    def test_a_direction_that_is_no_feature(self):
        X = rows(600, 4)
        found = learn(X, np.sin(X[:, :1] + X[:, 1:2]))
        direction = np.linalg.eigh(found.matrix).eigenvectors[:, -1]
        expected = np.sqrt(np.array([0.5, 0.5, 0, 0], dtype=np.float64))
        assert float(np.abs(direction @ expected)) > 0.98

    @pytest.mark.parametrize(("kernel", "shape"), [(KERNELS[0], (5, 5)), (KERNELS[2], (5,))])
    def test_a_matrix_but_scales_for_the_l1_distance(self, kernel, shape):
        X = rows(300, 5)
        found = learn(X, np.sin(X[:, :1]), kernel)
        assert found.map.array.shape == shape
        assert found.matrix.shape == (5, 5)

    def test_several_targets_share_a_metric(self):
        X = rows(400, 6)
        found = learn(X, np.concatenate([np.sin(X[:, :1]), np.cos(X[:, 3:4])], axis=1))
        assert set(found.importances.argsort(stable=True)[-2:].tolist()) == {0, 3}

    def test_codes_of_classes(self):
        X = rows(400, 6)
        codes = xp.to_float64(X[:, 2:3] > 0) * 2 - 1
        assert int(learn(X, codes, coded=True).importances.argmax()) == 2

    def test_the_kernel_of_the_predictor_may_be_another(self):
        X = rows(300, 4)
        machine = replace(MACHINE, kernel="matern32")
        found = learn(X, np.sin(X[:, :1]), Laplacian("median"), machine)
        assert np.array_equal(found.map.array, learn(X, np.sin(X[:, :1])).map.array)


class TestRounds:
    def test_they_are_as_many_as_asked_for_at_most(self):
        X = rows(300, 5)
        machine = RecursiveFeatureMachine(rounds=1, landmarks=60, powers=(0.5,))
        assert [each.round for each in learn(X, np.sin(X[:, :1]), machine=machine).rounds] == [0, 1]

    def test_they_end_where_the_error_falls_no_more(self):
        X = rows(300, 3)
        machine = RecursiveFeatureMachine(rounds=50, landmarks=60)
        found = learn(X, np.sin(X.sum(axis=1, keepdims=True)), machine=machine)
        assert found.rounds[-1].round < 10

    def test_the_map_is_that_of_the_round_of_least_error(self):
        X = rows(500, 8)
        y = RandomStream(9).standard_normal((500, 1), np.float64)
        found = learn(X, y + 0.1 * X[:, :1])
        best = min(found.rounds, key=lambda each: each.error)
        identity = np.ones(8, np.float64)
        assert (best.round == 0) == np.array_equal(found.map.array, identity)

    def test_powers_other_than_the_first_are_tried_once(self):
        X = rows(300, 5)
        found = learn(X, np.sin(X[:, :1]) + X[:, 1:2])
        numbers = [each.round for each in found.rounds]
        assert numbers[:3] == [0, 1, 1]
        assert numbers.count(2) <= 1


class TestAwkward:
    @pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
    def test_a_constant_target(self, kernel):
        X = rows(60, 3)
        found = learn(X, np.zeros((60, 1), np.float64), kernel)
        assert [each.round for each in found.rounds] == [0]
        assert_close(found.importances, np.full((3,), 1 / 3, dtype=np.float64))

    @pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
    @pytest.mark.parametrize(("n", "d"), [(30, 4), (6, 2), (60, 1), (20, 40)])
    def test_few_rows_or_many_features(self, kernel, n, d, dtype):
        X = xp.cast(rows(n, d), dtype)
        found = learn(X, np.sin(X[:, :1]), kernel)
        assert bool(np.isfinite(found.map.array).all())
        assert found.map.inputs == d

    def test_repeated_rows_and_constant_features(self, dtype):
        X = xp.cast(
            np.tile(np.concatenate([rows(30, 3), np.ones((30, 1), np.float32)], axis=1), (5, 1)),
            dtype,
        )
        found = learn(X, np.sin(X[:, :1]))
        assert int(found.importances.argmax()) == 0
        assert float(found.importances[3]) < 1e-6

    def test_the_same_seed_gives_the_same_bits(self):
        X = rows(400, 5)
        y = four_of(rows(400, 14))
        one, again, other = learn(X, y), learn(X, y), learn(X, y, seed=1)
        assert np.array_equal(one.map.array, again.map.array)
        assert one.rounds == again.rounds
        assert one.rounds != other.rounds

    @pytest.mark.parametrize(
        "wrong", [{"rounds": 0}, {"landmarks": 2.5}, {"powers": ()}, {"powers": (0.5, 2.0)}]
    )
    def test_parameters_are_refused_in_words(self, wrong):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            RecursiveFeatureMachine(**wrong)


class TestWeights:
    """A weight that is a whole number is a repeated row, of the rows to learn from and others."""

    @pytest.mark.parametrize("kernel", [Matern32(1.5), L1Laplacian(3.0)])
    def test_a_weight_is_a_repeated_row(self, kernel):
        X, held = rows(80, 4), rows(30, 4, seed=1)
        w, v = 1 + xp.to_float64(np.arange(80) % 3), 1 + xp.to_float64(np.arange(30) % 2)
        one = Sample(X, self.target(X), held, self.target(held), w, v)
        X, held = np.repeat(X, xp.cast(w, np.int64), 0), np.repeat(held, xp.cast(v, np.int64), 0)
        other = Sample(X, self.target(X), held, self.target(held))
        machine = RecursiveFeatureMachine(rounds=2)
        pairs = zip(machine.learn_from(one, kernel), machine.learn_from(other, kernel), strict=True)
        for a, b in pairs:
            assert a.fit.loss == pytest.approx(b.fit.loss, rel=1e-4)
            if a.gradients is not None:
                assert_close(a.gradients, b.gradients, rtol=0, atol=1e-4)

    def target(self, X: np.ndarray) -> np.ndarray:
        return np.sin(X[:, :1]) + X[:, 1:2] * X[:, 2:3]

    def test_weights_change_what_is_found(self):
        X = rows(300, 4)
        half = np.arange(300) % 2 == 0
        y = np.where(half[:, None], np.sin(X[:, :1]), np.sin(X[:, 3:4]))
        for which, feature in ((half, 0), (~half, 3)):
            w = xp.to_float64(np.where(which, 1.0, 1e-3))
            assert int(learn(X, y, weights=w).importances.argmax()) == feature


class TestDivided:
    @pytest.mark.parametrize("n", [1, 4, 5, 37, 20_000])
    def test_a_fifth_is_held_out_and_nothing_twice(self, n):
        held, learn_ = split_held_out(
            np.random.default_rng(0).standard_normal((n, 1)).astype(np.float32), coded=False
        )
        assert len(held) == min(2000, n // 5)
        assert np.array_equal(xp.sort(np.concatenate([held, learn_])), np.arange(n))

    @pytest.mark.parametrize("counts", [(50, 10, 40), (85, 15)])
    def test_each_class_has_its_share(self, counts, rng):
        label = np.repeat(np.arange(len(counts)), np.array(counts))
        label = label[rng.permutation(100)]
        codes = 2.0 * label[:, None] - 1 if len(counts) == 2 else np.eye(3, dtype=np.float32)[label]
        held, _ = split_held_out(codes, coded=True)
        assert xp.bincount(label[held]).tolist() == [count // 5 for count in counts]

    def test_a_sample_keeps_rows_and_targets_together(self, rng):
        X = np.arange(200.0, dtype=np.float32)[:, None]
        found = draw_sample(as_rows(X), X + 1, X[:, 0] + 2, 90, rng=rng)
        assert len(found.X) + len(found.held_X) == 90
        assert np.array_equal(found.X + 1, found.Y)
        assert np.array_equal(found.X[:, 0] + 2, found.weights)
        assert np.array_equal(found.held_X + 1, found.held_Y)
        assert np.array_equal(found.held_X[:, 0] + 2, found.held_weights)
        assert not set(found.X[:, 0].tolist()) & set(found.held_X[:, 0].tolist())


class TestMap:
    def test_it_is_a_power_of_the_metric(self):
        A = rows(5, 5)
        M = A @ A.T
        M = M / np.linalg.eigvalsh(M)[-1]
        for power in (0.5, 0.25):
            R = map_of(M, power).array
            assert_close(np.linalg.matrix_power(R, int(1 / power)), M)

    def test_negative_rounding_counts_as_zero(self):
        M = np.diag(np.array([1.0, -1e-17, 0.5], dtype=np.float64))
        assert bool(np.isfinite(map_of(M, 0.5).array).all())
        assert float(map_of(M, 0.5, diagonal=True).array[1]) == 0

    def test_few_directions_of_many_features_keep_distances(self):
        few = rows(60, 3)
        M = few @ few.T
        R = map_of(M, 0.5).array
        assert R.shape == (60, 3)
        M = M / np.linalg.eigvalsh(M)[-1]
        assert_close(R @ R.T, M)
