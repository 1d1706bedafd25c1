"""kernel="auto", lengthscale="auto", penalty="auto": what is chosen, and that it is worth it."""

from __future__ import annotations

import logging
import math
import tracemalloc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from close import assert_close
from sklearn.model_selection import KFold

from gramian import KernelRidge, KernelRidgeClassifier, RandomStream, kernels
from gramian.callbacks import Checkpoint
from gramian.data import LinearMap, as_rows
from gramian.fitting import TrainingData
from gramian.fitting.choice import held_out as held_choice
from gramian.fitting.choice.choose import candidates
from gramian.fitting.choice.comparison import Scored, best_of, first_of_ties
from gramian.fitting.choice.leave_one_out import LeaveOneOut, merge_rows
from gramian.fitting.inputs.training_data import training_targets
from gramian.fitting.settings.resolve import kernel_for
from gramian.paths import leave_one_out_formula
from gramian.paths.leave_one_out_formula import Spectrum, leave_one_out
from gramian.solvers import PCG, Direct, Falkon

RNG = np.random.default_rng(0)
N = 240
X = RNG.uniform(-2, 2, (N, 3))
TRUTH = np.sin(2 * X[:, 0]) + X[:, 1]
Y = TRUTH + 0.3 * RNG.standard_normal(N)
NEW = RNG.uniform(-2, 2, (500, 3))
NEW_TRUTH = np.sin(2 * NEW[:, 0]) + NEW[:, 1]
AUTO: dict[str, Any] = {
    "kernel": "auto",
    "lengthscale": "auto",
    "penalty": "auto",
    "tol": "auto",
    "standardize": "auto",
    "random_state": 0,
}
MANY = RNG.uniform(-2, 2, (1100, 3)).astype(np.float32)
MANY_Y = np.sin(2 * MANY[:, 0]) + MANY[:, 1] + 0.3 * RNG.standard_normal(1100)


def rmse(est: Any) -> float:
    return float(np.sqrt(np.mean((est.predict(NEW) - NEW_TRUTH) ** 2)))


