"""Test error and CPU seconds on public tables with text, gaps and dates, beside boosted trees."""

from __future__ import annotations

import argparse
import importlib
import json
import math
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeClassifierCV, KernelRidgeCV

from ..lib.process import THREADS
from ..lib.results import ROOT, Row, read, shown, write
from .accuracy_contenders import PATIENCE, TREES, package, parts
from .mixed_sets import (
    ALL_TABLES,
    MixedTable,
    download_wheels,
    half_of,
    read_table,
    split_rows,
)
from .mixed_tensors import NETWORK_MODELS, network, xrfm

NAME = "mixed"
WHEELS_FOLDER = "wheels"
CPU_LIMIT_SECONDS = 900
LEVEL_LIMIT = 1000
"""Levels up to which text columns are categories of the trees; the others are left out of them."""
HIST_LEVEL_LIMIT = 255
"""The same for scikit-learn's trees, which refuse more."""

NOTES = f"""\
Tables of `mixed_sets`, as their packages have them. Four rows in five train, the others test; one
seed unless said. Regression: RMSE; classification: share of wrong labels, and log loss. CPU seconds
of one thread for fit and predictions; each fit is a process of its own, and fails after
{CPU_LIMIT_SECONDS} CPU seconds. Trees: text of at most {LEVEL_LIMIT:,} levels as native categories,
of at most {HIST_LEVEL_LIMIT} for scikit-learn's, dates as days; other text, and dates as text, are
left out. `lightgbm 1000`: at most {TREES:,} trees, stopped after {PATIENCE} without gain on a fifth
of the rows. `xrfm`, and pytabkit's RealMLP-TD-S and TabM-D, with their defaults: the columns of
LightGBM, medians and marks for missing numbers, a fifth of the rows to choose with; for xRFM a
column for each level. They have fits for every third table of the final half, ten of them, as far
as the list has these. LightGBM 4.7.0, CatBoost 1.2.10, XGBoost 3.2.0, xRFM 0.4.5, pytabkit 1.8.0.
Budgets of the searches are CPU seconds. `half`: development, or final, which chooses nothing:
gramian's default and its search of 10 s have been measured there three times: before the rules of
docs/accuracy_appendix.md (73 % and 0.909 against `lightgbm 1000` with 10 s), with them (73 % and
0.895), and with the newer encoding of names and keys. `second development` and `second final`
are of the second list, with this encoding. Ratios are geometric means of error over the other's
error, where no wrong label counts as a half; `won`: share of tables with a smaller error.
Contenders of other libraries ran on a busy machine, which lengthens their CPU seconds."""


def gramian_default(labels: bool, seed: int) -> Any:
    return KernelRidgeClassifier(random_state=seed) if labels else KernelRidge(random_state=seed)


def gramian_search(seconds: int, blend: str | None = None) -> Callable[[bool, int], Any]:
    def make(labels: bool, seed: int) -> Any:
        model = KernelRidgeClassifierCV if labels else KernelRidgeCV
        return model(budget=f"{seconds} cpu s", blend=blend, random_state=seed)

    return make


