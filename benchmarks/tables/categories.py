"""Test error with the encoding of tables, one-hot of everything, and boosting on three sets."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder

from gramian import KernelRidge, KernelRidgeClassifier, TableEncoder
from gramian.data import sample_path

from ..lib.results import Row, shown, write
from ..lib.sets import data_set

ROWS, MANY = 20_000, 20
KERNELS = ("gaussian", "l1_laplacian")
MULTIPLES, PENALTIES = (0.25, 0.5, 1.0, 2.0), (1e-4, 1e-6)
CHOICE_ROWS, CHOICE_LANDMARKS, LANDMARKS = 4000, 400, 1000
SEEDS = (0,)
NOTES = f"""\
At most {ROWS:,} training rows, the whole test part. Error: share of wrong labels, or RMSE in
thousands of dollars. Kernel, lengthscale ({MULTIPLES} times the median distance) and penalty
{PENALTIES} are chosen with {CHOICE_ROWS:,} of the training rows and {CHOICE_LANDMARKS} landmarks on
a fifth of the training rows that is held out; then all training rows and {LANDMARKS:,} landmarks.
Seeds choose rows, folds and landmarks.

- kddcup: protocol, service (66 levels) and flag are categories again; 23 classes.
- adult: the 123 binary columns are 14 attributes again, native country of 41 levels; where all
  columns of an attribute are zero, it is missing.
- california cells: longitude and latitude are replaced by the cell of a fifth of a degree.
- encoder: `TableEncoder(max_levels={MANY})`; one-hot: a column for each level of every category;
  smoothing 20 and
  auto: scikit-learn's `TargetEncoder` in the place of our means, log counts as ours.
- in-sample means: `fit(X, y).transform(X)`, the error that cross-fitting avoids.
- boosting: `HistGradientBoosting`, default settings, `categorical_features="from_dtype"`."""

ADULT = {
    "age": 5, "workclass": 8, "fnlwgt": 5, "education": 16, "education_num": 5, "marital": 7,
    "occupation": 14, "relationship": 6, "race": 5, "sex": 2, "capital_gain": 2, "capital_loss": 2,
    "hours": 5, "native_country": 41,
}  # fmt: skip


@dataclass
class Split:
    """A table with categories, cut in two."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray

    def held_out(self, seed: int) -> Split:
        """Cut the training rows in two."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        take, give = order[: len(order) // 5], order[len(order) // 5 :][:CHOICE_ROWS]
        return Split(self.X.iloc[give], self.y[give], self.X.iloc[take], self.y[take])


def kddcup(path: Path) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    table = pd.read_parquet(path)
    X = table.drop(columns=["target", "split"])
    for name in ("Atr-1", "Atr-2", "Atr-3"):
        X[name] = X[name].astype(int).astype(str).astype("category")
    return X, table["target"].astype(str).to_numpy(object), table["split"].to_numpy()


def adult(path: Path) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    table = pd.read_parquet(path)
    bits, X, start = table.drop(columns=["target", "split"]).to_numpy(), {}, 0
    for name, levels in ADULT.items():
        part = bits[:, start : start + levels]
        if part.sum(axis=1).max() > 1:
            raise ValueError(f"the columns of {name} exclude each other no more")
        codes = np.where(part.any(axis=1), part.argmax(axis=1), -1)
        X[name] = pd.Categorical.from_codes(codes, [f"{k}" for k in range(levels)])
        start += levels
    return pd.DataFrame(X), table["target"].astype(str).to_numpy(object), table["split"].to_numpy()


def cell_of(degrees: pd.Series) -> pd.Series:
    return (5 * degrees).round().astype(int).astype(str)


def california_cells(path: Path) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    table = pd.read_parquet(path)
    X = table.drop(columns=["target", "split", "longitude", "latitude"])
    cells = cell_of(table["longitude"]) + " " + cell_of(table["latitude"])
    return (
        X.assign(cell=cells.astype("category")),
        table["target"].to_numpy() / 1000,
        table["split"],
    )


READERS = {"california_cells": california_cells, "adult_a9a": adult, "kddcup": kddcup}


def split_of(name: str, folder: str, rows: int, seed: int) -> Split | None:
    """Return at most so many training rows, and all test rows."""
    sample = sample_path("california_housing") if name == "california_cells" else None
    path = sample or data_set(folder, name)
    if path is None:
        return None
    X, y, part = READERS[name](path)
    train, test = np.flatnonzero(part == 0), np.flatnonzero(part == 1)
    train = np.random.default_rng(seed).permutation(train)[:rows]
    return Split(X.iloc[train], y[train], X.iloc[test], y[test])


def error(prediction: np.ndarray, y: np.ndarray) -> float:
    """Return the share of wrong labels, or the RMSE."""
    if y.dtype == object:
        return float((prediction != y).mean())
    return float(np.sqrt(((prediction - y) ** 2).mean()))


def replaced(smooth: float | str) -> Callable[[pd.DataFrame, int], object]:
    """Return an encoder that has scikit-learn's means in the place of ours."""

    def make(X: pd.DataFrame, seed: int) -> object:
        categories = X.select_dtypes("category")
        many = [name for name in categories if X[name].nunique() > MANY]
        means = make_pipeline(TargetEncoder(smooth=smooth, random_state=seed), StandardScaler())
        rest = [name for name in X if name not in many]
        return ColumnTransformer([
            ("rest", TableEncoder(max_levels=MANY, random_state=seed), rest),
            ("means", means, many),
            ("counts", Counts(max_levels=MANY), many),
        ])  # fmt: skip

    return make