class TestLeaveOneOut:
    @pytest.mark.parametrize("landmarks", [None, 1, 7, 29])
    def test_is_what_leaving_each_row_out_gives(self, landmarks: int | None) -> None:
        x, w = X[:30], RNG.integers(1, 4, 30).astype(float)
        y = np.stack([Y[:30], TRUTH[:30] ** 2], axis=1)
        K = kernels.make("gaussian", lengthscale=1.0)(x, x)
        m = 30 if landmarks is None else landmarks
        shift, errors, found = 0.3, [], []
        for i in range(30):
            rest = np.arange(30) != i
            centers = rest & (np.arange(30) < m)  # a landmark leaves as a center, too
            A = K[rest][:, centers]
            left = A.T @ (w[rest, None] * A) + shift * K[centers][:, centers]
            coef = np.linalg.lstsq(left, A.T @ (w[rest, None] * y[rest]))[0]
            found.append(K[i, centers] @ coef)
            errors.append(w[i] * np.square(found[-1] - y[i]).sum())
        expected = float(sum(errors) / (2 * w.sum()))
        spectrum = Spectrum.of(K, w) if landmarks is None else Spectrum.of_landmarks(K[:, :m], w)
        assert spectrum.losses(y, [shift]) == pytest.approx([expected], rel=1e-5)
        assert_close(spectrum.predict_left_out(y, shift), np.stack(found), rtol=1e-4, atol=1e-5)

    def test_rounding_of_huge_coefficients_counts(self) -> None:
        x = X[:40]
        K = kernels.make("gaussian", lengthscale=2.0)(x, x)
        spectrum = Spectrum.of(K, np.ones(40, np.float32))
        y = TRUTH[:40, None]
        coef = np.linalg.solve(K + 0.01 * np.eye(40, dtype=np.float32), y)
        expected = spectrum.losses(y, [0.01])[0] + 1e-4 * float(np.square(coef).sum())
        assert spectrum.losses(y, [0.01], eps=1e-2) == pytest.approx([expected])

    @pytest.mark.parametrize("numbers", [1, 1 << 20])  # shifts in parts of 40, or all at once
    @pytest.mark.parametrize("landmarks", [None, 7])
    def test_all_shifts_at_once_are_as_one_by_one(
        self, landmarks: int | None, numbers: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(leave_one_out_formula, "SHIFT_NUMBERS", numbers)
        x, w = X[:20], RNG.integers(1, 4, 20).astype(float)
        K = kernels.make("gaussian", lengthscale=1.0)(x, x)
        m = landmarks
        spectrum = Spectrum.of(K, w) if m is None else Spectrum.of_landmarks(K[:, :m], w)
        Y = RNG.standard_normal((20, 3))
        shifts = [10.0 ** (-e / 4) for e in range(30)]
        each = [spectrum.losses(Y, [shift], eps=1e-3)[0] for shift in shifts]
        assert spectrum.losses(Y, shifts, eps=1e-3) == pytest.approx(each, rel=1e-10)

    @pytest.mark.parametrize("shift", [1e-4, 0.3, 50.0])
    def test_a_cholesky_factor_gives_the_same(self, shift: float) -> None:
        x, w = X[:40], RNG.integers(1, 4, 40).astype(float)
        K = kernels.make("matern32", lengthscale=1.0)(x, x)
        y = RNG.standard_normal((40, 3))
        spectrum, found = Spectrum.of(K, w), leave_one_out(K, w, y, shift, eps=1e-3)
        losses, spreads = spectrum.losses(y, [shift], eps=1e-3), spectrum.spreads(y, [shift])
        assert [found.loss, found.spread] == pytest.approx([losses[0], spreads[0]], rel=1e-9)
        assert_close(found.predicted, spectrum.predict_left_out(y, shift), rtol=1e-7, atol=1e-9)

    def test_a_singular_matrix_has_an_infinite_loss(self) -> None:
        found = leave_one_out(-np.eye(3), np.ones(3), np.ones((3, 1)), 0.5)
        assert (found.loss, found.spread) == (math.inf, math.inf)

    @pytest.mark.parametrize("classes", [False, True])
    def test_steps_end_near_the_best_of_a_grid(self, classes: bool) -> None:
        x, y = MANY[:600], MANY_Y[:600]
        targets = np.where(y > 0, 1.0, -1.0) if classes else y
        data = TrainingData(
            as_rows(x), training_targets(targets, np.float64), classes=(-1, 1) if classes else None
        )
        by = LeaveOneOut.of(data, None, "auto", None, RandomStream(0))
        found = by.search(kernels.make("matern32", lengthscale="median"), None, moves=True)
        far = by._score_at(kernels.make("matern32", lengthscale="16 median"), 3e-2)
        moved = by._descend(far, 0.0, (2.0, 2.0**0.5))
        grid = [
            by(kernels.make("matern32", lengthscale=f"{2.0 ** (k / 2)} median"))
            for k in range(-4, 9)
        ]
        least = min(scored.criterion for scored in grid)
        assert found.criterion < 1.01 * least
        assert moved.criterion < 1.1 * least < 0.7 * far.criterion

    @pytest.mark.parametrize("t", [1, 3])
    def test_the_spread_is_the_likelihood_at_its_best_amplitude(self, t: int) -> None:
        x, w = X[:20], RNG.uniform(0.2, 3, 20)
        K = kernels.make("gaussian", lengthscale=1.0)(x, x)
        y = RNG.standard_normal((20, t))
        found = []
        for shift in (1e-3, 0.1, 10.0):
            C = K + np.diag(shift / w)
            amplitude = float((y * np.linalg.solve(C, y)).sum()) / (20 * t)
            found.append(-10 * t * math.log(amplitude) - t / 2 * np.linalg.slogdet(C)[1])
        spreads = Spectrum.of(K, w).spreads(y, (1e-3, 0.1, 10.0))
        likelihoods = [-10 * t * math.log(spread) for spread in spreads]
        np.testing.assert_allclose(np.diff(likelihoods), np.diff(found), rtol=1e-8)

    def test_equal_rows_are_one(self) -> None:
        twice = np.concatenate([X[:9], X[:5]])
        targets = training_targets(np.concatenate([Y[:9], 2 * Y[:5]]), np.float64)
        weights = np.ones(14, np.float64)
        weights[9:] = 3.0
        rows, means, sums = merge_rows(TrainingData(as_rows(twice), targets, weights))
        assert (len(rows), float(sums.sum())) == (9, 24.0)
        assert sorted(sums.tolist()) == [1.0] * 4 + [4.0] * 5
        total = (sums[:, None] * means).sum()
        assert float(total) == pytest.approx(Y[:9].sum() + 6 * Y[:5].sum())


class Losses:
    """A comparison of kernels whose losses are known."""

    def __init__(self, losses: dict[str, float]) -> None:
        self.losses = losses

    def screen(self, kernel: kernels.Kernel) -> Scored:
        return Scored(kernel, 1e-6, self.losses[type(kernel).__name__])


@pytest.mark.parametrize(
    ("losses", "best"), [((3e-14, 2e-14), "Laplacian"), ((3e-3, 2e-3), "Gaussian")]
)
def test_rounding_does_not_decide_between_kernels(losses, best):
    comparison: Any = Losses(dict(zip(("Laplacian", "Gaussian"), losses, strict=True)))
    tried = [kernels.Laplacian("median"), kernels.Gaussian("median")]
    kernel, _, _ = best_of(tried, [comparison])
    assert type(kernel).__name__ == best


class TestWhatIsChosen:
    def test_is_better_than_what_was_usual(self) -> None:
        est = KernelRidge(**AUTO).fit(X, Y)
        usual = KernelRidge("gaussian", lengthscale="median", penalty=1e-6).fit(X, Y)
        assert rmse(est) < 0.8 * rmse(usual)

    @pytest.mark.parametrize("landmarks", [20, "uniform", X[:25]])
    def test_with_landmarks(self, landmarks: Any) -> None:
        est = KernelRidge(**AUTO, landmarks=landmarks).fit(X, Y)
        assert rmse(est) < 0.35
        assert est.path_ is None

    def test_of_many_rows(self) -> None:
        est = KernelRidge(**AUTO).fit(MANY, MANY_Y)
        assert rmse(est) < 0.15
        assert est.stop_reason_ == "converged"

    def test_of_many_rows_with_landmarks(self) -> None:
        est = KernelRidge(**AUTO, landmarks=100).fit(MANY, MANY_Y)
        assert rmse(est) < 0.2

    def test_what_is_given_stays(self) -> None:
        est = KernelRidge(**AUTO | {"kernel": "matern52", "penalty": 1e-3}).fit(X, Y)
        assert (type(est.kernel_).__name__, est.penalty_) == ("Matern52", 1e-3)
        est.set_params(kernel="auto", lengthscale=1.5).fit(X, Y)
        assert (est.kernel_.lengthscale, est.penalty_) == (1.5, 1e-3)
        est.set_params(kernel=kernels.make("linear"), lengthscale="auto", penalty="auto").fit(X, Y)
        assert type(est.kernel_).__name__ == "Linear"

    def test_of_noise_is_about_the_mean(self, caplog: pytest.LogCaptureFixture) -> None:
        random = np.random.default_rng(0)
        for n, most in ((1100, 0.1), (240, 0.5)):
            x = random.uniform(-2, 2, (n, 3)).astype(np.float32)
            y = 5.0 + random.standard_normal(n)
            with caplog.at_level(logging.WARNING, logger="gramian"):
                est = KernelRidge(**AUTO).fit(x, y)
            assert np.abs(est.predict(NEW) - y.mean()).max() < most
        assert caplog.records == []  # other lengthscales were tried

    def test_classes(self) -> None:
        labels = np.where(TRUTH > 0, "high", "low")
        est = KernelRidgeClassifier(**AUTO).fit(X, labels)
        assert np.mean(est.predict(NEW) == np.where(NEW_TRUTH > 0, "high", "low")) > 0.9

    def test_many_targets(self) -> None:
        many = np.stack([Y * k for k in range(1, 12)], axis=1)
        est = KernelRidge(**AUTO).fit(X, many)
        assert np.sqrt(np.mean((est.predict(NEW)[:, 0] - NEW_TRUTH) ** 2)) < 0.35
        more = np.tile(MANY_Y[:, None], (1, 11))
        est = KernelRidge(**AUTO).fit(MANY, more)
        assert np.sqrt(np.mean((est.predict(NEW)[:, 3] - NEW_TRUTH) ** 2)) < 0.15

    @pytest.mark.slow
    def test_long_tails_are_made_normal(self) -> None:
        wild = np.sign(MANY) * np.exp(3 * np.abs(MANY))
        est = KernelRidge(**AUTO).fit(wild, MANY_Y)
        assert est.model_.quantiles is not None
        new = np.sign(NEW) * np.exp(3 * np.abs(NEW))
        assert np.sqrt(np.mean((est.predict(new) - NEW_TRUTH) ** 2)) < 0.25
        plain = KernelRidge(**AUTO | {"standardize": True}).fit(wild, MANY_Y)
        assert plain.model_.quantiles is None

    def test_sparse_rows_choose_as_dense_ones_do(self) -> None:
        """Not by 1,000 rows that are left out one by one, whose penalty is that of so few."""
        rng = np.random.default_rng(0)
        rows = rng.standard_normal((2500, 12)) * (rng.random((2500, 12)) < 0.3)
        y = np.sin(2 * rows[:, 0]) + rows[:, 1] * rows[:, 2] + 0.05 * rng.standard_normal(2500)
        settings = {"lengthscale": 1.5, "landmarks": 300, "standardize": False, "random_state": 0}
        dense, sparse = (
            KernelRidge("gaussian", **settings).fit(X, y)
            for X in (rows, scipy.sparse.csr_array(rows))
        )
        assert sparse.penalty_ == pytest.approx(dense.penalty_)

    def test_sparse_rows(self) -> None:
        sparse = scipy.sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
        est = KernelRidge(**AUTO).fit(sparse, sparse.toarray()[:, 0])
        assert type(est.kernel_).__name__ != "L1Laplacian"
        assert est.score(sparse, sparse.toarray()[:, 0]) > 0.9

    def test_weights_are_repeated_rows(self) -> None:
        w = RNG.integers(0, 4, N)
        weighted = KernelRidge(**AUTO).fit(X, Y, sample_weight=w)
        repeated = KernelRidge(**AUTO).fit(np.repeat(X, w, axis=0), np.repeat(Y, w))
        np.testing.assert_allclose(weighted.predict(NEW), repeated.predict(NEW), rtol=1e-6)

    @pytest.mark.parametrize("cv", [3, KFold(3), "pairs"])
    def test_folds(self, cv: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        given = list(KFold(3).split(X)) if cv == "pairs" else cv
        seen = []
        real = held_choice.full_fit

        def watched(material: Any, *args: Any, **others: Any) -> Any:
            seen.append([sorted(split.validation.tolist()) for split in material.splits])
            return real(material, *args, **others)

        monkeypatch.setattr(held_choice, "full_fit", watched)
        est = KernelRidge(**AUTO, cv=given).fit(X, Y)
        assert len(seen[0]) == 3
        if cv != 3:
            assert seen[0] == [test.tolist() for _, test in KFold(3).split(X)]
        assert rmse(est) < 0.35

    def test_folds_of_unequal_size(self):
        """The ridge of all rows is the mean ridge of the folds, not the ridge of the last one."""
        i = np.arange(N)
        folds = [(i[: N // 2], i[N // 2 :]), (i[: N // 4], i[N // 4 :])]
        est = KernelRidge("gaussian", landmarks=10, cv=folds, random_state=0).fit(X, Y)
        tried = math.log10(est.penalty_ * N / (N // 2 / 2 + N // 4 / 2))  # a power of ten
        assert tried == pytest.approx(round(tried), abs=1e-9)


def with_a_hole(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return 300 places in three quarters of a square, values, places in the fourth, the truth."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 100, (600, 2))
    places = places[~(places > 50).all(axis=1)][:300]
    hole = np.stack(np.meshgrid(*2 * [np.linspace(51, 99, 12)]), axis=-1).reshape(-1, 2)
    values, truth = (np.sin(p[:, 0] / 10) * np.cos(p[:, 1] / 10) for p in (places, hole))
    return places, values + 0.1 * rng.standard_normal(300), hole, truth


class TestAwayFromTheRows:
    """The likelihood takes part where errors of rows that are left out do not decide."""

    @pytest.mark.parametrize("seed", [9, 12, 21])
    def test_a_hole_is_not_filled_by_an_implausible_kernel(self, seed: int) -> None:
        places, values, hole, truth = with_a_hole(seed)
        mean, std = KernelRidge(random_state=0).fit(places, values).predict(hole, return_std=True)
        assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.9
        assert np.mean(np.abs(mean - truth) < 1.645 * std) > 0.8

    def test_the_order_of_columns_does_not_matter(self) -> None:
        rng = np.random.default_rng(1)
        for _ in range(3):
            x = rng.standard_normal((450, 4))
            y = np.abs(x[:, 0]) + np.sin(x[:, 1]) + 0.5 * rng.standard_normal(450)
            one, other = KernelRidge(random_state=0), KernelRidge(random_state=0)
            found = one.fit(x, y).predict(x), other.fit(x[:, ::-1].copy(), y).predict(x[:, ::-1])
            assert type(one.kernel_) is type(other.kernel_)
            np.testing.assert_allclose(*found, atol=1e-5)

    def test_a_dozen_rows_of_noise_are_not_interpolated(self) -> None:
        for seed in range(6):
            rng = np.random.default_rng(seed)
            est = KernelRidge(random_state=0).fit(rng.normal(size=(12, 3)), rng.normal(size=12))
            assert est.penalty_ > 1e-6

    def test_of_equal_penalties_the_largest_is_chosen(self) -> None:
        assert first_of_ties([2.0, 1.001, 1.0, 1.0005]) == 1
        assert first_of_ties([math.inf, math.inf]) == 0


class TestTheFit:
    def test_a_log_line_says_what_was_chosen(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO, logger="gramian"):
            est = KernelRidge(**AUTO).fit(X, Y)
        said = [r.getMessage() for r in caplog.records if "chosen: kernel" in r.getMessage()]
        assert len(said) == 1
        assert f"penalty {est.penalty_:.3g}" in said[0]

    def test_the_solver_follows_the_penalty(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("gramian.fitting.plans.solver_choice.PCG_FROM", 100)
        noise = RNG.standard_normal(1100)
        found = KernelRidge(**AUTO).fit(MANY, noise).solver_
        assert isinstance(found, PCG)
        assert found.direct_bytes == 12 * 1100**2
        given = dict(kernel="gaussian", lengthscale=2.0, random_state=0)
        slow = KernelRidge(**given, penalty=1e-5).fit(MANY, MANY_Y)
        fast = KernelRidge(**given, penalty=1e-1).fit(MANY, MANY_Y)
        assert isinstance(slow.solver_, PCG)
        assert slow.stop_reason_ == fast.stop_reason_ == "converged"
        exact = KernelRidge(**given, penalty=1e-1, solver="direct").fit(MANY, MANY_Y)
        assert_close(fast.predict(NEW), exact.predict(NEW), atol=1e-4)
        assert isinstance(KernelRidge(**given, penalty=1e-7).fit(MANY, MANY_Y).solver_, Direct)
        tiny = KernelRidge(**AUTO).fit(X, np.sin(X[:, 0]))
        assert tiny.penalty_ * N < 1e-3
        assert isinstance(tiny.solver_, Direct)

    def test_the_tolerance_follows_the_error(self) -> None:
        given = AUTO | {"solver": PCG()}
        est = KernelRidge(**given).fit(X, Y)
        assert 1e-6 < est.history_[-1]["rel_residual"] < 5e-3
        est.set_params(tol=1e-9).fit(X, Y)
        assert est.history_[-1]["rel_residual"] <= 1e-9
        est.set_params(tol="auto", penalty=1e-2).fit(X, Y)
        assert est.history_[-1]["rel_residual"] <= 1e-6

    def test_a_warm_start_keeps_the_choice(self) -> None:
        est = KernelRidge(**AUTO | {"warm_start": True, "landmarks": 30}).fit(X, Y)
        kernel, penalty = est.kernel_, est.penalty_
        est.fit(X, np.sign(Y) * Y**2)
        assert (est.kernel_, est.penalty_) == (kernel, penalty)

    def test_more_rows_keep_the_choice(self) -> None:
        given = AUTO | {"solver": "eigenpro3", "landmarks": 40}
        est = KernelRidge(**given).partial_fit(X[:120], Y[:120])
        kernel, penalty = est.kernel_, est.penalty_
        assert 0 < penalty < 1
        est.partial_fit(X[120:], Y[120:])
        assert (est.kernel_, est.penalty_) == (kernel, penalty)

    def test_is_repeated_by_the_seed(self, tmp_path: Any) -> None:
        # With a factor of all rows two iterations would be enough.
        given = AUTO | {"landmarks": 40, "tol": 1e-10, "solver": Falkon("landmarks")}
        first = KernelRidge(**given).fit(X, Y)
        kept = Checkpoint(tmp_path / "state", every=1)
        with pytest.warns(UserWarning, match="max_iter=2"):
            KernelRidge(**given, callbacks=[kept], max_iter=2).fit(X, Y)
        again = KernelRidge(**given, callbacks=[kept]).fit(X, Y)
        assert (again.kernel_, again.penalty_) == (first.kernel_, first.penalty_)
        assert again.history_[0]["iteration"] == 2  # of the same problem: it is gone on with
        np.testing.assert_allclose(again.predict(NEW), first.predict(NEW), rtol=1e-5)

    def test_early_stopping(self) -> None:
        est = KernelRidge(**AUTO, early_stopping=True, landmarks=30).fit(X, Y)
        assert est.validation_error_ is not None
        assert rmse(est) < 0.4

    def test_a_file_is_read_as_rows(self, tmp_path: Any) -> None:
        np.save(tmp_path / "rows.npy", X)
        est = KernelRidge(**AUTO).fit(tmp_path / "rows.npy", Y)
        np.testing.assert_allclose(est.predict(NEW), KernelRidge(**AUTO).fit(X, Y).predict(NEW))

    def test_a_plan_comes_before_the_choice(self) -> None:
        assert KernelRidge(**AUTO).plan(X).solver == "direct"
        assert KernelRidge(**AUTO).plan(np.zeros((20_000, 2), np.float32)).solver == "pcg"


def test_kernels_of_features_that_are_mixed_or_sparse() -> None:
    settings = KernelRidge(**AUTO)._settings()
    mixed, factors = (
        LinearMap(matrix=np.eye(3, dtype=np.float32)),
        LinearMap(scales=np.ones(3, np.float32)),
    )

    def names(**given: Any) -> list[str]:
        found = candidates(settings, **({"sparse": False, "mapped": None} | given))
        return [type(kernel).__name__ for kernel in found]

    assert names()[-1] == names(mapped=factors)[-1] == "L1Laplacian"
    assert "L1Laplacian" not in names(mapped=mixed) + names(sparse=True)


def test_the_median_distance_of_many_rows_takes_no_memory_for_each():
    """The client of a cluster has no number for each of its rows."""
    n, X = 3_000_000, np.random.default_rng(0).standard_normal((5000, 2))
    rows = SimpleNamespace(shape=(n, 2), take=lambda index: X[: len(index)])
    tracemalloc.start()
    try:
        kernel = kernel_for(kernels.Gaussian("median"), rows, RandomStream(0))
        assert tracemalloc.get_traced_memory()[1] < 8 * n / 2
    finally:
        tracemalloc.stop()
    assert 1.0 < kernel.lengthscale < 2.0
