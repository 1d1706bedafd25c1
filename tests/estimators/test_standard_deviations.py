"""Standard deviations, against Gaussian processes and dense formulas, and what they are worth."""

import json
import pickle

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import safe_open
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import gramian
from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeCV
from gramian import _arrays as xp
from gramian._files.tensors import write_tensors
from gramian.data import sample_path
from gramian.fitting.uncertainty.closed_form import solved_exactly
from gramian.fitting.uncertainty.standard_deviations import calibrate_variance
from gramian.kernels import Gaussian, Linear
from gramian.model import AverageModel
from gramian.model.uncertainty.deviations import residual_variance
from gramian.model.uncertainty.factors import LandmarkFactors

rng = np.random.default_rng(0)
N = 80
X = rng.normal(size=(N, 2))
Y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=N)
TWO = np.column_stack([Y, 30 * np.cos(X[:, 1]) + rng.normal(size=N)])
WEIGHTS = rng.uniform(0.2, 3.0, N)
NEW = 2 * rng.normal(size=(40, 2))
PLAIN = {"kernel": "gaussian", "lengthscale": 1.0, "standardize": False, "solver": "direct"}
LANDMARKS = pytest.mark.parametrize("landmarks", [None, 15], ids=["full", "landmarks"])


def fitted(X=X, y=Y, weights=None, landmarks=None, penalty=1e-3, **settings):
    est = KernelRidge(landmarks=landmarks, penalty=penalty, random_state=0, **(PLAIN | settings))
    return est.fit(X, y, sample_weight=weights)


def averaged():
    """Return the average of two fits, as a search leaves it."""
    fits = fitted(), fitted(kernel="laplacian", penalty=1e-2)
    model = AverageModel((0.3, 0.7), tuple(est.model_ for est in fits))
    est = KernelRidgeCV().with_model(model)
    est._training, est._penalty = fits[0]._training, (1e-3, 1e-2)
    return est


def v_of(est, new=NEW):
    """Return v of rows: deviations with a = 1 and b = 0, squared."""
    est.predict(new, return_std=True)
    (part,) = est.model_.parts
    return residual_variance(part, part.rows(new), "auto", 1 << 28)[1]


def entries(a, b, lengthscale=1.0):
    return Gaussian(lengthscale)(a, b)


def many_rows():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(500, 3))
    y = np.column_stack([np.sin(rows.sum(axis=1)), rows[:, 0] * rows[:, 1]])
    return rows, y + 0.1 * rng.normal(size=y.shape), rng.uniform(0.2, 3.0, 500)


class TestGaussianProcess:
    """500 rows to 1e-8, with a noise of N times the penalty."""

    @pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
    def test_mean_deviation_and_likelihood(self, weighted):
        rows, y, weights = many_rows()
        w = weights if weighted else np.ones(500)
        est = fitted(rows, y, w if weighted else None, lengthscale=1.5)
        gp = GaussianProcessRegressor(RBF(1.5), alpha=1e-3 * w.sum() / w, optimizer=None)
        gp.fit(rows, y)
        new = 2 * np.random.default_rng(2).normal(size=(200, 3))
        mean, std = gp.predict(new, return_std=True)
        np.testing.assert_allclose(est.predict(new), mean, atol=1e-8)
        np.testing.assert_allclose(v_of(est, new) ** 0.5, std[:, 0], atol=1e-8)
        likelihood = gp.log_marginal_likelihood_value_
        assert est.log_marginal_likelihood_ == pytest.approx(likelihood, rel=1e-8)

    def test_the_likelihood_is_that_of_standardised_targets(self):
        rows, y, _ = many_rows()
        est = fitted(rows, 50 + 7 * y[:, 0], standardize_target=True)
        gp = GaussianProcessRegressor(RBF(1.0), alpha=0.5, optimizer=None, normalize_y=True)
        gp.fit(rows, y[:, 0])
        likelihood = gp.log_marginal_likelihood_value_
        assert est.log_marginal_likelihood_ == pytest.approx(likelihood, rel=1e-8)

    def test_landmarks_have_no_likelihood(self):
        est = fitted(landmarks=15)
        assert not hasattr(est, "log_marginal_likelihood_")
        with pytest.raises(AttributeError, match="requires a single fit with all rows as centers"):
            _ = est.log_marginal_likelihood_


