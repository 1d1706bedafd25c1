"""Digests of fits, model files and plans: two commits give the same bits, or the names that differ.

`python -m benchmarks bits --work FOLDER` writes the digests of this commit to FOLDER/bits.json, and
compares them with a file of that name which is there.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import itertools
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gramian import (
    KernelCCA,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
)
from gramian.solvers import PCG, ASkotch

PLAIN = {
    "kernel": "gaussian", "lengthscale": 1.3, "penalty": 1e-4, "landmarks": None,
    "standardize": False, "random_state": 0,
}  # fmt: skip
SOLVERS: dict[str, dict[str, Any]] = {
    "direct": {"solver": "direct"},
    "pcg": {"solver": "pcg"},
    "pcg cells": {"solver": PCG("cells")},
    "falkon": {"solver": "falkon", "landmarks": 60},
    "askotch": {"solver": ASkotch(block=40), "max_iter": 20},
    "askotch fixed": {"solver": ASkotch(block=40, blocks="fixed"), "max_iter": 20},
    "skotch": {"solver": "skotch", "max_iter": 10},
    "sketchysaga": {"solver": "sketchysaga", "landmarks": 60, "max_iter": 20},
    "eigenpro2": {"solver": "eigenpro2", "penalty": 0.0, "max_iter": 5},
    "eigenpro3": {"solver": "eigenpro3", "penalty": 0.0, "landmarks": 60, "max_iter": 5},
}


def arrays(dtype: str = "float64", n: int = 400, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = np.sin(X @ np.arange(1, d + 1)) + 0.1 * rng.standard_normal(n) + 3
    return X.astype(dtype), y.astype(dtype)


def table(n: int = 400) -> pd.DataFrame:
    X, y = arrays(n=n)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.loc[::17, "a"] = np.nan
    frame["town"] = np.array(["Rome", "Oslo", "Bonn"])[rng.integers(0, 3, n)]
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    frame["y"] = y + (frame["town"] == "Oslo")
    return frame


def fits() -> Iterator[tuple[str, Callable[[], tuple[Any, Any]]]]:
    """Yield names of fits and functions that return a fitted model and rows to predict."""
    X, y = arrays()
    classes = np.array(["no", "maybe", "yes"])[np.digitize(y, [2.6, 3.4])]
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    for (name, settings), dtype in itertools.product(SOLVERS.items(), ("float32", "float64")):
        yield f"{name} {dtype}", lambda s=settings, t=dtype: ridge(s, t)
    yield "weights", lambda: (KernelRidge(**PLAIN).fit(X, y, weights), X)
    yield "two targets", lambda: (KernelRidge(**PLAIN).fit(X, np.c_[y, -y]), X)
    yield "classes", lambda: (KernelRidgeClassifier(**PLAIN).fit(X, classes), X)
    yield "landmarks by name", lambda: (
        KernelRidge(**PLAIN | {"landmarks": "bless", "penalty": 1e-3}).fit(X, y), X
    )  # fmt: skip
    for loss, target in {"logistic": y > 3, "softmax": classes}.items():
        yield f"loss {loss}", lambda loss=loss, target=target: (
            KernelRidgeClassifier(**PLAIN | {"loss": loss, "landmarks": 50}).fit(X, target), X
        )  # fmt: skip
    for loss, target in {"huber": y, "quantile": y, "poisson": np.round(np.exp(y / 3))}.items():
        yield f"loss {loss}", lambda loss=loss, target=target: (
            KernelRidge(**PLAIN | {"loss": loss, "landmarks": 50}).fit(X, target), X
        )  # fmt: skip
    yield "cells", lambda: (KernelRidge(**PLAIN | {"cells": 100}).fit(X, y), X)
    yield "automatic cells", lambda: (
        KernelRidge(**PLAIN | {"cells": 150, "penalty": "auto", "lengthscale": "auto"}).fit(X, y), X
    )  # fmt: skip
    yield "defaults", lambda: (KernelRidge(random_state=0).fit(X, y), X)
    yield "defaults of a class", lambda: (
        KernelRidgeClassifier(random_state=0).fit(X, classes), X
    )  # fmt: skip
    yield "lengthscales by column", lambda: (
        KernelRidge(**PLAIN | {"lengthscale": [1.0, 2.0, 3.0]}).fit(X, y), X
    )  # fmt: skip
    yield "early stopping", lambda: (
        KernelRidge(**PLAIN | {"solver": "pcg", "early_stopping": True}).fit(X, y), X
    )  # fmt: skip
    yield "split conformal", lambda: (
        KernelRidge(**PLAIN | {"conformal": "split"}).fit(X, y), X
    )  # fmt: skip
    yield (
        "frame",
        lambda: (
            KernelRidge(random_state=0).fit(table().drop(columns="y"), table()["y"]),
            table().drop(columns="y"),
        ),
    )
    yield "search", lambda: (KernelRidgeCV(budget=300, random_state=0).fit(X, y), X)
    yield "search of a class", lambda: (
        KernelRidgeClassifierCV(budget=300, random_state=0).fit(X, classes), X
    )  # fmt: skip
    yield (
        "search of a frame",
        lambda: (
            KernelRidgeCV(budget=300, random_state=0).fit(table().drop(columns="y"), table()["y"]),
            table().drop(columns="y"),
        ),
    )
    yield "partial_fit", lambda: (
        KernelRidge(**PLAIN | SOLVERS["eigenpro3"]).fit(X[:300], y[:300])
        .partial_fit(X[300:], y[300:]), X,
    )  # fmt: skip
    yield "warm start", warm_start
    yield "pca", lambda: (KernelPCA(3, kernel="gaussian", random_state=0).fit(X), X)
    yield "cca", lambda: (KernelCCA(1, kernel="gaussian", random_state=0).fit(X, y), X)


def ridge(settings: dict[str, Any], dtype: str) -> tuple[Any, Any]:
    X, y = arrays(dtype)
    return KernelRidge(**PLAIN | settings).fit(X, y), X


def warm_start() -> tuple[Any, Any]:
    X, y = arrays()
    model = KernelRidge(**PLAIN | {"solver": "pcg", "max_iter": 3, "warm_start": True})
    model.fit(X, y)
    return model.set_params(max_iter=10).fit(X, y), X


def digest(model: Any, X: Any, folder: Path) -> dict[str, str]:
    """Return digests of what a fitted model answers, and of its file."""
    found: dict[str, str] = {}
    for method in ("predict", "transform", "predict_proba"):
        if hasattr(model, method):
            answers = np.asarray(getattr(model, method)(X))
            found[method] = hashlib.sha256(str(answers.tolist()).encode()).hexdigest()[:16]
    if hasattr(model, "save"):
        path = folder / "a.model"
        model.save(path)
        found["file"] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        path.unlink()
    return found


def plans() -> Iterator[tuple[str, str]]:
    """Yield 2,000 plans, without the seconds, which are measured."""
    sizes = [(n, d) for n in (1, 20, 300, 4_000, 50_000, 10**6, 10**8) for d in (1, 8, 90)]
    for n, d in sizes:
        X = np.broadcast_to(np.float32(0), (n, d))
        for settings, landmarks, penalty in itertools.product(
            ("auto", "direct", "pcg", "falkon", "askotch", "skotch", "sketchysaga", "eigenpro3"),
            (None, 10, 500, "auto"), (0.0, 1e-6, "auto"),
        ):  # fmt: skip
            name = f"{n} {d} {settings} {landmarks} {penalty}"
            try:
                model = KernelRidge(
                    "gaussian", lengthscale=1.0, solver=settings, landmarks=landmarks,
                    penalty=penalty,
                )  # fmt: skip
                plan = model.plan(X)
                text = repr({**dataclasses.asdict(plan), "seconds": None})
            except ValueError as error:
                text = str(error)
            yield name, hashlib.sha256(text.encode()).hexdigest()[:16]


def main(options: argparse.Namespace) -> None:
    digests: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fit in fits():
            digests[name] = digest(*fit(), Path(folder))
        if not options.quick:
            digests["plans"] = dict(plans())
    print(f"{len(digests)} fits, {len(digests.get('plans', ()))} plans")
    path = Path(options.work or ".") / "bits.json"
    if not path.is_file():
        path.write_text(json.dumps(digests, indent=1) + "\n")
        print(f"written to {path}")
        return
    before = json.loads(path.read_text())
    different = [name for name in digests if digests[name] != before.get(name, digests[name])]
    print(f"compared with {path}: {len(different)} differ{': ' if different else ''}"
          f"{', '.join(different)}")  # fmt: skip
    for name in different:
        print(name, *(k for k in digests[name] if digests[name][k] != before[name].get(k)))
    if different:
        raise SystemExit(1)
