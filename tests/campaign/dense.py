"""The answers in NumPy and SciPy, float64 and dense: nothing here imports gramian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from formulas import exact as matrix

EPS = float(np.finfo(np.float64).eps)


def diagonal(kernel: Any, X: np.ndarray) -> np.ndarray:
    """Return k(x, x) of each row."""
    return np.array([matrix(kernel, x[None], x[None])[0, 0] for x in X])


@dataclass(frozen=True)
class Problem:
    """What there is to solve.

    Attributes
    ----------
    K, K_test : ndarray of shape (n, m), (r, m)
        Rows of training and of the test against the centers.
    K_mm : ndarray of shape (m, m), or None
        None: all rows are centers.
    sides : three ndarrays of shape (n,), (r,), (m,)
        k(x, x) of rows of training, of the test, and centers.
    y, w : ndarray of shape (n, t), (n,)
    penalty : float
    noise : float
        Error of a kernel entry in units of sqrt(k(x, x) k(z, z)).
    """

    K: np.ndarray
    K_test: np.ndarray
    K_mm: np.ndarray | None
    sides: tuple[np.ndarray, np.ndarray, np.ndarray]
    y: np.ndarray
    w: np.ndarray
    penalty: float
    noise: float


@dataclass(frozen=True)
class Answer:
    """What a fit should predict, and how far a fit may be from it.

    Attributes
    ----------
    values : ndarray of shape (r, t)
        At the rows of the test.
    blurred : float
        How far `values` move, as a root mean square relative to the targets, if each kernel entry
        is off by `noise` at random, in the fit or in the prediction alone, or directions of K_mm at
        rounding are left out or not: what rounding may do.
    gain : float
        The largest error of the values, in the same units, for a relative residual of 1.
    fitted : ndarray of shape (n, t)
        At the rows of training.
    """

    values: np.ndarray
    blurred: float
    gain: float
    fitted: np.ndarray


def scale(y: np.ndarray) -> np.ndarray:
    """Return the root mean square of each column, one where that is zero."""
    found = np.sqrt(np.mean(y**2, axis=0))
    return np.where(found > 0, found, 1.0)


def relative(error: np.ndarray, y: np.ndarray) -> float:
    """Return the largest root mean square of the columns of an error over those of y."""
    return float(np.sqrt(np.mean((error / scale(y)) ** 2, axis=0)).max())


def full(p: Problem, rng: np.random.Generator) -> Answer:
    """Return the answer for all rows as centers: (K + N penalty / W) coef = y."""
    ridge = np.diag(p.w.sum() * p.penalty / p.w)
    train, test, _ = p.sides

    coef = _solve(p.K + ridge, p.y)
    values = p.K_test @ coef
    in_fit, in_test = _noise(train, train, p.noise, rng), _noise(test, train, p.noise, rng)
    moved = p.K_test @ _solve(p.K + _symmetric(in_fit) + ridge, p.y)
    gain = np.linalg.norm(_solve(p.K + ridge, p.K_test.T), 2) * np.sqrt(len(p.y) / len(test))
    blurred = max(relative(moved - values, p.y), relative(in_test @ coef, p.y))
    return Answer(values, blurred, float(gain), p.K @ coef)


def nystrom(p: Problem, rng: np.random.Generator) -> Answer:
    """Return the answer for m landmarks: least squares on features of K_mm, with a ridge.

    `gain` is that of a residual in coordinates in which the Hessian is the identity, as those of
    FALKON nearly are.
    """
    root_w, N = np.sqrt(p.w)[:, None], p.w.sum()
    E = root(p.K_mm)
    train, test, centers = p.sides
    stacked_y = np.concatenate([root_w * p.y, np.zeros((len(E), p.y.shape[1]))])

    def solved(K: np.ndarray, E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ridge = np.sqrt(N * p.penalty) * np.eye(E.shape[1])
        stacked = np.concatenate([root_w * (K @ E), ridge])
        return E @ scipy.linalg.lstsq(stacked, stacked_y[: len(stacked)])[0], stacked

    coef, stacked = solved(p.K, E)
    values = p.K_test @ coef
    in_fit, in_test = _noise(train, centers, p.noise, rng), _noise(test, centers, p.noise, rng)
    moved = p.K_test @ solved(p.K + in_fit, E)[0]
    # which of the directions of K_mm at rounding are left out is the algorithm's choice
    roots = [root(p.K_mm, EPS / 30), root(p.K_mm, 30 * EPS), pivoted_root(p.K_mm)]
    others = [p.K_test @ solved(p.K, other)[0] for other in roots]
    blurred = max(relative(x - values, p.y) for x in (moved, *others))
    blurred = max(blurred, relative(in_test @ coef, p.y))
    Q, R = scipy.linalg.qr(stacked, mode="economic")
    pulled = np.linalg.norm(Q.T @ stacked_y[: len(stacked)], axis=0)
    whitened = scipy.linalg.solve_triangular(R.T, (p.K_test @ E).T, lower=True)
    return Answer(values, blurred, _gain(whitened, pulled, p), p.K @ coef)


def _gain(from_residual: np.ndarray, rhs: np.ndarray, p: Problem) -> float:
    """Return the largest relative error of the values for a residual as large as the rhs."""
    norm = np.linalg.norm(from_residual, 2) / np.sqrt(len(p.K_test))
    return float(np.max(norm * rhs / scale(p.y)))


def root(K_mm: np.ndarray, cut: float = EPS) -> np.ndarray:
    """Return V E^(-1/2) of the eigenvalues above m · cut times the largest."""
    values, vectors = scipy.linalg.eigh(K_mm)
    keep = values > len(values) * cut * max(values[-1], 1e-300)
    return vectors[:, keep] / np.sqrt(values[keep])


def pivoted_root(K_mm: np.ndarray) -> np.ndarray:
    """Return E with E'K_mm E = I, of the columns whose pivots are above m · EPS of the largest."""
    cut = len(K_mm) * EPS * max(float(K_mm.diagonal().max()), 1e-300)
    R, order, rank, _ = scipy.linalg.lapack.dpstrf(K_mm, tol=cut)
    E = np.zeros((len(K_mm), rank))
    E[order[:rank] - 1] = scipy.linalg.solve_triangular(R[:rank, :rank], np.eye(rank))
    return E