class TestLandmarks:
    @pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
    def test_the_dense_formula(self, weights):
        est = fitted(weights=weights, landmarks=15)
        Z, w = X[est.landmark_index_], np.ones(N) if weights is None else weights
        k, K, B = entries(NEW, Z), entries(X, Z), entries(Z, Z)
        shift = w.sum() * 1e-3
        A = K.T @ (w[:, None] * K) + shift * B
        expected = 1 + np.einsum("ij,ji->i", k, shift * np.linalg.solve(A, k.T))
        expected -= np.einsum("ij,ji->i", k, np.linalg.solve(B, k.T))
        np.testing.assert_allclose(v_of(est), expected, atol=1e-8)

    @pytest.mark.parametrize("landmarks", [N, X[::-1].copy()], ids=["as rows", "backwards"])
    def test_all_rows_as_landmarks_are_the_full_fit(self, landmarks):
        est = fitted(landmarks=landmarks, lengthscale=0.5)
        np.testing.assert_allclose(v_of(est), v_of(fitted(lengthscale=0.5)), atol=1e-8)

    @pytest.mark.parametrize("lengthscale", [0.5, 100.0])
    def test_landmarks_that_are_there_twice(self, lengthscale):
        est = fitted(landmarks=np.repeat(X[:20], 2, axis=0), lengthscale=lengthscale)
        once = fitted(landmarks=X[:20].copy(), lengthscale=lengthscale)
        np.testing.assert_allclose(v_of(est), v_of(once), atol=1e-6)


class TestLeftOut:
    @LANDMARKS
    @pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
    def test_v_of_a_row_is_that_of_a_fit_without_it(self, landmarks, weights):
        est = fitted(weights=weights, landmarks=landmarks)
        found = solved_exactly(est.model_, est._training, 1e-3, None).variance
        w = np.ones(N) if weights is None else weights
        centers = None
        for i in range(0, N, 3):
            rest = np.arange(N) != i
            if landmarks is not None:  # a landmark is no center of its own fit
                centers = X[est.landmark_index_[est.landmark_index_ != i]]
            same_shift = 1e-3 * w.sum() / w[rest].sum()
            one = fitted(X[rest], Y[rest], w[rest], centers, same_shift)
            assert float(found[i]) == pytest.approx(v_of(one, X[i : i + 1])[0], abs=1e-9)

    def test_they_are_what_deviations_are_calibrated_on(self):
        est = fitted()
        v, off = v_of(est), Y - est.loo_predictions_
        left = solved_exactly(est.model_, est._training, 1e-3, None).variance
        a, b = calibrate_variance(left, off, xp.to_float64(np.ones(N, np.float32)))
        std = est.predict(NEW, return_std=True)[1]
        c, limit = (getattr(est.model_.parts[0].variance, name) for name in ("beyond", "limit"))
        expected = np.sqrt(a * v + b + float(c[0]) * np.maximum(v - limit, 0))
        np.testing.assert_allclose(std, expected, rtol=1e-9)
        assert np.mean(est.out_of_range(X)) == 0
        far = np.sort(left)[int(np.ceil(0.99 * N)) - 1]
        np.testing.assert_array_equal(est.out_of_range(NEW), v >= far)

    def test_calibrated_is_the_most_likely(self):
        rng = np.random.default_rng(3)
        v, w = rng.uniform(0, 3, 2000), rng.uniform(0, 2, 2000)
        off = np.sqrt(2 * v + 0.5) * rng.normal(size=2000)

        def loss(p):
            u = np.exp(p[0]) * v + np.exp(p[1])
            return float((w * (np.log(u) + off**2 / u)).sum() / w.sum())

        best = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9})
        found = np.log(calibrate_variance(v, off, w))
        assert loss(found) <= best.fun + 1e-9
        np.testing.assert_allclose(found, np.log([2, 0.5]), atol=0.3)

    @pytest.mark.parametrize("off", [0.0, 0.1], ids=["nothing", "noise"])
    def test_calibrated_on_what_v_does_not_explain(self, off):
        a, b = calibrate_variance(
            np.full((9,), 1e-12, dtype=np.float32), np.full((9,), off), np.ones(9, np.float32)
        )
        assert a * 1e-12 + b == pytest.approx(off**2)
        assert min(a, b) >= 0