class CategoricalModel:
    """A model that takes categories; dates become days."""

    def __init__(self, model: Any, *, labels: bool, seed: int, kind: str) -> None:
        self.model, self.labels, self.seed, self.kind = model, labels, seed, kind

    def _features(self, X: pd.DataFrame) -> pd.DataFrame:
        columns = {}
        for name in X:
            column = X[name]
            if pd.api.types.is_datetime64_any_dtype(column):
                columns[name] = (column - pd.Timestamp(0)).dt.total_seconds() / 86400
            elif pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
                columns[name] = column.astype(float)
            elif name in self.levels:
                columns[name] = self._categories(column, self.levels[name])
        return pd.DataFrame(columns)

    def _categories(self, column: pd.Series, levels: pd.Index) -> pd.Series:
        texts = column.astype(object).where(column.notna(), None).map(str, na_action="ignore")
        if self.kind == "catboost":
            return texts.fillna("missing").astype(str)
        return pd.Series(pd.Categorical(texts, categories=levels), index=column.index)

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> CategoricalModel:
        self.levels = {}
        for name in X:
            if not (pd.api.types.is_numeric_dtype(X[name]) or X[name].dtype.kind in "Mb"):
                levels = pd.Index(sorted(X[name].dropna().astype(object).map(str).unique()))
                if len(levels) <= (HIST_LEVEL_LIMIT if self.kind == "hist" else LEVEL_LIMIT):
                    self.levels[name] = levels
        features = self._features(X)
        if self.kind == "catboost":
            self.model.fit(features, y, cat_features=list(self.levels))
        elif self.kind == "stopped":
            fit, held = parts(y, self.seed)
            held = held[np.isin(y[held], y[fit])] if self.labels else held
            stop = package("lightgbm").early_stopping(PATIENCE, verbose=False)
            self.model.fit(
                features.iloc[fit], y[fit],
                eval_set=[(features.iloc[held], y[held])], callbacks=[stop],
            )  # fmt: skip
        else:
            self.model.fit(features, y)
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict(self._features(X))).ravel()

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict_proba(self._features(X)))

    @property
    def classes_(self) -> np.ndarray:
        return np.asarray(self.model.classes_)


def lightgbm(labels: bool, seed: int, **settings: Any) -> Any:
    library = package("lightgbm")
    model = library.LGBMClassifier if labels else library.LGBMRegressor
    return model(n_jobs=1, random_state=seed, verbose=-1, **settings)


def catboost(labels: bool, seed: int) -> Any:
    library = package("catboost")
    model = library.CatBoostClassifier if labels else library.CatBoostRegressor
    return model(thread_count=1, random_seed=seed, verbose=False, allow_writing_files=False)


def xgboost(labels: bool, seed: int) -> Any:
    library = package("xgboost")
    model = library.XGBClassifier if labels else library.XGBRegressor
    return model(n_jobs=1, random_state=seed, enable_categorical=True, tree_method="hist")


def hist(labels: bool, seed: int) -> Any:
    if labels:
        return HistGradientBoostingClassifier(random_state=seed, categorical_features="from_dtype")
    return HistGradientBoostingRegressor(random_state=seed, categorical_features="from_dtype")


CONTENDERS: dict[str, Callable[[bool, int], Any]] = {
    "mean": lambda labels, seed: DummyClassifier() if labels else DummyRegressor(),
    "gramian": gramian_default,
    "gramian 10 s": gramian_search(10),
    "gramian 10 s, blend": gramian_search(10, "lightgbm"),
    "gramian 30 s": gramian_search(30),
    "gramian 60 s": gramian_search(60),
    "lightgbm": lambda labels, seed: CategoricalModel(
        lightgbm(labels, seed), labels=labels, seed=seed, kind="lightgbm"
    ),
    "lightgbm 1000": lambda labels, seed: CategoricalModel(
        lightgbm(labels, seed, n_estimators=TREES), labels=labels, seed=seed, kind="stopped"
    ),
    "catboost": lambda labels, seed: CategoricalModel(
        catboost(labels, seed), labels=labels, seed=seed, kind="catboost"
    ),
    "xgboost": lambda labels, seed: CategoricalModel(
        xgboost(labels, seed), labels=labels, seed=seed, kind="xgboost"
    ),
    "hist gradient boosting": lambda labels, seed: CategoricalModel(
        hist(labels, seed),
        labels=labels, seed=seed, kind="hist",
    ),
    "xrfm": lambda labels, seed: CategoricalModel(
        xrfm(labels, seed), labels=labels, seed=seed, kind="xrfm"
    ),
    **{
        name: lambda labels, seed, name=name: CategoricalModel(
            network(labels, seed, name), labels=labels, seed=seed, kind=name
        )
        for name in NETWORK_MODELS
    },
}  # fmt: skip
DEFAULT_CONTENDER = "gramian"
PEER_CONTENDERS = (
    "lightgbm 1000",
    "lightgbm",
    "catboost",
    "xgboost",
    "hist gradient boosting",
    "xrfm",
    *NETWORK_MODELS,
)

