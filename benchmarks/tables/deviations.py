"""Standard deviations of predictions: what they are worth on six tables, and far from them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm, spearmanr

from benchmarks.lib.timing import set_blas_threads
from gramian import KernelRidge
from gramian.model.uncertainty.deviations import residual_variance

from ..lib import plots
from ..lib.results import Row
from ..lib.tables import Tables
from ..lib.timing import clock
from .accuracy_sets import Table, load, path_of

PLOTS = Path(__file__).parents[2] / "docs" / "plots"
SETS = ("concrete", "skillcraft", "california_housing", "kin40k", "elevators", "house_16h")
CENTERS = {"all rows": None, "500 landmarks": 500}
CAP = 4_000
STEPS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
COLORS = ("bless", "recursive_rls", "rpcholesky", "squeak", "recursive_rls, accelerated", "kmeans")

WORTH, UNCALIBRATED, SECONDS = "Worth", "Without calibration", "CPU seconds"
SHARES_OF_LANDMARKS = (0.05, 0.2, 0.5)
SHARE_ROWS = 1_500
SHARE_DRAWS = 10
BY_LANDMARKS = "By the share of landmarks"
BY_ERRORS = "By distance and by errors"
BY_ERRORS_ROWS = 3_000
COULOMB = {"kernel": "l1_laplacian", "standardize": False, "standardize_target": True}
MOLECULES: dict[str, dict[str, Any]] = {
    "qm7": COULOMB,
    "qm9_15k": COULOMB,
    "qm9_gap_31k": {"kernel": "tanimoto"},
    "cep_pce_30k": {"kernel": "tanimoto"},
}
AWAY, FLAGGED = "Rows moved away from the center", "Out of range"
NOTES = f"""\
`KernelRidge(landmarks=..., random_state=0)` on at most {CAP:,} random training and test rows (seed
0), one thread; `predict(X, return_std=True)` on the test part.

- rank correlation: Spearman's, of deviations with absolute errors; 1, 1.64, 1.96: shares of errors
  within so many deviations (of a normal law: 0.683, 0.899, 0.950); least, middle, most: the share
  within 1.64 by thirds of the deviations; mean: the root of the mean variance over the RMSE.
- {UNCALIBRATED}: those of a Gaussian process of the same kernel and noise N times the penalty,
  amplitude one deviation of the target, v + N penalty. Of one model the ranks are the same.
- {SECONDS}: predict with deviations, of all test rows; the first call calibrates, too.
- {AWAY}: features of test rows times so much around the mean of the training rows. Mean deviation
  in deviations of the target, and the share that is out of range.
- {FLAGGED}: test rows that are out of range, and RMSE of these and of the others.
- {BY_ERRORS}: `return_std=True` and `return_std="errors"` of the same fit, at most
  {BY_ERRORS_ROWS:,} training and test rows, all rows as centers. log density: mean logarithm of a
  normal density with these deviations, larger is better; seconds: CPU, the first call, with its
  calibration. Molecules: Coulomb matrices with `"l1_laplacian"` (qm7, qm9_15k), fingerprints with
  `"tanimoto"`. The kind of deviations was designed on rows of the training parts of eleven sets,
  among them these ten; test rows were looked at once.
- {BY_LANDMARKS}: {SHARE_DRAWS} draws of at most {SHARE_ROWS:,} training rows and as many test
  rows; z: root mean square of error / deviation of test rows; leave-one-out: the RMSE of
  `loo_predictions_` over the RMSE of test rows."""


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    titles = (WORTH, BY_ERRORS, UNCALIBRATED, FLAGGED, AWAY, BY_LANDMARKS, SECONDS)
    tables = Tables("deviations", titles, NOTES, options)
    for name in SETS[:1] if options.quick else SETS:
        if (path := path_of(options.data, name)) is None:
            continue
        for centers, landmarks in CENTERS.items():
            key = {"set": name, "centers": centers}
            if not tables.has(SECONDS, **key):
                measure(tables, key, sample(load(path, CAP)), landmarks)
        for share in SHARES_OF_LANDMARKS:
            if not tables.has(BY_LANDMARKS, set=name, share=share):
                tables.add(BY_LANDMARKS, by_landmarks(name, share, load(path, None)))
    add_by_errors(tables, options)
    if not options.quick:
        picture(tables)


def add_by_errors(tables: Tables, options: argparse.Namespace) -> None:
    for name in SETS[:1] if options.quick else (*SETS, *MOLECULES):
        path = path_of(options.data, name)
        if path is not None and not tables.has(BY_ERRORS, set=name):
            tables.add(BY_ERRORS, *by_errors(name, path))


def by_errors(name: str, path: Path) -> list[Row]:
    """Return the worth of both kinds of deviations of one fit."""
    X, y, new, truth = (part[:BY_ERRORS_ROWS] for part in sample(load(path, BY_ERRORS_ROWS)))
    est = KernelRidge(landmarks=None, random_state=0, **MOLECULES.get(name, {})).fit(X, y)
    rows: list[Row] = []
    kinds: dict[str, Any] = {"distance": True, "errors": "errors"}
    for kind, return_std in kinds.items():
        with clock() as first:
            est.predict(new[:1], return_std=return_std)
        mean, std = est.predict(new, return_std=return_std)
        off = np.abs(mean - truth)
        rank, density = float(spearmanr(std, off)[0]), float(norm.logpdf(truth, mean, std).mean())
        worth = {"rank correlation": rank, "log density": density, **shares(off, std)}
        rows.append({"set": name, "by": kind, "rows": len(y), **worth, "seconds": first.cpu})
    return rows


def sample(table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows, and as many random test rows, in float64."""
    test = np.random.default_rng(0).permutation(len(table.y_test))[:CAP]
    parts = table.X, table.y, table.X_test[test], table.y_test[test]
    return tuple(part.astype(np.float64) for part in parts)  # type: ignore[return-value]