class TestWorth:
    @LANDMARKS
    def test_it_grows_away_from_the_data_up_to_that_of_nothing_known(self, landmarks):
        est = fitted(landmarks=landmarks)
        steps = np.linspace(2, 9, 30)[:, None] * [0.6, 0.8]
        mean, std = est.predict(steps, return_std=True)
        variance = est.model_.parts[0].variance
        assert np.all(np.diff(std) > -1e-9)
        known = float((variance.scale + variance.noise)[0])
        assert std[-1] ** 2 == pytest.approx(max(known, np.mean(Y**2)))
        assert std[-1] > 3 * est.predict(X, return_std=True)[1].mean()
        assert abs(mean[-1]) < 1e-6
        np.testing.assert_array_equal(est.out_of_range(steps), v_of(est, steps) >= variance.limit)
        assert est.out_of_range(steps)[-5:].all()

    @LANDMARKS
    @pytest.mark.parametrize("shifted", [True, False], ids=["mean", "zero"])
    def test_where_nothing_is_known_it_is_that_of_the_targets(self, landmarks, shifted):
        rows = np.random.default_rng(5).uniform(-3, 3, (200, 1))
        y = np.column_stack([50 + np.sin(rows[:, 0]), rows[:, 0]])
        y += 0.1 * np.random.default_rng(6).normal(size=y.shape)
        est = fitted(rows, y, landmarks=landmarks, standardize_target=shifted)
        far = [[-40.0], [60.0]]
        std = est.predict(far, return_std=True)[1]
        variance = est.model_.parts[0].variance
        assert (variance.beyond > 0).any()
        off = y - y.mean(axis=0) if shifted else y
        known = variance.scale + variance.noise
        expected = np.maximum(np.mean(off**2, axis=0), known)
        np.testing.assert_allclose(std**2, [expected, expected], rtol=1e-6)
        near = est.predict(rows, return_std=True)[1]  # a and b alone
        v = v_of(est, rows)[:, None]
        inside = v[:, 0] < variance.limit
        plain = np.sqrt(v * variance.scale + variance.noise)
        np.testing.assert_allclose(near[inside], plain[inside], rtol=1e-9)
        assert inside.mean() > 0.95

    def test_far_rows_of_a_kernel_without_a_bound(self):
        est = fitted(kernel=Linear(), lengthscale="auto", y=X @ [1.0, 2.0] + 0.1 * Y)
        std = est.predict([[1.0, 1.0], [100.0, 100.0]], return_std=True)[1]
        assert std[1] > 5 * std[0]
        assert est.out_of_range([[0.1, 0.1], [100.0, 100.0]]).tolist() == [False, True]

    @pytest.mark.parametrize("name", ["energy", "california_housing"])
    @LANDMARKS
    def test_ninety_in_a_hundred_within_1_64(self, name, landmarks):
        table = pq.read_table(sample_path(name)).to_pandas()
        table = table.drop(columns="split").sample(min(2000, len(table)), random_state=0)
        rows, y = table.drop(columns="target").to_numpy(float), table["target"].to_numpy(float)
        n = len(y) // 2
        est = KernelRidge(landmarks=landmarks and 200, random_state=0).fit(rows[:n], y[:n])
        mean, std = est.predict(rows[n:], return_std=True)
        inside = np.mean(np.abs(mean - y[n:]) < 1.64 * std)
        assert 0.86 < inside < 0.95
        assert 0.002 < np.mean(est.out_of_range(rows[n:])) < 0.04