class Counts(TableEncoder):
    """The log counts alone."""

    def fit_transform(self, X, y=None, **params):
        return super().fit_transform(X)

    def fit(self, X, y=None):
        return super().fit(X)


class InSample(TableEncoder):
    """A control that is wrong: training rows see their own target."""

    def fit_transform(self, X, y=None, **params):
        return self.fit(X, y).transform(X)


ENCODERS: dict[str, Callable[[pd.DataFrame, int], object]] = {
    "encoder": lambda X, seed: TableEncoder(max_levels=MANY, random_state=seed),
    "one-hot": lambda X, seed: TableEncoder(max_levels=10**6, random_state=seed),
    "smoothing 20": replaced(20.0),
    "smoothing auto": replaced("auto"),
    "in-sample means": lambda X, seed: InSample(max_levels=MANY, random_state=seed),
}


def encoded(make: Callable[[pd.DataFrame, int], object], split: Split, seed: int) -> Split:
    encoder = make(split.X, seed)
    X = np.asarray(encoder.fit_transform(split.X, split.y), np.float32)
    return Split(X, split.y, np.asarray(encoder.transform(split.X_test), np.float32), split.y_test)


def fitted_error(split: Split, landmarks: int, seed: int, **settings: object) -> float:
    model = KernelRidgeClassifier if split.y.dtype == object else KernelRidge
    est = model(
        landmarks=landmarks, random_state=seed, standardize=False, solver="direct", **settings
    )
    return error(est.fit(split.X, split.y).predict(split.X_test), split.y_test)


def chosen(split: Split, seed: int) -> dict[str, object]:
    """Return the kernel, lengthscale and penalty of least error on the second part."""
    part = split.X[np.random.default_rng(seed).permutation(len(split.X))[:1000]].astype(np.float64)
    median, l1 = (float(np.median(pdist(part, metric))) for metric in ("euclidean", "cityblock"))
    grid = [
        {
            "kernel": kernel,
            "lengthscale": c * (median if kernel == "gaussian" else l1),
            "penalty": p,
        }
        for kernel in KERNELS
        for c in MULTIPLES
        for p in PENALTIES
    ]
    return min(grid, key=lambda settings: fitted_error(split, CHOICE_LANDMARKS, seed, **settings))


def kernel_row(name: str, split: Split, what: str, seed: int) -> Row:
    make = ENCODERS[what]
    settings = chosen(encoded(make, split.held_out(seed), seed), seed)
    start = time.process_time()
    whole = encoded(make, split, seed)
    after = time.process_time()
    row: Row = {"set": name, "what": what, "seed": seed, "features": whole.X.shape[1]}
    row["error"] = fitted_error(whole, LANDMARKS, seed, **settings)
    row["CPU s to encode"] = after - start
    return shown(row | settings)


def boosting_row(name: str, split: Split, seed: int) -> Row:
    labels = split.y.dtype == object
    model = HistGradientBoostingClassifier if labels else HistGradientBoostingRegressor
    X, X_test = most_frequent(split)
    # early stopping takes no class of a single row
    counts = pd.Series(split.y).map(pd.Series(split.y).value_counts()).to_numpy()
    some = counts > 1 if labels else np.ones(len(X), bool)
    est = model(categorical_features="from_dtype", random_state=seed).fit(X[some], split.y[some])
    row: Row = {"set": name, "what": "boosting", "seed": seed, "features": X.shape[1]}
    return shown(row | {"error": error(est.predict(X_test), split.y_test)})


def most_frequent(split: Split) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return tables with at most 255 levels of each category, as boosting takes no more."""
    X, X_test = split.X.copy(), split.X_test.copy()
    for name in X.select_dtypes("category"):
        levels = X[name].value_counts().index[:250]
        for table in (X, X_test):
            table[name] = table[name].cat.set_categories(list(levels))
    return X, X_test


def summary(rows: list[Row]) -> list[Row]:
    """Return mean and range over seeds."""
    table = pd.DataFrame(rows).groupby(["set", "what"], sort=False)
    return [
        {
            "set": name, "what": what, "features": int(part["features"].iloc[0]),
            "error": float(part["error"].mean()), "least": float(part["error"].min()),
            "most": float(part["error"].max()),
        }
        for (name, what), part in table
    ]  # fmt: skip


def main(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    for seed in SEEDS[:1] if options.quick else SEEDS:
        for name in READERS:
            split = split_of(name, options.data, 2000 if options.quick else ROWS, seed)
            if split is None:
                continue
            rows.append(boosting_row(name, split, seed))
            rows += [kernel_row(name, split, what, seed) for what in ENCODERS]
        if not options.quick and rows:
            write("categories", {"Test error": summary(rows), "Each fit": rows}, NOTES)
