"""Real regression sets, standardized; the three largest are the standard ones here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

NAMES = ("beijing_pm25", "nycflights", "airs_co2")

# Test RMSE and MAE of scikit-learn's HistGradientBoostingRegressor with default settings on the raw
# features, and of the mean, on the same split.
BOOSTING = {
    "beijing_pm25": (29.13, 18.91),
    "nycflights": (34.51, 20.63),
    "airs_co2": (3.205, 2.485),
}
MEAN = {"beijing_pm25": (80.4, 59.21), "nycflights": (44.98, 28.11), "airs_co2": (3.776, 2.906)}


def data_set(folder: str, name: str) -> Path | None:
    """Return the file of a real set; say so and return None where it is missing."""
    path = Path(folder) / f"{name}.parquet"
    if path.is_file():
        return path
    print(
        f"skipped: there is no {path}; give the folder of the data sets with --data "
        "(`python -m benchmarks data` says where each is from)"
    )
    return None


@dataclass
class Split:
    """Rows and centered targets of a training and a test part."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load(path: Path, dtype: str = "float32") -> Split:
    """Read the numbers of a set; features get mean 0 and deviation 1, targets mean 0.

    Means and deviations are of the training rows.
    """
    table = pq.read_table(path).to_pandas()
    features = table.drop(columns=["target", "split"]).select_dtypes("number")
    if "lon" in features:
        features = _on_the_sphere(features)
    X, y = features.to_numpy(np.float64), table["target"].to_numpy(np.float64)
    train = table["split"].to_numpy() == 0
    scale = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(scale > 0, scale, 1)
    X, y = X.astype(dtype), (y - y[train].mean()).astype(dtype)
    return Split(X[train], y[train], X[~train], y[~train])


def _on_the_sphere(features):
    lon, lat = np.deg2rad(features["lon"]), np.deg2rad(features["lat"])
    out = features.drop(columns=["lon", "lat"])
    out["x"], out["y"] = np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon)
    return out.assign(z=np.sin(lat))


def held_out(split: Split, rows: int, seed: int = 0) -> Split:
    """Split training rows into at most `rows` to learn from and a fifth as many to choose with."""
    order = np.random.default_rng(seed).permutation(len(split.X))
    take, give = order[: len(order) // 5][: rows // 4], order[len(order) // 5 :][:rows]
    return Split(split.X[give], split.y[give], split.X[take], split.y[take])


def errors(prediction: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return RMSE and MAE."""
    residual = prediction.astype(np.float64) - y
    return float(np.sqrt((residual**2).mean())), float(np.abs(residual).mean())


def median_distance(X: np.ndarray, seed: int = 0) -> float:
    """Return the median distance within 1,000 random rows."""
    sample = X[np.random.default_rng(seed).permutation(len(X))[:1000]].astype(np.float64)
    squares = ((sample[:, None] - sample[None]) ** 2).sum(axis=2)
    return float(np.sqrt(np.median(squares[np.triu_indices(len(sample), 1)])))