FIRST_SEED = 0
"""Seed of all tables; some tables have further seeds."""

USUAL = (
    "gramian 10 s", "lightgbm 1000", "lightgbm", "gramian", "hist gradient boosting", "catboost",
)  # fmt: skip


def fit_once(table: MixedTable, contender: str, seed: int, folder: Path) -> Row:
    """Fit, predict the test rows, and return error and CPU seconds."""
    X, y = read_table(table, folder)
    train, test = split_rows(len(y), seed)
    codes, classes = pd.factorize(y, sort=True)
    numbers = codes if table.is_classification else y.to_numpy(float)
    model = CONTENDERS[contender](table.is_classification, seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X.iloc[train], numbers[train])
        prediction = np.asarray(model.predict(X.iloc[test])).ravel()
    seconds = time.process_time() - start
    row: Row = {"rows": len(train), "columns": X.shape[1]}
    if table.is_classification:
        row["error"] = float((prediction != numbers[test]).mean())
        row["log_loss"] = log_loss(model, X.iloc[test], numbers[test], len(classes))
    else:
        row["error"] = float(np.sqrt(np.mean((prediction - numbers[test]) ** 2)))
    return row | {"cpu_s": seconds}


def log_loss(model: Any, X: pd.DataFrame, y: np.ndarray, count: int) -> float:
    probabilities = np.zeros((len(y), count))
    probabilities[:, np.asarray(model.classes_, int)] = model.predict_proba(X)
    chosen = np.take_along_axis(probabilities, y[:, None].astype(int), axis=1)
    return float(-np.log(np.clip(chosen, 1e-6, 1)).mean())