class TestShapes:
    @pytest.mark.parametrize(("y", "shape"), [(Y, (40,)), (TWO, (40, 2)), (Y[:, None], (40, 1))])
    def test_they_are_those_of_the_predictions(self, y, shape):
        mean, std = fitted(y=y).predict(NEW, return_std=True)
        assert mean.shape == std.shape == shape
        assert std.dtype == np.float64

    def test_each_target_has_its_own_factors(self):
        std = fitted(y=TWO).predict(NEW, return_std=True)[1]
        for j in range(2):
            one = fitted(y=TWO[:, j]).predict(NEW, return_std=True)[1]
            np.testing.assert_allclose(std[:, j], one, rtol=1e-9)

    def test_targets_in_other_units(self):
        plain = fitted(standardize_target=True).predict(NEW, return_std=True)[1]
        other = fitted(y=1e6 + 300 * Y, standardize_target=True)
        np.testing.assert_allclose(other.predict(NEW, return_std=True)[1], 300 * plain, rtol=1e-5)

    def test_rows_of_weight_zero_are_not_there(self):
        weights = np.where(np.arange(N) < 10, 0.0, WEIGHTS)
        std = fitted(weights=weights).predict(NEW, return_std=True)[1]
        others = fitted(X[10:], Y[10:], WEIGHTS[10:]).predict(NEW, return_std=True)[1]
        np.testing.assert_allclose(std, others, rtol=1e-9)


AWKWARD = {
    "one feature": ({"X": X[:, :1]}, {}),
    "rows that are there four times": ({"X": np.repeat(X[:20], 4, axis=0)}, {}),
    "tiny lengthscale": ({}, {"lengthscale": 1e-4}),
    "flat lengthscale": ({}, {"lengthscale": 1e4}),
    "penalty near rounding": ({}, {"penalty": 1e-11, "lengthscale": 0.5}),
    "huge penalty": ({}, {"penalty": 1e6}),
    "float32": ({"X": X.astype(np.float32)}, {}),
    "constant target": ({"y": np.full(N, 3.0)}, {"standardize_target": True}),
    "large offset": ({"y": 1e9 + Y}, {"standardize_target": True}),
}


@LANDMARKS
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_fits_have_honest_deviations(name, landmarks):
    data, settings = AWKWARD[name]
    rows, y = data.get("X", X), data.get("y", Y)
    est = fitted(rows, y, landmarks=landmarks, **settings)
    new = NEW[:, : rows.shape[1]].astype(rows.dtype)
    for given in (new, rows):
        mean, std = est.predict(given, return_std=True)
        assert np.isfinite(std).all()
        assert (std >= 0).all()
    off = y - est.loo_predictions_
    assert (std > 0).all() or np.abs(off).max() < 1e-6 * np.abs(y).max()
    if len(np.unique(rows, axis=0)) == N:  # others have a row and its like on both sides
        assert np.mean(np.abs(y - mean) <= 1.96 * std + 1e-9) > 0.8


@LANDMARKS
def test_float32_rows_have_those_of_float64(landmarks):
    single, new = X.astype(np.float32), (0.9 * X[:40]).astype(np.float32)
    settings = {"landmarks": landmarks, "penalty": 1e-7}  # rounded entries would be seen in v
    found = v_of(fitted(single, **settings), new)
    exact = v_of(fitted(single.astype(float), **settings), new.astype(float))
    np.testing.assert_allclose(found, exact, rtol=1e-4)


def test_an_average_has_the_mean_of_the_variances():
    est = averaged()
    mean, std = est.predict(NEW, return_std=True)
    parts, shares = est.model_.parts, est.model_.shares
    each = [part.variance for part in parts]
    assert all(np.array_equal(one.scale, each[0].scale) for one in each)
    v = sum(
        w * residual_variance(p, p.rows(NEW), "auto", 1 << 28)[1]
        for w, p in zip(shares, parts, strict=True)
    )
    variance = v * each[0].scale + each[0].noise
    variance += each[0].beyond * (v - each[0].limit).clip(min=0.0)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-9)
    far = est.predict([[99.0, 99.0]], return_std=True)[1][0] ** 2
    known = (each[0].scale + each[0].noise).item()
    assert far == pytest.approx(max(known, np.mean(Y**2)))
    np.testing.assert_array_equal(est.out_of_range(NEW), v >= each[0].limit)
    both = zip(parts, (1e-3, 1e-2), strict=True)
    left = np.stack([solved_exactly(p, est._training, x, None).variance for p, x in both])
    off = Y - est.loo_predictions_
    a, b = calibrate_variance((shares @ left), off, xp.to_float64(np.ones(N, np.float32)))
    assert (each[0].scale.item(), each[0].noise.item()) == pytest.approx((a, b))
    np.testing.assert_array_equal(mean, est.predict(NEW))


