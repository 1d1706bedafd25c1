"""Fit one configuration and compare it with the dense answer, each estimator in its own way."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import configuration
import dense
import numpy as np
from configuration import Configuration, Data
from containers import contained
from verdict import NOISE, REFUSED, WRONG, Verdict, compared, early, precision, within

import gramian
from gramian import KernelModel
from gramian import _arrays as xp

HARMLESS = ("landmarks were asked for but there are", "keeping")
"""Warnings that say nothing of the accuracy."""


Judged = Callable[[list[str]], Verdict]
"""From warnings to a verdict."""


def judge(c: Configuration) -> Verdict:
    """Fit, predict and compare."""
    data = c.data()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = CHECKS[c.estimator](c, data, Path(folder))
        except (ValueError, FloatingPointError, MemoryError) as error:
            return Verdict(REFUSED, note=f"{type(error).__name__}: {error}")
        except Exception as error:
            return Verdict(WRONG, np.inf, note=f"{type(error).__name__}: {error}")
    said = [str(w.message) for w in caught]
    said = [text for text in said if not any(known in text for known in HARMLESS)]
    return found(said)


# --- the estimators ----------------------------------------------------------------------------


def _ridge(c: Configuration, data: Data, folder: Path) -> Judged:
    classifier = c.estimator == "classifier"
    est = (gramian.KernelRidgeClassifier if classifier else gramian.KernelRidge)(
        c.kernel,
        standardize=False,  # the judge knows the problem as it is given
        lengthscale=c.lengthscale,
        penalty=c.penalty,
        landmarks=_landmarks(c, data),
        solver=c.solver,
        max_iter=configuration.EPOCHS if "eigenpro" in str(c.solver).lower() else 200,
        tol=c.tol,
        engine=c.engine,
        memory_limit=c.memory_limit,
        random_state=c.seed,
    )
    y, codes = _coded(c, data) if classifier else (data.y, data.y)
    est.fit(_in(c, data.X, folder / "train"), y, data.w)
    predict = est.decision_function if classifier else est.predict
    values = predict(_in(c, data.X_test, folder / "test")).reshape(len(data.X_test), -1)
    if c.seed % 8 == 0:
        est.model_.save(folder / "saved.model")
        again = KernelModel.load(folder / "saved.model").predict(
            _in(c, data.X_test, folder / "test"), engine=est.engine_
        )
        if dense.relative(again - values, codes) > 1e-6:
            return lambda said: Verdict(WRONG, np.inf, note="a loaded model predicts otherwise")
    answer = _answer(c, data, codes, est)
    reported = _reported(est)
    if not c.exact:
        seen = slice(None) if data.w is None else data.w > 0
        fitted = predict(_in(c, data.X, folder / "train")).reshape(len(data.X), -1)
        return lambda said: early(c, codes[seen], fitted[seen], answer, said)
    claimed = float(est.history_[-1].get("prediction_error", 0.0)) if est.history_ else 0.0
    return lambda said: compared(
        c, codes, values, answer, reported, est.stop_reason_, said, claimed
    )


def _answer(c: Configuration, data: Data, y: np.ndarray, est: Any) -> dense.Answer:
    w = np.ones(c.n) if data.w is None else data.w
    seen = w > 0
    X, y, w = data.X[seen].astype(float), y[seen], w[seen]
    test, rng = data.X_test.astype(float), np.random.default_rng([c.seed, 2])
    if est.landmarks is None:
        Z = X
    else:
        centers = est.model_.centers.take(np.arange(len(est.dual_coef_)))
        Z = xp.to_float64(xp.to_dense(centers))
        if est.landmark_index_ is not None and not np.array_equal(X[est.landmark_index_], Z):
            raise AssertionError("landmark_index_ are not the rows that are centers")
    kernel = est.kernel_
    K, K_test, K_mm = (dense.matrix(kernel, A, Z) for A in (X, test, Z))
    sides = tuple(dense.diagonal(kernel, A) for A in (X, test, Z))
    full, noise = est.landmarks is None, NOISE[precision(c)]
    p = dense.Problem(K, K_test, None if full else K_mm, sides, y, w, c.penalty or 1e-6, noise)
    return dense.full(p, rng) if full else dense.nystrom(p, rng)


def _features(c: Configuration, data: Data, folder: Path) -> Judged:
    est = gramian.NystromTransformer(**_common(c, data)).fit(_in(c, data.X, folder / "train"))
    F = est.transform(_in(c, data.X_test, folder / "test")).astype(float)
    kernel, Z = est.kernel_, est.components_.astype(float)
    return _products(c, F @ F.T, kernel, data.X_test.astype(float), Z)


def _pca(c: Configuration, data: Data, folder: Path) -> Judged:
    est = gramian.KernelPCA(**_common(c, data)).fit(_in(c, data.X, folder / "train"))
    F = est.transform(_in(c, data.X_test, folder / "test")).astype(float)
    Z = xp.to_float64(est.map_.points)
    return _products(c, F @ F.T, est.kernel_, data.X_test.astype(float), Z, data.X.astype(float))


def _products(
    c: Configuration, found: np.ndarray, kernel: Any, test: np.ndarray, Z: np.ndarray,
    train: np.ndarray | None = None,
) -> Judged:  # fmt: skip
    """Compare inner products of features, centered by the rows of training if these are given."""

    def expected(cut: float) -> np.ndarray:
        E = dense.root(dense.matrix(kernel, Z, Z), cut)
        F = dense.matrix(kernel, test, Z) @ E
        if train is not None:
            F = dense.components(dense.matrix(kernel, train, Z) @ E, F, cut)
        return F @ F.T

    exact = expected(1e-15)
    scale = max(np.abs(exact).max(), np.abs(dense.matrix(kernel, test, test)).max())
    cut = {"float32": 1e-5, "float64": 1e-14}[precision(c)]
    doubt = max(np.abs(expected(cut * f) - exact).max() for f in (1.0, 10.0))
    allowed = 3 * doubt / scale + {"float32": 3e-3, "float64": 1e-6}[precision(c)]
    return within(np.abs(found - exact).max() / scale, allowed)


def _cca(c: Configuration, data: Data, folder: Path) -> Judged:
    penalty = max(c.penalty, 1e-4)
    est = gramian.KernelCCA(1, penalty=penalty, **_common(c, data))
    est.fit(_in(c, data.X, folder / "train"), data.y)
    sides = ((est.kernel_, est.map_, data.X), (est.kernel_y_, est.map_y_, data.y))
    F, G = (
        dense.matrix(kernel, X.astype(float), (Z := xp.to_float64(mapping.points)))
        @ dense.root(dense.matrix(kernel, Z, Z), 1e-15)
        for kernel, mapping, X in sides
    )
    expected = dense.correlations(F, G, penalty, 1)
    allowed = {"float32": 3e-3, "float64": 1e-6}[precision(c)]
    return within(np.abs(est.correlations_ - expected).max(), allowed)


def _leverage(c: Configuration, data: Data, folder: Path) -> Judged:
    kernel = landmarks_kernel(c, data)
    rows, penalty = _in(c, data.X, folder / "train"), max(c.penalty, 1e-7)
    found = gramian.leverage_scores(kernel, rows, penalty, "exact", engine=c.engine)
    X = data.X.astype(float)
    K = dense.matrix(kernel, X, X)
    error = np.abs(found - dense.leverage(K, penalty)).max()
    rounding = np.finfo(float).eps * np.trace(K) / (len(K) * penalty)  # of K next to its ridge
    return within(error, 1e-6 + rounding)


def _error(c: Configuration, data: Data, folder: Path) -> Judged:
    kernel, X = landmarks_kernel(c, data), data.X.astype(float)
    Z = data.X[: max(1, c.n // 4)]
    rows, norm = _in(c, data.X, folder / "train"), ("spectral", "frobenius", "trace")[c.seed % 3]
    found = gramian.nystrom_error(kernel, rows, Z, norm, engine=c.engine, random_state=c.seed)
    K = dense.matrix(kernel, X, X)
    values = []
    for cut in (1e-16, 1e-15, 1e-5 if precision(c) == "float32" else 1e-13):
        F = dense.matrix(kernel, X, Z.astype(float))
        F = F @ dense.root(dense.matrix(kernel, Z.astype(float), Z.astype(float)), cut)
        values.append(_norm(K - F @ F.T, norm))
    scale = _norm(K, norm)
    doubt = (max(values) - min(values)) / scale
    return within(abs(found - values[0]) / scale, 3e-3 * values[0] / scale + 3 * doubt + 1e-6)


def _norm(A: np.ndarray, norm: str) -> float:
    if norm == "trace":
        return float(np.trace(A))
    return float(np.linalg.norm(A, 2 if norm == "spectral" else "fro"))


def _common(c: Configuration, data: Data) -> dict[str, Any]:
    given = _landmarks(c, data)
    settings = {"kernel": c.kernel, "lengthscale": c.lengthscale, "landmarks": given}
    return settings | {"engine": c.engine, "random_state": c.seed}


def landmarks_kernel(c: Configuration, data: Data) -> Any:
    """Return the kernel as an object with a lengthscale of its own."""
    if not isinstance(c.kernel, str):
        return c.kernel
    spread = float(data.X.astype(float).std()) or 1.0
    return gramian.kernels.make(
        c.kernel, lengthscale=spread if c.lengthscale == "median" else c.lengthscale
    )


def _landmarks(c: Configuration, data: Data) -> Any:
    if isinstance(c.landmarks, str) and c.landmarks == "points":
        return data.X[: c.m] + np.asarray(0.01, data.X.dtype)
    if isinstance(c.landmarks, str) and c.landmarks == "surplus":  # more centers than rows
        steps = np.arange(1, 3, dtype=data.X.dtype) / 100
        return np.concatenate([data.X + step for step in steps])[: 3 * c.n // 2 + 1]
    return c.landmarks


def _in(c: Configuration, X: np.ndarray, folder: Path) -> Any:
    folder.mkdir(exist_ok=True)
    return contained(X, c.container, folder)


def _coded(c: Configuration, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Return labels, and the codes that the classifier should make of them."""
    k = 2 if c.targets == 1 else 3
    y = data.y[:, 0]
    edges = np.quantile(y, np.linspace(0, 1, k + 1)[1:-1])
    label = np.searchsorted(edges, y)
    label[:k] = np.arange(k)[: len(label)]
    if k == 2:
        return np.array(["no", "yes"])[label], (2.0 * label - 1)[:, None]
    codes = np.full((len(y), k), -1 / (k - 1))
    codes[np.arange(len(y)), label] = 1.0
    return label, codes


def _reported(est: Any) -> float:
    """Return the residual that the solver reported in the end: 0 for a closed form."""
    return float(est.history_[-1].get("rel_residual", 0.0)) if est.history_ else 0.0


CHECKS: dict[str, Callable[[Configuration, Data, Path], Judged]] = {
    "ridge": _ridge,
    "classifier": _ridge,
    "features": _features,
    "pca": _pca,
    "cca": _cca,
    "leverage": _leverage,
    "error": _error,
}
