"""Configurations: everything that a fit depends on, drawn from one seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from containers import CONTAINERS, SEQUENTIAL

from gramian import kernels, landmarks, solvers
from gramian.operators import compiled_tiles

ESTIMATORS = {
    "ridge": 0.66,
    "classifier": 0.14,
    "features": 0.05,
    "pca": 0.05,
    "cca": 0.03,
    "leverage": 0.04,
    "error": 0.03,
}
FULL = ("direct", "pcg", "askotch", "skotch", "eigenpro1", "eigenpro2")
NYSTROM = ("falkon", "falkon", "falkon", "direct", "sketchysaga", "sketchysaga", "eigenpro3")
SELECTORS = (
    "number", "auto", "points", "surplus", "uniform", "recursive_rls", "bless", "bless_r",
    "rpcholesky", "kmeans", "squeak", "two_pass", "exact_rls", "penalty",
)  # fmt: skip
LAYOUTS = ("normal", "uniform", "line", "grid", "repeated", "equal", "far", "skewed", "sparse")
SIZES = (2, 3, 5, 9, 17, 40, 65, 100, 150, 250, 400, 700, 900, 999, 1000, 1001, 1100, 1200)
EPOCHS = 60


@dataclass(frozen=True)
class Configuration:
    """One fit. `repr` is what the campaign prints; the data follow from it."""

    seed: int
    estimator: str
    kernel: Any
    lengthscale: Any
    n: int
    d: int
    targets: int
    layout: str
    dtype: str
    container: str
    weights: str
    penalty: float
    tol: float
    solver: Any
    selector: str
    landmarks: Any = field(repr=False)
    m: int | None = None
    engine: str = "auto"
    offset: float = 0.0
    scale: float = 1.0
    memory_limit: str | None = None

    @property
    def exact(self) -> bool:
        """Whether the answer of the solver is that of the problem, and not one on the way."""
        name = self.solver if isinstance(self.solver, str) else solvers.name_of(self.solver)
        return name != "eigenpro3" and self.penalty > 0

    def data(self) -> Data:
        """Return rows, targets and weights, in the dtype that the library gets."""
        rng = np.random.default_rng([self.seed, 1])
        X = points(self.layout, 2 * self.n, self.d, rng).astype(self.dtype)
        if self.container == "whole":
            X = np.round(X)
        smooth = np.sin(X[: self.n].astype(float) @ rng.normal(size=(self.d, self.targets)))
        y = smooth + 0.2 * rng.normal(size=smooth.shape) + self.offset
        w = observation_weights(self.weights, self.n, rng)
        seen = rng.permutation(self.n)[: max(1, self.n // 3)]
        return Data(X[: self.n], np.concatenate([X[self.n :], X[seen]]), self.scale * y, w)


@dataclass(frozen=True)
class Data:
    """Rows of training and of the test (new ones and some of training), targets, weights."""

    X: np.ndarray
    X_test: np.ndarray
    y: np.ndarray
    w: np.ndarray | None


def draw(seed: int, largest: int = SIZES[-1]) -> Configuration:
    """Return the configuration of a seed, with at most so many rows."""
    rng = np.random.default_rng([seed, 0])

    def one(values: Any, p: Any = None) -> Any:
        return values[rng.choice(len(values), p=p)]

    estimator = one(list(ESTIMATORS), list(ESTIMATORS.values()))
    n = int(one([size for size in SIZES if size <= largest]))
    d = int(one((1, 1, 2, 3, 8, 20)))
    container = one(CONTAINERS)
    dtype = "float64" if container == "list" else one(("float32", "float64"))
    kernel, lengthscale = _kernel(one, rng, d, container)
    penalty = float(10.0 ** rng.uniform(-9, 0))
    m = int(min(n, one((1, 2, 5, 10, 30, max(1, n // 10), max(1, n // 3), n))))
    selector = one(SELECTORS)
    full = estimator in ("ridge", "classifier") and rng.random() < 0.5
    if container in SEQUENTIAL and full:
        solver = one(("direct", "pcg"))
    else:
        solver = one(FULL if full else NYSTROM)
    if solver in ("eigenpro2", "eigenpro3") and rng.random() < 0.3:
        penalty = 0.0
    weighted = estimator in ("ridge", "classifier") and rng.random() < 0.5
    return Configuration(
        seed=seed,
        estimator=estimator,
        kernel=kernel,
        lengthscale=lengthscale,
        n=max(n, 4) if estimator != "ridge" else n,
        d=d,
        targets=1 if rng.random() < 0.7 else 3,
        layout="sparse" if container == "csr" else one(LAYOUTS),
        dtype=dtype,
        container=container,
        weights=one(("uniform", "whole", "wide")) if weighted else "none",
        penalty=penalty,
        tol=float(one((1e-3, 1e-6, 1e-8) if dtype == "float64" else (1e-3, 1e-5, 1e-6))),
        solver=_settings(solver, one),
        selector="none" if full else selector,
        landmarks=None if full else _landmarks(selector, m),
        m=None if full else m,
        engine=one(("auto", "native", "numpy") if compiled_tiles() else ("auto", "numpy")),
        offset=float(one((0.0, 0.0, 3.0, -100.0))),
        scale=float(one((1.0, 1.0, 1e-6, 1e6))),
        memory_limit=one((None, None, None, "100MB")),
    )


def _kernel(one: Any, rng: np.random.Generator, d: int, container: str) -> tuple[Any, Any]:
    """Return a kernel, by name or as an object, and its lengthscale."""
    name = one([name for name in kernels.names() if name != "l1_laplacian" or container != "csr"])
    per_feature = tuple(float(v) for v in np.round(rng.uniform(0.5, 4, d), 2))
    lengthscale = one(("median", "median", 1.0, 3.0, 0.05, 100.0, per_feature))
    if d > 1 and rng.random() < 0.12:
        return _of_columns(one, rng, d), "median"
    if rng.random() < 0.85:
        return name, lengthscale
    first = kernels.make(name, lengthscale=2.0)
    second = one((kernels.Linear(3.0), kernels.Gaussian(1.5), kernels.Matern32(4.0)))
    made = one(
        (0.3 * first + second, first * second, 7.0 * first, kernels.Polynomial(2.0, degree=2))
    )
    return made, "median"


def _of_columns(one: Any, rng: np.random.Generator, d: int) -> Any:
    """Return a sum or product of two kernels of columns, which may share some or leave some out."""
    parts = []
    for _ in range(2):
        columns = rng.permutation(d)[: rng.integers(1, min(d, 4) + 1)].tolist()
        each = tuple(float(v) for v in np.round(rng.uniform(0.5, 4, len(columns)), 2))
        kind = one((kernels.Gaussian, kernels.Matern52, kernels.Laplacian))
        parts.append(kind(one((each, each[0]))).on(columns))
    return one((parts[0] + parts[1], parts[0] * parts[1]))


def _landmarks(selector: str, m: int) -> Any:
    if selector == "number":
        return m
    if selector == "auto":
        return "auto"
    if selector == "penalty":
        return landmarks.BlessR(penalty=1e-3)
    return selector if selector in ("points", "surplus") else landmarks.make(selector, m=m)


def _settings(solver: str, one: Any) -> Any:
    """Return a solver, by name or with settings of its own."""
    return one(
        {
            "falkon": ("falkon", solvers.Falkon(None), solvers.Falkon(refine=True)),
            "askotch": ("askotch", solvers.ASkotch(block=20), solvers.ASkotch(block=30, rank=5,
                        block_solver="nystrom"), solvers.ASkotch(block=25, blocks="fixed"),
                        solvers.ASkotch(block=40, rank=10, blocks="fixed",
                        block_solver="nystrom")),
            "skotch": ("skotch", solvers.Skotch(block=20)),
            "pcg": ("pcg", solvers.PCG("nystrom"), solvers.PCG("greedy"), solvers.PCG("none"),
                    solvers.PCG("auto"), solvers.PCG("cells"), solvers.PCG("nystrom+cells")),
            "eigenpro2": ("eigenpro2", solvers.EigenPro2(subsample=50, batch=16)),
            "eigenpro3": ("eigenpro3", solvers.EigenPro3(projection="delayed", batch=16)),
            "sketchysaga": ("sketchysaga", solvers.SketchySAGA(batch=32)),
        }.get(solver, (solver,))
    )  # fmt: skip


def points(layout: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return n rows of d features of one kind."""
    X = rng.normal(size=(n, d))
    if layout == "uniform":
        return rng.uniform(-2, 2, size=(n, d))
    if layout == "line":
        return np.linspace(-3, 3, n)[:, None] * np.ones(d)
    if layout == "grid":
        return rng.integers(-2, 3, size=(n, d)).astype(float)
    if layout == "repeated":
        return X[rng.integers(0, max(1, n // 3), n)]
    if layout == "equal":
        return np.ones((n, d))
    if layout == "far":
        return 100 + X
    if layout == "skewed":
        return X * 10.0 ** rng.uniform(-2, 1, d)
    return np.where(rng.random((n, d)) < 0.7, 0.0, X) if layout == "sparse" else X


def observation_weights(kind: str, n: int, rng: np.random.Generator) -> np.ndarray | None:
    """Return weights of one kind, not all of them zero."""
    if kind == "none":
        return None
    if kind == "uniform":
        return rng.uniform(0.1, 2, n)
    if kind == "wide":
        return 10.0 ** rng.uniform(-2, 2, n)
    w = rng.integers(0, 4, n).astype(float)
    return np.where(np.arange(n) < 2, 1.0, w)