def leverage(K: np.ndarray, penalty: float) -> np.ndarray:
    """Return the ridge leverage scores of all rows."""
    shift = len(K) * penalty
    return np.diag(_solve(K + shift * np.eye(len(K)), K)).copy()


def components(F: np.ndarray, F_test: np.ndarray, cut: float) -> np.ndarray:
    """Return features of the test in the principal components of those of training."""
    mean = F.mean(axis=0)
    _, s, Vt = np.linalg.svd(F - mean, full_matrices=False)
    rounding = EPS * (F**2).sum()  # the variance of rows that are all the same
    return (F_test - mean) @ Vt[s**2 > max(cut * (s**2).sum(), rounding, 1e-300)].T


def correlations(F: np.ndarray, G: np.ndarray, penalty: float, k: int) -> np.ndarray:
    """Return the k largest regularised canonical correlations between two sets of features."""
    F, G = F - F.mean(axis=0), G - G.mean(axis=0)

    def whitened(F: np.ndarray) -> np.ndarray:
        U, s, _ = np.linalg.svd(F, full_matrices=False)
        return U * (s / np.sqrt(s**2 + len(F) * penalty))

    return np.linalg.svd(whitened(F).T @ whitened(G), compute_uv=False)[:k]


def _solve(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    try:
        return scipy.linalg.cho_solve(scipy.linalg.cho_factor(A), b)
    except np.linalg.LinAlgError:
        return scipy.linalg.lstsq(A, b)[0]


def _noise(left: np.ndarray, right: np.ndarray, noise: float, rng: np.random.Generator) -> Any:
    """Return random errors of entries, in units of sqrt(k(x, x) k(z, z))."""
    scale = np.sqrt(left)[:, None] * np.sqrt(right)
    return noise * scale * rng.normal(size=scale.shape)


def _symmetric(E: np.ndarray) -> np.ndarray:
    return np.triu(E, 1) + np.triu(E, 1).T