class Worker:
    """A process with one thread, which forks a process of bounded CPU seconds for each fit.

    Imports take longer than most of the fits, so they are made once.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            env=os.environ | dict.fromkeys(THREADS, "1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def fit(self, table: MixedTable, contender: str, seed: int, folder: Path) -> Row:
        """Return the result of `fit_once`, or how it failed."""
        key: Row = {
            "table": table.name, "half": half_of(table),
            "kind": "classes" if table.is_classification else "numbers",
            "contender": contender, "seed": seed,
        }  # fmt: skip
        jobs, results = self._process.stdin, self._process.stdout
        if jobs is None or results is None:
            raise RuntimeError("the worker has no pipes")
        jobs.write(json.dumps([table.name, contender, seed, str(folder)]) + "\n")
        jobs.flush()
        result: Row = json.loads(results.readline())
        return key | result


def serve_fits() -> None:
    """Fit each job of standard input in a forked process, and print its result."""
    for name in ("lightgbm", "catboost", "gramian.fitting", "gramian.fitting.search.fit"):
        importlib.import_module(name)
    contexts = multiprocessing.get_context("fork")
    for line in sys.stdin:
        receiver, sender = contexts.Pipe(duplex=False)
        process = contexts.Process(target=_fit_job, args=(line, sender))
        process.start()
        sender.close()
        try:
            result = receiver.recv()
        except EOFError:
            process.join()
            reason = f"exit status {process.exitcode}"
            if process.exitcode == -signal.SIGXCPU:
                reason = f"more than {CPU_LIMIT_SECONDS} CPU seconds"
            result = {"failed": reason}
        process.join()
        print(json.dumps(result), flush=True)


def _fit_job(line: str, sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_SECONDS, CPU_LIMIT_SECONDS + 5))
    name, contender, seed, folder = json.loads(line)
    table = next(t for t in ALL_TABLES if t.name == name)
    try:
        sender.send(fit_once(table, contender, seed, Path(folder)))
    except Exception as error:
        sender.send({"failed": f"{type(error).__name__}: {error}"[:200]})


def least_error(row: Row) -> float:
    """Return half a wrong label of the test rows, a quarter as many as the training rows."""
    return 0.5 / (row["rows"] / 4) if row["kind"] == "classes" else 1e-12


def ratios(rows: list[Row], half: str, other: str) -> list[Row]:
    """Return share won and geometric mean of errors against another contender."""
    errors = {
        (r["table"], r["contender"], r["seed"]): max(r["error"], least_error(r))
        for r in rows
        if r["half"] == half and r["seed"] == FIRST_SEED and "error" in r
    }
    table = []
    for contender in CONTENDERS:
        pairs = [
            (error, errors[name, other, seed])
            for (name, who, seed), error in errors.items()
            if who == contender and (name, other, seed) in errors
        ]
        if contender == other or not pairs:
            continue
        logs = [math.log(a / b) for a, b in pairs]
        table.append(
            {
                "contender": contender, "against": other, "tables": len(pairs),
                "won": sum(log < 0 for log in logs) / len(logs),
                "ratio": math.exp(sum(logs) / len(logs)), "worst": math.exp(max(logs)),
            }
        )  # fmt: skip
    return table


def seed_ratios(rows: list[Row]) -> list[Row]:
    """Return the ratio to the error of the default, over seeds, of tables with several seeds."""
    errors = {(r["table"], r["contender"], r["seed"]): r for r in rows if "error" in r}
    logs: dict[tuple[str, str], list[float]] = {}
    for (table, contender, seed), row in errors.items():
        default = errors.get((table, DEFAULT_CONTENDER, seed))
        if contender != DEFAULT_CONTENDER and default is not None:
            ratio = max(row["error"], least_error(row)) / max(default["error"], least_error(row))
            logs.setdefault((table, contender), []).append(math.log(ratio))
    return [
        {
            "table": table, "contender": contender, "seeds": len(found),
            "ratio": math.exp(np.mean(found)), "least": math.exp(min(found)),
            "largest": math.exp(max(found)),
        }
        for (table, contender), found in logs.items()
        if len(found) > 1
    ]  # fmt: skip


def main(options: argparse.Namespace) -> None:
    """Fit what is asked for and not yet measured; by default the half for development."""
    folder = Path(options.data) / WHEELS_FOLDER
    download_wheels(folder)
    only: dict[str, list[str]] = {}
    for pair in options.only:
        key, value = pair.split("=", 1)
        only.setdefault(key, []).append(value)
    rows = [] if options.fresh else read(NAME).get("fits", [])
    done = {(r["table"], r["contender"], r["seed"]) for r in rows}
    worker = Worker()
    # One contender after the other, so that an early end leaves whole contenders out, not tables.
    for contender in only.get("contender", list(USUAL)):
        for table in ALL_TABLES[:2] if options.quick else ALL_TABLES:
            if table.name not in only.get("set", [table.name]):
                continue
            if half_of(table) not in only.get("half", ["development", "second development"]):
                continue
            if (table.name, contender, options.seed) not in done:
                rows.append(shown(worker.fit(table, contender, options.seed, folder)))
                if not options.quick:
                    write_results(rows)


def write_results(rows: list[Row]) -> None:
    tables = {
        f"{half}, against {other}": ratios(rows, half, other)
        for half in dict.fromkeys(map(half_of, ALL_TABLES))
        for other in (DEFAULT_CONTENDER, *PEER_CONTENDERS)
        if any(r["half"] == half and r["contender"] == other for r in rows)
    }
    seeds = {"several seeds, against gramian": seed_ratios(rows)}
    write(NAME, tables | seeds | {"fits": rows}, NOTES)


if __name__ == "__main__":
    serve_fits()