@LANDMARKS
class TestFile:
    def test_it_comes_back(self, landmarks, tmp_path):
        est = fitted(y=TWO, weights=WEIGHTS, landmarks=landmarks)
        std = est.predict(NEW, return_std=True)[1]
        est.save(tmp_path / "m")
        loaded = gramian.load(tmp_path / "m")
        np.testing.assert_allclose(loaded.predict(NEW, return_std=True)[1], std, rtol=1e-9)
        np.testing.assert_array_equal(loaded.out_of_range(NEW), est.out_of_range(NEW))
        copy = pickle.loads(pickle.dumps(est))
        np.testing.assert_allclose(copy.predict(NEW, return_std=True)[1], std, rtol=1e-9)
        if landmarks is None:  # no n² numbers
            assert (tmp_path / "m").stat().st_size < 20_000
            assert len(pickle.dumps(est.model_)) < 20_000

    def test_it_is_asked_for_before_saving(self, landmarks, tmp_path):
        est = fitted(landmarks=landmarks)
        est.save(tmp_path / "m")
        loaded = gramian.load(tmp_path / "m")
        assert loaded.predict(NEW).shape == (40,)
        for ask in (lambda: loaded.predict(NEW, return_std=True), lambda: loaded.out_of_range(NEW)):
            with pytest.raises(ValueError, match=r"require the training rows.*before saving"):
                ask()
        with pytest.raises(ValueError, match=r"return_std=True.*--std"):
            loaded.model_.deviations(NEW)

    def test_the_next_fit_forgets_it(self, landmarks):
        est = fitted(landmarks=landmarks)
        first = est.predict(NEW, return_std=True)[1]
        est.set_params(warm_start=True).fit(X, 10 * Y)
        assert est.model_.variance is None
        np.testing.assert_allclose(est.predict(NEW, return_std=True)[1], 10 * first, rtol=1e-6)

    def test_files_of_before_have_none(self, landmarks, tmp_path):
        fitted(landmarks=landmarks).save(tmp_path / "m")
        rewrite(tmp_path / "m", lambda header, _: (header.pop("variance"), header.update(format=6)))
        assert gramian.load(tmp_path / "m").model_.variance is None


