"""Dense solvers on explicit features: damped Newton, and an interior point for quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian import _arrays as xp
from gramian.losses import Loss

STEPS = 200
SMALL = 1e-13
"""A gradient below this ends a run."""

CENTERED = 0.1
"""The barrier of a step, in units of the gap before it."""

BOUNDARY = 0.995
"""Share of the way to the boundary that a step may take."""


@dataclass
class Ended:
    """Coefficients of features, and how many steps they took."""

    b: np.ndarray
    steps: int


def newton(
    F: np.ndarray,
    loss: Loss,
    y: np.ndarray,
    penalty: float,
    outputs: int,
    w: np.ndarray | None = None,
) -> Ended:
    """Return the minimum, by Newton steps with the whole second derivative, halved if too long."""
    w = np.full((len(F),), 1 / len(F), dtype=np.float64) if w is None else w / w.sum()
    b = np.zeros((F.shape[1], outputs), np.float64)

    def value(f: np.ndarray, b: np.ndarray) -> float:
        return float((w[:, None] * loss.values(f, y)).sum() + penalty / 2 * np.square(b).sum())

    f = F @ b
    for step in range(STEPS):
        g = F.T @ (w[:, None] * loss.slopes(f, y)) + penalty * b
        if float(np.abs(g).max()) < SMALL:
            return Ended(b, step)
        change = np.linalg.solve(_second(F, f, loss, y, penalty, w), -g.T.reshape(-1))
        change = change.reshape(outputs, -1).T
        size, along, now = 1.0, F @ change, value(f, b)
        while size > SMALL and not value(f + size * along, b + size * change) <= now:
            size /= 2
        if size <= SMALL:
            return Ended(b, step)
        b, f = b + size * change, f + size * along
    return Ended(b, STEPS)


def _second(
    F: np.ndarray, f: np.ndarray, loss: Loss, y: np.ndarray, penalty: float, w: np.ndarray
) -> np.ndarray:
    """Return the second derivative, outputs one after the other."""
    q, r = f.shape[1], F.shape[1]
    H = np.zeros((q, r, q, r), np.float64)
    for c in range(q):
        unit = np.zeros_like(f)
        unit[:, c] = 1
        curved = loss.curvature_product(f, y, unit)
        for e in range(c, q):
            if e == c or loss.coupled:
                block = F.T @ ((w * curved[:, e])[:, None] * F)
                H[e, :, c] = H[c, :, e] = block  # which is symmetric
    H = H.reshape(q * r, q * r)
    xp.add_(xp.diagonal(H), penalty)
    return H


@dataclass
class Bounded(Ended):
    """With the least value that the objective can have."""

    least: float


def quantile(F: np.ndarray, y: np.ndarray, level: float, penalty: float) -> Bounded:
    """Return the minimum of the mean pinball loss and penalty / 2 |b|^2, and a bound from its dual.

    The dual is max a'y - |G'a|^2 / 2 over level - 1 <= a <= level, G = F / sqrt(n penalty): a
    primal-dual interior point, each step a system of as many unknowns as there are features.
    """
    n = len(F)
    G = F / (n * penalty) ** 0.5
    a = np.full((n,), level - 0.5, dtype=np.float64)
    low, high = level - 1, level
    z = np.ones((2, n), np.float64)
    best: Bounded | None = None
    for step in range(STEPS):
        b = G.T @ a
        room = np.stack([a - low, high - a])
        left = y - G @ b
        found = Bounded(b / (n * penalty) ** 0.5, step, float(a @ y - b @ b / 2) / n)
        primal = float(np.maximum(level * left, (level - 1) * left).sum() + b @ b / 2) / n
        if best is not None and primal - found.least > 0.999 * gap:
            return best
        best, gap = found, primal - found.least
        if gap < SMALL * abs(primal):
            return best
        barrier = CENTERED * float((z * room).sum()) / (2 * n)
        D = (z / room).sum(axis=0)
        rhs = left + barrier * (1 / room[0] - 1 / room[1])
        inner = np.eye(G.shape[1], dtype=np.float64) + G.T @ (G / D[:, None])
        da = rhs / D
        da = da - (G @ np.linalg.solve(inner, G.T @ da)) / D
        moved = np.stack([da, -da])
        dz = (barrier - z * moved) / room - z
        size = min(1.0, *(BOUNDARY * _room(x, dx) for x, dx in ((room, moved), (z, dz))))
        a, z = a + size * da, z + size * dz
    assert best is not None
    return best


def _room(x: np.ndarray, dx: np.ndarray) -> float:
    """Return the largest step with x + step dx >= 0."""
    shrinks = dx < 0
    return float((-x[shrinks] / dx[shrinks]).min()) if bool(shrinks.any()) else float("inf")
