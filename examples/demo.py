"""Train, evaluate, save, load and predict on real data, through the command line: `make demo`.

The data are 20,640 blocks of Californian houses that ship with the package, with a fixed split into
training and test rows. Everything is written to ./demo-output.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pyarrow.parquet as pq
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian import KernelModel
from gramian.data import as_rows, sample_path

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path("demo-output")
TRAIN, TEST, MODEL = (FOLDER / name for name in ("train.parquet", "test.parquet", "houses.model"))
PREDICTIONS, HISTORY = FOLDER / "predictions.parquet", FOLDER / "history.json"
PLOT = FOLDER / "convergence.png"

# Chosen on rows held out from the training set. Neighbours are alike: latitude and longitude, the
# last two features, get a tenth of the lengthscale of the others.
SETTINGS = (
    "--kernel rational_quadratic --lengthscale 2.2,2.2,2.2,2.2,2.2,2.2,0.22,0.22 "
    "--penalty 1e-5 --landmarks 1000 --tol 1e-4"
)


def main() -> None:
    """Do everything once and report it."""
    split()
    fit = gramian(
        f"fit {TRAIN} --target target {SETTINGS} --validation 0.1 --history {HISTORY} --out {MODEL}"
    )
    errors = gramian(f"evaluate {MODEL} {TEST}")
    gramian(f"predict {MODEL} {TEST} --out {PREDICTIONS}")
    check_in_python()
    linear = linear_ridge()
    title = f"FALKON on California housing: {fit['rows']:,} rows, {fit['landmarks']:,} landmarks"
    plot(json.loads(HISTORY.read_text("utf-8")), title)
    rows = {
        "rows to learn from": f"{fit['rows']:,}",
        "rows of the test": f"{errors['rows']:,}",
        "landmarks": f"{fit['landmarks']:,}",
        "iterations": f"{fit['iterations']}",
        "seconds": f"{fit['seconds']:.1f}",
        "test RMSE": f"{errors['rmse']:,.0f} dollars",
        "RMSE of a linear ridge": f"{linear:,.0f} dollars",
        "RMSE of the mean": f"{errors['rmse_of_mean']:,.0f} dollars",
    }
    print()
    for name, value in rows.items():
        print(f"{name:<24}{value:>16}")
    print(f"\nThe plot of the convergence is in {PLOT}.")


def split() -> None:
    """Write training and test rows to two files."""
    FOLDER.mkdir(exist_ok=True)
    for part, path in enumerate((TRAIN, TEST)):
        rows = pq.read_table(sample_path("california_housing"), filters=[("split", "=", part)])
        pq.write_table(rows.drop_columns("split"), path)


def gramian(command: str) -> Any:
    """Run a command of the installed program, showing it, and return its report."""
    words = shlex.split(f"gramian {command} --json")
    print("$", shlex.join(words[:-1]), flush=True)
    program = Path(sys.executable).parent / words[0]
    done = subprocess.run([program, *words[1:]], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def check_in_python() -> None:
    """Load the model and predict again: the numbers must equal the output of the command line."""
    model = KernelModel.load(MODEL)
    again = model.predict(as_rows(TEST, columns=model.feature_names))[:, 0]
    np.testing.assert_array_equal(again, pq.read_table(PREDICTIONS)["prediction"].to_numpy())
    print("In Python, KernelModel.load(...).predict(...) gives the same predictions.")


def linear_ridge() -> float:
    """Return the test error of a linear ridge regression on standardised features."""
    (X, y), (X_test, y_test) = arrays(TRAIN), arrays(TEST)
    model = make_pipeline(StandardScaler(), Ridge()).fit(X, y)
    return float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))


def arrays(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and the target of a table."""
    table = pq.read_table(path)
    return np.asarray(table.drop_columns("target")), table["target"].to_numpy()


def plot(history: list[dict[str, float]], title: str) -> None:
    """Draw validation error and residual against the iterations."""
    iteration = [row["iteration"] for row in history]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    thousands = [row["valid_rmse"] / 1000 for row in history]
    left.plot(iteration, thousands, marker="o", markersize=3, color="tab:blue")
    left.axhline(thousands[-1], color="0.7", linewidth=0.8, zorder=0)
    left.set_ylabel("validation RMSE (1000 dollars)")
    left.set_ylim(bottom=0)
    left.annotate(
        f"{thousands[-1]:.1f}",
        (iteration[-1], thousands[-1]),
        xytext=(0, 7),
        textcoords="offset points",
        ha="right",
    )
    residual = [row["rel_residual"] for row in history]
    right.semilogy(iteration, residual, marker="o", markersize=3, color="tab:orange")
    right.set_ylabel("residual relative to the right-hand side")
    for axes in (left, right):
        axes.set_xlabel("iteration")
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.suptitle(title)
    figure.savefig(PLOT, dpi=150)


if __name__ == "__main__":
    main()
