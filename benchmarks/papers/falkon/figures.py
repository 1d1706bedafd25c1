"""FALKON (Rudi, Carratino, Rosasco 2017): figure 1, tables 1 to 3, theorems 1 to 5."""

from __future__ import annotations

import math
from dataclasses import replace

from gramian.solvers import (
    Falkon,
    FalkonGD,
    NystromGD,
    NystromSGD,
    Nytro,
    Solver,
)

from ..item import Outcome, Scale, judged
from ..plot import Panel, Plot, line
from ..stored import sample_rows, stored_row, stored_rows
from .theorems import error_curve, landmark_problem

EPOCHS = 100
METHODS: dict[str, tuple[Solver, bool]] = {
    "Nystrom GD": (NystromGD("coefficients"), True),
    "Nystrom SGD": (NystromSGD(coordinates="coefficients", batch=100), True),
    "NYTRO GD": (Nytro(), False),
    "NYTRO SGD": (NystromSGD(batch=100), False),
    "NYTRO CG": (Nytro("cg"), False),
    "basic FALKON": (FalkonGD(preconditioner_penalty=None), True),
}
"""Contenders of figure 1, and whether they have the penalty; the others stop early."""


def figure_1(scale: Scale) -> Outcome:
    n, m, epochs = scale.size(2000, 20_000), scale.size(200, 1000), scale.size(50, EPOCHS)
    X, y, X_test, y_test, name = sample_rows(scale, "beijing_pm25", n)
    problem = landmark_problem(X, y, m, 1e-6)
    best = min(error_curve(Falkon(), problem, X_test, y_test, 50))
    reached, curves = {}, {}
    for method, (solver, penalised) in {"FALKON": (Falkon(), True), **METHODS}.items():
        given = problem if penalised else replace(problem, penalty=0.0)
        errors = error_curve(solver, given, X_test, y_test, epochs)
        curves[method] = line(range(1, len(errors) + 1), errors)
        enough = [i for i, error in enumerate(errors, 1) if error <= 1.05 * best]
        reached[method] = enough[0] if enough else None
    shown = ", ".join(f"{k} {v if v else f'over {epochs}'}" for k, v in reached.items())
    counts = [v or epochs + 1 for k, v in reached.items() if k != "FALKON"]
    return judged(
        f"epochs to within 5 % of FALKON's least test RMSE: {shown}",
        reached["FALKON"] is not None and reached["FALKON"] < min(counts),
        f"{name}, n = {n:,}, M = {m:,}, penalty 1e-6 for all with a penalty",
        "another method was as fast",
        Plot(
            "figure 1", "Test error by iterations of FALKON, gradient descent, SGD and NYTRO",
            [Panel("iterations, epochs", "test RMSE", curves, log="y")],
        ),
    )  # fmt: skip


def seconds_slopes(scale: Scale) -> Outcome:
    row = stored_row("slopes", "Slopes", contender="falkon")
    return judged(
        f"seconds grow as n^{row['n']:.2f} and M^{row['M']:.2f}",
        row["n"] <= 1.1 and row["M"] <= 3,
        "benchmark `slopes`: n = 100,000 to 400,000, M = 400 to 1,600, where n M t dominates M³",
        "other work on the machine",
    )


def memory(scale: Scale) -> Outcome:
    rows = stored_rows("large_rivals", "One gigabyte", method="FALKON")
    return Outcome(
        f"8 M² bytes and a block: {rows[0]['what']}",
        "reproduced",
    )


def against_others(scale: Scale) -> Outcome:
    """Table 2 in kind: FALKON against divide and conquer and random features."""
    rows = [row for row in stored_rows("baselines", "Test error and AUC") if row["RMSE"]]
    least: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["set"] != "higgs_11k":
            errors = least.setdefault(row["set"], {})
            errors[row["method"]] = min(errors.get(row["method"], math.inf), row["RMSE"])
    shown = "; ".join(
        f"{name}: " + ", ".join(f"{method} {error:.3g}" for method, error in errors.items())
        for name, errors in least.items()
    )
    return judged(
        f"least test RMSE, {shown}",
        all(errors["FALKON"] <= 1.005 * min(errors.values()) for errors in least.values()),
        "benchmark `baselines`, 20,000 rows; Million Songs is not available",
        "another method has a lower error on some set",
    )


def auc(scale: Scale) -> Outcome:
    """Table 3: AUC on HIGGS with one width."""
    rows = stored_rows("baselines", "Test error and AUC", set="higgs_11k", method="FALKON")
    best = max(row["AUC"] for row in rows)
    return Outcome(
        f"AUC {best:.3f} with one width",
        "in kind",
        "higgs_11k: 7,000 training rows in place of 1.1e7, M = 2,000 in place of 1e5",
    )


def auc_learned_widths(scale: Scale) -> Outcome:
    """Table 3: a diagonal matrix of widths, learned on the training rows, against one width."""
    from sklearn.metrics import roc_auc_score

    from gramian import KernelRidge

    n, m = scale.size(2000, 8000), scale.size(200, 1000)
    X, y, X_test, y_test, name = sample_rows(scale, "higgs_11k", n)
    labels = y_test[:, 0] > 0
    found = {}
    for key, metric in (("one width", None), ("learned widths", "gradients")):
        est = KernelRidge(
            "gaussian", lengthscale="median", penalty=1e-4, landmarks=m, metric=metric,
            random_state=0,
        )  # fmt: skip
        est.fit(X, y[:, 0])
        found[key] = float(roc_auc_score(labels, est.predict(X_test)))
    shown = ", ".join(f"{key} {value:.3f}" for key, value in found.items())
    return judged(
        f"AUC: {shown}",
        found["learned widths"] > found["one width"],
        f"{name}, n = {len(X):,}, M = {m:,}; widths from gradients of the predictor",
        "so few rows do not determine the widths",
    )


def sparse_text(scale: Scale) -> Outcome:
    row = stored_row("text", "Reviews", rows=1_500_000, contender="linear, 5,000 landmarks")
    return Outcome(
        f"1.5 million generated reviews of 65 million sparse features, linear kernel, M = 5,000: "
        f"{row['cpu_s']:.0f} CPU s, {row['MB']:,.0f} MB",
        "in kind",
        "benchmark `text`; the reviews of YELP are not available",
    )


def leverage_landmarks(scale: Scale) -> Outcome:
    rows = stored_rows("selectors", "Summary", selector="recursive_rls")
    shown = ", ".join(f"M = {row['M']}: {row['relative error']:.3f}" for row in rows)
    return judged(
        f"error relative to uniform landmarks, mean of six sets: {shown}",
        all(row["relative error"] < 1 for row in rows),
        "benchmark `selectors`, 20,000 rows",
        "scores of these sets are flat",
    )