def measure(tables: Tables, key: Row, data: Any, landmarks: int | None) -> None:
    """Add the rows of one fit."""
    X, y, new, truth = data
    with clock() as fit:
        est = KernelRidge(landmarks=landmarks, random_state=0).fit(X, y)
    with clock() as plain:
        mean = est.predict(new)
    with clock() as first:
        est.predict(new[:1], return_std=True)
    with clock() as both:
        std = est.predict(new, return_std=True)[1]
    off = np.abs(mean - truth)
    tables.add(
        WORTH, {**key, "rank correlation": float(spearmanr(std, off)[0]), **shares(off, std)}
    )
    tables.add(UNCALIBRATED, {**key, **shares(off, raw(est, new, len(y)))})
    far = est.out_of_range(new)
    errors = {"out of range": rms(off[far]), "others": rms(off[~far])}
    tables.add(FLAGGED, {**key, "share": float(far.mean()), **errors})
    tables.add(AWAY, *away(est, key, X, y, new[:500]))
    cpu = {"fit": fit.cpu, "predict": plain.cpu, "first call": first.cpu, "with std": both.cpu}
    tables.add(SECONDS, {**key, "rows": len(y), "test rows": len(truth), **cpu})


def by_landmarks(name: str, share: float, table: Table) -> Row:
    """Return the calibration of fits whose landmarks are this share of the rows, over draws.

    Errors of house prices have heavy tails: z of single draws is between 0.8 and 1.2.
    """
    X = np.concatenate([table.X, table.X_test]).astype(np.float64)
    y = np.concatenate([table.y, table.y_test]).astype(np.float64)
    squares: dict[str, list[float]] = {"z": [], "left out": [], "fresh": []}
    for seed in range(SHARE_DRAWS):
        order = np.random.default_rng(seed).permutation(len(y))
        rows = min(SHARE_ROWS, 2 * len(y) // 3)
        train, test = order[:rows], order[rows : 2 * rows]
        est = KernelRidge(landmarks=int(share * rows), random_state=seed).fit(X[train], y[train])
        mean, std = est.predict(X[test], return_std=True)
        squares["z"].append(rms((mean - y[test]) / std) ** 2)
        squares["left out"].append(rms(est.loo_predictions_ - y[train]) ** 2)
        squares["fresh"].append(rms(mean - y[test]) ** 2)
    z, left_out, fresh = (float(np.mean(values)) ** 0.5 for values in squares.values())
    return {"set": name, "share": share, "z": z, "leave-one-out": left_out / fresh}


def shares(off: np.ndarray, std: np.ndarray) -> Row:
    """Return how often errors are within deviations, and by thirds of these."""
    inside = {f"{k:g}": float(np.mean(off <= k * std)) for k in (1.0, 1.64, 1.96)}
    thirds = np.array_split(np.argsort(std, kind="stable"), 3)
    by_third = [float(np.mean(off[rows] <= 1.64 * std[rows])) for rows in thirds]
    named = dict(zip(("least", "middle", "most"), by_third, strict=True))
    return {**inside, **named, "mean": rms(std) / rms(off)}


def raw(est: KernelRidge, X: np.ndarray, n: int) -> np.ndarray:
    """Return deviations of the Gaussian process, as nothing has calibrated them."""
    (part,) = est.model_.parts
    _, v = residual_variance(part, part.rows(X), "auto", 1 << 30)
    scale = 1.0 if part.target_scale is None else float(part.target_scale[0])
    found: np.ndarray = scale * np.sqrt(v + n * est.penalty_)
    return found


def away(est: KernelRidge, key: Row, X: np.ndarray, y: np.ndarray, new: np.ndarray) -> list[Row]:
    """Return mean deviations of rows that are moved from the center of the data."""
    center, rows = X.mean(axis=0), []
    for step in STEPS:
        moved = center + step * (new - center)
        std = est.predict(moved, return_std=True)[1]
        flagged = float(est.out_of_range(moved).mean())
        found = {"deviation": float(std.mean() / y.std()), "out of range": flagged}
        rows.append({**key, "times": step, **found})
    return rows


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if len(values) else float("nan")


def picture(tables: Tables) -> None:
    """Draw deviations and the share out of range against the distance, of all rows as centers."""
    figure, axes = plots.subplots(1, 2, width=10, height=3.6)
    for name, color in zip(SETS, COLORS, strict=True):
        rows = [r for r in tables[AWAY] if r["set"] == name and r["centers"] == "all rows"]
        for axis, column in zip(axes, ("deviation", "out of range"), strict=True):
            points = [row["times"] for row in rows], [row[column] for row in rows]
            axis.plot(*points, "o-", color=plots.COLORS[color], markersize=3.5, label=name)
    for axis in axes:
        axis.set_xscale("log")
        axis.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
        axis.minorticks_off()
        axis.set_xlabel("distance from the center of the data, times")
        axis.set_ylim(bottom=0)
    axes[0].set_title("mean standard deviation, in deviations of the target")
    axes[1].set_title("share of rows that are out of range")
    axes[1].legend(fontsize=8, loc="lower right")
    plots.save(figure, PLOTS / "deviations.png")