def rewrite(path, change):
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["gramian"])
        tensors = {name: xp.copy(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    change(header, tensors)
    write_tensors(path, tensors, {"gramian": json.dumps(header)})


DAMAGE = {
    "a negative scale": lambda h, t: xp.negative_(t["variance.scale"]),
    "noise that is no number": lambda h, t: xp.fill_(t["variance.noise"], np.nan),
    "of other targets": lambda h, t: t.update(
        {"variance.scale": xp.to_float64(np.ones(3, np.float32))}
    ),
    "of float32": lambda h, t: t.update({"variance.scale": np.ones(1, np.float32)}),
    "a limit that is none": lambda h, t: h["variance"].update(limit=-1.0),
    "no limit": lambda h, t: h["variance"].pop("limit"),
    "more": lambda h, t: h["variance"].update(more=1.0),
    "a text": lambda h, t: h.update(variance="much"),
    "no entry": lambda h, t: h.update(variance=None),
    "no scale": lambda h, t: t.pop("variance.scale"),
    "another tensor": lambda h, t: t.update(
        {"variance.more": xp.to_float64(np.ones(1, np.float32))}
    ),
}
OF_ROWS = {
    "a ridge of other rows": lambda h, t: t.update(
        {"variance.ridge": xp.to_float64(np.ones(3, np.float32))}
    ),
    "a negative ridge": lambda h, t: xp.negative_(t["variance.ridge"]),
    "a shift": lambda h, t: h["variance"].update(shift=0.1),
}
OF_LANDMARKS = {
    "no shift": lambda h, t: h["variance"].update(shift=None),
    "a shift of zero": lambda h, t: h["variance"].update(shift=0.0),
    "a factor of another size": lambda h, t: t.update(
        {"variance.T": xp.copy(t["variance.T"][:, 1:])}
    ),
    "a factor that is none": lambda h, t: t["variance.R"].fill(0.0),
    "an index beyond": lambda h, t: xp.add_(t["variance.index"], 5),
    "an index below": lambda h, t: xp.subtract_(t["variance.index"], 1),
    "an index of fractions": lambda h, t: t.update(
        {"variance.index": xp.to_float64(t["variance.index"])}
    ),
}


@pytest.mark.parametrize(
    ("landmarks", "change"),
    [
        *((None, change) for change in (DAMAGE | OF_ROWS).values()),
        *((15, change) for change in (DAMAGE | OF_LANDMARKS).values()),
    ],
    ids=[
        *(f"rows: {w}" for w in DAMAGE | OF_ROWS),
        *(f"landmarks: {w}" for w in DAMAGE | OF_LANDMARKS),
    ],
)
def test_a_damaged_variance_is_refused(landmarks, change, tmp_path):
    est = fitted(landmarks=landmarks)
    est.predict(NEW, return_std=True)
    est.save(tmp_path / "m")
    rewrite(tmp_path / "m", lambda header, tensors: None)
    gramian.load(tmp_path / "m")
    rewrite(tmp_path / "m", change)
    with pytest.raises(ValueError, match="damaged gramian model"):
        gramian.load(tmp_path / "m")


REASONS = [
    ({"cells": 30, "solver": "auto"}, "standard deviations.*each cell has its own"),
    ({"loss": "huber", "solver": "auto", "landmarks": 15}, "squared errors"),
    ({"early_stopping": True, "solver": "falkon", "landmarks": 15}, "early_stopping=False"),
]


@pytest.mark.parametrize(("settings", "reason"), REASONS, ids=[r for _, r in REASONS])
def test_what_has_none_says_why(settings, reason):
    est = fitted(**settings)
    for ask in (lambda: est.predict(NEW, return_std=True), lambda: est.out_of_range(NEW)):
        with pytest.raises(ValueError, match=reason):
            ask()
    assert est.predict(NEW).shape == (40,)


def test_classifiers_have_none():
    est = KernelRidgeClassifier(landmarks=None, penalty=1e-3, **PLAIN).fit(X, Y > 0)
    assert not hasattr(est, "out_of_range")
    assert not hasattr(est, "log_marginal_likelihood_")
    with pytest.raises(TypeError, match="return_std"):
        est.predict(NEW, return_std=True)


class TestMemory:
    def test_the_factor_must_fit(self, tmp_path):
        est = fitted(solver="pcg")
        est.memory_limit = "40MB"
        with pytest.raises(ValueError, match="80 rows need"):
            est.predict(NEW, return_std=True)
        est.memory_limit = None
        est.predict(NEW, return_std=True)
        est.save(tmp_path / "m")
        loaded = gramian.load(tmp_path / "m").set_params(memory_limit="40MB")
        with pytest.raises(ValueError, match=r"80 centers require .* but the memory limit is 40"):
            loaded.predict(NEW, return_std=True)

    def test_rows_come_in_blocks(self, monkeypatch):
        est = fitted(landmarks=40)
        many = np.random.default_rng(0).normal(size=(100_000, 2))
        expected = est.predict(many, return_std=True)[1]
        sizes, plain = [], LandmarkFactors.unexplained_variance

        def watched(self, K, diagonal):
            sizes.append(8 * xp.size(K))
            return plain(self, K, diagonal)

        monkeypatch.setattr(LandmarkFactors, "unexplained_variance", watched)
        std = est.model_.deviations(many, memory_bytes="50MB")
        np.testing.assert_allclose(std[:, 0], expected, rtol=1e-12)
        assert sum(sizes) == 8 * 40 * len(many)
        assert 3 * max(sizes) < 50_000_000
